//! Who is served before whom, and what each lacks.

use super::super::fair::{believed_size_ns, size_class};
use super::super::sample::TaskId;
use super::token::Rank;
use super::{Auto, Sequence, Task};

/// A task that lacks no more than this many switches take is nearly done.
const NEARLY_DONE_SWITCHES: u64 = 6;
/// Tasks that would be late have ranks from here on: before any of the fair sojourn protocol.
const FIRST: f64 = -1e15;

impl Auto {
    /// Device time that a task lacks, if that is known, ns: at least 1.
    pub(super) fn known_lacking_ns(&self, task: &Task) -> Option<u64> {
        if task.is_about_to_end() {
            return Some(1);
        }
        let lacking_ns = self.learned.lacking_ns(&self.table, task.id());
        lacking_ns.filter(|ns| *ns > 0)
    }

    /// Device time that a task lacks, as far as is known or believed, ns.
    pub(super) fn lacking_ns(&self, task: &Task) -> u64 {
        let believed_ns = || believed_size_ns(task.attained_ns()) - task.attained_ns();
        self.known_lacking_ns(task).unwrap_or_else(believed_ns)
    }

    /// The place of a task in the order, as the holder of the disk or as one that waits.
    pub(super) fn rank(&self, task: &Task, is_holder: bool, turn_ns: u64, now_ns: u64) -> Rank {
        let late = self.late.iter().position(|late| *late == task.id());
        let (place, margin) = match self.config.sequence {
            Sequence::Arrival => (task.arrived_ns as f64, 0.0),
            Sequence::RoundRobin if is_holder => (now_ns as f64, 0.0),
            Sequence::RoundRobin => (task.turn_ended_ns as f64, 0.0),
            Sequence::FairSojourn => match late {
                Some(place) => (FIRST + place as f64, 0.5),
                // A turn is what taking over costs at worst, and sizes are known only so well.
                None => (
                    self.fair.rank(task.id(), now_ns),
                    turn_ns as f64 + 0.05 * task.attained_ns() as f64,
                ),
            },
        };
        if self.config.sequence != Sequence::FairSojourn {
            // By turns or as they came: nobody passes, whatever it lacks.
            return Rank {
                place,
                margin,
                is_late: false,
                lacking_ns: 0,
                class: None,
                is_nearly_done: false,
            };
        }
        let known_ns = self.known_lacking_ns(task);
        let nearly_ns = NEARLY_DONE_SWITCHES * self.learned.switch_ns();
        Rank {
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

    /// Those that compete, whoever holds the disk first.
    pub(super) fn in_order(&self, now_ns: u64) -> Vec<TaskId> {
        let place = |task: &Task| match self.token.admits(task.id()) {
            Some(_) => f64::NEG_INFINITY,
            None => self.rank(task, false, 0, now_ns).place,
        };
        let mut tasks: Vec<(f64, TaskId)> =
            self.table.competing().map(|task| (place(task), task.id())).collect();
        tasks.sort_by(|a, b| a.0.total_cmp(&b.0));
        tasks.into_iter().map(|(_, id)| id).collect()
    }
}
