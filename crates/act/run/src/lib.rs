//! Runs a command whose fsyncs share commits, and measures and explains the gain.
//!
//! [`PlannedRun`] runs a command once, under the gate, the kernel module or both. [`explain()`] and [`explain_meanwhile()`]
//! record a run and divide the time of its fsyncs. [`compare()`] makes runs with and without, in random order.

mod compare;
mod error;
mod explain;
mod level;
mod witness;

pub use compare::{Comparison, Options, Progress, compare};
pub use error::RunError;
pub use explain::{Change, Recorded, TimeSplit, explain, explain_meanwhile};
pub use level::{PassingBy, PlannedRun, RunOutcome, level_name, requested};
