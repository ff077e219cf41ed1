//! Policies that decide which tasks may use a disk, and which are frozen meanwhile.
//!
//! Pure and clockless as the other controllers, but with tables of tasks, so these allocate.
//!
//! - [`sample`]: what a policy is shown, and what it answers.
//! - [`fair`]: the fair sojourn protocol, the order in which tasks run.
//! - [`forecast`]: what a policy would make of tasks, on a model of a disk.
//! - [`vector_points`]: how many tasks of which demand a disk bears.
//! - [`auto`]: the default policy.
//! - [`wise`]: the paper's policy, for comparison.

pub mod auto;
pub mod fair;
pub mod forecast;
pub mod sample;
#[cfg(test)]
mod simulated;
pub mod vector_points;
pub mod wise;
