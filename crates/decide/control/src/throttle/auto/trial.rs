//! How many tasks should run together: tried out in short windows, on a budget.
//!
//! Two things are tried. *Alone*: tasks run one at a time for a moment, so that their solo rates are known, and with
//! them what running together is worth. *Size*: another number of tasks runs for a moment. What trials cost is taken
//! from an allowance of a hundredth of the time in which there is a contest at all.
//!
//! Where the first task alone moves as much as all together did, turns lose nothing while it runs. They begin at once
//! then, on the assumption that the others are like it; each of them shows in its first turn whether it is
//! (`assumed`).

use std::collections::BTreeMap;

use super::super::sample::TaskId;
use super::assumed::Assumed;
use super::learn::Learned;
use super::task::{Rate, Table};
use super::{AutoConfig, Prior};

/// Part of the time that trials may cost.
const BUDGET: f64 = 0.01;
/// What is known is tried again after this time, ns.
const AGAIN_NS: u64 = 60_000_000_000;
/// A window is at least about this long, ns.
const WINDOW_NS: u64 = 60_000_000;
/// A window that is not clear is ended after this time, ns.
const LONGEST_WINDOW_NS: u64 = 250_000_000;
/// A task alone is watched for at least this long before running together is judged the better, ns,
const GLANCE_NS: f64 = 6e6;
/// and over at least so many requests.
const GLANCE_REQUESTS: u64 = 8;
/// What that costs at most, ns. The first glance is free.
const GLANCE_COST_NS: f64 = 12e6;
/// A task alone that moves as much as all together is believed after this time, ns,
const CLEAR_NS: f64 = 20e6;
/// where it reaches this part of what they moved.
const AS_MUCH: f64 = 0.99;
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
    Alone(Alone),
    /// Another number of tasks.
    Size { tasks: usize, began_ns: u64 },
}

/// Tasks that are tried alone.
#[derive(Clone, Debug)]
pub(super) struct Alone {
    /// The task that runs, last; before it those that follow.
    queue: Vec<TaskId>,
    began_ns: u64,
    /// Sum over the tasks that are done of their rate together over their rate alone.
    speed_up: f64,
    /// How many ran together before.
    tasks: usize,
    /// The number of tasks that is tried next, where only the solo rates were wanted.
    then: Option<usize>,
}

/// What becomes of tasks that are tried alone at a look.
enum After {
    Stage(Stage),
    /// Turns begin, on an assumption.
    Engage(Assumed),
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
    /// What turns rest on until each task has shown its rate alone.
    assumed: Option<Assumed>,
}

impl Trials {
    pub(super) fn new(config: &AutoConfig) -> Self {
        Self {
            stage: Stage::None,
            prior: config.prior,
            allowance_ns: GLANCE_COST_NS,
            tried_ns: BTreeMap::new(),
            alone_again_ns: 0,
            assumed: None,
        }
    }

    /// The one task that may run, while tasks are tried alone.
    pub(super) fn alone(&self) -> Option<TaskId> {
        match &self.stage {
            Stage::Alone(alone) => alone.queue.last().copied(),
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

    /// Everybody runs, and the disk is contended: is it better to run them one at a time? `queue` is in the order in
    /// which they would.
    pub(super) fn begin_alone(&mut self, table: &mut Table, queue: Vec<TaskId>, now_ns: u64) {
        let is_due = now_ns >= self.alone_again_ns;
        let known = |id: &TaskId| table.get(*id).is_some_and(|task| task.together.is_known());
        let is_affordable = self.allowance_ns >= GLANCE_COST_NS;
        if self.is_on() || !is_due || !is_affordable || queue.len() < 2 || !queue.iter().all(known)
        {
            return;
        }
        self.allowance_ns -= GLANCE_COST_NS;
        self.alone_again_ns = now_ns + AGAIN_NS;
        self.assumed = None;
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
                task.solo_requests = 0;
            }
        }
        self.stage = Stage::Alone(Alone {
            tasks: queue.len(),
            queue,
            began_ns: now_ns,
            speed_up: 0.0,
            then,
        });
    }

    /// `size` of the `waiting` tasks run: the other number that is to be tried now. Twice as many and half as many
    /// are, each once a minute, when the allowance suffices.
    pub(super) fn next_size(
        &self,
        learned: &Learned,
        size: usize,
        waiting: usize,
        now_ns: u64,
    ) -> Option<usize> {
        let is_due = |tasks: &usize| {
            let last_ns = self.tried_ns.get(tasks);
            *tasks > 1
                && *tasks != size
                && last_ns.is_none_or(|last_ns| now_ns >= last_ns + AGAIN_NS)
        };
        let tasks = [(size * 2).min(waiting), size / 2].into_iter().find(is_due)?;
        let cost_ns = self.window_cost_ns(learned, size, tasks, now_ns);
        (!self.is_on() && self.allowance_ns >= cost_ns).then_some(tasks)
    }

    /// Tries `tasks` tasks together in the place of `size`; `in_order` says who would run, the first first. Those
    /// whose solo rate is not known run alone before, if the allowance suffices for that, too.
    pub(super) fn begin_size(
        &mut self,
        table: &mut Table,
        learned: &Learned,
        (size, tasks): (usize, usize),
        in_order: &[TaskId],
        now_ns: u64,
    ) {
        let mut unknown = in_order[..tasks.min(in_order.len())].to_vec();
        unknown.retain(|id| table.get(*id).is_some_and(|task| !task.solo.is_known()));
        let switches_ns = unknown.len() as u64 * 2 * learned.switch_ns();
        let cost_ns = self.window_cost_ns(learned, size, tasks, now_ns) + switches_ns as f64;
        if self.allowance_ns < cost_ns {
            return;
        }
        self.allowance_ns -= cost_ns;
        self.tried_ns.insert(tasks, now_ns);
        if unknown.is_empty() {
            self.stage = Stage::Size { tasks, began_ns: now_ns };
        } else {
            self.start_alone(table, unknown, Some(tasks), now_ns);
        }
    }

    /// What trying another number of tasks is expected to cost, ns.
    fn window_cost_ns(&self, learned: &Learned, size: usize, tasks: usize, now_ns: u64) -> f64 {
        WINDOW_NS as f64 * self.expected_loss(learned, size, tasks, now_ns)
    }

    fn expected_loss(&self, learned: &Learned, size: usize, tasks: usize, now_ns: u64) -> f64 {
        let now = learned.curve.speed_up(size, now_ns).unwrap_or(1.0);
        let unknown = match self.prior {
            Prior::Engaged => 0.85,
            Prior::Together => 0.3,
        };
        let then = learned.curve.speed_up(tasks, now_ns);
        then.map_or(unknown, |then| 1.0 - then / now.max(0.01)).clamp(0.05, 1.0)
    }

    /// Goes on with what is being tried.
    pub(super) fn look(&mut self, table: &Table, learned: &mut Learned, now_ns: u64) {
        if let Some(assumed) = &mut self.assumed
            && assumed.look(table, &mut learned.curve, now_ns)
        {
            self.assumed = None;
        }
        self.stage = match std::mem::take(&mut self.stage) {
            Stage::None => Stage::None,
            Stage::Alone(alone) => match alone.look(table, learned, now_ns) {
                After::Stage(stage) => stage,
                After::Engage(assumed) => {
                    self.assumed = Some(assumed);
                    Stage::None
                }
            },
            Stage::Size { tasks, began_ns } => {
                let elapsed_ns = now_ns.saturating_sub(began_ns);
                let seen = learned.curve.speed_up(tasks, now_ns);
                let is_clear = seen.is_some_and(|seen| !(0.8..1.2).contains(&seen));
                let is_enough = is_clear && elapsed_ns >= WINDOW_NS;
                if table.competing().count() < tasks || is_enough || elapsed_ns >= LONGEST_WINDOW_NS
                {
                    self.allowance_ns -= elapsed_ns.saturating_sub(WINDOW_NS) as f64;
                    Stage::None
                } else {
                    Stage::Size { tasks, began_ns }
                }
            }
        };
    }

    /// Gives up what is being tried: somebody needs the disk.
    pub(super) fn stop(&mut self) {
        self.stage = Stage::None;
    }
}

impl Alone {
    /// Goes on with the next task when this one's solo rate is known. Ends early where together is better: a first
    /// glance is enough for that, so where nothing is to be gained little is lost.
    fn look(mut self, table: &Table, learned: &mut Learned, now_ns: u64) -> After {
        let Some(task) =
            self.queue.last().and_then(|id| table.get(*id)).filter(|task| task.competes())
        else {
            // It ended, or has something else to do: what it would be worth stays unknown.
            return After::Stage(self.next(now_ns));
        };
        let beside = task.together.per_ns();
        let part = |alone: f64| beside.map_or(0.0, |beside| beside / alone);
        let glance =
            task.solo.per_ns_after(GLANCE_NS).filter(|_| task.solo_requests >= GLANCE_REQUESTS);
        let is_hopeless = glance.is_some_and(|alone| {
            part(alone) >= UNHURT || self.speed_up + part(alone) >= TOGETHER_PAYS
        });
        if self.then.is_none() && is_hopeless {
            learned.curve.forget(self.tasks);
            learned.curve.add(
                self.tasks,
                TOGETHER_PAYS.max(self.speed_up),
                LONGEST_WINDOW_NS,
                now_ns,
            );
            return After::Stage(Stage::None);
        }
        if self.then.is_none()
            && self.queue.len() == self.tasks
            && let Some(assumed) = Assumed::new(table, &self.queue, task, CLEAR_NS)
            && assumed.speed_up() * AS_MUCH <= 1.0
        {
            assumed.write(&mut learned.curve, now_ns);
            return After::Engage(assumed);
        }
        let wanted_ns = if self.then.is_some() { WINDOW_NS / 2 } else { WINDOW_NS };
        let alone = task.solo.per_ns_after(wanted_ns as f64);
        if alone.is_none() && now_ns.saturating_sub(self.began_ns) < LONGEST_WINDOW_NS {
            return After::Stage(Stage::Alone(self));
        }
        self.speed_up += alone.map_or(1.0, part);
        if self.then.is_none() && self.queue.len() == 1 {
            learned.curve.forget(self.tasks);
            learned.curve.add(self.tasks, self.speed_up, LONGEST_WINDOW_NS, now_ns);
        }
        After::Stage(self.next(now_ns))
    }

    fn next(mut self, now_ns: u64) -> Stage {
        self.queue.pop();
        self.began_ns = now_ns;
        match self.then {
            _ if !self.queue.is_empty() => Stage::Alone(self),
            Some(tasks) => Stage::Size { tasks, began_ns: now_ns },
            None => Stage::None,
        }
    }
}
