//! SQL over the traces of many hosts.
//!
//! Every table of a trace is one table over all hosts, with a column `host`. Tables in the schema `fleet` have what
//! luc-fleet finds in all of them together, and `global_ns(host, ns)` puts times on one clock. One process answers, or a
//! cluster: the plans are the same.
//!
//! - [`Session`]: traces that can be asked.
//! - [`Directory`]: for files of our own.
//! - [`output`]: answers as text, JSON and CSV.
//! - [`TraceTable`], [`listing`]: which tables and columns there are.
//! - [`cluster`]: the same on many machines, with Ballista's scheduler and executors.

#[cfg(feature = "cluster")]
pub mod cluster;
mod derived;
mod directory;
mod error;
mod files;
mod functions;
mod global;
pub mod listing;
pub mod output;
mod schema;
mod session;

pub use directory::Directory;
pub use error::SqlError;
pub use schema::{TableColumn, TraceTable};
pub use session::{Options, Session};
