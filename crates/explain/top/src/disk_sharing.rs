//! Disks that tasks share in one interval, and what a throttle does about it.
//!
//! Requests are among the recorder's events, and the analysis has the figures of each disk: nothing else is recorded or
//! read for them. The throttle's daemon writes down what it does; that file is read once an interval.

mod columns;
#[cfg(test)]
mod tests;
mod throttle_state;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use luc_events::{Dev, Tgid};
use luc_explain::{DiskContention, DiskTask, TaskSlowdown, TraceReport, UndisturbedBasis};
use serde::Serialize;

use crate::table_rows::CulpritProcess;

pub(crate) use columns::SHARED;
pub use throttle_state::{FrozenTask, ThrottleState};

/// Maximum number of tasks and of pairs that are kept of a disk.
const MAX_KEPT: usize = 8;

/// A disk for which tasks contended in an interval. Shares are fractions of 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SharedDisk {
    pub dev: Dev,
    /// The kernel's name, or the number.
    pub name: String,
    /// Share of the time in which it served requests.
    pub busy: f64,
    /// Share of the time in which it was nearly always busy and went from task to task.
    pub together: f64,
    /// Number of tasks that used it.
    pub tasks: usize,
    /// Bandwidth relative to that of the same requests without switches, in the last 10 to 20 seconds. `None` if
    /// nothing ran without switches.
    pub efficiency: Option<f64>,
    /// Predicted gain from running the tasks one after the other, by the last 10 to 20 seconds. `None` as for
    /// `efficiency`.
    pub predicted_gain: Option<f64>,
    /// Number of requests per second that followed another task's while tasks contended.
    pub switches_per_s: f64,
    /// Mean extra time of a request that followed another task's, in the last 10 to 20 seconds, in nanoseconds.
    /// `None` as for `efficiency`.
    pub switch_ns: Option<u64>,
    /// Mean time of a request from being queued to its end, in nanoseconds; `None` without one.
    pub await_ns: Option<u64>,
    /// The device's part of that, in nanoseconds. The rest is the wait for other requests.
    pub service_ns: Option<u64>,
    /// Tasks by device time, most first.
    pub users: Vec<DiskUser>,
    /// Waits while the disk served another: victim, culprit, nanoseconds per second, longest first.
    pub slowed: Vec<(CulpritProcess, CulpritProcess, f64)>,
}

/// A task's use of a shared disk in an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DiskUser {
    pub task: CulpritProcess,
    /// Share of the time in which the disk served it.
    pub device: f64,
    pub bytes_per_s: f64,
}

impl SharedDisk {
    /// Returns the share of a request's time that is not the device's; `None` without a request.
    pub fn soft(&self) -> Option<f64> {
        let (await_ns, service_ns) = (self.await_ns?, self.service_ns?);
        (await_ns > 0).then(|| 1.0 - service_ns.min(await_ns) as f64 / await_ns as f64)
    }
}

/// Returns the disks for which tasks contended from `before` to `after`, `seconds` apart, busiest first.
pub(crate) fn between(
    before: &TraceReport,
    after: &TraceReport,
    seconds: f64,
    names: &BTreeMap<Dev, String>,
) -> Vec<SharedDisk> {
    let none = DiskContention::default();
    let disks = after.disks.iter().filter_map(|disk| {
        let new = disk.contention.as_ref()?;
        let mut was = before.disks.iter().filter(|was| was.dev == disk.dev);
        let old = was.find_map(|was| was.contention.as_ref());
        let shared = shared(old.unwrap_or(&none), new, seconds)?;
        Some(SharedDisk {
            dev: disk.dev,
            name: (names.get(&disk.dev).cloned()).unwrap_or_else(|| disk.dev.to_string()),
            ..shared
        })
    });
    let mut disks: Vec<SharedDisk> = disks.collect();
    disks.sort_by(|a, b| b.busy.total_cmp(&a.busy).then(a.dev.cmp(&b.dev)));
    disks
}

/// Returns the figures of the time between two reports; `None` if tasks did not contend.
fn shared(old: &DiskContention, new: &DiskContention, seconds: f64) -> Option<SharedDisk> {
    let together_ns = new.together_ns.saturating_sub(old.together_ns);
    if together_ns == 0 {
        return None;
    }
    let of_time = |ns: u64| (ns as f64 / 1e9 / seconds).min(1.0);
    let users = users(old, new);
    let (mut requests, mut await_ns, mut service_ns) = (0, 0, 0_u64);
    for used in users.iter().filter(|used| !used.is_kernel) {
        requests += used.requests;
        await_ns += used.await_ns;
        service_ns = service_ns.saturating_add(used.device_ns);
    }
    // The cost is unknown, not 0, if nothing ran without switches.
    let is_known = new.basis != UndisturbedBasis::Unknown;
    Some(SharedDisk {
        busy: of_time(new.busy_ns.saturating_sub(old.busy_ns)),
        together: of_time(together_ns),
        tasks: users.iter().filter(|used| !used.is_kernel).count(),
        efficiency: is_known.then_some(new.efficiency),
        predicted_gain: is_known.then_some(new.gain),
        switches_per_s: new.switches.saturating_sub(old.switches) as f64 / seconds,
        switch_ns: is_known.then_some(new.switch_cost_ns),
        await_ns: await_ns.checked_div(requests),
        service_ns: service_ns.checked_div(requests),
        users: (users.into_iter().take(MAX_KEPT))
            .map(|used| DiskUser {
                task: used.task,
                device: of_time(used.device_ns),
                bytes_per_s: used.bytes as f64 / seconds,
            })
            .collect(),
        slowed: slowed(old, new, seconds),
        ..SharedDisk::default()
    })
}

/// Sums of one task over an interval.
struct Used {
    task: CulpritProcess,
    is_kernel: bool,
    requests: u64,
    bytes: u64,
    device_ns: u64,
    await_ns: u64,
}

fn users(old: &DiskContention, new: &DiskContention) -> Vec<Used> {
    let was: HashMap<Tgid, &DiskTask> =
        (old.tasks.iter()).map(|task| (task.actor.process, task)).collect();
    let none = DiskTask::default();
    let response_ns = |task: &DiskTask| task.await_ns.saturating_mul(task.requests);
    let used = new.tasks.iter().map(|task| {
        let was = was.get(&task.actor.process).copied().unwrap_or(&none);
        Used {
            task: CulpritProcess::of(&task.actor),
            is_kernel: task.is_kernel,
            requests: task.requests.saturating_sub(was.requests),
            bytes: task.bytes.saturating_sub(was.bytes),
            device_ns: task.device_ns.saturating_sub(was.device_ns),
            await_ns: response_ns(task).saturating_sub(response_ns(was)),
        }
    });
    let mut used: Vec<Used> = used.filter(|used| used.requests > 0).collect();
    used.sort_by_key(|used| Reverse(used.device_ns));
    used
}

fn slowed(
    old: &DiskContention,
    new: &DiskContention,
    seconds: f64,
) -> Vec<(CulpritProcess, CulpritProcess, f64)> {
    let key = |pair: &TaskSlowdown| (pair.victim.process, pair.culprit.process);
    let was: HashMap<(Tgid, Tgid), u64> =
        (old.slowed.iter()).map(|pair| (key(pair), pair.waited_ns)).collect();
    let pairs = new.slowed.iter().map(|pair| {
        let was_ns = was.get(&key(pair)).copied().unwrap_or(0);
        let waited_ns = pair.waited_ns.saturating_sub(was_ns);
        (
            CulpritProcess::of(&pair.victim),
            CulpritProcess::of(&pair.culprit),
            waited_ns as f64 / seconds,
        )
    });
    let mut pairs: Vec<_> = pairs.filter(|(.., waited)| *waited > 0.0).collect();
    pairs.sort_by(|a, b| b.2.total_cmp(&a.2));
    pairs.truncate(MAX_KEPT);
    pairs
}
