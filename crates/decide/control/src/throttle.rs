//! Policies that decide which tasks may use a disk, and which are frozen meanwhile.
//!
//! Pure and clockless like the other controllers. They keep tables of tasks, so they allocate.
//!
//! - [`sample`]: input and output of a policy.
//! - [`fair`]: the fair sojourn protocol, the order in which tasks run.
//! - [`forecast`]: runs a policy on a model of a disk.
//! - [`vector_points`]: how many tasks a disk can serve at a given demand.
//! - [`auto`]: the default policy.
//! - [`wise`]: the policy of the WiseThrottling paper, for comparison.
//!
//! # What a policy may do
//!
//! It gives at most one order for a task, and thaws first. It freezes nobody beyond `max_frozen_ns`, and nobody who
//! is protected or ignored. It orders nothing for a task that others have frozen. Properties on simulated disks test
//! that.
//!
//! In [`auto`], `trial` finds how many tasks run at a time, `ranks` who is first, `token` whose turn it is. `protect`
//! steps back for a client that must be answered soon; `protect/share` finds the gaps that a 99th percentile leaves
//! to batch.

pub mod auto;
pub mod fair;
pub mod forecast;
pub mod sample;
#[cfg(test)]
mod simulated;
pub mod vector_points;
pub mod wise;
