//! Workloads and statistics that prove what LUC claims.
//!
//! [`workloads`] runs clients against a directory and measures each operation; [`powercut`] asks whether an acknowledged fsync is durable,
//! [`faults`] whether a failed write reaches the program that asked;
//! [`sweep`] repeats workloads over the points of a plan; [`selection`] says which candidate is best and how sure that
//! is, [`advise`] what to do about it; [`traced`] makes a workload of a recorded trace; [`evaluate`] drives `luc` itself and writes
//! `docs/evaluation`; [`frequency`] sets the processors, [`energy`] measures what they take.

pub mod advise;
pub mod error;
pub mod evaluate;
pub mod faults;
pub mod filebench;
mod fileset;
pub mod latency;
mod nearest;
pub mod powercut;
mod scratch;
pub mod selection;
mod shared;
mod strays;
pub mod sweep;
pub mod traced;
pub mod units;
pub mod workers;
pub mod workloads;

pub use error::BenchError;
