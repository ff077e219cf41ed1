//! Speed-up of tasks that ran together, when only the first task's solo rate is known.

use super::super::policy_input::TaskId;
use super::super::vector_points::LossCurve;
use super::policy_task::{MIN_KNOWN_NS, PolicyTask, TaskTable};

/// Observation time that an assumed speed-up counts as in the curve, ns.
const ASSUMED_WEIGHT_NS: u64 = 250_000_000;
/// Observation time after which a task's solo rate is final, ns.
const FINAL_RATE_NS: f64 = 250e6;

/// One of the tasks that ran together.
#[derive(Clone, Copy, Debug)]
struct AssumedTask {
    task: TaskId,
    /// Bytes per nanosecond beside the others.
    together: f64,
    /// Bytes per nanosecond alone, once that was observed.
    alone: Option<f64>,
    is_final: bool,
}

/// Speed-up of tasks that ran together. Each task is assumed to be like the first until its own solo rate is known.
#[derive(Clone, Debug)]
pub(super) struct AssumedSpeedUp {
    tasks: Vec<AssumedTask>,
    /// Solo rate of the first task, bytes per nanosecond.
    first: f64,
}

/// Solo rate of a task in bytes per nanosecond, once it was observed for `after_ns`. It is an upper bound, since the
/// last request in flight is not counted.
fn solo_rate(task: &PolicyTask, after_ns: f64) -> Option<f64> {
    let rate = task.solo.per_ns_after(after_ns)?;
    Some(rate * (1.0 + 1.0 / task.solo_requests.max(1) as f64))
}

impl AssumedSpeedUp {
    /// Creates the assumption for `tasks` that ran together. `None` until `first` has run alone for `after_ns`.
    pub(super) fn new(
        table: &TaskTable,
        tasks: &[TaskId],
        first: &PolicyTask,
        after_ns: f64,
    ) -> Option<Self> {
        let rate = |id: &TaskId| table.get(*id).and_then(|task| task.together.per_ns());
        let tasks = tasks.iter().map(|id| AssumedTask {
            task: *id,
            together: rate(id).unwrap_or(0.0),
            alone: None,
            is_final: false,
        });
        Some(Self { tasks: tasks.collect(), first: solo_rate(first, after_ns)? })
    }

    /// Sums each task's rate together over its rate alone.
    pub(super) fn speed_up(&self) -> f64 {
        self.tasks.iter().map(|task| task.together / task.alone.unwrap_or(self.first)).sum()
    }

    /// Writes the speed-up to the curve, in place of earlier values for this number of tasks.
    pub(super) fn write(&self, curve: &mut LossCurve, now_ns: u64) {
        curve.replace(self.tasks.len(), self.speed_up(), ASSUMED_WEIGHT_NS, now_ns);
    }

    /// Takes solo rates that were learned since. Returns whether all are known, so that nothing is assumed any more. A
    /// task that has ended keeps its last rate.
    pub(super) fn look(&mut self, table: &TaskTable, curve: &mut LossCurve, now_ns: u64) -> bool {
        let mut is_open = false;
        for assumed in self.tasks.iter_mut().filter(|task| !task.is_final) {
            let Some(task) = table.get(assumed.task) else {
                continue;
            };
            assumed.alone = solo_rate(task, MIN_KNOWN_NS).or(assumed.alone);
            assumed.is_final = task.solo.per_ns_after(FINAL_RATE_NS).is_some();
            is_open |= !assumed.is_final;
        }
        self.write(curve, now_ns);
        !is_open
    }
}
