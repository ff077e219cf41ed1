//! Time of one thread, for those that sum it up by what it was lost to.

use luc_events::{Pid, Tgid, WaitCause};

use super::{Sums, is_storage};

/// Time of a recorded thread, by what it did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadTime {
    pub(crate) thread: Pid,
    pub(crate) process: Tgid,
    pub(super) sums: Sums,
}

impl ThreadTime {
    pub(super) fn of(thread: Pid, process: Tgid, sums: Sums) -> Self {
        Self { thread, process, sums }
    }

    /// Returns its time blocked by a cause.
    pub(crate) fn blocked_ns(&self, cause: WaitCause) -> u64 {
        self.sums.blocked[usize::from(cause.code())]
    }

    /// Returns its waits for files and disks, with those for locks of the kernel.
    pub(crate) fn storage_ns(&self) -> u64 {
        let causes = WaitCause::ALL.iter().zip(self.sums.blocked);
        let of_storage =
            causes.filter(|&(&cause, _)| is_storage(cause) || cause == WaitCause::KernelLock);
        of_storage.fold(0, |sum, (_, ns)| sum.saturating_add(ns))
    }

    pub(crate) fn runnable_ns(&self) -> u64 {
        self.sums.runnable
    }

    pub(crate) fn cpu_ns(&self) -> u64 {
        self.sums.user.saturating_add(self.sums.system)
    }

    /// Returns its waits that are too short to be followed.
    pub(crate) fn brief_ns(&self) -> u64 {
        self.sums.brief
    }
}
