//! Policies that decide which tasks may use a disk, and which are frozen meanwhile.
//!
//! Pure and clockless as the other controllers, but with tables of tasks, so these allocate.
//!
//! - [`sample`]: what a policy is shown, and what it answers.

pub mod sample;
