//! Activity of disks and tasks, for display.

use serde::Serialize;

/// Activity between two looks.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SystemActivity {
    /// Length of that time, s.
    pub seconds: f64,
    /// Process of the daemon; `None` if none runs, and nothing is frozen.
    pub daemon: Option<u32>,
    /// Number of cgroups that are not shown, for want of room in the kernel.
    pub unwatched: usize,
    pub disks: Vec<DiskActivity>,
    /// Tasks that use a disk or are frozen; most device time first.
    pub tasks: Vec<DisplayedTask>,
}

/// Activity on a disk. Shares are fractions of 1.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DiskActivity {
    pub name: String,
    /// Share of the time that it was busy.
    pub busy: f64,
    pub bytes_per_s: f64,
    /// Rate over what the same tasks reach alone; `None` if the rates alone are unknown.
    pub efficiency: Option<f64>,
    /// Cost of a switch between tasks, ns.
    pub switch_ns: Option<f64>,
    /// Rate lost by switches, bytes per second.
    pub lost_bytes_per_s: Option<f64>,
    /// Number of tasks that used it, or wanted to.
    pub tasks: usize,
    /// Number of those that have a request outstanding, or are frozen.
    pub waiting: usize,
}

/// Activity of a task at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivityState {
    /// It has nothing to do with a disk at the moment.
    #[default]
    Idle,
    Uses,
    /// It has requests outstanding, but the disk hardly serves them.
    Waits,
    Frozen,
}

impl ActivityState {
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

/// Activity of a task, for display.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DisplayedTask {
    /// Path of its cgroup, below the root.
    pub cgroup: String,
    /// Class of the task: batch, protect or ignore; `None` if no daemon runs.
    pub class: Option<String>,
    pub state: ActivityState,
    /// Reason of its last freeze or thaw; empty: never.
    pub why: String,
    /// The disk that it has used most.
    pub disk: String,
    /// Its share of that disk's time, a fraction of 1.
    pub share: f64,
    /// Rate on all disks together, bytes per second.
    pub bytes_per_s: f64,
    /// Device time under fair sharing since the watch began, over device time received; `None` if too little is known
    /// yet.
    pub slowdown: Option<f64>,
    /// Length of its present freeze, ns; 0: it is not frozen.
    pub frozen_ns: u64,
}
