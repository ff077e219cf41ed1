//! Settings of the default policy.

/// In which order tasks run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sequence {
    /// By the fair sojourn protocol.
    #[default]
    FairSojourn,
    /// As they came, one at a time, each to its end (an ablation: *fcfs*).
    Arrival,
    /// One at a time, each for a turn (an ablation: *turns*).
    RoundRobin,
}

/// What is believed of a disk before anything was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prior {
    /// It serves one task at a time best: a disk with an arm.
    #[default]
    Engaged,
    /// It serves several at once: flash, a volume in a cloud.
    Together,
}

/// What was measured of a disk before, by `luc throttle learn`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Cost of a switch from one task to another, ns.
    pub switch_ns: u64,
    /// Numbers of streams that ran together, and what they were worth: the sum of their rates over the rate of one.
    pub speed_ups: Vec<(usize, f64)>,
}

/// Part of the time that batch gets beside protected tasks, where nobody says.
pub const BATCH_FLOOR: f64 = 0.1;

/// Settings of [`Auto`](super::Auto).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AutoConfig {
    /// No task is frozen longer, ns; then it gets at least the shortest turn (250 ms).
    pub max_frozen_ns: u64,
    /// Among tasks of unknown size each has a turn within this time, ns.
    pub starve_ns: u64,
    /// Nobody is to finish later than this times its time under fair sharing, by what it is known or believed to need.
    pub max_slowdown: f64,
    /// Part of the time that batch gets beside protected tasks at least: 0 to 1. Beside a task with a 99th percentile to
    /// be held it gets what that leaves.
    pub batch_floor: f64,
    /// Length of a turn, ns, where it is not to follow from the cost of a switch.
    pub turn_ns: Option<u64>,
    /// End of the first size class of tasks of unknown size, device time in ns; further classes double.
    pub first_class_ns: u64,
    /// In which order tasks run.
    pub sequence: Sequence,
    /// What is believed of the disk before anything was seen.
    pub prior: Prior,
}

impl Default for AutoConfig {
    fn default() -> Self {
        Self {
            max_frozen_ns: 10_000_000_000,
            starve_ns: 10_000_000_000,
            max_slowdown: 1.1,
            batch_floor: BATCH_FLOOR,
            turn_ns: None,
            first_class_ns: 4_000_000_000,
            sequence: Sequence::default(),
            prior: Prior::default(),
        }
    }
}
