//! Settings of the default policy.

/// Order in which tasks run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskSequence {
    /// Order of the fair sojourn protocol.
    #[default]
    FairSojourn,
    /// Order of arrival, each task to its end (an ablation: *fcfs*).
    Arrival,
    /// One task at a time, each for a turn (an ablation: *turns*).
    RoundRobin,
}

/// Assumption about a disk before anything was observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskPrior {
    /// The disk serves one task at a time best: it has an arm.
    #[default]
    Engaged,
    /// The disk serves several tasks at once: flash, or a cloud volume.
    Together,
}

/// Earlier measurement of a disk, by `luc throttle learn`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskMeasurement {
    /// Cost of a switch from one task to another, ns.
    pub switch_ns: u64,
    /// Numbers of streams that ran together, each with the sum of their rates over the rate of one.
    pub speed_ups: Vec<(usize, f64)>,
}

/// Default part of the time that batch gets beside protected tasks.
pub const BATCH_FLOOR: f64 = 0.1;

/// Settings of the policy [`AutoThrottle`](super::AutoThrottle).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AutoThrottleConfig {
    /// Longest freeze of a task, ns. Then the task gets at least the shortest turn (250 ms).
    pub max_frozen_ns: u64,
    /// Time within which each task of unknown size has a turn, ns.
    pub starve_ns: u64,
    /// Largest allowed ratio of a task's time to its time under fair sharing. Uses its known or believed size.
    pub max_slowdown: f64,
    /// Smallest part of the time that batch gets beside protected tasks: 0 to 1. Beside a task with a 99th percentile
    /// target, batch gets only the rest.
    pub batch_floor: f64,
    /// Length of a turn, ns; `None`: derived from the cost of a switch.
    pub turn_ns: Option<u64>,
    /// End of the first size class of tasks of unknown size, ns of device time. Further classes double.
    pub first_class_ns: u64,
    /// Order in which tasks run.
    pub sequence: TaskSequence,
    /// Assumption about the disk before anything was observed.
    pub prior: DiskPrior,
}

impl Default for AutoThrottleConfig {
    fn default() -> Self {
        Self {
            max_frozen_ns: 10_000_000_000,
            starve_ns: 10_000_000_000,
            max_slowdown: 1.1,
            batch_floor: BATCH_FLOOR,
            turn_ns: None,
            first_class_ns: 4_000_000_000,
            sequence: TaskSequence::default(),
            prior: DiskPrior::default(),
        }
    }
}
