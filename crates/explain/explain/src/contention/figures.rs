//! What is reported of a disk that tasks share.

use serde::Serialize;

use crate::actor::Actor;

/// What is known of requests that continue their task's last one when nobody comes between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The trace has such requests.
    #[default]
    Seen,
    /// It has none. After another task's they took as long as on a disk with an arm, which is taken to read on at
    /// 50 MB/s.
    Assumed,
    /// It has none for most of the switches, so nothing is predicted for these.
    Unknown,
}

/// A disk that tasks share. Times are nanoseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Contention {
    /// Time that the disk was busy.
    pub busy_ns: u64,
    /// Length of the stretches in which it was busy nearly all the time and went from task to task.
    pub together_ns: u64,
    /// Bytes read and written in these.
    pub bytes_together: u64,
    /// The same without switches: of each request what it takes after one of the same task.
    pub apart_ns: u64,
    /// What this rests on.
    pub basis: Basis,
    /// Together over apart, less 1: how much faster the tasks would be done one after the other. 0: nothing is gained,
    /// or the trace does not tell.
    pub gain: f64,
    /// The same for read-ahead of 4 MiB instead of turns; none if the tasks do not read on.
    pub read_ahead_gain: Option<f64>,
    /// The bandwidth together over what the same requests reach without switches, as a fraction of 1.
    pub efficiency: f64,
    /// Requests in these stretches that came after another task's.
    pub switches: u64,
    /// What a switch cost in the mean.
    pub switch_cost_ns: u64,
    /// Thread time that tasks lost in these stretches to being served in turns too short.
    pub lost_ns: u64,
    /// Who used the disk, most device time first; those with no name in the trace are left out.
    pub tasks: Vec<DiskTask>,
    /// Who slowed whom, longest first.
    pub slowed: Vec<Slowed>,
}

/// A task's use of a disk, over the whole trace. Times are nanoseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DiskTask {
    /// Who; a kernel thread works for others.
    #[serde(rename = "party")]
    pub actor: Actor,
    /// Whether it is a thread of the kernel.
    pub is_kernel: bool,
    /// The device's time for its requests.
    pub device_ns: u64,
    /// Its reads and writes.
    pub requests: u64,
    pub bytes: u64,
    /// The part of its requests that continued its last one, as a fraction of 1.
    pub continuing: f64,
    /// Requests that came after another task's.
    pub switches: u64,
    /// What these switches cost.
    pub switch_ns: u64,
    /// A request's mean time from being queued to its end.
    pub await_ns: u64,
    /// The device's part of it; the rest is the wait for others.
    pub service_ns: u64,
    /// Bytes per second that it reaches while nobody comes between; none if the trace does not tell.
    pub undisturbed_bytes_per_s: Option<f64>,
    /// Time in which it had a request out while the device was at another's.
    pub waited_ns: u64,
}

/// What one task cost another on a disk. Times are nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Slowed {
    /// Who had to wait.
    pub victim: Actor,
    /// Whom the disk served meanwhile.
    pub culprit: Actor,
    /// Time in which the victim had a request out while the device was at the culprit's.
    pub waited_ns: u64,
    /// Times that the device went from the culprit to the victim.
    pub switches: u64,
    pub switch_ns: u64,
}
