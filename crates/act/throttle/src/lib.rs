//! `luc throttle`: lets tasks that slow each other down on a disk take turns.
//!
//! A task is a cgroup. The throttle stops it by `cgroup.freeze`, which takes effect on the way to user space. So a
//! frozen task never holds a kernel lock. A policy of `luc_control::throttle` decides which tasks run.
//!
//! - [`cgroup_hierarchy`], [`cgroup`]: the mounted hierarchy, and one cgroup of it.
//! - [`disk_observer`]: the activity of the tasks on the disks.
//! - [`engine`]: observes, asks the policy, and acts.
//! - [`priority_inversion`]: finds waits for a frozen task.
//! - [`frozen_record`], [`guardian_process`]: ensure that no task stays frozen.
//! - [`advise`]: predicts the throttle's actions and gain; [`learn_disk`] measures what a disk costs to share.
//! - [`daemon`]: throttles cgroups that match patterns, by a [`config`]uration.
//! - [`activity_watch`]: shows people the activity on the disks.
//! - [`run_commands`]: runs commands as tasks; [`compare_throttle`] runs them with the throttle and without.
//!
//! # From a request to a freeze
//!
//! 1. BPF programs (`luc_probe::disk_contention`) add up block I/O by watched cgroup and disk, in mapped memory. Only
//!    tasks that want events have them.
//! 2. [`engine`] shows each disk's policy the tasks that have used it, and obeys.
//! 3. [`frozen_record`] writes into a file who is frozen, before each freeze; then [`cgroup`] freezes.
//! 4. [`guardian_process`] thaws all of them when the throttle dies.
//!
//! `exempt_cgroups` says what is never frozen, `thread_tasks` makes threads of a task tasks. [`advise`] fits a model of
//! a disk to what it has seen; `luc_control::throttle::forecast` runs the same policy on that model. [`learn_disk`]
//! measures a disk by `luc bench ranking`.

#[macro_use]
extern crate luc_units;

pub mod activity_watch;
pub mod advise;
pub mod cgroup;
pub mod cgroup_hierarchy;
pub mod compare_throttle;
pub mod config;
pub mod daemon;
pub mod disk_observer;
pub mod engine;
mod error;
mod exempt_cgroups;
pub mod frozen_record;
pub mod guardian_process;
pub mod learn_disk;
mod lock_in_memory;
mod open_file_sizes;
pub mod policy_choice;
pub mod priority_inversion;
mod replace_file;
pub mod run_commands;
mod thread_tasks;

use luc_host::kernel_clocks;

pub use cgroup_hierarchy::CgroupHierarchy;
pub use error::ThrottleError;
pub use luc_control::throttle::auto_throttle::BATCH_FLOOR;
pub use policy_choice::PolicyChoice;
