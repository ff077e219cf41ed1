//! `luc throttle`: tasks that ruin each other's disk take turns.
//!
//! A task is a cgroup. It is stopped by `cgroup.freeze`, which takes effect on the way to user space and therefore
//! never while a kernel lock is held. Who runs is decided by a policy of `luc_control::throttle`.
//!
//! - [`hierarchy`], [`cgroup`]: where cgroups are, and one of them.
//! - [`observer`]: what the tasks do on the disks.
//! - [`engine`]: observes, asks the policy, acts.
//! - [`inversion`]: who waits for a frozen task.
//! - [`record`], [`guardian`]: why nobody stays frozen.
//! - [`advise`]: what it would do, and what would be gained; [`learn`]: what a disk costs to share.
//! - [`daemon`]: cgroups by pattern as tasks, by a [`config`]uration.
//! - [`watch`]: what goes on, for people who watch.
//! - [`run`]: commands as tasks; [`compare`]: with the throttle and without.

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
