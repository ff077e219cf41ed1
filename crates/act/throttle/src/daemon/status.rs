//! What the daemon is doing, for `luc throttle status`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use luc_control::throttle::sample::{Class, TaskId};
use serde::{Deserialize, Serialize};

use crate::clock::now_ns;
use crate::config::class_name;
use crate::engine::{Engine, OrderCount};
use crate::whole::write_whole;

/// Where it is written.
#[must_use]
pub fn path() -> PathBuf {
    luc_host::run_dir::path().join("throttle/status.json")
}

/// The daemon's state at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    pub process: u32,
    /// When it was written, CLOCK_MONOTONIC, ns.
    pub at_ns: u64,
    pub tasks: Vec<TaskStatus>,
    pub disks: Vec<DiskStatus>,
    /// How often something was done, by action and reason.
    pub orders: Vec<OrderCount>,
    /// Cgroups that the guardian thawed.
    pub thawed_by_guardian: u64,
    /// Cgroups that were frozen for as long as is allowed.
    pub thawed_at_limit: u64,
    /// Looks at the disks.
    pub looks: u64,
    /// Time spent in them, s.
    pub looking_s: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskStatus {
    /// Its cgroup, below the root.
    pub cgroup: PathBuf,
    /// batch, protect or ignore.
    pub class: String,
    /// Whether it is frozen.
    pub frozen: bool,
    /// How often it was frozen.
    pub freezes: u64,
    /// How long in all, s.
    pub frozen_s: f64,
    /// How long at most at a time, s.
    pub longest_frozen_s: f64,
    /// Bytes that it has read and written, all disks together.
    pub bytes: u64,
    /// Time that the disks have spent on its requests, s.
    pub device_s: f64,
    /// Time that its requests have waited before the disks, s.
    pub queue_s: f64,
    /// Since when it is frozen, CLOCK_MONOTONIC, ns; none: it is not.
    #[serde(default)]
    pub frozen_since_ns: Option<u64>,
    /// Why it was frozen or thawed last; empty: never.
    #[serde(default)]
    pub why: String,
    /// What it did on each disk, in their order.
    #[serde(default)]
    pub on: Vec<UseStatus>,
}

/// What a task did on a disk.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct UseStatus {
    /// Bytes that it has read and written.
    pub bytes: u64,
    pub requests: u64,
    /// Those that continued the disk's last one.
    pub sequential: u64,
    /// The disk's time for them, ns.
    pub device_ns: u64,
    /// Requests that are not completed, and calls of fsync in progress.
    pub outstanding: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DiskStatus {
    pub name: String,
    /// Time that it was busy, s.
    pub busy_s: f64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Requests that it has now.
    pub in_flight: u32,
}

impl Status {
    pub(super) fn of(engine: &Engine, tasks: &[(PathBuf, TaskId, Class)]) -> Self {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let disks = engine.observer().disks();
        let of_task = |(cgroup, id, class): &(PathBuf, TaskId, Class)| {
            let (totals, frozen) = engine.totals(*id).unwrap_or_default();
            let samples = disks.iter().filter_map(|disk| engine.sample(*id, disk));
            let (mut bytes, mut device_ns, mut queue_ns) = (0, 0, 0);
            let mut on = Vec::new();
            for sample in samples {
                on.push(UseStatus {
                    bytes: sample.bytes,
                    requests: sample.requests,
                    sequential: sample.sequential,
                    device_ns: sample.device_ns,
                    outstanding: sample.outstanding,
                });
                bytes += sample.bytes;
                device_ns += sample.device_ns;
                queue_ns += sample.queue_ns;
            }
            let (frozen_since_ns, reason) = engine.state(*id);
            TaskStatus {
                cgroup: cgroup.clone(),
                class: class_name(*class).to_owned(),
                frozen,
                freezes: totals.freezes,
                frozen_s: seconds(totals.frozen_ns),
                longest_frozen_s: seconds(totals.longest_ns),
                bytes,
                device_s: seconds(device_ns),
                queue_s: seconds(queue_ns),
                frozen_since_ns,
                why: reason.map_or_else(String::new, |reason| reason.name().to_owned()),
                on,
            }
        };
        let counters = engine.counters();
        Self {
            process: std::process::id(),
            at_ns: now_ns(),
            tasks: tasks.iter().map(of_task).collect(),
            disks: disks
                .iter()
                .map(|disk| {
                    let sample = engine.observer().disk(disk);
                    DiskStatus {
                        name: disk.name.clone(),
                        busy_s: seconds(sample.busy_ns),
                        bytes: sample.bytes,
                        in_flight: sample.in_flight,
                    }
                })
                .collect(),
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

    /// Reads the daemon's; `None` if none runs.
    ///
    /// # Errors
    ///
    /// The system's, or the file is no status.
    pub fn read() -> io::Result<Option<Self>> {
        let Some(text) = luc_host::owned::read(&path())? else {
            return Ok(None);
        };
        let status: Self = serde_json::from_str(&text)?;
        let is_there = Path::new("/proc").join(status.process.to_string()).exists();
        Ok(is_there.then_some(status))
    }
}

/// Removes the file at the end.
pub(super) fn remove() {
    let _ = fs::remove_file(path());
}
