//! Published state of the policy: by task and for the disk.

use super::super::policy_input::{FreezeReason, TaskId};
use super::{AutoThrottle, PolicyTask};

/// State of a task in the policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskPolicyState {
    /// The task that is described.
    pub task: TaskId,
    /// Whether it is frozen by an order of this policy.
    pub is_frozen: bool,
    /// Whether it was frozen by others.
    pub is_foreign: bool,
    /// Whether it has its turn on the disk.
    pub has_turn: bool,
    /// Reason of the present freeze or the last thaw.
    pub reason: FreezeReason,
    /// Time of the last freeze or thaw, ns.
    pub since_ns: u64,
    /// Device time under fair sharing over device time received. Above 1 the task is behind. 1 before it received
    /// anything.
    pub slowdown: f64,
    /// Rate of the task alone, bytes per second, if known.
    pub solo_bytes_per_s: Option<f64>,
}

/// State of a disk in the policy.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskPolicyState {
    /// Whether tasks take turns.
    pub is_engaged: bool,
    /// Number of tasks that may run together; `None`: all.
    pub size: Option<usize>,
    /// Cost of a switch from one task to another, ns.
    pub switch_ns: u64,
    /// Time for which batch stays frozen after a protected request, ns.
    pub quiet_ns: u64,
    /// Utilization of the disk: 0 to 1.
    pub busy: f64,
    /// Sum of each running task's rate over its solo rate. 1 is one undisturbed task. With several tasks, below 1 is
    /// the paper's BD-gap.
    pub efficiency: Option<f64>,
    /// Known speed-ups: number of tasks that run together, and its speed-up.
    pub speed_ups: Vec<(usize, f64)>,
}

impl AutoThrottle {
    /// States of all tasks, by number.
    pub fn tasks(&self) -> impl Iterator<Item = TaskPolicyState> + '_ {
        self.table.iter().map(|task| self.task_state(task))
    }

    fn task_state(&self, task: &PolicyTask) -> TaskPolicyState {
        let attained_ns = task.attained_ns();
        let fair_ns = self.fair.served_ns(task.id());
        TaskPolicyState {
            task: task.id(),
            is_frozen: task.is_frozen,
            is_foreign: task.is_foreign,
            has_turn: task.wants && self.token.admission_of(task.id()).is_some(),
            reason: task.reason,
            since_ns: task.since_ns,
            slowdown: if attained_ns == 0 { 1.0 } else { fair_ns as f64 / attained_ns as f64 },
            solo_bytes_per_s: task.solo.per_ns().map(|rate| rate * 1e9),
        }
    }

    /// State of the disk.
    #[must_use]
    pub fn disk(&self) -> DiskPolicyState {
        DiskPolicyState {
            is_engaged: self.is_engaged,
            size: self.max_running,
            switch_ns: self.learned.switch_ns(),
            quiet_ns: self.protect.quiet_ns(),
            busy: self.contention.busy,
            efficiency: self.learned.speed_up(),
            speed_ups: self.learned.curve.known(self.last_ns),
        }
    }
}
