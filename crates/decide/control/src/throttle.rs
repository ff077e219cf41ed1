//! Policies that decide which tasks may use a disk, and which are frozen meanwhile.
//!
//! Pure and clockless like the other controllers. They keep tables of tasks, so they allocate.
//!
//! - [`sample`]: input and output of a policy.
//! - [`fair`]: the fair sojourn protocol, the order in which tasks run.
//! - [`forecast`]: runs a policy on a model of a disk.
//! - [`vector_points`]: how many tasks a disk can serve at a given demand.
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
