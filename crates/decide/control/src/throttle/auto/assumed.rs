//! What running together is worth, where only the first task's rate alone is known so far.

use super::super::sample::TaskId;
use super::super::vector_points::LossCurve;
use super::task::{KNOWN_NS, Table, Task};

/// In the curve it counts as if it had been watched for so long, ns.
const WATCHED_NS: u64 = 250_000_000;
/// A task's rate alone is taken as it is after this time, ns.
const SURE_NS: f64 = 250e6;

/// One of the tasks that ran together.
#[derive(Clone, Copy, Debug)]
struct Part {
    task: TaskId,
    /// Bytes per nanosecond beside the others.
    together: f64,
    /// Bytes per nanosecond alone, once that was seen.
    alone: Option<f64>,
    is_sure: bool,
}

/// The speed-up of tasks that ran together, each of which is taken to be like the first until its own rate is known.
#[derive(Clone, Debug)]
pub(super) struct Assumed {
    parts: Vec<Part>,
    /// Bytes per nanosecond of the first alone.
    first: f64,
}

/// Bytes per nanosecond of a task alone, once they were watched for `after_ns`: the most that they can be, since the
/// request under way at the end is not counted.
fn alone(task: &Task, after_ns: f64) -> Option<f64> {
    let rate = task.solo.per_ns_after(after_ns)?;
    Some(rate * (1.0 + 1.0 / task.solo_requests.max(1) as f64))
}

impl Assumed {
    /// `tasks` ran together, and `first` has run alone for `after_ns`; `None` before that.
    pub(super) fn new(
        table: &Table,
        tasks: &[TaskId],
        first: &Task,
        after_ns: f64,
    ) -> Option<Self> {
        let together = |id: &TaskId| {
            let rate = table.get(*id).and_then(|task| task.together.per_ns());
            rate.unwrap_or(0.0)
        };
        let parts = tasks.iter().map(|id| Part {
            task: *id,
            together: together(id),
            alone: None,
            is_sure: false,
        });
        Some(Self { parts: parts.collect(), first: alone(first, after_ns)? })
    }

    /// The sum over the tasks of their rate together over their rate alone.
    pub(super) fn speed_up(&self) -> f64 {
        let parts = self.parts.iter();
        parts.map(|part| part.together / part.alone.unwrap_or(self.first)).sum()
    }

    /// Puts it into the curve, in the place of what was known of this number of tasks.
    pub(super) fn write(&self, curve: &mut LossCurve, now_ns: u64) {
        let tasks = self.parts.len();
        curve.forget(tasks);
        curve.add(tasks, self.speed_up(), WATCHED_NS, now_ns);
    }

    /// Takes rates alone that were learned since; says whether all are known, so that nothing is assumed any more. A
    /// task that has ended stays as it was seen last.
    pub(super) fn look(&mut self, table: &Table, curve: &mut LossCurve, now_ns: u64) -> bool {
        let mut is_open = false;
        for part in self.parts.iter_mut().filter(|part| !part.is_sure) {
            let Some(task) = table.get(part.task) else {
                continue;
            };
            part.alone = alone(task, KNOWN_NS).or(part.alone);
            part.is_sure = task.solo.per_ns_after(SURE_NS).is_some();
            is_open |= !part.is_sure;
        }
        self.write(curve, now_ns);
        !is_open
    }
}
