//! The default policy: runs one batch task at a time on a disk with an arm, and several where that is as fast.
//!
//! Batch tasks that want the same disk take turns. The fair sojourn protocol ([`fair_sojourn`]) decides whose turn it
//! is. The measured speed-up decides how many run together ([`vector_points`]). Protected tasks come first.
//!
//! Two bounds hold for every order. No task is frozen longer than `max_frozen_ns`. No task should take longer than
//! `max_slowdown` times its time under fair sharing, by its known or believed size. Where turns gain nothing, the
//! policy does nothing.
//!
//! [`fair_sojourn`]: super::fair_sojourn
//! [`vector_points`]: super::vector_points

mod assumed_speed_up;
mod auto_config;
mod contention_detector;
mod disk_trials;
mod freeze_bounds;
mod freeze_orders;
mod learned_disk;
mod policy_state;
mod policy_task;
mod protected_tasks;
mod running_set;
mod task_ranks;
#[cfg(test)]
mod tests;

use super::fair_sojourn::{FairSharing, believed_size_ns};
use super::policy_input::{
    FreezeAction, FreezeOrder, FreezeReason, TaskClass, TaskId, ThrottleDecision, ThrottlePolicy,
    ThrottleSample,
};
pub use auto_config::{AutoThrottleConfig, BATCH_FLOOR, DiskMeasurement, DiskPrior, TaskSequence};
use contention_detector::ContentionDetector;
use disk_trials::DiskTrials;
use learned_disk::LearnedDisk;
pub use policy_state::{DiskPolicyState, TaskPolicyState};
use policy_task::{PolicyTask, TaskTable};
use protected_tasks::TaskProtection;
use running_set::{RunningSet, TurnContest};

/// Shortest turn, ns. A disk that takes 12 ms to switch reaches 0.95 of its rate.
const MIN_TURN_NS: u64 = 250_000_000;
/// Shortest turn in switch times: switches cost at most 1/50.
const MIN_TURN_SWITCHES: u64 = 50;
/// Interval between looks while tasks take turns, ns.
const ENGAGED_LOOK_INTERVAL_NS: u64 = 10_000_000;
/// Interval between looks during a trial, ns. Trials are short.
const TRIAL_LOOK_INTERVAL_NS: u64 = 2_000_000;
/// Interval between looks while several tasks use the disk freely, ns. Short tasks gain only from an early start.
const SHARED_LOOK_INTERVAL_NS: u64 = 20_000_000;
/// Interval between looks otherwise, ns.
const IDLE_LOOK_INTERVAL_NS: u64 = 100_000_000;
/// Below this utilization, turns end and tasks run together again.
const MIN_TURNS_UTILIZATION: f64 = 0.8;
/// Interval between two searches for tasks that would be late, ns.
const LATE_SEARCH_INTERVAL_NS: u64 = 100_000_000;
/// Duration of protection after contention, ns, on a disk that serves several tasks at once.
const PROTECTION_NS: u64 = 10_000_000_000;
/// Turn of a batch task beside protected tasks, after its longest freeze, ns. It is enough for one request.
const BATCH_MOMENT_NS: u64 = 2_000_000;
/// Assumed cost of a switch on a disk with an arm, ns, until it is learned.
const DEFAULT_ARM_SWITCH_NS: u64 = 12_000_000;

/// The default policy for one disk.
#[derive(Clone, Debug)]
pub struct AutoThrottle {
    config: AutoThrottleConfig,
    table: TaskTable,
    fair: FairSharing,
    token: RunningSet,
    learned: LearnedDisk,
    trials: DiskTrials,
    protect: TaskProtection,
    contention: ContentionDetector,
    /// Whether tasks take turns whenever several want the disk.
    is_engaged: bool,
    /// Number of tasks that may run; `None`: all.
    max_running: Option<usize>,
    /// Tasks that would finish late, most urgent first.
    late: Vec<TaskId>,
    running: Vec<TaskId>,
    /// Time of the next search for late tasks, ns.
    next_late_search_ns: u64,
    /// End of protection on a disk that serves several tasks at once, ns.
    protect_until_ns: u64,
    last_ns: u64,
    /// Results of an earlier measurement, until the first look uses them.
    measured: Option<DiskMeasurement>,
}

impl AutoThrottle {
    /// Creates a policy that has seen nothing yet.
    #[must_use]
    pub fn new(config: AutoThrottleConfig) -> Self {
        let is_engaged = config.prior == DiskPrior::Engaged;
        Self {
            config,
            table: TaskTable::default(),
            fair: FairSharing::default(),
            token: RunningSet::default(),
            learned: LearnedDisk::new(if is_engaged { DEFAULT_ARM_SWITCH_NS } else { 0 }),
            trials: DiskTrials::new(&config),
            protect: TaskProtection::default(),
            contention: ContentionDetector::default(),
            is_engaged,
            max_running: is_engaged.then_some(1),
            late: Vec::new(),
            running: Vec::new(),
            next_late_search_ns: 0,
            protect_until_ns: 0,
            last_ns: 0,
            measured: None,
        }
    }

    /// Starts from an earlier measurement of the disk. Observation of the tasks soon outweighs it.
    pub fn begin_with(&mut self, measured: DiskMeasurement) {
        self.measured = Some(measured);
    }

    /// Announces a task that was frozen for this policy before its first request. The policy will thaw it. Any other
    /// task that is frozen at first was frozen by others and is left alone.
    pub fn adopt(&mut self, task: TaskId) {
        self.table.adopt(task);
    }

    /// Length of a turn, ns, while `waiting` tasks want the disk.
    fn turn_ns(&self, waiting: usize) -> u64 {
        let learned_ns = MIN_TURN_NS.max(MIN_TURN_SWITCHES * self.learned.switch_ns());
        let most_ns = self.config.starve_ns / (waiting.max(2) as u64 - 1);
        self.config.turn_ns.unwrap_or(learned_ns).min(most_ns)
    }

    /// Whether batch steps back for protected tasks now. A disk that serves several tasks at once must be contended for
    /// that, which is checked again every ten seconds.
    fn protects(&self, now_ns: u64) -> bool {
        let is_needed = self.config.prior == DiskPrior::Engaged || now_ns < self.protect_until_ns;
        is_needed && self.protect.is_present()
    }

    /// End of the freeze of batch for protected tasks, ns.
    fn holds_until_ns(&self, now_ns: u64) -> u64 {
        if self.protects(now_ns) { self.protect.holds_until_ns() } else { 0 }
    }

    /// Updates the simulated fair sharing. `is_due` also updates the beliefs about tasks that did nothing.
    fn update_fair_sharing(&mut self, ended: &[policy_task::EndedTask], is_due: bool, now_ns: u64) {
        let table = &self.table;
        let batch = || table.iter().filter(|task| task.last.class == TaskClass::Batch);
        let work_ns = batch().map(|task| task.served_ns).sum();
        for ended in ended {
            self.fair.leave(ended.task, ended.attained_ns);
        }
        for task in batch() {
            let is_new = !self.fair.has(task.id());
            if !is_new && !is_due && task.served_ns == 0 {
                continue;
            }
            let size_ns = match self.known_lacking_ns(task) {
                Some(lacking_ns) => task.attained_ns().saturating_add(lacking_ns),
                None => believed_size_ns(task.attained_ns()),
            };
            if is_new {
                self.fair.arrive(task.id(), task.last.weight, size_ns, now_ns);
            } else {
                self.fair.believe(task.id(), task.last.weight, size_ns);
            }
        }
        self.fair.advance(work_ns, now_ns, |id| table.get(id).is_some_and(PolicyTask::competes));
    }

    /// Decides how many tasks may run, and whether to start a trial.
    fn steer(&mut self, elapsed_ns: u64, now_ns: u64) {
        // 1. Cases without a choice: protected tasks, ablations, fewer than two tasks, a trial under way.
        let waiting = self.table.competing().count();
        if self.protects(now_ns) {
            self.trials.stop();
        }
        if self.protects(now_ns) || self.config.sequence != TaskSequence::FairSojourn {
            self.max_running = Some(1);
            return;
        }
        let alone = self.trials.alone();
        self.trials.look(&self.table, &mut self.learned, now_ns);
        if waiting < 2 {
            self.trials.stop();
            self.max_running = self.is_engaged.then(|| self.max_running.unwrap_or(1));
            return;
        }
        self.trials.earn(elapsed_ns);
        if self.trials.is_on() {
            return;
        }
        // 2. Tasks run together: begin turns if they are known to pay, else try one task alone.
        let best = self.learned.curve.best(waiting, now_ns);
        if !self.is_engaged {
            self.max_running = None;
            let is_known = self.learned.curve.speed_up(waiting, now_ns).is_some();
            if !self.contention.is_contended() {
                return;
            }
            if is_known && best.is_some() {
                self.is_engaged = true;
                self.contention.busy = 1.0;
                self.max_running = best;
                // The running task goes on: another switch would gain nothing.
                if let Some(task) = alone {
                    self.token.begin(task, FreezeReason::Trial);
                }
            } else {
                let in_order = self.in_order(now_ns);
                self.trials.begin_alone(&mut self.table, in_order, now_ns);
            }
            return;
        }
        // 3. Tasks take turns: end that if it does not pay, else try another number of tasks.
        self.max_running = best;
        if self.config.prior == DiskPrior::Together
            && (best.is_none() || self.contention.busy < MIN_TURNS_UTILIZATION)
        {
            self.is_engaged = false;
            self.max_running = None;
            return;
        }
        let max_running = best.unwrap_or(waiting);
        if let Some(change) = self.trials.next_size(&self.learned, max_running, waiting, now_ns) {
            let in_order = self.in_order(now_ns);
            self.trials.begin_size(&mut self.table, &self.learned, change, &in_order, now_ns);
        }
    }

    fn settle(&mut self, elapsed_ns: u64, is_due: bool, now_ns: u64) {
        let waiting = self.table.competing().count();
        let turn_ns = self.turn_ns(waiting);
        // Beside protected tasks batch is thawed for a moment. `TaskProtection` accounts for its part of the disk.
        let exempt_ns = if self.protects(now_ns) {
            BATCH_MOMENT_NS
        } else {
            freeze_bounds::min_turn_ns(&self.config, waiting)
        };
        for task in self.table.iter_mut() {
            if freeze_bounds::deadline_ns(&self.config, task.since_ns) <= now_ns && task.is_frozen {
                task.exempt_until_ns = now_ns + exempt_ns;
            }
            task.grant_grace(now_ns);
        }
        if is_due {
            let lacking_ns = |id| Some(self.lacking_ns(self.table.get(id)?));
            let ahead_ns = self.token.busy_for_ns(turn_ns)
                + self.learned.switch_ns()
                + LATE_SEARCH_INTERVAL_NS;
            self.late = freeze_bounds::find_late(
                &self.table,
                &self.fair,
                &self.config,
                lacking_ns,
                now_ns,
                ahead_ns,
            );
        }
        let before: Vec<TaskId> = self.token.tasks().collect();
        let mut token = std::mem::take(&mut self.token);
        token.forget_couples(now_ns);
        if self.trials.alone().is_none() {
            token.settle(&TurnContest {
                table: &self.table,
                elapsed_ns,
                max_running: self.trials.size().or(self.max_running).unwrap_or(usize::MAX),
                turn_ns,
                switch_ns: self.learned.switch_ns(),
                min_turn_ns: freeze_bounds::min_turn_ns(&self.config, waiting),
                starved: freeze_bounds::find_starved(&self.table, &self.config, now_ns),
                rank: &|task, is_holder| self.rank(task, is_holder, turn_ns, now_ns),
            });
        }
        self.token = token;
        for id in before {
            if self.token.admission_of(id).is_none()
                && let Some(task) = self.table.get_mut(id)
            {
                task.end_turn(now_ns);
            }
        }
    }

    /// Notes which tasks run now, so that rates can be attributed to them.
    fn note_running(&mut self, now_ns: u64) {
        let running = self.table.competing().filter(|task| !task.is_frozen);
        let running: Vec<TaskId> = running.map(PolicyTask::id).collect();
        if running != self.running {
            self.learned.change(&self.table, now_ns);
            self.running = running;
        }
    }

    fn look_again_ns(&self, now_ns: u64) -> u64 {
        let waiting = self.table.competing().count();
        let batch = self.table.iter().filter(|task| task.is_ours()).count();
        let is_watchful = self.is_engaged && waiting >= 1 && batch >= 2;
        let is_frozen = self.table.iter().any(|task| task.is_frozen);
        let look_ns = if self.trials.is_on() {
            TRIAL_LOOK_INTERVAL_NS
        } else if is_watchful || is_frozen {
            ENGAGED_LOOK_INTERVAL_NS
        } else if waiting >= 2 {
            SHARED_LOOK_INTERVAL_NS
        } else {
            IDLE_LOOK_INTERVAL_NS
        };
        let mut again_ns = now_ns + look_ns;
        let quiet_ns = self.holds_until_ns(now_ns);
        if quiet_ns > now_ns {
            again_ns = again_ns.min(quiet_ns);
        }
        for task in self.table.iter().filter(|task| task.is_frozen) {
            let deadline_ns = freeze_bounds::deadline_ns(&self.config, task.since_ns);
            again_ns = again_ns.min(deadline_ns.max(now_ns + 1_000_000));
        }
        again_ns
    }
}

impl ThrottlePolicy for AutoThrottle {
    fn decide(&mut self, sample: &ThrottleSample<'_>) -> ThrottleDecision {
        let now_ns = sample.now_ns;
        let elapsed_ns = if self.last_ns == 0 { 0 } else { now_ns.saturating_sub(self.last_ns) };
        self.last_ns = now_ns;
        if let Some(measured) = self.measured.take() {
            self.learned.believe(&measured, now_ns);
        }
        let batch_ran = self.table.competing().any(|task| !task.is_frozen);
        let batch_waits = self.table.competing().any(|task| task.is_frozen);
        let ended = self.table.look(sample);
        self.protect.look(sample.tasks, now_ns);
        let floor = self.config.batch_floor;
        self.protect.account(elapsed_ns, batch_ran, batch_waits, floor);
        // A couple runs as one task, so its rate says nothing about the best number of tasks.
        if !self.token.has_couple() {
            self.learned.look(&mut self.table, elapsed_ns, now_ns);
        }
        if self.max_running.is_none() && !self.trials.is_on() {
            for task in self.table.iter_mut() {
                task.together.add(task.moved_bytes, elapsed_ns);
            }
        }
        let is_due = now_ns >= self.next_late_search_ns;
        if is_due {
            self.next_late_search_ns = now_ns + LATE_SEARCH_INTERVAL_NS;
        }
        self.update_fair_sharing(&ended, is_due, now_ns);
        let waiting = self.table.competing().count();
        let contenders = waiting + usize::from(waiting > 0 && self.protect.is_present());
        self.contention.look(sample.disk.busy_ns, contenders, elapsed_ns);
        if self.contention.is_contended() {
            self.protect_until_ns = now_ns + PROTECTION_NS;
        }
        self.steer(elapsed_ns, now_ns);
        self.settle(elapsed_ns, is_due, now_ns);
        let orders = self.give_orders(now_ns);
        self.note_running(now_ns);
        ThrottleDecision { orders, look_again_ns: self.look_again_ns(now_ns) }
    }

    fn couple(&mut self, pair: (TaskId, TaskId), reason: FreezeReason, until_ns: u64) {
        self.token.couple(pair, reason, until_ns);
    }

    fn thaw_for(&mut self, task: TaskId, now_ns: u64) -> Option<FreezeOrder> {
        let holder = self.table.get_mut(task)?;
        holder.exempt_until_ns = holder.exempt_until_ns.max(now_ns + MIN_TURN_NS);
        if !holder.is_frozen {
            return None;
        }
        holder.order(false, FreezeReason::Inversion, now_ns);
        Some(FreezeOrder { task, action: FreezeAction::Thaw, reason: FreezeReason::Inversion })
    }
}
