//! Somebody who waits for a frozen task, and for what.

use std::path::PathBuf;

use luc_control::throttle::sample::TaskId;

/// How often it is looked for while something is frozen, ns.
pub(crate) const LOOK_EVERY_NS: u64 = 20_000_000;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// A file lock: flock, or one of fcntl.
    FileLock,
    Pipe,
    Socket,
    /// A futex in shared memory.
    Futex,
}

impl Resource {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::FileLock => "a file lock",
            Self::Pipe => "a pipe",
            Self::Socket => "a socket",
            Self::Futex => "a futex",
        }
    }
}

/// Somebody who waits for a frozen task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inversion {
    pub(crate) holder: TaskId,
    /// Who waits, where that is a task.
    pub(crate) waiter: Option<TaskId>,
    /// The cgroup of whoever waits, where it is known.
    pub(crate) waiter_cgroup: Option<PathBuf>,
    pub(crate) resource: Resource,
    /// Whether the two are to be treated as one.
    pub(crate) is_usual: bool,
}
