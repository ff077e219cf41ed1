//! What is shown of the policy: by task and for the disk.

use super::super::sample::{Reason, TaskId};
use super::{Auto, Task};

/// A task as the policy sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskState {
    /// Which task.
    pub task: TaskId,
    /// Whether it is frozen by an order of this policy.
    pub is_frozen: bool,
    /// Whether somebody else froze it.
    pub is_foreign: bool,
    /// Whether it has its turn on the disk.
    pub has_turn: bool,
    /// Why it is frozen, or was last thawed.
    pub reason: Reason,
    /// Since when, ns.
    pub since_ns: u64,
    /// What fair sharing would have given it over what it got, both in device time: above 1 it is behind. 1 before it
    /// got anything.
    pub slowdown: f64,
    /// What it moves alone, bytes per second, where that is known.
    pub solo_bytes_per_s: Option<f64>,
}

/// A disk as the policy sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskState {
    /// Whether tasks take turns.
    pub is_engaged: bool,
    /// How many may run together; `None`: all.
    pub size: Option<usize>,
    /// Cost of a switch from one task to another, ns.
    pub switch_ns: u64,
    /// How long batch is kept away after a protected request, ns.
    pub quiet_ns: u64,
    /// Busy part of the time: 0 to 1.
    pub busy: f64,
    /// What runs now over what it would do alone, summed over the tasks: 1 is one task undisturbed; with several,
    /// below 1 is what the paper calls the BD-gap.
    pub efficiency: Option<f64>,
    /// What is known of numbers of tasks that run together: the number and its speed-up.
    pub speed_ups: Vec<(usize, f64)>,
}

impl Auto {
    /// All tasks, by number.
    pub fn tasks(&self) -> impl Iterator<Item = TaskState> + '_ {
        self.table.iter().map(|task| self.task_state(task))
    }

    fn task_state(&self, task: &Task) -> TaskState {
        let attained_ns = task.attained_ns();
        let fair_ns = self.fair.served_ns(task.id());
        TaskState {
            task: task.id(),
            is_frozen: task.is_frozen,
            is_foreign: task.is_foreign,
            has_turn: task.wants && self.token.admits(task.id()).is_some(),
            reason: task.reason,
            since_ns: task.since_ns,
            slowdown: if attained_ns == 0 { 1.0 } else { fair_ns as f64 / attained_ns as f64 },
            solo_bytes_per_s: task.solo.per_ns().map(|rate| rate * 1e9),
        }
    }

    /// The disk.
    #[must_use]
    pub fn disk(&self) -> DiskState {
        DiskState {
            is_engaged: self.is_engaged,
            size: self.size,
            switch_ns: self.learned.switch_ns(),
            quiet_ns: self.protect.quiet_ns(),
            busy: self.contention.busy,
            efficiency: self.learned.speed_up(),
            speed_ups: self.learned.curve.known(self.last_ns),
        }
    }
}
