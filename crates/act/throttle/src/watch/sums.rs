//! What disks and tasks have done since some beginning.

use luc_control::throttle::sample::TaskSample;

use crate::daemon::{Status, UseStatus};

/// Sums since some beginning, as of one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    /// The moment, CLOCK_MONOTONIC, ns.
    pub(super) at_ns: u64,
    /// The daemon's process, if the sums are its.
    pub(super) daemon: Option<u32>,
    /// Cgroups for which there was no room.
    pub(super) unwatched: usize,
    pub(super) disks: Vec<DiskSums>,
    pub(super) tasks: Vec<TaskSums>,
}

/// What a disk has done.
#[derive(Clone, Debug, Default)]
pub(super) struct DiskSums {
    pub(super) name: String,
    /// Time that it was busy, ns.
    pub(super) busy_ns: u64,
    /// Bytes read and written.
    pub(super) bytes: u64,
}

/// What a task has done.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskSums {
    /// Its cgroup, below the root.
    pub(super) cgroup: String,
    /// batch, protect or ignore; none where no daemon runs.
    pub(super) class: Option<String>,
    /// Since when it is frozen, CLOCK_MONOTONIC, ns; none: it is not.
    pub(super) frozen_since_ns: Option<u64>,
    /// Why it was frozen or thawed last; empty: never.
    pub(super) why: String,
    /// By disk, in the order of [`Sums::disks`].
    pub(super) on: Vec<UseSums>,
}

/// What a task has done on a disk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UseSums {
    /// Bytes of its requests.
    pub(super) bytes: u64,
    pub(super) requests: u64,
    /// Those that continued the disk's last one.
    pub(super) sequential: u64,
    /// The disk's time for them, ns.
    pub(super) device_ns: u64,
    /// Requests that are not completed, and calls of fsync in progress.
    pub(super) outstanding: u32,
}

impl Sums {
    /// Those of a daemon.
    pub(super) fn of(status: &Status) -> Self {
        let used = |on: &UseStatus| UseSums {
            bytes: on.bytes,
            requests: on.requests,
            sequential: on.sequential,
            device_ns: on.device_ns,
            outstanding: on.outstanding,
        };
        let tasks = status.tasks.iter().map(|task| TaskSums {
            cgroup: task.cgroup.to_string_lossy().into_owned(),
            class: Some(task.class.clone()),
            frozen_since_ns: task.frozen_since_ns,
            why: task.why.clone(),
            on: task.on.iter().map(used).collect(),
        });
        let disks = status.disks.iter().map(|disk| DiskSums {
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

impl UseSums {
    pub(super) fn of(sample: &TaskSample) -> Self {
        Self {
            bytes: sample.bytes,
            requests: sample.requests,
            sequential: sample.sequential,
            device_ns: sample.device_ns,
            outstanding: sample.outstanding,
        }
    }
}
