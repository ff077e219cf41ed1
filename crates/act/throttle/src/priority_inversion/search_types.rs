//! Types that the searches for inversions share.

use std::path::PathBuf;

use luc_control::throttle::policy_input::TaskId;

use crate::cgroup::FreezableCgroup;

/// Interval between searches while a task is frozen, ns.
pub(crate) const LOOK_INTERVAL_NS: u64 = 20_000_000;

/// A task as a search for inversions sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InversionTask<'a> {
    pub(crate) id: TaskId,
    pub(crate) cgroup: &'a FreezableCgroup,
    pub(crate) is_frozen: bool,
    /// Whether it is protected, or has used a disk lately.
    pub(crate) is_active: bool,
}

/// Kind of object that a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AwaitedObject {
    /// A file lock, by flock or by fcntl.
    FileLock,
    Pipe,
    Socket,
    /// A futex in shared memory.
    Futex,
}

impl AwaitedObject {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::FileLock => "a file lock",
            Self::Pipe => "a pipe",
            Self::Socket => "a socket",
            Self::Futex => "a futex",
        }
    }
}

/// A wait for a frozen task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inversion {
    pub(crate) holder: TaskId,
    /// The waiter, if it is a task.
    pub(crate) waiter: Option<TaskId>,
    /// Cgroup of the waiter, if it is known.
    pub(crate) waiter_cgroup: Option<PathBuf>,
    pub(crate) resource: AwaitedObject,
    /// Whether the holder and the waiter should be treated as one task.
    pub(crate) should_couple: bool,
}
