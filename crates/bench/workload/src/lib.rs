//! Workloads: clients that work on files, and the latencies of their operations.
//!
//! [`workloads`] has our own, each modelled on a known benchmark. [`workers`] starts clients as threads or processes,
//! and [`latency`] measures their operations. [`scratch_directory`] makes the directory that they work in. [`fileset`]
//! keeps the state of its files.

pub mod error;
pub mod fileset;
pub mod latency;
pub mod name_suggestion;
pub mod option_units;
pub mod scratch_directory;
mod shared_memory;
pub mod workers;
pub mod workloads;

pub use error::BenchError;
