//! Turns observations into advice: which task slows which, what the throttle would do, and the gain.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::advice_figures::{
    DiskAdvice, ForecastFigures, ModelFigures, ObservedFigures, ReadAheadAdvice, SlowedTask,
    TaskAdvice, ThrottleAdvice, WorstTask,
};
use crate::learn_disk::DiskProfile;
use crate::{BATCH_FLOOR, PolicyChoice};
use luc_control::throttle::auto_throttle::DiskMeasurement;
use luc_control::throttle::forecast::fit_model::{self, TaskActivity};
use luc_control::throttle::forecast::{
    DiskModel, ForecastOutcome, NeverFreeze, TaskWork, alone_ns, run_beside,
};

/// Number of forecasts, whose median is the prediction. Milliseconds decide which task comes first at the disk, and so
/// which task waits.
const FORECAST_COUNT: usize = 9;
/// Largest shift of a task's start between forecasts, ns.
const MAX_START_SHIFT_NS: f64 = 20e6;
/// Size of the larger read-ahead that is tried as an alternative.
const READ_AHEAD_BYTES: u64 = 2 << 20;
/// Time limit of a forecast, ns.
const FORECAST_LIMIT_NS: u64 = 24 * 3_600_000_000_000;
/// Smallest gain that counts: part of the time until all are done, or of WS.
const MIN_GAIN: f64 = 0.05;
/// Time with a larger read-ahead over that with the throttle, up to which the read-ahead is enough.
const MAX_READ_AHEAD_RATIO: f64 = 1.1;
/// Utilization below which a disk is not contended.
const MIN_CONTENDED_UTILIZATION: f64 = 0.5;

/// Observations of a disk.
#[derive(Clone, Debug)]
pub(super) struct ObservedDisk {
    pub(super) name: String,
    pub(super) has_arm: bool,
    pub(super) measured: Option<DiskProfile>,
    pub(super) processors: usize,
    pub(super) busy_ns: u64,
    pub(super) bytes: u64,
    /// Time for which one task slowed another, ns.
    pub(super) slowed_ns: BTreeMap<SlowdownPair, f64>,
    pub(super) tasks: Vec<ObservedTask>,
}

/// Numbers of a task that was slowed and of the one that slowed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlowdownPair {
    pub(super) slow: usize,
    pub(super) by: usize,
}

/// Observations of a task on a disk.
#[derive(Clone, Debug)]
pub(super) struct ObservedTask {
    pub(super) name: String,
    pub(super) queue_ns: u64,
    pub(super) active_ns: u64,
    pub(super) seen: TaskActivity,
}

impl ThrottleAdvice {
    pub(super) fn of(disks: Vec<ObservedDisk>, watched_ns: u64, max_frozen_ns: u64) -> Self {
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

/// Mean error of modelled times, as a part of the observed ones.
fn mean_off(model_ns: &[u64], seen_ns: &[u64]) -> f64 {
    let off = |(model, seen): (&u64, &u64)| (ratio(*model as f64, *seen as f64) - 1.0).abs();
    model_ns.iter().zip(seen_ns).map(off).sum::<f64>() / seen_ns.len().max(1) as f64
}

/// Outcomes of the tasks with the throttle and without, on a model of the disk.
struct Prediction {
    disk: DiskModel,
    alone_ns: Vec<u64>,
    then: Vec<ForecastOutcome>,
    none: ForecastOutcome,
    ahead: ForecastOutcome,
}

impl Prediction {
    fn of(seen: &ObservedDisk, tasks: &[TaskActivity], max_frozen_ns: u64) -> Self {
        let model = seen.measured.as_ref().map(DiskProfile::model);
        let disk = fit_model::disk(tasks, model.as_ref(), seen.has_arm);
        let from_ns = tasks.iter().map(|task| task.start_ns).min().unwrap_or(0);
        let is_even = model.is_some() || !seen.has_arm;
        let rates = fit_model::rates_of_tasks(tasks, disk.bytes_per_s, is_even);
        let specs: Vec<TaskWork> = tasks
            .iter()
            .zip(rates)
            .map(|(task, rate)| fit_model::task(task, from_ns, Some(rate)))
            .collect();
        let measured: Option<DiskMeasurement> = seen.measured.as_ref().map(DiskProfile::for_policy);
        let ahead: Vec<TaskWork> =
            specs.iter().map(|spec| fit_model::with_read_ahead(spec, READ_AHEAD_BYTES)).collect();
        let processors = seen.processors as f64;
        let without = |specs: &[TaskWork]| {
            run_beside(&disk, processors, specs, &mut NeverFreeze, FORECAST_LIMIT_NS)
        };
        let none = without(&specs);
        let then = |number: usize| {
            let specs = shift_starts(&specs, number);
            let measured = measured.clone();
            let auto =
                PolicyChoice::Auto.controller(seen.has_arm, max_frozen_ns, BATCH_FLOOR, measured);
            match auto {
                Some(mut auto) => {
                    run_beside(&disk, processors, &specs, auto.as_mut(), FORECAST_LIMIT_NS)
                }
                None => without(&specs),
            }
        };
        Self {
            alone_ns: alone_ns(&disk, &specs),
            then: (0..FORECAST_COUNT).map(then).collect(),
            ahead: without(&ahead),
            none,
            disk,
        }
    }
}

/// Shifts the start of each task. Forecast 0 has the observed starts.
fn shift_starts(specs: &[TaskWork], number: usize) -> Vec<TaskWork> {
    let later = |(place, spec): (usize, &TaskWork)| {
        // Multiples of the golden ratio spread evenly, without randomness.
        let part = ((number * (place + 1)) as f64 * 0.618_034).fract();
        TaskWork { start_ns: spec.start_ns + (part * MAX_START_SHIFT_NS) as u64, ..*spec }
    };
    specs.iter().enumerate().map(later).collect()
}

/// Upper median of the values; 0 if there are none.
fn upper_median<T: Copy + Default>(
    values: impl Iterator<Item = T>,
    by: fn(&T, &T) -> Ordering,
) -> T {
    let mut all: Vec<T> = values.collect();
    all.sort_by(by);
    all.get(all.len() / 2).copied().unwrap_or_default()
}

impl Prediction {
    fn figures(&self) -> Vec<ForecastFigures> {
        let of =
            |then: &ForecastOutcome| figures(&self.alone_ns, &then.took_ns, then.makespan_ns());
        self.then.iter().map(of).collect()
    }

    /// Time of a task in the middle forecast, ns.
    fn then_ns(&self, task: usize) -> u64 {
        upper_median(self.then.iter().map(|then| then.took_ns[task]), u64::cmp)
    }

    /// The task whose time with the throttle is the largest part of its observed time, and that part.
    fn worst(&self, now_ns: &[u64]) -> (usize, f64) {
        let worst = |then: &ForecastOutcome| {
            let pairs = then.took_ns.iter().zip(now_ns);
            let parts = pairs.map(|(then, now)| ratio(*then as f64, *now as f64));
            parts.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default()
        };
        upper_median(self.then.iter().map(worst), |a, b| a.1.total_cmp(&b.1))
    }
}

fn middle_figures(all: &[ForecastFigures]) -> ForecastFigures {
    let of =
        |figure: fn(&ForecastFigures) -> f64| upper_median(all.iter().map(figure), f64::total_cmp);
    ForecastFigures {
        all_done_s: of(|figures| figures.all_done_s),
        weighted_speedup: of(|figures| figures.weighted_speedup),
        throughput_per_s: of(|figures| figures.throughput_per_s),
    }
}

impl DiskAdvice {
    /// Makes advice on a disk; `None` if no task has used it.
    fn of(seen: &ObservedDisk, watched_ns: u64, max_frozen_ns: u64) -> Option<Self> {
        // 1. Tasks that used the disk, and their observed figures.
        let has_moved = |task: &TaskActivity| task.bytes_read + task.bytes_written > 0;
        let users: Vec<usize> =
            (0..seen.tasks.len()).filter(|task| has_moved(&seen.tasks[*task].seen)).collect();
        if users.is_empty() {
            return None;
        }
        let tasks: Vec<TaskActivity> = users.iter().map(|task| seen.tasks[*task].seen).collect();
        let predicted = Prediction::of(seen, &tasks, max_frozen_ns);
        let disk = &predicted.disk;
        let took_ns: Vec<u64> = tasks.iter().map(|task| task.took_ns).collect();
        let first_ns = tasks.iter().map(|task| task.start_ns).min().unwrap_or(0);
        let end_ns = |task: &TaskActivity| (task.start_ns + task.took_ns).saturating_sub(first_ns);
        let all_done_ns = tasks.iter().map(end_ns).max().unwrap_or(0);
        let now = figures(&predicted.alone_ns, &took_ns, all_done_ns);
        // 2. Predicted figures, and the quality of the model.
        let forecasts = predicted.figures();
        let then = middle_figures(&forecasts);
        let speedups = forecasts.iter().map(|figures| figures.weighted_speedup);
        let then_range =
            (speedups.clone().fold(f64::INFINITY, f64::min), speedups.fold(0.0, f64::max));
        let (worst, part) = predicted.worst(&took_ns);
        let model_over_seen = ratio(predicted.none.makespan_ns() as f64, all_done_ns as f64);
        let model_off = mean_off(&predicted.none.took_ns, &took_ns);
        let device_ns: u64 = tasks.iter().map(|task| task.read_ns + task.write_ns).sum();
        let waited_ns: u64 =
            tasks.iter().map(|task| task.took_ns.saturating_sub(task.think_ns)).sum();
        let ahead_s = seconds(predicted.ahead.makespan_ns());
        // 3. The advice.
        let mut advice = Self {
            disk: seen.name.clone(),
            busy: ratio(seen.busy_ns as f64, watched_ns as f64).min(1.0),
            efficiency: ratio(seen.bytes as f64 * 1e9 / disk.bytes_per_s, seen.busy_ns as f64),
            soft: 1.0 - ratio(device_ns as f64, waited_ns.max(device_ns) as f64),
            model: ModelFigures {
                bytes_per_s: disk.bytes_per_s,
                near_s: seconds(disk.near_ns),
                far_s: seconds(disk.far_ns),
                slots: disk.slots,
            },
            is_learned: seen.measured.is_some(),
            tasks: (0..)
                .zip(&users)
                .map(|(number, user)| advise_task(&seen.tasks[*user], &predicted, number))
                .collect(),
            slowed: list_slowed(seen, &users),
            now,
            then,
            then_range,
            model_over_seen,
            model_off,
            is_doubtful: Self::is_far_off(model_over_seen, model_off),
            orders: upper_median(predicted.then.iter().map(|then| then.orders), usize::cmp),
            worst: Some(WorstTask {
                task: seen.tasks[users[worst]].name.clone(),
                now_s: seconds(took_ns[worst]),
                then_s: part * seconds(took_ns[worst]),
            }),
            read_ahead: ReadAheadAdvice {
                kib: READ_AHEAD_BYTES >> 10,
                all_done_s: ahead_s,
                is_enough: ahead_s <= MAX_READ_AHEAD_RATIO * then.all_done_s
                    && ahead_s < (1.0 - MIN_GAIN) * now.all_done_s,
            },
            gains: false,
            reason: String::new(),
        };
        (advice.gains, advice.reason) = advice.judge();
        Some(advice)
    }

    fn judge(&self) -> (bool, String) {
        let sooner = 1.0 - ratio(self.then.all_done_s, self.now.all_done_s);
        let speedup = ratio(self.then.weighted_speedup, self.now.weighted_speedup) - 1.0;
        if self.tasks.len() < 2 {
            return (false, "only one task uses it".to_owned());
        }
        if self.orders == 0 && self.busy < MIN_CONTENDED_UTILIZATION {
            let reason = format!("it is busy for {:.0} % of the time only", 100.0 * self.busy);
            return (false, reason);
        }
        if self.orders == 0 {
            let reason =
                "the policy would freeze nobody: together they are as fast as one after the other";
            return (false, reason.to_owned());
        }
        if sooner < MIN_GAIN && speedup < MIN_GAIN {
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
        let reason = if sooner >= MIN_GAIN {
            format!("all are done in {:.0} % less time", 100.0 * sooner)
        } else {
            "the same work in a better order".to_owned()
        };
        (true, reason)
    }
}

fn figures(alone_ns: &[u64], took_ns: &[u64], all_done_ns: u64) -> ForecastFigures {
    let parts = alone_ns.iter().zip(took_ns);
    ForecastFigures {
        all_done_s: seconds(all_done_ns),
        weighted_speedup: parts.map(|(alone, took)| ratio(*alone as f64, *took as f64)).sum(),
        throughput_per_s: ratio(took_ns.len() as f64, seconds(all_done_ns)),
    }
}

/// Advice on one task, by its number among the users of the disk.
fn advise_task(seen: &ObservedTask, predicted: &Prediction, number: usize) -> TaskAdvice {
    let of = &seen.seen;
    let longest_ns = predicted.then.iter().map(|then| then.longest_frozen_ns[number]);
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
        none_s: seconds(predicted.none.took_ns[number]),
        then_s: seconds(predicted.then_ns(number)),
        longest_frozen_s: seconds(longest_ns.max().unwrap_or(0)),
        seen: ObservedFigures {
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

/// Lists the tasks that slowed each other, the most first.
fn list_slowed(seen: &ObservedDisk, users: &[usize]) -> Vec<SlowedTask> {
    let number = |task: usize| Some(users.iter().position(|user| *user == task)? + 1);
    let mut all: Vec<SlowedTask> = seen
        .slowed_ns
        .iter()
        .filter_map(|(blame, ns)| {
            Some(SlowedTask { task: number(blame.slow)?, by: number(blame.by)?, seconds: ns / 1e9 })
        })
        .collect();
    all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_forecast_is_of_what_was_seen_and_others_begin_a_little_later() {
        let specs = [TaskWork::stream(1), TaskWork::stream(2)];
        assert_eq!(shift_starts(&specs, 0), specs);
        let other = shift_starts(&specs, 1);
        assert_ne!(other[0].start_ns, other[1].start_ns);
        assert!(other.iter().all(|spec| (spec.start_ns as f64) < MAX_START_SHIFT_NS));
    }

    #[test]
    fn the_middle_is_the_middle() {
        assert_eq!(upper_median([3, 9, 1].into_iter(), i32::cmp), 3);
        assert_eq!(upper_median(std::iter::empty(), i32::cmp), 0);
    }

    #[test]
    fn a_model_that_is_far_off_is_doubtful() {
        assert!((mean_off(&[5, 20], &[10, 10]) - 0.75).abs() < 1e-9);
        assert!(DiskAdvice::is_far_off(1.3, 0.1));
        assert!(DiskAdvice::is_far_off(1.0, 0.3));
        assert!(!DiskAdvice::is_far_off(0.9, 0.1));
    }
}
