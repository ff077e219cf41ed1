//! Sums of the activity of disks and tasks.

use crate::daemon::{TaskDiskUse, ThrottleStatus};

/// Sums since some beginning, at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct ActivitySums {
    /// Time of the sums, CLOCK_MONOTONIC, ns.
    pub(super) at_ns: u64,
    /// Process of the daemon, if the sums are from one.
    pub(super) daemon: Option<u32>,
    /// Number of cgroups for which there was no room.
    pub(super) unwatched: usize,
    pub(super) disks: Vec<WatchedDiskSums>,
    pub(super) tasks: Vec<WatchedTaskSums>,
}

/// Sums of one disk.
#[derive(Clone, Debug, Default)]
pub(super) struct WatchedDiskSums {
    pub(super) name: String,
    pub(super) busy_ns: u64,
    /// Bytes read and written.
    pub(super) bytes: u64,
}

/// Sums of one task on each disk that it uses.
#[derive(Clone, Debug, Default)]
pub(super) struct WatchedTaskSums {
    /// Path of its cgroup, below the root.
    pub(super) cgroup: String,
    /// Class of the task: batch, protect or ignore; `None` if no daemon runs.
    pub(super) class: Option<String>,
    /// Beginning of its present freeze, CLOCK_MONOTONIC, ns; `None` if it is not frozen.
    pub(super) frozen_since_ns: Option<u64>,
    /// Reason of its last freeze or thaw; empty: never.
    pub(super) why: String,
    /// Its activity on each disk, in the order of [`ActivitySums::disks`].
    pub(super) on: Vec<TaskDiskUse>,
}

impl ActivitySums {
    /// Takes the sums of a daemon's status.
    pub(super) fn of(status: &ThrottleStatus) -> Self {
        let tasks = status.tasks.iter().map(|task| WatchedTaskSums {
            cgroup: task.cgroup.to_string_lossy().into_owned(),
            class: Some(task.class.clone()),
            frozen_since_ns: task.frozen_since_ns,
            why: task.why.clone(),
            on: task.on.clone(),
        });
        let disks = status.disks.iter().map(|disk| WatchedDiskSums {
            name: disk.name.clone(),
            busy_ns: (disk.busy_s * 1e9) as u64,
            bytes: disk.bytes,
        });
        Self {
            at_ns: status.at_ns,
            daemon: Some(status.process),
            unwatched: 0,
            disks: disks.collect(),
            tasks: tasks.collect(),
        }
    }
}
