//! Tries in short windows how many tasks should run together, on a budget.
//!
//! There are two kinds of trial. *Alone*: tasks run one at a time for a moment. That shows their solo rates, and with
//! them the speed-up of running together. *Size*: another number of tasks runs for a moment. Trials may cost a
//! hundredth of the time in which tasks compete.
//!
//! If the first task alone moves as much as all together did, turns lose nothing while it runs. Then turns begin at
//! once, on the assumption that the other tasks are like it. Each of them shows in its first turn whether it is
//! (`assumed_speed_up`).

use std::collections::BTreeMap;

use super::super::policy_input::TaskId;
use super::assumed_speed_up::AssumedSpeedUp;
use super::learned_disk::LearnedDisk;
use super::policy_task::{RememberedRate, TaskTable};
use super::{AutoThrottleConfig, DiskPrior};

/// Part of the competing time that trials may cost.
const MAX_TRIAL_FRACTION: f64 = 0.01;
/// Time after which a known value is tried again, ns.
const RETRIAL_INTERVAL_NS: u64 = 60_000_000_000;
/// Usual length of a trial window, ns.
const TRIAL_WINDOW_NS: u64 = 60_000_000;
/// Longest trial window, ns, for a result that stays unclear.
const MAX_WINDOW_NS: u64 = 250_000_000;
/// Time and requests for which a task runs alone before running together is judged the better, ns.
const MIN_GLANCE_NS: f64 = 6e6;
const MIN_GLANCE_REQUESTS: u64 = 8;
/// Largest cost of that first glance, ns. The first glance is free.
const MAX_GLANCE_COST_NS: f64 = 12e6;
/// Time after which a task alone may prove to move as much as all tasks together, ns.
const MIN_CLEAR_NS: f64 = 20e6;
/// Part of the combined rate that it must reach for that.
const MIN_ALONE_FRACTION: f64 = 0.99;
/// A task is not hurt by the others if it keeps this part of its solo rate.
const MIN_UNHURT_FRACTION: f64 = 0.7;
/// Speed-up of running together above which nothing else need be tried.
const MIN_TOGETHER_SPEED_UP: f64 = 1.3;

/// Trial that is under way.
#[derive(Clone, Debug, Default)]
pub(super) enum TrialStage {
    #[default]
    None,
    /// Runs one task alone, then the others.
    Alone(AloneTrial),
    /// Runs another number of tasks together.
    Size { tasks: usize, began_ns: u64 },
}

/// Trial of tasks that run alone.
#[derive(Clone, Debug)]
pub(super) struct AloneTrial {
    /// Tasks yet to run; the running task is last.
    queue: Vec<TaskId>,
    began_ns: u64,
    /// Sum over the finished tasks of their rate together over their rate alone.
    speed_up: f64,
    /// Number of tasks that ran together before.
    tasks: usize,
    /// Number of tasks of the following size trial, if only solo rates were wanted.
    then: Option<usize>,
}

/// Result of a look at tasks that are tried alone.
enum AloneResult {
    Continue(TrialStage),
    /// Turns begin, on an assumption.
    Engage(AssumedSpeedUp),
}

/// Number of tasks that run now, and the number to try in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunningSetTrial {
    present: usize,
    tried: usize,
}

/// Trials of one disk.
#[derive(Clone, Debug)]
pub(super) struct DiskTrials {
    pub(super) stage: TrialStage,
    prior: DiskPrior,
    allowance_ns: f64,
    /// Time of the last trial of each number of tasks, ns.
    tried_ns: BTreeMap<usize, u64>,
    /// Earliest time of the next trial of tasks alone, ns.
    alone_again_ns: u64,
    /// Assumption behind the turns, until each task has shown its solo rate.
    assumed: Option<AssumedSpeedUp>,
}

impl DiskTrials {
    pub(super) fn new(config: &AutoThrottleConfig) -> Self {
        Self {
            stage: TrialStage::None,
            prior: config.prior,
            allowance_ns: MAX_GLANCE_COST_NS,
            tried_ns: BTreeMap::new(),
            alone_again_ns: 0,
            assumed: None,
        }
    }

    /// The one task that may run, while tasks are tried alone.
    pub(super) fn alone(&self) -> Option<TaskId> {
        match &self.stage {
            TrialStage::Alone(alone) => alone.queue.last().copied(),
            _ => None,
        }
    }

    /// Number of tasks in the present size trial.
    pub(super) fn size(&self) -> Option<usize> {
        match self.stage {
            TrialStage::Size { tasks, .. } => Some(tasks),
            _ => None,
        }
    }

    pub(super) fn is_on(&self) -> bool {
        !matches!(self.stage, TrialStage::None)
    }

    /// Adds to the allowance for a time in which tasks compete.
    pub(super) fn earn(&mut self, elapsed_ns: u64) {
        self.allowance_ns += elapsed_ns as f64 * MAX_TRIAL_FRACTION;
    }

    /// Tries whether one task at a time is better, while all tasks run and the disk is contended. `queue` is in running
    /// order.
    pub(super) fn begin_alone(&mut self, table: &mut TaskTable, queue: Vec<TaskId>, now_ns: u64) {
        let is_due = now_ns >= self.alone_again_ns;
        let known = |id: &TaskId| table.get(*id).is_some_and(|task| task.together.is_known());
        let is_affordable = self.allowance_ns >= MAX_GLANCE_COST_NS;
        if self.is_on() || !is_due || !is_affordable || queue.len() < 2 || !queue.iter().all(known)
        {
            return;
        }
        self.allowance_ns -= MAX_GLANCE_COST_NS;
        self.alone_again_ns = now_ns + RETRIAL_INTERVAL_NS;
        self.assumed = None;
        self.start_alone(table, queue, None, now_ns);
    }

    fn start_alone(
        &mut self,
        table: &mut TaskTable,
        mut queue: Vec<TaskId>,
        then: Option<usize>,
        now_ns: u64,
    ) {
        queue.reverse();
        for id in &queue {
            if let Some(task) = table.get_mut(*id) {
                task.solo = RememberedRate::default();
                task.solo_requests = 0;
            }
        }
        let tasks = queue.len();
        self.stage =
            TrialStage::Alone(AloneTrial { tasks, queue, began_ns: now_ns, speed_up: 0.0, then });
    }

    /// Chooses another number of tasks to try while `size` of the `waiting` tasks run. Doubled and halved numbers are
    /// tried once a minute, if the allowance suffices.
    pub(super) fn next_size(
        &self,
        learned: &LearnedDisk,
        size: usize,
        waiting: usize,
        now_ns: u64,
    ) -> Option<RunningSetTrial> {
        let is_due = |tasks: &usize| {
            let last_ns = self.tried_ns.get(tasks);
            *tasks > 1
                && *tasks != size
                && last_ns.is_none_or(|last_ns| now_ns >= last_ns + RETRIAL_INTERVAL_NS)
        };
        let tried = [(size * 2).min(waiting), size / 2].into_iter().find(is_due)?;
        let change = RunningSetTrial { present: size, tried };
        let cost_ns = self.window_cost_ns(learned, change, now_ns);
        (!self.is_on() && self.allowance_ns >= cost_ns).then_some(change)
    }

    /// Tries another number of tasks; `in_order` lists the tasks in running order. Tasks of unknown solo rate run alone
    /// first, if the allowance also suffices for that.
    pub(super) fn begin_size(
        &mut self,
        table: &mut TaskTable,
        learned: &LearnedDisk,
        change: RunningSetTrial,
        in_order: &[TaskId],
        now_ns: u64,
    ) {
        let tasks = change.tried;
        let mut unknown = in_order[..tasks.min(in_order.len())].to_vec();
        unknown.retain(|id| table.get(*id).is_some_and(|task| !task.solo.is_known()));
        let switches_ns = unknown.len() as u64 * 2 * learned.switch_ns();
        let cost_ns = self.window_cost_ns(learned, change, now_ns) + switches_ns as f64;
        if self.allowance_ns < cost_ns {
            return;
        }
        self.allowance_ns -= cost_ns;
        self.tried_ns.insert(tasks, now_ns);
        if unknown.is_empty() {
            self.stage = TrialStage::Size { tasks, began_ns: now_ns };
        } else {
            self.start_alone(table, unknown, Some(tasks), now_ns);
        }
    }

    /// Expected cost of trying another number of tasks, ns.
    fn window_cost_ns(&self, learned: &LearnedDisk, change: RunningSetTrial, now_ns: u64) -> f64 {
        let present = learned.curve.speed_up(change.present, now_ns).unwrap_or(1.0);
        let unknown_loss = match self.prior {
            DiskPrior::Engaged => 0.85,
            DiskPrior::Together => 0.3,
        };
        let tried = learned.curve.speed_up(change.tried, now_ns);
        let loss = tried.map_or(unknown_loss, |tried| 1.0 - tried / present.max(0.01));
        TRIAL_WINDOW_NS as f64 * loss.clamp(0.05, 1.0)
    }

    /// Continues the trial under way.
    pub(super) fn look(&mut self, table: &TaskTable, learned: &mut LearnedDisk, now_ns: u64) {
        if let Some(assumed) = &mut self.assumed
            && assumed.look(table, &mut learned.curve, now_ns)
        {
            self.assumed = None;
        }
        self.stage = match std::mem::take(&mut self.stage) {
            TrialStage::None => TrialStage::None,
            TrialStage::Alone(alone) => match alone.look(table, learned, now_ns) {
                AloneResult::Continue(stage) => stage,
                AloneResult::Engage(assumed) => {
                    self.assumed = Some(assumed);
                    TrialStage::None
                }
            },
            TrialStage::Size { tasks, began_ns } => {
                let elapsed_ns = now_ns.saturating_sub(began_ns);
                let seen = learned.curve.speed_up(tasks, now_ns);
                let is_clear = seen.is_some_and(|seen| !(0.8..1.2).contains(&seen));
                let is_enough = is_clear && elapsed_ns >= TRIAL_WINDOW_NS;
                if table.competing().count() < tasks || is_enough || elapsed_ns >= MAX_WINDOW_NS {
                    self.allowance_ns -= elapsed_ns.saturating_sub(TRIAL_WINDOW_NS) as f64;
                    TrialStage::None
                } else {
                    TrialStage::Size { tasks, began_ns }
                }
            }
        };
    }

    /// Gives up the trial: another task needs the disk.
    pub(super) fn stop(&mut self) {
        self.stage = TrialStage::None;
    }
}

impl AloneTrial {
    /// Continues with the next task once this task's solo rate is known. Ends early if running together is better. A
    /// first glance shows that, so little is lost where nothing can be gained.
    fn look(mut self, table: &TaskTable, learned: &mut LearnedDisk, now_ns: u64) -> AloneResult {
        let Some(task) =
            self.queue.last().and_then(|id| table.get(*id)).filter(|task| task.competes())
        else {
            // It ended, or has something else to do: its solo rate stays unknown.
            return AloneResult::Continue(self.next(now_ns));
        };
        // 1. Hopeless: the first glance shows that running together is better.
        let beside = task.together.per_ns();
        let part = |alone: f64| beside.map_or(0.0, |beside| beside / alone);
        let glance = task
            .solo
            .per_ns_after(MIN_GLANCE_NS)
            .filter(|_| task.solo_requests >= MIN_GLANCE_REQUESTS);
        let is_hopeless = glance.is_some_and(|alone| {
            part(alone) >= MIN_UNHURT_FRACTION
                || self.speed_up + part(alone) >= MIN_TOGETHER_SPEED_UP
        });
        if self.then.is_none() && is_hopeless {
            let speed_up = MIN_TOGETHER_SPEED_UP.max(self.speed_up);
            learned.curve.replace(self.tasks, speed_up, MAX_WINDOW_NS, now_ns);
            return AloneResult::Continue(TrialStage::None);
        }
        // 2. Clear: the first task alone moves as much as all together.
        if self.then.is_none()
            && self.queue.len() == self.tasks
            && let Some(assumed) = AssumedSpeedUp::new(table, &self.queue, task, MIN_CLEAR_NS)
            && assumed.speed_up() * MIN_ALONE_FRACTION <= 1.0
        {
            assumed.write(&mut learned.curve, now_ns);
            return AloneResult::Engage(assumed);
        }
        // 3. Otherwise the task runs for a window, and then the next one.
        let wanted_ns = if self.then.is_some() { TRIAL_WINDOW_NS / 2 } else { TRIAL_WINDOW_NS };
        let alone = task.solo.per_ns_after(wanted_ns as f64);
        if alone.is_none() && now_ns.saturating_sub(self.began_ns) < MAX_WINDOW_NS {
            return AloneResult::Continue(TrialStage::Alone(self));
        }
        self.speed_up += alone.map_or(1.0, part);
        if self.then.is_none() && self.queue.len() == 1 {
            learned.curve.replace(self.tasks, self.speed_up, MAX_WINDOW_NS, now_ns);
        }
        AloneResult::Continue(self.next(now_ns))
    }

    fn next(mut self, now_ns: u64) -> TrialStage {
        self.queue.pop();
        self.began_ns = now_ns;
        match self.then {
            _ if !self.queue.is_empty() => TrialStage::Alone(self),
            Some(tasks) => TrialStage::Size { tasks, began_ns: now_ns },
            None => TrialStage::None,
        }
    }
}
