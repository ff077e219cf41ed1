//! The vocabulary of a trace, which the recorder writes and the analysis reads.
//!
//! - [`ids`]: newtypes for devices, transactions, threads and the like.
//! - [`event_kinds`]: enumerations whose values have names in the files.
//! - [`wait_cause`]: causes of a thread's sleep, by the symbol names of its kernel stack.
//! - [`tables`]: a plain struct per table, [`TraceEvent`] for a row of any table, and [`visit_tables`] for all tables.
//! - [`store`]: the trace on disk, as Parquet.
//! - [`ring`]: consecutive traces of the last minutes.
//!
//! All times are `u64` nanoseconds of CLOCK_MONOTONIC; 0 means "unknown" or "did not happen".
#![warn(missing_docs)]

pub mod event_kinds;
pub mod ids;
pub mod ring;
pub mod store;
pub mod tables;
mod trace_event;
pub mod wait_cause;

pub use ids::{Cgroup, ConnectionId, Dev, Inode, Pid, StackId, Tgid, Transaction};
pub use trace_event::{TableVisitor, TraceEvent, visit_tables};
pub use wait_cause::WaitCause;
