//! Explains a trace: the parts of each fsync's and write's time, their causes, and remedies.
//!
//! [`explain`] reads a trace once, in the order of time, and returns a [`TraceReport`]. [`Analysis`] does the same for
//! events from elsewhere, and can report at any time. An [`AnalysisObserver`] gets every call with its split once that
//! is final, for exports too large to keep.
//!
//! Memory grows with the number of threads and open transactions, and with the bytes written in a minute. It also
//! grows with the commits of each journal's last second (at least 1,024 commits). So it does with the waits of the
//! last ten seconds (at most 81,920). It does not grow with the length of the trace. `docs/how/explain.md` explains
//! how the figures are computed.

mod accounted_threads;
mod actor;
mod analysis;
mod analysis_observer;
mod batching_prediction;
mod blame_ledger;
mod call_split;
mod call_time_parts;
mod device_wait;
mod device_write_speed;
mod disk_contention;
mod fast_hash;
mod file_system_sums;
mod findings;
mod holder_losses;
mod journal_history;
mod late_callers;
mod latency_histogram;
mod line_fit;
mod merge_tables;
mod owner_traffic;
mod owners;
mod remedies;
mod report;
mod requests_in_flight;
mod root_accounts;
mod saturating_grow;
mod service_latency;
mod summary_mode;
mod sync_ways;
mod thesis_models;
mod wait_losses;
mod warnings;

use luc_events::store::{StoreError, TraceReader};

pub use accounted_threads::is_storage;
pub use actor::Actor;
pub use analysis::Analysis;
pub use analysis_observer::{AnalysisObserver, ExplainedCall, ExplainedCommit, ExplainedSync};
pub use batching_prediction::BatchingPrediction;
pub use call_time_parts::{CallTimePart, CallTimeParts};
pub use disk_contention::{DiskContention, DiskTask, TaskSlowdown, UndisturbedBasis};
pub use findings::{
    FigureUnit, Finding, FindingFigure, FindingKind, Remedy, RemedyKind, Warning, WarningKind,
};
pub use late_callers::LateCallers;
pub use latency_histogram::LatencyDistribution;
pub use report::{
    BlameReport, CallKindReport, CommitActor, CommitDetail, CommitReport, DiskReport,
    FileSystemReport, HeldTime, LostTime, OmittedRows, ProcessReport, SlowSync, SyncReport,
    TimeAccount, TimeAccounts, TraceInfo, TraceReport, WorkingTime,
};
pub use service_latency::{ServiceInterval, ServiceLatency};
pub use sync_ways::{SyncWay, SyncWayCounts};
pub use thesis_models::{FsyncModel, WriteClass, WriteModel};

/// Analyses a trace.
///
/// # Errors
/// When the trace is damaged or cannot be read.
pub fn explain(reader: &TraceReader) -> Result<TraceReport, StoreError> {
    let mut analysis = Analysis::new(reader.trace().clone());
    merge_tables::feed(reader, &mut analysis)?;
    Ok(analysis.finish())
}

/// Analyses a trace and shows every call to `observer`, roughly in the order of their ends.
///
/// # Errors
/// When the trace is damaged or cannot be read.
pub fn explain_with(
    reader: &TraceReader,
    observer: &mut dyn AnalysisObserver,
) -> Result<TraceReport, StoreError> {
    let mut analysis = Analysis::with_observer(reader.trace().clone(), observer);
    merge_tables::feed(reader, &mut analysis)?;
    Ok(analysis.finish())
}
