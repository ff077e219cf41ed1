//! Turns sums into activity.

use std::collections::BTreeMap;

use super::activity_sums::{ActivitySums, WatchedTaskSums};
use super::displayed_activity::{ActivityState, DiskActivity, DisplayedTask, SystemActivity};
use crate::daemon::TaskDiskUse;

/// Share of the device's time in a step from which a task counts as alone.
const MIN_ALONE_SHARE: f64 = 0.95;
/// Smallest number of bytes that gives a rate.
const MIN_BYTES: u64 = 1 << 20;
/// Share of the device's time for which the rate alone must be known to give a disk's efficiency.
const MIN_KNOWN_SHARE: f64 = 0.9;
/// Share of the device's time below which a task waits rather than uses.
const MIN_USED_SHARE: f64 = 0.02;
/// Time under fair sharing from which a task's slowdown is given, ns.
const MIN_FAIR_NS: f64 = 500e6;

/// Sums of all tasks and disks at two times, from which the displayed activity is computed.
#[derive(Debug, Default)]
pub(super) struct DisplayedActivityState {
    /// Sums at the last [`SystemActivity`].
    before: Option<ActivitySums>,
    last: Option<ActivitySums>,
    /// Time of a byte for a task alone, ns, by cgroup and disk.
    alone: BTreeMap<(String, usize), f64>,
    /// Device time of each task, by cgroup.
    fair: BTreeMap<String, FairTime>,
}

/// Device time of a task, ns.
#[derive(Clone, Copy, Debug, Default)]
struct FairTime {
    /// Time that fair sharing would have given it, ns.
    fair_ns: f64,
    got_ns: f64,
}

/// Difference of two sums on a disk; 0 if one is missing.
fn use_since(now: &WatchedTaskSums, before: Option<&WatchedTaskSums>, disk: usize) -> TaskDiskUse {
    let after = now.on.get(disk).copied().unwrap_or_default();
    let was = before.and_then(|before| before.on.get(disk)).copied().unwrap_or(after);
    TaskDiskUse {
        bytes: after.bytes.saturating_sub(was.bytes),
        requests: after.requests.saturating_sub(was.requests),
        sequential: after.sequential.saturating_sub(was.sequential),
        device_ns: after.device_ns.saturating_sub(was.device_ns),
        outstanding: after.outstanding,
    }
}

fn find<'a>(sums: &'a ActivitySums, cgroup: &str) -> Option<&'a WatchedTaskSums> {
    sums.tasks.iter().find(|task| task.cgroup == cgroup)
}

/// Whether a task wants a disk: it used it, has a request outstanding, or is frozen and has used it before.
fn wants(task: &WatchedTaskSums, used: &TaskDiskUse, disk: usize) -> bool {
    let has_used = || task.on.get(disk).is_some_and(|on| on.requests > 0);
    used.device_ns > 0 || used.outstanding > 0 || task.frozen_since_ns.is_some() && has_used()
}

impl DisplayedActivityState {
    pub(super) fn step(&mut self, now: ActivitySums) {
        let Some(last) = self.last.take() else {
            self.before = Some(now.clone());
            self.last = Some(now);
            return;
        };
        if now.at_ns <= last.at_ns {
            self.last = Some(last);
            return;
        }
        for (disk, sums) in now.disks.iter().enumerate() {
            let used = |task| use_since(task, find(&last, &task.cgroup), disk);
            let uses: Vec<(&WatchedTaskSums, TaskDiskUse)> = (now.tasks.iter())
                .map(|task| (task, used(task)))
                .filter(|(task, used)| wants(task, used, disk))
                .collect();
            let was_busy_ns = last.disks.get(disk).map_or(sums.busy_ns, |was| was.busy_ns);
            let busy_ns = sums.busy_ns.saturating_sub(was_busy_ns) as f64;
            let device_ns: u64 = uses.iter().map(|(_, used)| used.device_ns).sum();
            for (task, used) in &uses {
                let sum = self.fair.entry(task.cgroup.clone()).or_default();
                sum.fair_ns += busy_ns / uses.len() as f64;
                sum.got_ns += used.device_ns as f64;
                if used.bytes >= MIN_BYTES
                    && used.device_ns as f64 >= MIN_ALONE_SHARE * device_ns as f64
                {
                    let new = used.device_ns as f64 / used.bytes as f64;
                    let known = self.alone.entry((task.cgroup.clone(), disk)).or_insert(new);
                    *known = (*known + new) / 2.0;
                }
            }
        }
        self.fair.retain(|cgroup, _| find(&now, cgroup).is_some());
        self.alone.retain(|(cgroup, _), _| find(&now, cgroup).is_some());
        self.last = Some(now);
    }

    /// Activity since the last call.
    pub(super) fn seen(&mut self) -> SystemActivity {
        let (Some(before), Some(now)) = (&self.before, &self.last) else {
            return SystemActivity::default();
        };
        let seconds = now.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        let disks = (0..now.disks.len()).map(|disk| self.disk(before, now, disk));
        let mut tasks: Vec<DisplayedTask> = (now.tasks.iter())
            .map(|task| self.task(before, now, task))
            .filter(|task| task.state != ActivityState::Idle || task.class.is_some())
            .collect();
        tasks.sort_by(|a, b| {
            let by_share = b.share.total_cmp(&a.share);
            by_share.then_with(|| a.cgroup.cmp(&b.cgroup))
        });
        let seen = SystemActivity {
            seconds,
            daemon: now.daemon,
            unwatched: now.unwatched,
            disks: disks.collect(),
            tasks,
        };
        self.before = Some(now.clone());
        seen
    }

    fn disk(&self, before: &ActivitySums, now: &ActivitySums, disk: usize) -> DiskActivity {
        let sums = &now.disks[disk];
        let was = before.disks.get(disk).unwrap_or(sums);
        let wall_ns = (now.at_ns.saturating_sub(before.at_ns) as f64).max(1.0);
        let bytes = sums.bytes.saturating_sub(was.bytes) as f64;
        // 1. Rate and utilization.
        let mut seen = DiskActivity {
            name: sums.name.clone(),
            busy: (sums.busy_ns.saturating_sub(was.busy_ns) as f64 / wall_ns).min(1.0),
            bytes_per_s: bytes * 1e9 / wall_ns,
            ..DiskActivity::default()
        };
        // 2. Device time of all tasks, and of those whose rate alone is known.
        let (mut device_ns, mut known_ns, mut alone_ns, mut switches) = (0.0, 0.0, 0.0, 0);
        for task in &now.tasks {
            let used = use_since(task, find(before, &task.cgroup), disk);
            if !wants(task, &used, disk) {
                continue;
            }
            seen.tasks += 1;
            seen.waiting += usize::from(used.outstanding > 0 || task.frozen_since_ns.is_some());
            device_ns += used.device_ns as f64;
            if let Some(&ns_per_byte) = self.alone.get(&(task.cgroup.clone(), disk)) {
                known_ns += used.device_ns as f64;
                alone_ns += (used.bytes as f64 * ns_per_byte).min(used.device_ns as f64);
                switches += used.requests.saturating_sub(used.sequential);
            }
        }
        // 3. Efficiency, if enough is known.
        if known_ns > 0.0 && known_ns >= MIN_KNOWN_SHARE * device_ns {
            let efficiency = alone_ns / known_ns;
            seen.efficiency = Some(efficiency);
            seen.switch_ns = (switches > 0).then(|| (known_ns - alone_ns) / switches as f64);
            seen.lost_bytes_per_s =
                (efficiency > 0.0).then(|| seen.bytes_per_s * (1.0 / efficiency - 1.0));
        }
        seen
    }

    fn task(
        &self,
        before: &ActivitySums,
        now: &ActivitySums,
        task: &WatchedTaskSums,
    ) -> DisplayedTask {
        let was = find(before, &task.cgroup);
        let wall_ns = (now.at_ns.saturating_sub(before.at_ns) as f64).max(1.0);
        let uses: Vec<TaskDiskUse> =
            (0..task.on.len()).map(|disk| use_since(task, was, disk)).collect();
        let bytes: u64 = uses.iter().map(|used| used.bytes).sum();
        let is_outstanding = uses.iter().any(|used| used.outstanding > 0);
        let by_time = |disk: &usize| (uses[*disk].device_ns, task.on[*disk].device_ns);
        let disk = (0..uses.len()).max_by_key(by_time);
        let share = disk.map_or(0.0, |disk| uses[disk].device_ns as f64 / wall_ns);
        let has_used = task.on.iter().any(|on| on.requests > 0);
        let fair = self.fair.get(&task.cgroup);
        DisplayedTask {
            cgroup: task.cgroup.clone(),
            class: task.class.clone(),
            state: if task.frozen_since_ns.is_some() {
                ActivityState::Frozen
            } else if share >= MIN_USED_SHARE {
                ActivityState::Uses
            } else if is_outstanding {
                ActivityState::Waits
            } else if bytes > 0 {
                ActivityState::Uses
            } else {
                ActivityState::Idle
            },
            why: task.why.clone(),
            disk: disk
                .filter(|_| has_used)
                .and_then(|disk| now.disks.get(disk))
                .map_or_else(String::new, |disk| disk.name.clone()),
            share: share.min(1.0),
            bytes_per_s: bytes as f64 * 1e9 / wall_ns,
            slowdown: fair
                .filter(|time| time.fair_ns >= MIN_FAIR_NS && time.got_ns > 0.0)
                .map(|time| time.fair_ns / time.got_ns),
            frozen_ns: task
                .frozen_since_ns
                .map_or(0, |since_ns| now.at_ns.saturating_sub(since_ns)),
        }
    }
}
