//! What is told to people who watch.

use serde::Serialize;

/// What went on between two looks.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Seen {
    /// Length of the time that this is about, s.
    pub seconds: f64,
    /// The daemon's process; none: none runs, and nobody is frozen.
    pub daemon: Option<u32>,
    /// Cgroups that are not shown, for want of room in the kernel.
    pub unwatched: usize,
    pub disks: Vec<DiskSeen>,
    /// Tasks that use a disk, or are frozen; most device time first.
    pub tasks: Vec<TaskSeen>,
}

/// What went on at a disk. Shares are fractions of 1.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DiskSeen {
    pub name: String,
    /// Share of the time that it was busy.
    pub busy: f64,
    pub bytes_per_s: f64,
    /// The bytes per second over what the same tasks reach alone; none: it is not known of each how fast it is alone.
    pub efficiency: Option<f64>,
    /// What a switch between tasks costs, ns.
    pub switch_ns: Option<f64>,
    /// Bytes per second that the switches cost.
    pub lost_bytes_per_s: Option<f64>,
    /// Tasks that used it, or wanted to.
    pub tasks: usize,
    /// Those of them that have a request out, or are frozen.
    pub waiting: usize,
}

/// What a task is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It has nothing to do with a disk at the moment.
    #[default]
    Idle,
    /// It uses a disk.
    Uses,
    /// It has requests out, and the disk is hardly ever at them.
    Waits,
    Frozen,
}

impl State {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Uses => "uses",
            Self::Waits => "waits",
            Self::Frozen => "frozen",
        }
    }
}

/// What a task did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TaskSeen {
    /// Its cgroup, below the root.
    pub cgroup: String,
    /// batch, protect or ignore; none where no daemon runs.
    pub class: Option<String>,
    /// What it is doing.
    pub state: State,
    /// Why it was frozen or thawed last; empty: never.
    pub why: String,
    /// The disk that it has used most.
    pub disk: String,
    /// Its share of that disk's time, a fraction of 1.
    pub share: f64,
    /// Bytes per second, of all disks.
    pub bytes_per_s: f64,
    /// The disk's time that fair sharing would have given it since the watching began, over what it got; none: too
    /// little is known yet.
    pub slowdown: Option<f64>,
    /// How long it has been frozen, ns; 0: it is not.
    pub frozen_ns: u64,
}
