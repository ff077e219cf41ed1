//! `luc throttle`: lets tasks that slow each other down on a disk take turns.
//!
//! A task is a cgroup. The throttle stops it by `cgroup.freeze`, which takes effect on the way to user space. So a
//! frozen task never holds a kernel lock. A policy of `luc_control::throttle` decides which tasks run.
//!
//! - [`hierarchy`], [`cgroup`]: the mounted hierarchy, and one cgroup of it.
//! - [`observer`]: the activity of the tasks on the disks.
//! - [`engine`]: observes, asks the policy, and acts.
//! - [`inversion`]: finds waits for a frozen task.
//! - [`record`], [`guardian`]: ensure that no task stays frozen.
//! - [`advise`]: predicts the throttle's actions and gain; [`learn`] measures what a disk costs to share.
//! - [`daemon`]: throttles cgroups that match patterns, by a [`config`]uration.
//! - [`watch`]: shows people the activity on the disks.
//! - [`run`]: runs commands as tasks; [`compare`] runs them with the throttle and without.
//!
//! # From a request to a freeze
//!
//! 1. BPF programs (`luc_probe::contention`) add up block I/O by watched cgroup and disk, in mapped memory. Only
//!    tasks that want events have them.
//! 2. [`engine`] shows each disk's policy the tasks that have used it, and obeys.
//! 3. [`record`] writes into a file who is frozen, before each freeze; then [`cgroup`] freezes.
//! 4. [`guardian`] thaws all of them when the throttle dies.
//!
//! `exempt` says what is never frozen, `threads` makes threads of a task tasks. [`advise`] fits a model of a disk to
//! what it has seen; `luc_control::throttle::forecast` runs the same policy on that model. [`learn`] measures a disk
//! by `luc bench ranking`.

#[macro_use]
extern crate luc_units;

pub mod advise;
pub mod cgroup;
pub mod compare;
pub mod config;
pub mod daemon;
pub mod engine;
mod error;
mod exempt;
pub mod guardian;
pub mod hierarchy;
pub mod inversion;
pub mod learn;
pub mod observer;
pub mod policy;
pub mod record;
mod resident;
pub mod run;
mod sizes;
mod threads;
pub mod watch;
mod whole;

use luc_host::clock;

pub use error::ThrottleError;
pub use hierarchy::Hierarchy;
pub use luc_control::throttle::auto::BATCH_FLOOR;
pub use policy::PolicyChoice;
