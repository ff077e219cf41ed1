//! The vocabulary of a trace: what the recorder writes down and the analysis reads.
//!
//! - [`ids`]: newtypes for devices, transactions, threads and the like.
//! - [`codes`]: enumerations with a name each, as they stand in the files.
//! - [`cause`]: why a thread slept, told by the symbol names of its kernel stack.
//! - [`tables`]: one plain struct per table, [`Event`], any of them, and [`visit_tables`], which goes through them.
//! - [`store`]: the trace on disk, as Parquet.
//! - [`ring`]: the traces of the last minutes, one after the other.
//!
//! All times are `u64` nanoseconds of CLOCK_MONOTONIC; 0 means "not known" or "did not happen".
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
