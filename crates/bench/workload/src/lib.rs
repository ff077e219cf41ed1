//! Workloads: clients that work on files, and the latencies of their operations.
//!
//! [`workloads`] has our own, each modelled on a known benchmark. [`workers`] starts clients as threads or processes,
//! and [`latency`] measures their operations. [`scratch`] makes the directory that they work in. [`fileset`] keeps
//! the state of its files.

pub mod error;
pub mod fileset;
pub mod latency;
pub mod nearest;
pub mod scratch;
mod shared;
pub mod units;
pub mod workers;
pub mod workloads;

pub use error::BenchError;
