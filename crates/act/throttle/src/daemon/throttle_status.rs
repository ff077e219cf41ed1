//! State of the daemon, for `luc throttle status`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use luc_control::throttle::policy_input::{TaskClass, TaskId, TaskSample};
use serde::{Deserialize, Serialize};

use crate::config::class_name;
use crate::disk_observer::ObservedDevice;
use crate::engine::{OrderCount, ThrottleEngine};
use crate::kernel_clocks::now_ns;
use crate::replace_file::write_whole;

/// Path of the status file.
#[must_use]
pub fn path() -> PathBuf {
    luc_host::run_dir::path().join("throttle/status.json")
}

/// A task with its name in the status.
pub(super) struct ListedTask {
    pub(super) cgroup: PathBuf,
    pub(super) id: TaskId,
    pub(super) class: TaskClass,
}

/// State of the daemon at one moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ThrottleStatus {
    pub process: u32,
    /// Time of writing, CLOCK_MONOTONIC, ns.
    pub at_ns: u64,
    pub tasks: Vec<TaskStatus>,
    pub disks: Vec<DiskStatus>,
    /// Number of freezes and thaws, by action and reason.
    pub orders: Vec<OrderCount>,
    /// Number of cgroups that the guardian thawed.
    pub thawed_by_guardian: u64,
    /// Number of cgroups that were frozen as long as allowed.
    pub thawed_at_limit: u64,
    pub looks: u64,
    pub looking_s: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TaskStatus {
    /// Path of its cgroup, below the root.
    pub cgroup: PathBuf,
    /// Its class: batch, protect or ignore.
    pub class: String,
    pub frozen: bool,
    pub freezes: u64,
    /// Time for which it was frozen, s.
    pub frozen_s: f64,
    pub longest_frozen_s: f64,
    /// Bytes read and written, on all disks together.
    pub bytes: u64,
    /// Time that the disks have spent on its requests, s.
    pub device_s: f64,
    /// Time that its requests have waited before the disks, s.
    pub queue_s: f64,
    /// Beginning of its present freeze, CLOCK_MONOTONIC, ns; `None` if it is not frozen.
    #[serde(default)]
    pub frozen_since_ns: Option<u64>,
    /// Reason of its last freeze or thaw; empty: never.
    #[serde(default)]
    pub why: String,
    /// Its activity on each disk, in their order.
    #[serde(default)]
    pub on: Vec<TaskDiskUse>,
}

/// Activity of a task on a disk.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct TaskDiskUse {
    /// Bytes read and written.
    pub bytes: u64,
    pub requests: u64,
    /// Number of requests that continued the disk's last one.
    pub sequential: u64,
    /// Time that the disk spent on them, ns.
    pub device_ns: u64,
    /// Number of incomplete requests, plus calls of fsync in progress.
    pub outstanding: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DiskStatus {
    pub name: String,
    /// Time that it was busy, s.
    pub busy_s: f64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Number of requests that it has now.
    pub in_flight: u32,
}

impl TaskDiskUse {
    pub(crate) fn of(sample: &TaskSample) -> Self {
        let TaskSample { bytes, requests, sequential, device_ns, outstanding, .. } = *sample;
        Self { bytes, requests, sequential, device_ns, outstanding }
    }
}

impl ThrottleStatus {
    pub(super) fn of(engine: &ThrottleEngine, tasks: &[ListedTask]) -> Self {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let disks = engine.observer().disks();
        let of_task = |task: &ListedTask| {
            let (totals, frozen) = engine.totals(task.id).unwrap_or_default();
            let samples: Vec<TaskSample> =
                disks.iter().filter_map(|disk| engine.sample(task.id, disk)).collect();
            let sum = |figure: fn(&TaskSample) -> u64| samples.iter().map(figure).sum::<u64>();
            let (frozen_since_ns, reason) = engine.state(task.id);
            TaskStatus {
                cgroup: task.cgroup.clone(),
                class: class_name(task.class).to_owned(),
                frozen,
                freezes: totals.freezes,
                frozen_s: seconds(totals.frozen_ns),
                longest_frozen_s: seconds(totals.longest_ns),
                bytes: sum(|sample| sample.bytes),
                device_s: seconds(sum(|sample| sample.device_ns)),
                queue_s: seconds(sum(|sample| sample.queue_ns)),
                frozen_since_ns,
                why: reason.map_or_else(String::new, |reason| reason.name().to_owned()),
                on: samples.iter().map(TaskDiskUse::of).collect(),
            }
        };
        let of_disk = |disk: &ObservedDevice| {
            let sample = engine.observer().disk(disk);
            DiskStatus {
                name: disk.name.clone(),
                busy_s: seconds(sample.busy_ns),
                bytes: sample.bytes,
                in_flight: sample.in_flight,
            }
        };
        let counters = engine.counters();
        Self {
            process: std::process::id(),
            at_ns: now_ns(),
            tasks: tasks.iter().map(of_task).collect(),
            disks: disks.iter().map(of_disk).collect(),
            orders: counters.order_counts(),
            thawed_by_guardian: counters.thawed_by_guardian,
            thawed_at_limit: counters.thawed_at_limit,
            looks: counters.looks,
            looking_s: seconds(counters.looking_ns),
        }
    }

    pub(super) fn write(&self) -> io::Result<()> {
        write_whole(&path(), &serde_json::to_vec(self)?)
    }

    /// Reads the daemon's status; `None` if no daemon runs.
    ///
    /// # Errors
    ///
    /// Those of the system, or the file is not a status.
    pub fn read() -> io::Result<Option<Self>> {
        let Some(text) = luc_host::root_owned::read(&path())? else {
            return Ok(None);
        };
        let status: Self = serde_json::from_str(&text)?;
        let is_there = Path::new("/proc").join(status.process.to_string()).exists();
        Ok(is_there.then_some(status))
    }
}

pub(super) fn remove() {
    let _ = fs::remove_file(path());
}
