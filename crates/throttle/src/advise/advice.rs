//! From what was seen to advice: who slows whom, what the throttle would do, and what would be gained.

use std::collections::BTreeMap;

use super::figures::{
    Advice, DiskAdvice, Figures, ModelFigures, ReadAhead, SeenFigures, Slowed, TaskAdvice, Worst,
};
use crate::learn::Learned;
use crate::{BATCH_FLOOR, PolicyChoice};
use luc_control::throttle::auto::Measured;
use luc_control::throttle::forecast::fit::{self, Seen};
use luc_control::throttle::forecast::{DiskModel, Nothing, Outcome, Spec, alone_ns, run};

/// The larger read-ahead of which is said whether it alone would do.
const READ_AHEAD_BYTES: u64 = 2 << 20;
/// A forecast goes on for so much longer than what was seen, ns.
const LIMIT_NS: u64 = 24 * 3_600_000_000_000;
/// Less than this is no gain: part of the time until all are done, or of WS.
const GAIN: f64 = 0.05;
/// A read-ahead that comes so near to the throttle is enough.
const ENOUGH: f64 = 1.1;
/// A disk that is busy for a smaller part of the time is not contended.
const BUSY: f64 = 0.5;

/// What was seen of a disk.
#[derive(Clone, Debug)]
pub(super) struct SeenDisk {
    pub(super) name: String,
    pub(super) has_arm: bool,
    pub(super) measured: Option<Learned>,
    pub(super) busy_ns: u64,
    pub(super) bytes: u64,
    /// By the numbers of the slow and the slowing task, ns.
    pub(super) slowed_ns: BTreeMap<(usize, usize), f64>,
    pub(super) tasks: Vec<SeenTask>,
}

/// What was seen of a task on it.
#[derive(Clone, Debug)]
pub(super) struct SeenTask {
    pub(super) name: String,
    pub(super) queue_ns: u64,
    pub(super) active_ns: u64,
    pub(super) seen: Seen,
}

impl Advice {
    pub(super) fn of(disks: Vec<SeenDisk>, watched_ns: u64, max_frozen_ns: u64) -> Self {
        Self {
            watched_s: seconds(watched_ns),
            is_interrupted: false,
            statuses: Vec::new(),
            disks: disks
                .iter()
                .filter_map(|disk| DiskAdvice::of(disk, watched_ns, max_frozen_ns))
                .collect(),
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

/// Time of each task with the throttle and without, and what follows from it.
struct Predicted {
    disk: DiskModel,
    alone_ns: Vec<u64>,
    then: Outcome,
    none: Outcome,
    ahead: Outcome,
}

impl Predicted {
    fn of(seen: &SeenDisk, tasks: &[Seen], max_frozen_ns: u64) -> Self {
        let model = seen.measured.as_ref().map(Learned::model);
        let disk = fit::disk(tasks, model.as_ref(), seen.has_arm);
        let from_ns = tasks.iter().map(|task| task.start_ns).min().unwrap_or(0);
        let specs: Vec<Spec> = tasks.iter().map(|task| fit::task(task, from_ns)).collect();
        let measured: Option<Measured> = seen.measured.as_ref().map(Learned::for_policy);
        let auto =
            PolicyChoice::Auto.controller(seen.has_arm, max_frozen_ns, BATCH_FLOOR, measured);
        let ahead: Vec<Spec> = specs
            .iter()
            .map(|spec| fit::read_ahead(spec, READ_AHEAD_BYTES))
            .collect();
        let without = |specs: &[Spec]| run(&disk, specs, &mut Nothing, LIMIT_NS);
        let none = without(&specs);
        Self {
            alone_ns: alone_ns(&disk, &specs),
            then: match auto {
                Some(mut auto) => run(&disk, &specs, auto.as_mut(), LIMIT_NS),
                None => none.clone(),
            },
            ahead: without(&ahead),
            none,
            disk,
        }
    }
}

impl DiskAdvice {
    /// `None` where no task has used it.
    fn of(seen: &SeenDisk, watched_ns: u64, max_frozen_ns: u64) -> Option<Self> {
        let users: Vec<usize> = (0..seen.tasks.len())
            .filter(|task| {
                seen.tasks[*task].seen.bytes_read + seen.tasks[*task].seen.bytes_written > 0
            })
            .collect();
        if users.is_empty() {
            return None;
        }
        let tasks: Vec<Seen> = users.iter().map(|task| seen.tasks[*task].seen).collect();
        let predicted = Predicted::of(seen, &tasks, max_frozen_ns);
        let took_ns: Vec<u64> = tasks.iter().map(|task| task.took_ns).collect();
        let first_ns = tasks.iter().map(|task| task.start_ns).min().unwrap_or(0);
        let end_ns = |task: &Seen| (task.start_ns + task.took_ns).saturating_sub(first_ns);
        let all_done_ns = tasks.iter().map(end_ns).max().unwrap_or(0);
        let now = figures(&predicted.alone_ns, &took_ns, all_done_ns);
        let then = figures(
            &predicted.alone_ns,
            &predicted.then.took_ns,
            predicted.then.makespan_ns(),
        );
        let device_ns: u64 = tasks.iter().map(|task| task.read_ns + task.write_ns).sum();
        let waited_ns: u64 = tasks
            .iter()
            .map(|task| task.took_ns.saturating_sub(task.think_ns))
            .sum();
        let ahead_s = seconds(predicted.ahead.makespan_ns());
        let mut advice = Self {
            disk: seen.name.clone(),
            busy: ratio(seen.busy_ns as f64, watched_ns as f64).min(1.0),
            efficiency: ratio(
                seen.bytes as f64 * 1e9 / predicted.disk.bytes_per_s,
                seen.busy_ns as f64,
            ),
            soft: 1.0 - ratio(device_ns as f64, waited_ns.max(device_ns) as f64),
            model: ModelFigures {
                bytes_per_s: predicted.disk.bytes_per_s,
                near_s: seconds(predicted.disk.near_ns),
                far_s: seconds(predicted.disk.far_ns),
                slots: predicted.disk.slots,
            },
            is_learned: seen.measured.is_some(),
            tasks: Vec::new(),
            slowed: slowed(seen, &users),
            now,
            then,
            model_over_seen: ratio(predicted.none.makespan_ns() as f64, all_done_ns as f64),
            orders: predicted.then.orders,
            worst: None,
            read_ahead: ReadAhead {
                kib: READ_AHEAD_BYTES >> 10,
                all_done_s: ahead_s,
                is_enough: ahead_s <= ENOUGH * then.all_done_s
                    && ahead_s < (1.0 - GAIN) * now.all_done_s,
            },
            gains: false,
            reason: String::new(),
        };
        for (number, user) in users.iter().enumerate() {
            advice
                .tasks
                .push(task(&seen.tasks[*user], &predicted, number));
        }
        advice.worst = advice.worst_task();
        (advice.gains, advice.reason) = advice.judge();
        Some(advice)
    }

    /// The task whose time with the throttle is the largest part of what it took.
    fn worst_task(&self) -> Option<Worst> {
        let grows = |task: &TaskAdvice| ratio(task.then_s, task.now_s);
        let worst = self
            .tasks
            .iter()
            .max_by(|a, b| grows(a).total_cmp(&grows(b)))?;
        Some(Worst {
            task: worst.task.clone(),
            now_s: worst.now_s,
            then_s: worst.then_s,
        })
    }

    fn judge(&self) -> (bool, String) {
        let sooner = 1.0 - ratio(self.then.all_done_s, self.now.all_done_s);
        let speedup = ratio(self.then.weighted_speedup, self.now.weighted_speedup) - 1.0;
        if self.tasks.len() < 2 {
            return (false, "only one task uses it".to_owned());
        }
        if self.orders == 0 && self.busy < BUSY {
            let reason = format!("it is busy for {:.0} % of the time only", 100.0 * self.busy);
            return (false, reason);
        }
        if self.orders == 0 {
            return (
                false,
                "the policy would freeze nobody: together they are as fast as one after the other"
                    .to_owned(),
            );
        }
        if sooner < GAIN && speedup < GAIN {
            let reason = "neither all nor each would be done noticeably sooner: the disk loses nothing by being shared so";
            return (false, reason.to_owned());
        }
        if self.read_ahead.is_enough {
            let reason = format!(
                "read_ahead_kb = {} alone would do about as much for all, though not for each",
                self.read_ahead.kib
            );
            return (true, reason);
        }
        let reason = if sooner >= GAIN {
            format!("all are done in {:.0} % less time", 100.0 * sooner)
        } else {
            "the same work in a better order".to_owned()
        };
        (true, reason)
    }
}

fn figures(alone_ns: &[u64], took_ns: &[u64], all_done_ns: u64) -> Figures {
    let parts = alone_ns.iter().zip(took_ns);
    Figures {
        all_done_s: seconds(all_done_ns),
        weighted_speedup: parts
            .map(|(alone, took)| ratio(*alone as f64, *took as f64))
            .sum(),
        throughput_per_s: ratio(took_ns.len() as f64, seconds(all_done_ns)),
    }
}

fn task(seen: &SeenTask, predicted: &Predicted, number: usize) -> TaskAdvice {
    let of = &seen.seen;
    TaskAdvice {
        task: seen.name.clone(),
        device_s: seconds(of.read_ns + of.write_ns),
        bytes_read: of.bytes_read,
        bytes_written: of.bytes_written,
        requests: of.reads + of.writes,
        continued: 1.0 - of.jumps(),
        think_s: seconds(of.think_ns),
        alone_s: seconds(predicted.alone_ns[number]),
        now_s: seconds(of.took_ns),
        then_s: seconds(predicted.then.took_ns[number]),
        longest_frozen_s: seconds(predicted.then.longest_frozen_ns[number]),
        seen: SeenFigures {
            start_s: seconds(of.start_ns),
            reads: of.reads,
            writes: of.writes,
            continued: of.continued,
            sequential_reads: of.sequential_reads,
            sequential_bytes: of.sequential_bytes,
            sequential_s: seconds(of.sequential_ns),
            sequential_apart_s: seconds(of.sequential_apart_ns),
            read_s: seconds(of.read_ns),
            write_s: seconds(of.write_ns),
            active_s: seconds(seen.active_ns),
            queue_s: seconds(seen.queue_ns),
            undisturbed: (
                of.alone.bytes,
                of.alone.requests,
                of.alone.continued,
                seconds(of.alone.device_ns),
            ),
            writes_last: of.writes_last,
            is_size_known: of.is_size_known,
        },
    }
}

/// Who slowed whom, the most first.
fn slowed(seen: &SeenDisk, users: &[usize]) -> Vec<Slowed> {
    let number = |task: usize| Some(users.iter().position(|user| *user == task)? + 1);
    let mut all: Vec<Slowed> = seen
        .slowed_ns
        .iter()
        .filter_map(|((slow, by), ns)| {
            Some(Slowed {
                task: number(*slow)?,
                by: number(*by)?,
                seconds: ns / 1e9,
            })
        })
        .collect();
    all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    all
}
