//! The policies of an engine's disks.

use std::collections::BTreeSet;

use luc_control::throttle::policy_input::{TaskId, ThrottlePolicy};

use crate::disk_observer::ObservedDevice;

/// The policy of one disk, with its state between looks.
pub(super) struct DiskController {
    pub(super) disk: ObservedDevice,
    pub(super) policy: Box<dyn ThrottlePolicy>,
    /// Number of requests of the disk when the policy last looked.
    pub(super) requests: u64,
    pub(super) look_again_ns: u64,
    /// Tasks that have used the disk.
    pub(super) users: BTreeSet<TaskId>,
    /// Time of the next look at tasks that have not used the disk so far, ns.
    pub(super) look_at_all_ns: u64,
}

impl DiskController {
    pub(super) fn new(disk: ObservedDevice, policy: Box<dyn ThrottlePolicy>) -> Self {
        let users = BTreeSet::new();
        Self { disk, policy, requests: 0, look_again_ns: 0, users, look_at_all_ns: 0 }
    }
}

/// Position of a controller among those of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ControllerId(pub(super) usize);

impl std::fmt::Debug for DiskController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controller").field("disk", &self.disk).finish_non_exhaustive()
    }
}
