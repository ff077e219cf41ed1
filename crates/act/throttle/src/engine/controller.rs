//! One disk and its policy.

use std::collections::BTreeSet;

use luc_control::throttle::sample::{Policy, TaskId};

use crate::observer::Disk;

/// The policy of one disk.
pub(super) struct Controller {
    pub(super) disk: Disk,
    pub(super) policy: Box<dyn Policy>,
    /// Requests of the disk when the policy last looked.
    pub(super) requests: u64,
    pub(super) look_again_ns: u64,
    /// The tasks that have used the disk.
    pub(super) users: BTreeSet<TaskId>,
    /// When tasks that have not used the disk so far are looked at again.
    pub(super) look_at_all_ns: u64,
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controller").field("disk", &self.disk).finish_non_exhaustive()
    }
}
