//! Advice as it is given: what `--json` prints.

use serde::Serialize;

/// A task that takes so many times as long loses.
const LOSES: f64 = 1.02;
/// A model without the throttle that is off by more than this part of what was seen predicts nothing.
const DOUBTFUL: f64 = 0.25;

/// Advice on all disks. Times are seconds.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// For how long tasks were watched.
    pub watched_s: f64,
    /// Ctrl-C ended it early.
    pub is_interrupted: bool,
    /// Exit status of each command, where commands were run.
    pub statuses: Vec<i32>,
    /// Disks that a task has used.
    pub disks: Vec<DiskAdvice>,
}

/// Advice on one disk.
#[derive(Clone, Debug, Serialize)]
pub struct DiskAdvice {
    pub disk: String,
    /// Part of the time in which it had a request: 0 to 1.
    pub busy: f64,
    /// What it moved while busy, over what it moves in place: far below 1 is the paper's BD-gap.
    pub efficiency: f64,
    /// Part of the time for which tasks waited in which the disk was at others' requests: the paper's ST-gap. Requests
    /// that have no place in the disk's queue yet count as well.
    pub soft: f64,
    /// The model that was fitted to what was seen.
    pub model: ModelFigures,
    /// Whether `luc throttle learn` has measured this disk.
    pub is_learned: bool,
    pub tasks: Vec<TaskAdvice>,
    /// Who slowed whom, the most first.
    pub slowed: Vec<Slowed>,
    /// As it was seen.
    pub now: Figures,
    /// With the throttle, predicted: the middle of several forecasts, in which tasks begin at slightly other moments.
    pub then: Figures,
    /// The smallest and the largest weighted speedup of these forecasts.
    pub then_range: (f64, f64),
    /// The model without the throttle until all are done, over what was seen: 1 is a model that fits.
    pub model_over_seen: f64,
    /// By how much the model without the throttle is off for a task on average: part of what it took.
    pub model_off: f64,
    /// Whether the model is so far from what was seen that the prediction is not to be believed.
    pub is_doubtful: bool,
    /// Freezes and thaws that the policy would order.
    pub orders: usize,
    /// The task whose time grows most, or shrinks least.
    pub worst: Option<Worst>,
    /// With a larger read-ahead and no throttle, predicted.
    pub read_ahead: ReadAhead,
    /// Whether the throttle is worth it.
    pub gains: bool,
    /// In one line: why, or why not.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct ModelFigures {
    /// Bytes per second in place.
    pub bytes_per_s: f64,
    /// Cost of a request elsewhere in the files of the same task.
    pub near_s: f64,
    /// Cost of a request in another task's files: a switch.
    pub far_s: f64,
    /// Requests that it serves at a time.
    pub slots: usize,
}

/// A task on a disk.
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
    /// What it would take alone, predicted.
    pub alone_s: f64,
    /// What it took, or how long it was watched.
    pub now_s: f64,
    /// What the model makes of that, without a throttle.
    pub none_s: f64,
    /// What it would take with the throttle, predicted.
    pub then_s: f64,
    /// The longest that it would be frozen at a time.
    pub longest_frozen_s: f64,
    /// What the prediction rests on besides.
    pub seen: SeenFigures,
}

/// More of what was seen of a task.
#[derive(Clone, Debug, Serialize)]
pub struct SeenFigures {
    /// When it began, from the beginning.
    pub start_s: f64,
    /// Requests that were reads.
    pub reads: u64,
    pub writes: u64,
    /// Requests that continued its own last one.
    pub continued: u64,
    /// Reads that continued the disk's last request.
    pub sequential_reads: u64,
    pub sequential_bytes: u64,
    /// Time that the disk spent on them.
    pub sequential_s: f64,
    /// The same with the gaps before them.
    pub sequential_apart_s: f64,
    /// Time that the disk spent on all its reads.
    pub read_s: f64,
    /// Time that the disk spent on its writes.
    pub write_s: f64,
    /// Time for which it had something outstanding.
    pub active_s: f64,
    /// Time that its requests waited for the disk.
    pub queue_s: f64,
    /// Bytes, requests, requests in order and time at the disk while nobody else used it; reads.
    pub undisturbed: (u64, u64, u64, f64),
    /// Whether it wrote in the call that ended it, which no freeze interrupts.
    pub writes_last: bool,
    /// Whether a policy would know how much it has yet to read.
    pub is_size_known: bool,
}

/// A task that waited while another was served.
#[derive(Clone, Debug, Serialize)]
pub struct Slowed {
    /// Who waited: its number in `tasks`, from 1.
    pub task: usize,
    pub by: usize,
    pub seconds: f64,
}

/// Figures of all tasks.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figures {
    /// Until all are done.
    pub all_done_s: f64,
    /// Weighted speedup: the sum of time alone over time taken.
    pub weighted_speedup: f64,
    pub throughput_per_s: f64,
}

/// One task's time, with and without.
#[derive(Clone, Debug, Serialize)]
pub struct Worst {
    pub task: String,
    pub now_s: f64,
    pub then_s: f64,
}

/// What a larger read-ahead would do.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReadAhead {
    pub kib: u64,
    /// Until all are done.
    pub all_done_s: f64,
    /// Whether that is about as good as the throttle.
    pub is_enough: bool,
}

impl DiskAdvice {
    /// Whether the model is too far from what was seen.
    pub(super) fn is_far_off(model_over_seen: f64, model_off: f64) -> bool {
        model_off > DOUBTFUL || (model_over_seen - 1.0).abs() > DOUBTFUL
    }

    /// Those who would take longer than now.
    pub fn losers(&self) -> impl Iterator<Item = &TaskAdvice> {
        self.tasks.iter().filter(|task| task.then_s > LOSES * task.now_s)
    }
}
