//! The vocabulary of a trace, which the recorder writes and the analysis reads.
//!
//! - [`ids`]: newtypes for devices, transactions, threads and the like.
//! - [`codes`]: enumerations whose values have names in the files.
//! - [`cause`]: causes of a thread's sleep, by the symbol names of its kernel stack.
//! - [`tables`]: a plain struct per table, [`Event`] for a row of any table, and [`visit_tables`] for all tables.
//! - [`store`]: the trace on disk, as Parquet.
//! - [`ring`]: consecutive traces of the last minutes.
//!
//! All times are `u64` nanoseconds of CLOCK_MONOTONIC; 0 means "unknown" or "did not happen".
#![warn(missing_docs)]

pub mod cause;
pub mod codes;
mod event;
pub mod ids;
pub mod ring;
pub mod store;
pub mod tables;

pub use cause::Cause;
pub use event::{Event, TableVisitor, visit_tables};
pub use ids::{Cgroup, ConnectionId, Dev, Inode, Pid, StackId, Tgid, Transaction};
