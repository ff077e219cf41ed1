//! Policies that decide which tasks may use a disk, and which are frozen meanwhile.
//!
//! Pure and clockless like the other controllers. They keep tables of tasks, so they allocate.
//!
//! - [`policy_input`]: input and output of a policy.
//! - [`fair_sojourn`]: the fair sojourn protocol, the order in which tasks run.
//! - [`forecast`]: runs a policy on a model of a disk.
//! - [`vector_points`]: how many tasks a disk can serve at a given demand.
//! - [`auto_throttle`]: the default policy.
//! - [`wise_throttling`]: the policy of the WiseThrottling paper, for comparison.
//!
//! # What a policy may do
//!
//! It gives at most one order for a task, and thaws first. It freezes nobody beyond `max_frozen_ns`, and nobody who
//! is protected or ignored. It orders nothing for a task that others have frozen. Properties on simulated disks test
//! that.
//!
//! In [`auto_throttle`], `disk_trials` finds how many tasks run at a time, `task_ranks` who is first, `running_set`
//! whose turn it is. `protected_tasks` steps back for a client that must be answered soon; `protected_tasks/gap_share` finds the
//! gaps that a 99th percentile leaves to batch.

pub mod auto_throttle;
pub mod fair_sojourn;
pub mod forecast;
pub mod policy_input;
#[cfg(test)]
mod simulated_disks;
pub mod vector_points;
pub mod wise_throttling;
