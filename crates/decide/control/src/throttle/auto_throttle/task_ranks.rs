//! Ranks tasks, and estimates the device time that each lacks.

use super::super::fair_sojourn::{believed_size_ns, size_class};
use super::super::policy_input::TaskId;
use super::running_set::TaskRank;
use super::{AutoThrottle, PolicyTask, TaskSequence};

/// A task that lacks at most this many switch times is nearly done.
const MAX_NEARLY_DONE_SWITCHES: u64 = 6;
/// Ranks of late tasks start here, ahead of all ranks of the fair sojourn protocol.
const LATE_RANK_BASE: f64 = -1e15;

impl AutoThrottle {
    /// Device time that a task lacks, ns, if known: at least 1.
    pub(super) fn known_lacking_ns(&self, task: &PolicyTask) -> Option<u64> {
        if task.is_about_to_end() {
            return Some(1);
        }
        let lacking_ns = self.learned.lacking_ns(&self.table, task.id());
        lacking_ns.filter(|ns| *ns > 0)
    }

    /// Device time that a task lacks, known or believed, ns.
    pub(super) fn lacking_ns(&self, task: &PolicyTask) -> u64 {
        let believed_ns = || believed_size_ns(task.attained_ns()) - task.attained_ns();
        self.known_lacking_ns(task).unwrap_or_else(believed_ns)
    }

    /// Rank of a task, as a holder of the disk or as a waiting task.
    pub(super) fn rank(
        &self,
        task: &PolicyTask,
        is_holder: bool,
        turn_ns: u64,
        now_ns: u64,
    ) -> TaskRank {
        let late = self.late.iter().position(|late| *late == task.id());
        let (place, margin) = match self.config.sequence {
            TaskSequence::Arrival => (task.arrived_ns as f64, 0.0),
            TaskSequence::RoundRobin if is_holder => (now_ns as f64, 0.0),
            TaskSequence::RoundRobin => (task.turn_ended_ns as f64, 0.0),
            TaskSequence::FairSojourn => match late {
                Some(place) => (LATE_RANK_BASE + place as f64, 0.5),
                // Taking over costs up to a turn, and a size is off by about 5 % of the attained time.
                None => (
                    self.fair.rank(task.id(), now_ns),
                    turn_ns as f64 + 0.05 * task.attained_ns() as f64,
                ),
            },
        };
        if self.config.sequence != TaskSequence::FairSojourn {
            // In these sequences no task passes another, whatever it lacks.
            return TaskRank {
                place,
                margin,
                is_late: false,
                lacking_ns: 0,
                class: None,
                is_nearly_done: false,
            };
        }
        let known_ns = self.known_lacking_ns(task);
        let nearly_ns = MAX_NEARLY_DONE_SWITCHES * self.learned.switch_ns();
        TaskRank {
            place,
            margin,
            is_late: late.is_some(),
            lacking_ns: self.lacking_ns(task),
            class: match known_ns {
                Some(_) => None,
                None => Some(size_class(task.attained_ns(), self.config.first_class_ns)),
            },
            is_nearly_done: known_ns.is_some_and(|ns| ns <= nearly_ns),
        }
    }

    /// Competing tasks, holders of the disk first.
    pub(super) fn in_order(&self, now_ns: u64) -> Vec<TaskId> {
        let place = |task: &PolicyTask| match self.token.admission_of(task.id()) {
            Some(_) => f64::NEG_INFINITY,
            None => self.rank(task, false, 0, now_ns).place,
        };
        let mut tasks: Vec<(f64, TaskId)> =
            self.table.competing().map(|task| (place(task), task.id())).collect();
        tasks.sort_by(|a, b| a.0.total_cmp(&b.0));
        tasks.into_iter().map(|(_, id)| id).collect()
    }
}
