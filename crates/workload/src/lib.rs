//! Workloads: clients that work on files, and what each operation takes.
//!
//! [`workloads`] are ours, each beside the benchmark that it is like; [`filebench`] runs Filebench's language,
//! [`traced`] makes a text in it of a recorded trace. [`workers`] starts clients as threads or processes, [`latency`]
//! has what their operations took, [`scratch`] the directory that they work in.

pub mod error;
pub mod filebench;
mod fileset;
pub mod latency;
pub mod nearest;
pub mod scratch;
mod shared;
pub mod traced;
pub mod units;
pub mod workers;
pub mod workloads;

pub use error::BenchError;
