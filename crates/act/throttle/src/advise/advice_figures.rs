//! Figures of the advice, as `--json` prints them.

use serde::Serialize;

/// Ratio of predicted to observed time above which a task loses.
const MIN_LOSS_RATIO: f64 = 1.02;
/// Largest error of the model without the throttle, as a part of the observation. A larger error makes the prediction
/// doubtful.
const MAX_MODEL_ERROR: f64 = 0.25;

/// Advice on all disks. Times are seconds.
#[derive(Clone, Debug, Serialize)]
pub struct ThrottleAdvice {
    pub watched_s: f64,
    /// Whether Ctrl-C ended it early.
    pub is_interrupted: bool,
    /// Exit status of each command, if commands were run.
    pub statuses: Vec<i32>,
    /// Disks that a task has used.
    pub disks: Vec<DiskAdvice>,
}

#[derive(Clone, Debug, Serialize)]
pub struct DiskAdvice {
    pub disk: String,
    /// Part of the time in which it had a request: 0 to 1.
    pub busy: f64,
    /// Rate while busy over its rate in place: far below 1 is the paper's BD-gap.
    pub efficiency: f64,
    /// Part of the tasks' waiting time in which the disk served others: the paper's ST-gap. It includes requests that
    /// have no place in the disk's queue yet.
    pub soft: f64,
    /// Model that was fitted to the observations.
    pub model: ModelFigures,
    /// Whether `luc throttle learn` has measured this disk.
    pub is_learned: bool,
    pub tasks: Vec<TaskAdvice>,
    /// List of tasks that slowed each other, the most first.
    pub slowed: Vec<SlowedTask>,
    /// Figures of the observed run.
    pub now: ForecastFigures,
    /// Predicted figures with the throttle: the median of several forecasts with slightly shifted starts.
    pub then: ForecastFigures,
    /// The smallest and the largest weighted speedup of these forecasts.
    pub then_range: (f64, f64),
    /// Makespan of the model without the throttle, over the observed one: 1 is a model that fits.
    pub model_over_seen: f64,
    /// Mean error of the model without the throttle for a task, as a part of its observed time.
    pub model_off: f64,
    /// Whether the model is too far from the observation to trust the prediction.
    pub is_doubtful: bool,
    /// Number of freezes and thaws that the policy would order.
    pub orders: usize,
    /// The task whose time grows most, or shrinks least.
    pub worst: Option<WorstTask>,
    /// Predicted figures with a larger read-ahead and no throttle.
    pub read_ahead: ReadAheadAdvice,
    /// Whether the throttle is worth it.
    pub gains: bool,
    /// Reason for that, in one line.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct ModelFigures {
    /// Rate in place, bytes per second.
    pub bytes_per_s: f64,
    /// Cost of a request elsewhere in the files of the same task.
    pub near_s: f64,
    /// Cost of a request in another task's files: a switch.
    pub far_s: f64,
    /// Number of requests that it serves at a time.
    pub slots: usize,
}

/// Advice on a task that used the disk.
#[derive(Clone, Debug, Serialize)]
pub struct TaskAdvice {
    /// Its command or cgroup.
    pub task: String,
    /// Time that the disk spent on it.
    pub device_s: f64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub requests: u64,
    /// Part of them that continued the task's own last request: 0 to 1.
    pub continued: f64,
    /// Time in which it did not wait for the disk.
    pub think_s: f64,
    pub alone_s: f64,
    /// Observed time, or the duration of the watch.
    pub now_s: f64,
    /// Modelled time without a throttle.
    pub none_s: f64,
    /// Predicted time with the throttle.
    pub then_s: f64,
    /// Longest freeze in the forecasts.
    pub longest_frozen_s: f64,
    /// Further observations that the prediction uses.
    pub seen: ObservedFigures,
}

/// Further observations of a task.
#[derive(Clone, Debug, Serialize)]
pub struct ObservedFigures {
    /// Time of its start, from the beginning.
    pub start_s: f64,
    pub reads: u64,
    pub writes: u64,
    /// Number of requests that continued its own last one.
    pub continued: u64,
    /// Number of reads that continued the disk's last request.
    pub sequential_reads: u64,
    pub sequential_bytes: u64,
    /// Device time of those reads.
    pub sequential_s: f64,
    /// Device time of those reads, with the gaps before them.
    pub sequential_apart_s: f64,
    /// Device time of all its reads.
    pub read_s: f64,
    /// Device time of its writes.
    pub write_s: f64,
    /// Time for which it had a request outstanding.
    pub active_s: f64,
    /// Time that its requests waited for the disk.
    pub queue_s: f64,
    /// Reads while no other task used the disk: bytes, requests, requests in order, device time.
    pub undisturbed: (u64, u64, u64, f64),
    /// Whether it wrote in the call that ended it, which no freeze interrupts.
    pub writes_last: bool,
    /// Whether a policy would know how much it has yet to read.
    pub is_size_known: bool,
}

/// A task that waited while another was served.
#[derive(Clone, Debug, Serialize)]
pub struct SlowedTask {
    /// The task that waited: its number in `tasks`, from 1.
    pub task: usize,
    pub by: usize,
    pub seconds: f64,
}

/// Forecast figures of all tasks on a disk.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ForecastFigures {
    pub all_done_s: f64,
    /// Weighted speedup: the sum of time alone over time taken.
    pub weighted_speedup: f64,
    pub throughput_per_s: f64,
}

/// Time of one task with the throttle and without.
#[derive(Clone, Debug, Serialize)]
pub struct WorstTask {
    pub task: String,
    pub now_s: f64,
    pub then_s: f64,
}

/// Read-ahead of the disk to be set instead of a throttle, and its forecast.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReadAheadAdvice {
    pub kib: u64,
    pub all_done_s: f64,
    /// Whether that is about as good as the throttle.
    pub is_enough: bool,
}

impl DiskAdvice {
    /// Whether the model is too far from the observation.
    pub(super) fn is_far_off(model_over_seen: f64, model_off: f64) -> bool {
        model_off > MAX_MODEL_ERROR || (model_over_seen - 1.0).abs() > MAX_MODEL_ERROR
    }

    /// Tasks that would take longer than now.
    pub fn losers(&self) -> impl Iterator<Item = &TaskAdvice> {
        self.tasks.iter().filter(|task| task.then_s > MIN_LOSS_RATIO * task.now_s)
    }
}
