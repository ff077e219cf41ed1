//! Reported figures of a disk that tasks share.

use serde::Serialize;

use crate::actor::Actor;

/// Source of the undisturbed time of requests that continue their task's last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UndisturbedBasis {
    /// Measured: the trace has undisturbed requests.
    #[default]
    Seen,
    /// Assumed to be 50 MB/s: the trace has no undisturbed requests. Those after another task's took as long as on a
    /// disk with an arm.
    Assumed,
    /// Unknown for most switches, for which nothing is predicted.
    Unknown,
}

/// A disk that tasks share. Times are nanoseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DiskContention {
    /// Time that the disk was busy.
    pub busy_ns: u64,
    /// Time in which it was nearly always busy and went from task to task.
    pub together_ns: u64,
    /// Bytes read and written in that time.
    pub bytes_together: u64,
    /// Time of the same requests without switches, each after one of its own task.
    pub apart_ns: u64,
    /// Source of the undisturbed speed that `apart_ns` is computed with.
    pub basis: UndisturbedBasis,
    /// Predicted gain of one task after the other: `together_ns` over `apart_ns`, minus 1. 0 if nothing is gained or
    /// the trace does not show it.
    pub gain: f64,
    /// Predicted gain of a read-ahead of 4 MiB; `None` if the tasks do not read sequentially.
    pub read_ahead_gain: Option<f64>,
    /// Bandwidth together over that of the same requests without switches, as a fraction of 1.
    pub efficiency: f64,
    /// Number of requests in that time that came after another task's.
    pub switches: u64,
    /// Mean cost of a switch.
    pub switch_cost_ns: u64,
    /// Thread time that tasks lost in that time because their turns were too short.
    pub lost_ns: u64,
    /// Tasks by device time, most first. Those without a name in the trace are left out.
    pub tasks: Vec<DiskTask>,
    /// Pairs of victim and culprit, longest wait first.
    pub slowed: Vec<TaskSlowdown>,
}

/// A task's use of a disk, over the whole trace. Times are nanoseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DiskTask {
    /// The process. A kernel thread works for others.
    #[serde(rename = "party")]
    pub actor: Actor,
    pub is_kernel: bool,
    /// Device time of its requests.
    pub device_ns: u64,
    /// Number of reads and writes.
    pub requests: u64,
    pub bytes: u64,
    /// Share of its requests that continued its last one, as a fraction of 1.
    pub continuing: f64,
    /// Number of requests that came after another task's.
    pub switches: u64,
    /// Cost of these switches.
    pub switch_ns: u64,
    /// Mean time of a request from being queued to its end.
    pub await_ns: u64,
    /// The device's part of that. The rest is the wait for other requests.
    pub service_ns: u64,
    /// Bytes per second that it reaches undisturbed; `None` if the trace does not show it.
    pub undisturbed_bytes_per_s: Option<f64>,
    /// Time in which it had a request out while the device served another task.
    pub waited_ns: u64,
}

/// The cost of one task to another on a disk. Times are nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct TaskSlowdown {
    pub victim: Actor,
    pub culprit: Actor,
    /// Time in which the victim had a request out while the device served the culprit.
    pub waited_ns: u64,
    /// Number of times that the device went from the culprit to the victim.
    pub switches: u64,
    pub switch_ns: u64,
}
