//! What a look for inversions is given of a task.

use luc_control::throttle::sample::TaskId;

use crate::cgroup::Cgroup;

/// A task, as it is looked at for inversions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) id: TaskId,
    pub(crate) cgroup: &'a Cgroup,
    /// Whether it is frozen.
    pub(crate) is_frozen: bool,
    /// Whether it is protected, or has used a disk lately.
    pub(crate) is_active: bool,
}
