//! Explains a trace: the parts of each fsync's and write's time, their causes, and remedies.
//!
//! [`explain`] reads a trace once, in the order of time, and returns a [`Report`]. [`Analysis`] does the same for
//! events from elsewhere, and can report at any time. An [`Observer`] gets every call with its split once that is
//! final, for exports too large to keep.
//!
//! Memory grows with the number of threads and open transactions, and with the bytes written in a minute. It also
//! grows with the commits of each journal's last second (at least 1,024 commits). It does not grow with the length of
//! the trace. `docs/how/explain.md` explains how the figures are computed.

mod actor;
mod analysis;
mod batching;
mod blame;
mod contention;
mod device_wait;
mod exchanges;
mod fast;
mod file_system;
mod findings;
mod fit;
mod grow;
mod histogram;
mod holders;
mod journal;
mod merge;
mod observe;
mod owners;
mod parts;
mod reach;
mod remedies;
mod report;
mod service;
mod split;
mod spread;
mod summary;
mod thesis;
mod threads;
mod traffic;
mod warnings;

use luc_events::store::{Reader, StoreError};

pub use actor::Actor;
pub use analysis::Analysis;
pub use batching::Batching;
pub use contention::{Basis, Contention, DiskTask, Slowed};
pub use exchanges::{Interval, ServiceReport};
pub use findings::{
    Evidence, Finding, FindingKind, Remedy, RemedyKind, Unit, Warning, WarningKind,
};
pub use histogram::Latency;
pub use observe::{ExplainedCall, ExplainedCommit, ExplainedSync, Observer};
pub use parts::{Part, Parts};
pub use reach::{Way, Ways};
pub use report::{
    Account, Accounts, Blame, CallReport, CommitActor, CommitDetail, CommitReport, DiskReport,
    FileSystemReport, Held, Lost, Omitted, ProcessReport, Report, SlowSync, SyncReport, TraceInfo,
};
pub use spread::Spread;
pub use thesis::{FsyncModel, WriteClass, WriteModel};
pub use threads::is_storage;

/// Analyses a trace.
///
/// # Errors
/// When the trace is damaged or cannot be read.
pub fn explain(reader: &Reader) -> Result<Report, StoreError> {
    let mut analysis = Analysis::new(reader.trace().clone());
    merge::feed(reader, &mut analysis)?;
    Ok(analysis.finish())
}

/// Analyses a trace and shows every call to `observer`, roughly in the order of their ends.
///
/// # Errors
/// When the trace is damaged or cannot be read.
pub fn explain_with(reader: &Reader, observer: &mut dyn Observer) -> Result<Report, StoreError> {
    let mut analysis = Analysis::with_observer(reader.trace().clone(), observer);
    merge::feed(reader, &mut analysis)?;
    Ok(analysis.finish())
}
