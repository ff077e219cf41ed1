//! The default policy: one batch task at a time where the disk is an arm, together where that is as good.
//!
//! Batch tasks that want the same disk run in turns; who is in turn is found by the fair sojourn protocol ([`fair`]),
//! how many run together by what the disk was seen to gain from it ([`vector_points`]). Protected tasks come first.
//! Two bounds hold whatever the order: nobody is frozen longer than `max_frozen_ns`, and nobody is to finish later
//! than `max_slowdown` times its time under fair sharing, by what it is known or believed to need. Where nothing is
//! gained nothing is done.
//!
//! [`fair`]: super::fair
//! [`vector_points`]: super::vector_points

mod assumed;
mod bounds;
mod config;
mod contention;
mod learn;
mod orders;
mod protect;
mod ranks;
mod state;
mod task;
#[cfg(test)]
mod tests;
mod token;
mod trial;

use super::fair::{FairSharing, believed_size_ns};
use super::sample::{Action, Class, Decision, Order, Policy, Reason, Sample, TaskId};
pub use config::{AutoConfig, BATCH_FLOOR, Measured, Prior, Sequence};
use contention::Contention;
use learn::Learned;
use protect::Protect;
pub use state::{DiskState, TaskState};
use task::{Table, Task};
use token::{Contest, Token};
use trial::Trials;

/// The shortest turn, ns: it makes 0.95 of a disk that takes 12 ms to switch.
const MIN_TURN_NS: u64 = 250_000_000;
/// A turn is at least this many switches long: they cost at most a fiftieth.
const TURN_SWITCHES: u64 = 50;
/// Time between looks while tasks take turns, ns.
const ENGAGED_LOOK_NS: u64 = 10_000_000;
/// Time between looks while something is tried, ns: trials are short.
const TRIAL_LOOK_NS: u64 = 2_000_000;
/// Time between looks while several tasks use the disk as they like, ns: short tasks gain only by what begins soon.
const SHARED_LOOK_NS: u64 = 20_000_000;
/// Time between looks otherwise, ns.
const IDLE_LOOK_NS: u64 = 100_000_000;
/// Tasks that take turns and leave the disk idle more than this are let run together.
const LEFT_BUSY: f64 = 0.8;
/// Time between two reckonings of who would be late, ns.
const RECKON_NS: u64 = 100_000_000;
/// On a disk that serves several at once, protected tasks are protected for this long after it was contended, ns.
const PROTECT_NS: u64 = 10_000_000_000;
/// What a batch task that was frozen as long as it may be gets beside protected tasks, ns: enough for a request.
const MOMENT_NS: u64 = 2_000_000;
/// Cost of a switch on a disk with an arm, before it is learned, ns.
const ARM_SWITCH_NS: u64 = 12_000_000;

/// The default policy for one disk.
#[derive(Clone, Debug)]
pub struct Auto {
    config: AutoConfig,
    table: Table,
    fair: FairSharing,
    token: Token,
    learned: Learned,
    trials: Trials,
    protect: Protect,
    contention: Contention,
    /// Whether tasks take turns, as far as there is anything to take turns for.
    is_engaged: bool,
    /// How many may run; `None`: all.
    size: Option<usize>,
    /// Tasks that would be late, most urgent first.
    late: Vec<TaskId>,
    running: Vec<TaskId>,
    /// When it is next reckoned who would be late, ns.
    reckon_ns: u64,
    /// Until when protected tasks are protected on a disk that serves several at once, ns.
    protect_until_ns: u64,
    last_ns: u64,
    /// What was measured before, until the first look.
    measured: Option<Measured>,
}

impl Auto {
    /// A policy that has seen nothing yet.
    #[must_use]
    pub fn new(config: AutoConfig) -> Self {
        let is_engaged = config.prior == Prior::Engaged;
        Self {
            config,
            table: Table::default(),
            fair: FairSharing::default(),
            token: Token::default(),
            learned: Learned::new(if is_engaged { ARM_SWITCH_NS } else { 0 }),
            trials: Trials::new(&config),
            protect: Protect::default(),
            contention: Contention::default(),
            is_engaged,
            size: is_engaged.then_some(1),
            late: Vec::new(),
            running: Vec::new(),
            reckon_ns: 0,
            protect_until_ns: 0,
            last_ns: 0,
            measured: None,
        }
    }

    /// Begins with what was measured of the disk before. What is seen of the tasks themselves outweighs it soon.
    pub fn begin_with(&mut self, measured: Measured) {
        self.measured = Some(measured);
    }

    /// A task that will be seen frozen at first was frozen for this policy, before its first request: the policy will
    /// thaw it. Any other task that comes frozen is somebody else's, and is left alone.
    pub fn adopt(&mut self, task: TaskId) {
        self.table.adopt(task);
    }

    /// How long a turn is, ns, while `waiting` tasks want the disk.
    fn turn_ns(&self, waiting: usize) -> u64 {
        let learned_ns = MIN_TURN_NS.max(TURN_SWITCHES * self.learned.switch_ns());
        let most_ns = self.config.starve_ns / (waiting.max(2) as u64 - 1);
        self.config.turn_ns.unwrap_or(learned_ns).min(most_ns)
    }

    /// Whether batch steps back for protected tasks now. Where a disk serves several at once, only while it is
    /// contended: that is looked at again every ten seconds.
    fn protects(&self, now_ns: u64) -> bool {
        let is_needed = self.config.prior == Prior::Engaged || now_ns < self.protect_until_ns;
        is_needed && self.protect.is_present()
    }

    /// Until when batch is frozen for protected tasks, ns.
    fn holds_until_ns(&self, now_ns: u64) -> u64 {
        if self.protects(now_ns) { self.protect.holds_until_ns() } else { 0 }
    }

    /// Brings the simulated fair sharing up to date; `is_due`: also with what is believed of those that did nothing.
    fn share(&mut self, ended: &[task::Ended], is_due: bool, now_ns: u64) {
        let table = &self.table;
        let batch = || table.iter().filter(|task| task.last.class == Class::Batch);
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
        self.fair.advance(work_ns, now_ns, |id| table.get(id).is_some_and(Task::competes));
    }

    /// Decides how many may run, and what is tried.
    fn steer(&mut self, elapsed_ns: u64, now_ns: u64) {
        let waiting = self.table.competing().count();
        if self.protects(now_ns) {
            self.trials.stop();
            self.size = Some(1);
            return;
        }
        if self.config.sequence != Sequence::FairSojourn {
            self.size = Some(1);
            return;
        }
        let alone = self.trials.alone();
        self.trials.look(&self.table, &mut self.learned, now_ns);
        if waiting < 2 {
            self.trials.stop();
            self.size = self.is_engaged.then(|| self.size.unwrap_or(1));
            return;
        }
        self.trials.earn(elapsed_ns);
        if self.trials.is_on() {
            return;
        }
        let best = self.learned.curve.best(waiting, now_ns);
        if !self.is_engaged {
            self.size = None;
            let is_known = self.learned.curve.speed_up(waiting, now_ns).is_some();
            if !self.contention.is_contended() {
                return;
            }
            if is_known && best.is_some() {
                self.is_engaged = true;
                self.contention.busy = 1.0;
                self.size = best;
                // Whoever runs goes on: another switch would gain nothing.
                if let Some(task) = alone {
                    self.token.begin(task, Reason::Trial);
                }
            } else {
                let in_order = self.in_order(now_ns);
                self.trials.begin_alone(&mut self.table, in_order, now_ns);
            }
            return;
        }
        self.size = best;
        if self.config.prior == Prior::Together
            && (best.is_none() || self.contention.busy < LEFT_BUSY)
        {
            self.is_engaged = false;
            self.size = None;
            return;
        }
        let size = best.unwrap_or(waiting);
        if let Some(tasks) = self.trials.next_size(&self.learned, size, waiting, now_ns) {
            let in_order = self.in_order(now_ns);
            self.trials.begin_size(
                &mut self.table,
                &self.learned,
                (size, tasks),
                &in_order,
                now_ns,
            );
        }
    }

    fn settle(&mut self, elapsed_ns: u64, is_due: bool, now_ns: u64) {
        let waiting = self.table.competing().count();
        let turn_ns = self.turn_ns(waiting);
        // Beside protected tasks batch is thawed for a moment: what it gets of the disk is looked after elsewhere.
        let exempt_ns = if self.protects(now_ns) {
            MOMENT_NS
        } else {
            bounds::least_turn_ns(&self.config, waiting)
        };
        for task in self.table.iter_mut() {
            if bounds::deadline_ns(&self.config, task.since_ns) <= now_ns && task.is_frozen {
                task.exempt_until_ns = now_ns + exempt_ns;
            }
            task.run_on_after_call(now_ns);
        }
        if is_due {
            let lacking_ns = |id| Some(self.lacking_ns(self.table.get(id)?));
            let ahead_ns = self.token.busy_for_ns(turn_ns) + self.learned.switch_ns() + RECKON_NS;
            self.late =
                bounds::late(&self.table, &self.fair, &self.config, lacking_ns, now_ns, ahead_ns);
        }
        let before: Vec<TaskId> = self.token.tasks().collect();
        let mut token = std::mem::take(&mut self.token);
        token.forget_couples(now_ns);
        if self.trials.alone().is_none() {
            token.settle(&Contest {
                table: &self.table,
                elapsed_ns,
                size: self.trials.size().or(self.size).unwrap_or(usize::MAX),
                turn_ns,
                switch_ns: self.learned.switch_ns(),
                least_turn_ns: bounds::least_turn_ns(&self.config, waiting),
                starved: bounds::starved(&self.table, &self.config, now_ns),
                rank: &|task, is_holder| self.rank(task, is_holder, turn_ns, now_ns),
            });
        }
        self.token = token;
        for id in before {
            if self.token.admits(id).is_none()
                && let Some(task) = self.table.get_mut(id)
            {
                task.end_turn(now_ns);
            }
        }
    }

    /// Notes who runs now, for what is learned from it.
    fn note_running(&mut self, now_ns: u64) {
        let running = self.table.competing().filter(|task| !task.is_frozen);
        let running: Vec<TaskId> = running.map(Task::id).collect();
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
            TRIAL_LOOK_NS
        } else if is_watchful || is_frozen {
            ENGAGED_LOOK_NS
        } else if waiting >= 2 {
            SHARED_LOOK_NS
        } else {
            IDLE_LOOK_NS
        };
        let mut again_ns = now_ns + look_ns;
        let quiet_ns = self.holds_until_ns(now_ns);
        if quiet_ns > now_ns {
            again_ns = again_ns.min(quiet_ns);
        }
        for task in self.table.iter().filter(|task| task.is_frozen) {
            let deadline_ns = bounds::deadline_ns(&self.config, task.since_ns);
            again_ns = again_ns.min(deadline_ns.max(now_ns + 1_000_000));
        }
        again_ns
    }
}

impl Policy for Auto {
    fn decide(&mut self, sample: &Sample<'_>) -> Decision {
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
        // Tasks that are treated as one say nothing about how many others should run together.
        if !self.token.has_coupled() {
            self.learned.look(&mut self.table, elapsed_ns, now_ns);
        }
        if self.size.is_none() && !self.trials.is_on() {
            for task in self.table.iter_mut() {
                task.together.add(task.moved_bytes, elapsed_ns);
            }
        }
        let is_due = now_ns >= self.reckon_ns;
        if is_due {
            self.reckon_ns = now_ns + RECKON_NS;
        }
        self.share(&ended, is_due, now_ns);
        let waiting = self.table.competing().count();
        let contenders = waiting + usize::from(waiting > 0 && self.protect.is_present());
        self.contention.look(sample.disk.busy_ns, contenders, elapsed_ns);
        if self.contention.is_contended() {
            self.protect_until_ns = now_ns + PROTECT_NS;
        }
        self.steer(elapsed_ns, now_ns);
        self.settle(elapsed_ns, is_due, now_ns);
        let orders = self.orders(now_ns);
        self.note_running(now_ns);
        Decision { orders, look_again_ns: self.look_again_ns(now_ns) }
    }

    fn couple(&mut self, pair: (TaskId, TaskId), reason: Reason, until_ns: u64) {
        self.token.couple(pair, reason, until_ns);
    }

    fn thaw_for(&mut self, task: TaskId, now_ns: u64) -> Option<Order> {
        let holder = self.table.get_mut(task)?;
        holder.exempt_until_ns = holder.exempt_until_ns.max(now_ns + MIN_TURN_NS);
        if !holder.is_frozen {
            return None;
        }
        holder.order(false, Reason::Inversion, now_ns);
        Some(Order { task, action: Action::Thaw, reason: Reason::Inversion })
    }
}
