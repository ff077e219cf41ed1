//! Makes the figures of a disk that tasks share.

use std::cmp::Reverse;

use super::estimate::{self, ContentionEstimate, ContinuingRequests, UndisturbedTimes};
use super::reported_figures::{DiskContention, DiskTask, TaskSlowdown};
use super::task_requests::{ProcessKind, TaskRequests};
use super::{DiskSharing, OTHERS};
use crate::accounted_threads::AccountedThreads;
use crate::actor::Actor;

/// Maximum number of reported tasks of a disk.
const MAX_REPORTED_TASKS: usize = 20;
/// Maximum number of reported pairs of tasks of a disk.
const MAX_REPORTED_PAIRS: usize = 50;
/// Size of the read-ahead whose effect is predicted: the largest that `advise` would set.
const READ_AHEAD_BYTES: f64 = 4.0 * (1 << 20) as f64;
/// Minimum share of sequential reads where read-ahead helps.
const MIN_CONTINUING: f64 = 0.75;

impl DiskSharing {
    /// Reports on the disk so far; `None` if only one task has used it.
    pub(crate) fn report(&self, threads: &AccountedThreads) -> Option<DiskContention> {
        // One alone shares it with nobody.
        estimate::users(self).nth(1)?;
        let ContentionEstimate { switch_ns, apart_ns, basis } = estimate::estimate(self);
        let together = &self.together;
        let wall_ns = together.wall_ns as f64;
        let gain = |apart_ns: f64| {
            if apart_ns > 0.0 { (wall_ns / apart_ns - 1.0).max(0.0) } else { 0.0 }
        };
        let switches = switches(self);
        let in_play_ns: u64 = estimate::users(self)
            .map(|task| task.contended.service_ns.saturating_add(task.contended.waited_ns))
            .fold(0, u64::saturating_add);
        let saved = 1.0 - apart_ns / wall_ns.max(1.0);
        Some(DiskContention {
            busy_ns: self.busy_ns,
            together_ns: together.wall_ns,
            bytes_together: together.bytes,
            apart_ns: apart_ns as u64,
            basis,
            gain: gain(apart_ns),
            read_ahead_gain: with_read_ahead(self, switch_ns, apart_ns).map(gain),
            efficiency: 1.0 - switch_ns / (together.busy_ns as f64).max(1.0),
            switches,
            switch_cost_ns: (switch_ns / switches.max(1) as f64) as u64,
            lost_ns: (in_play_ns as f64 * saved.max(0.0)) as u64,
            tasks: tasks(self, threads),
            slowed: slowed(self, threads),
        })
    }
}

fn switches(sharing: &DiskSharing) -> u64 {
    estimate::users(sharing)
        .map(|task| task.contended.switched)
        .map(|switched| switched.continuing.count + switched.elsewhere.count)
        .sum()
}

/// Predicts the time with one switch per read-ahead. `None` if read-ahead does not help.
fn with_read_ahead(sharing: &DiskSharing, switch_ns: f64, apart_ns: f64) -> Option<f64> {
    let (mut requests, mut reading_on) = (0, 0);
    for task in estimate::users(sharing).filter(|task| task.contended.bytes > 0) {
        requests += task.requests;
        reading_on += task.continuing.min(task.read_requests);
    }
    let bytes = sharing.together.bytes as f64;
    let switches = switches(sharing) as f64;
    let left = bytes / READ_AHEAD_BYTES / switches.max(1.0);
    (reading_on as f64 >= MIN_CONTINUING * requests as f64 && left < 1.0)
        .then_some(apart_ns + switch_ns * left)
}

fn tasks(sharing: &DiskSharing, threads: &AccountedThreads) -> Vec<DiskTask> {
    let disk = ContinuingRequests::of(sharing);
    let known = (sharing.tasks.iter()).filter(|task| task.kind != ProcessKind::Unknown);
    let mut tasks: Vec<DiskTask> = known
        .map(|task| {
            let undisturbed = UndisturbedTimes::of(task, &disk);
            let (mut switched, mut waited_ns, mut switch_ns) = (0, 0, 0.0);
            for (_, from) in task.others() {
                switched += from.switched.continuing.count + from.switched.elsewhere.count;
                waited_ns += from.waited_ns;
                switch_ns += undisturbed.switch_ns(&from.switched);
            }
            DiskTask {
                actor: actor(task, threads),
                is_kernel: task.kind == ProcessKind::Kernel,
                device_ns: task.device_ns(),
                requests: task.requests,
                bytes: task.bytes(),
                continuing: task.continuing as f64 / task.requests.max(1) as f64,
                switches: switched,
                switch_ns: switch_ns.max(0.0) as u64,
                await_ns: task.response_ns / task.requests.max(1),
                service_ns: task.device_ns() / task.requests.max(1),
                undisturbed_bytes_per_s: undisturbed.bytes_per_s(),
                waited_ns,
            }
        })
        .collect();
    tasks.sort_by_key(|task| (Reverse(task.device_ns), task.actor.process));
    tasks.truncate(MAX_REPORTED_TASKS);
    tasks
}

fn slowed(sharing: &DiskSharing, threads: &AccountedThreads) -> Vec<TaskSlowdown> {
    let disk = ContinuingRequests::of(sharing);
    let mut pairs = Vec::new();
    for victim in estimate::users(sharing) {
        let undisturbed = UndisturbedTimes::of(victim, &disk);
        for (place, from) in victim.others() {
            let culprit = &sharing.tasks[place];
            if place == usize::from(OTHERS) || culprit.kind == ProcessKind::Unknown {
                continue;
            }
            let switches = from.switched.continuing.count + from.switched.elsewhere.count;
            if from.waited_ns == 0 && switches == 0 {
                continue;
            }
            pairs.push(TaskSlowdown {
                victim: actor(victim, threads),
                culprit: actor(culprit, threads),
                waited_ns: from.waited_ns,
                switches,
                switch_ns: undisturbed.switch_ns(&from.switched).max(0.0) as u64,
            });
        }
    }
    pairs.sort_by_key(|pair| {
        let lost_ns = pair.waited_ns.saturating_add(pair.switch_ns);
        (Reverse(lost_ns), pair.victim.process, pair.culprit.process)
    });
    pairs.truncate(MAX_REPORTED_PAIRS);
    pairs
}

fn actor(task: &TaskRequests, threads: &AccountedThreads) -> Actor {
    Actor {
        process: task.process,
        comm: threads.comm(task.process).to_owned(),
        cgroup: task.cgroup,
    }
}
