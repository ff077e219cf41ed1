//! How many tasks should run together: tried out in short windows, on a budget.
//!
//! Two things are tried. *Alone*: tasks run one at a time for a moment, so that their solo rates are known, and with
//! them what running together is worth. *Size*: another number of tasks runs for a moment. What trials cost is taken
//! from an allowance of a hundredth of the time in which there is a contest at all.

use std::collections::BTreeMap;

use super::super::sample::TaskId;
use super::learn::Learned;
use super::task::{Rate, Table, Task};
use super::{AutoConfig, Prior};

/// Part of the time that trials may cost.
const BUDGET: f64 = 0.01;
/// What is known is tried again after this time, ns.
const AGAIN_NS: u64 = 60_000_000_000;
/// A window is at least about this long, ns.
const WINDOW_NS: u64 = 60_000_000;
/// A window that is not clear is ended after this time, ns.
const LONGEST_WINDOW_NS: u64 = 250_000_000;
/// A task that is this much of its solo rate beside the others is not hurt.
const UNHURT: f64 = 0.7;
/// Running together is worth so much that nothing else need be tried.
const TOGETHER_PAYS: f64 = 1.3;

/// What is being tried.
#[derive(Clone, Debug, Default)]
pub(super) enum Stage {
    /// Nothing.
    #[default]
    None,
    /// One task alone, others after it.
    Alone {
        /// The task that runs, last; before it those that follow.
        queue: Vec<TaskId>,
        began_ns: u64,
        /// Sum over the tasks that are done of their rate together over their rate alone.
        speed_up: f64,
        /// How many ran together before.
        tasks: usize,
        /// The number of tasks that is tried next.
        then: Option<usize>,
    },
    /// Another number of tasks.
    Size { tasks: usize, began_ns: u64 },
}

/// Trials of one disk.
#[derive(Clone, Debug)]
pub(super) struct Trials {
    pub(super) stage: Stage,
    prior: Prior,
    allowance_ns: f64,
    /// When each number of tasks was last tried, ns.
    tried_ns: BTreeMap<usize, u64>,
    /// When tasks may be tried alone again, ns.
    alone_again_ns: u64,
}

impl Trials {
    pub(super) fn new(config: &AutoConfig) -> Self {
        Self {
            stage: Stage::None,
            prior: config.prior,
            allowance_ns: 0.0,
            tried_ns: BTreeMap::new(),
            alone_again_ns: 0,
        }
    }

    /// The one task that may run, while tasks are tried alone.
    pub(super) fn alone(&self) -> Option<TaskId> {
        match &self.stage {
            Stage::Alone { queue, .. } => queue.last().copied(),
            _ => None,
        }
    }

    /// The number of tasks that is being tried.
    pub(super) fn size(&self) -> Option<usize> {
        match self.stage {
            Stage::Size { tasks, .. } => Some(tasks),
            _ => None,
        }
    }

    pub(super) fn is_on(&self) -> bool {
        !matches!(self.stage, Stage::None)
    }

    /// There is a contest: trials may cost a part of the time.
    pub(super) fn earn(&mut self, elapsed_ns: u64) {
        self.allowance_ns += elapsed_ns as f64 * BUDGET;
    }

    /// Everybody runs, and the disk is contended: is it better to run them one at a time?
    pub(super) fn begin_alone(&mut self, table: &mut Table, now_ns: u64) {
        let is_due = now_ns >= self.alone_again_ns;
        let queue: Vec<TaskId> = table.competing().map(Task::id).collect();
        let known = |id: &TaskId| table.get(*id).is_some_and(|task| task.together.is_known());
        if self.is_on() || !is_due || queue.len() < 2 || !queue.iter().all(known) {
            return;
        }
        self.alone_again_ns = now_ns + AGAIN_NS;
        self.start_alone(table, queue, None, now_ns);
    }

    fn start_alone(
        &mut self,
        table: &mut Table,
        mut queue: Vec<TaskId>,
        then: Option<usize>,
        now_ns: u64,
    ) {
        queue.reverse();
        for id in &queue {
            if let Some(task) = table.get_mut(*id) {
                task.solo = Rate::default();
            }
        }
        self.stage = Stage::Alone {
            tasks: queue.len(),
            queue,
            began_ns: now_ns,
            speed_up: 0.0,
            then,
        };
    }

    /// `size` of the tasks that wait run, in this order: is another number better? Looks at twice as many and at half
    /// as many, each once a minute, when the allowance suffices.
    pub(super) fn begin_size(
        &mut self,
        table: &mut Table,
        learned: &Learned,
        size: usize,
        in_order: &[TaskId],
        now_ns: u64,
    ) {
        let others = [(size * 2).min(in_order.len()), size / 2];
        let is_due = |tasks: &usize| {
            let last_ns = self.tried_ns.get(tasks);
            *tasks > 1
                && *tasks != size
                && last_ns.is_none_or(|last_ns| now_ns >= last_ns + AGAIN_NS)
        };
        let Some(tasks) = others.into_iter().find(is_due).filter(|_| !self.is_on()) else {
            return;
        };
        let unknown: Vec<TaskId> = in_order[..tasks.min(in_order.len())]
            .iter()
            .copied()
            .filter(|id| table.get(*id).is_some_and(|task| !task.solo.is_known()))
            .collect();
        let switches_ns = unknown.len() as u64 * 2 * learned.switch_ns();
        let cost_ns = WINDOW_NS as f64 * self.expected_loss(learned, size, tasks, now_ns)
            + switches_ns as f64;
        if self.allowance_ns < cost_ns {
            return;
        }
        self.allowance_ns -= cost_ns;
        self.tried_ns.insert(tasks, now_ns);
        if unknown.is_empty() {
            self.stage = Stage::Size {
                tasks,
                began_ns: now_ns,
            };
        } else {
            self.start_alone(table, unknown, Some(tasks), now_ns);
        }
    }

    fn expected_loss(&self, learned: &Learned, size: usize, tasks: usize, now_ns: u64) -> f64 {
        let now = learned.curve.speed_up(size, now_ns).unwrap_or(1.0);
        let unknown = match self.prior {
            Prior::Engaged => 0.85,
            Prior::Together => 0.3,
        };
        let then = learned.curve.speed_up(tasks, now_ns);
        then.map_or(unknown, |then| 1.0 - then / now.max(0.01))
            .clamp(0.05, 1.0)
    }

    /// Goes on with what is being tried.
    pub(super) fn look(&mut self, table: &mut Table, learned: &mut Learned, now_ns: u64) {
        let competes = |id: TaskId| table.get(id).is_some_and(Task::competes);
        match &mut self.stage {
            Stage::None => {}
            Stage::Alone {
                queue,
                began_ns,
                speed_up,
                tasks,
                then,
            } => {
                let Some(id) = queue.last().copied() else {
                    self.stage = Stage::None;
                    return;
                };
                let rate = table.get(id).and_then(|task| task.solo.per_ns());
                let is_over = now_ns.saturating_sub(*began_ns) >= LONGEST_WINDOW_NS;
                if rate.is_none() && competes(id) && !is_over {
                    return;
                }
                queue.pop();
                *began_ns = now_ns;
                let beside = table.get(id).and_then(|task| task.together.per_ns());
                let part = beside
                    .zip(rate)
                    .map_or(0.0, |(beside, alone)| beside / alone);
                *speed_up += part;
                let (speed_up, tasks, then, is_last) = (*speed_up, *tasks, *then, queue.is_empty());
                if let Some(tasks) = then.filter(|_| is_last) {
                    self.stage = Stage::Size {
                        tasks,
                        began_ns: now_ns,
                    };
                } else if then.is_none() && (is_last || part >= UNHURT || speed_up >= TOGETHER_PAYS)
                {
                    learned.curve.forget(tasks);
                    learned.curve.add(
                        tasks,
                        speed_up.max(if is_last { 0.0 } else { TOGETHER_PAYS }),
                        LONGEST_WINDOW_NS,
                        now_ns,
                    );
                    self.stage = Stage::None;
                }
            }
            Stage::Size { tasks, began_ns } => {
                let elapsed_ns = now_ns.saturating_sub(*began_ns);
                let waiting = table.competing().count();
                let seen = learned.curve.speed_up(*tasks, now_ns);
                let is_clear = seen.is_some_and(|seen| !(0.8..1.2).contains(&seen));
                let is_enough = is_clear && elapsed_ns >= WINDOW_NS;
                if waiting < *tasks || is_enough || elapsed_ns >= LONGEST_WINDOW_NS {
                    self.stage = Stage::None;
                }
            }
        }
    }

    /// Gives up what is being tried: somebody needs the disk.
    pub(super) fn stop(&mut self) {
        self.stage = Stage::None;
    }
}
