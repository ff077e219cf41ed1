//! State of each task between two looks.

use std::collections::BTreeSet;

use super::super::policy_input::{FreezeReason, TaskClass, TaskId, TaskSample, ThrottleSample};

/// Time without activity after which a task no longer wants the disk, ns.
pub(super) const IDLE_TIMEOUT_NS: u64 = 20_000_000;
/// Time after which an order that samples do not show was undone by others, ns.
const ORDER_TIMEOUT_NS: u64 = 100_000_000;
/// Observation time after which the older half of a rate is forgotten, ns.
const RATE_MEMORY_NS: f64 = 10e9;
/// A task past its known size counts as almost done until it exceeds the size by 1/10
const OVERRUN_DIVISOR: u64 = 10;
/// plus this time, ns.
const OVERRUN_NS: u64 = 50_000_000;
/// Device time after which the call of a frozen task was worth a switch, ns.
const MIN_LONG_CALL_NS: u64 = 50_000_000;
/// Time for which a task may run on after a long call, ns. In it the task shows whether it wants the disk again.
const GRACE_NS: u64 = 25_000_000;
/// Observation time after which a rate is known, ns.
pub(super) const MIN_KNOWN_NS: f64 = 30e6;

/// A rate with a memory: amounts, and the time that they took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RememberedRate {
    amount: f64,
    time_ns: f64,
}

impl RememberedRate {
    pub(super) fn add(&mut self, amount: u64, time_ns: u64) {
        self.amount += amount as f64;
        self.time_ns += time_ns as f64;
        if self.time_ns > RATE_MEMORY_NS {
            self.amount /= 2.0;
            self.time_ns /= 2.0;
        }
    }

    /// Amount per nanosecond, once it is known.
    pub(super) fn per_ns(&self) -> Option<f64> {
        self.per_ns_after(MIN_KNOWN_NS)
    }

    /// Amount per nanosecond, once it was observed for `time_ns`.
    pub(super) fn per_ns_after(&self, time_ns: f64) -> Option<f64> {
        (self.time_ns >= time_ns && self.amount > 0.0).then(|| self.amount / self.time_ns)
    }

    pub(super) fn is_known(&self) -> bool {
        self.per_ns().is_some()
    }
}

/// A task with its observations.
#[derive(Clone, Debug, Default)]
pub(super) struct PolicyTask {
    /// Sample of the last look.
    pub(super) last: TaskSample,
    /// Time of the first look at it, ns.
    pub(super) arrived_ns: u64,
    /// Device time that it had received by then, ns.
    began_device_ns: u64,
    /// Bytes moved between the last two looks.
    pub(super) moved_bytes: u64,
    /// Requests completed between the last two looks.
    pub(super) moved_requests: u64,
    /// Device time between the last two looks, ns.
    pub(super) served_ns: u64,
    /// Whether it had a request outstanding at the last look or the one before.
    pub(super) had_outstanding: bool,
    /// Time of its last use of the disk or its last thaw, ns; 0: never.
    pub(super) active_ns: u64,
    pub(super) wants: bool,
    /// Whether it is frozen by our order.
    pub(super) is_frozen: bool,
    /// Time of the last order, ns.
    pub(super) since_ns: u64,
    pub(super) reason: FreezeReason,
    /// Whether it was frozen by others. It is left alone then.
    pub(super) is_foreign: bool,
    /// It is not frozen before this time, ns.
    pub(super) exempt_until_ns: u64,
    /// End of its last turn, ns; 0: it had none.
    pub(super) turn_ended_ns: u64,
    /// Device time since its freeze, ns: of a call that no freeze interrupts, like fsync.
    call_ns: u64,
    /// End of its grace time after that call, ns.
    pub(super) grace_until_ns: u64,
    /// Whether it had a grace time since its last turn.
    had_grace: bool,
    /// Bytes per nanosecond while it had the disk to itself.
    pub(super) solo: RememberedRate,
    /// Number of requests behind `solo`.
    pub(super) solo_requests: u64,
    /// Bytes per nanosecond of device time while it had the disk to itself.
    pub(super) solo_device: RememberedRate,
    /// Bytes per nanosecond while every task may run.
    pub(super) together: RememberedRate,
    /// Device time that it had received when its known size was used up, ns.
    all_done_ns: Option<u64>,
    is_seen: bool,
}

impl PolicyTask {
    fn new(sample: &TaskSample, is_adopted: bool, now_ns: u64) -> Self {
        Self {
            last: *sample,
            arrived_ns: now_ns,
            began_device_ns: sample.device_ns,
            is_frozen: sample.frozen && is_adopted,
            since_ns: now_ns,
            is_foreign: sample.frozen && !is_adopted,
            is_seen: true,
            ..Self::default()
        }
    }

    pub(super) fn id(&self) -> TaskId {
        self.last.task
    }

    /// Whether the policy may freeze it.
    pub(super) fn is_ours(&self) -> bool {
        self.last.class == TaskClass::Batch && !self.is_foreign
    }

    pub(super) fn competes(&self) -> bool {
        self.is_ours() && self.wants
    }

    /// Device time since the first look at it, ns.
    pub(super) fn attained_ns(&self) -> u64 {
        self.last.device_ns.saturating_sub(self.began_device_ns)
    }

    /// Whether the task has just used up its known size.
    pub(super) fn is_about_to_end(&self) -> bool {
        self.all_done_ns.is_some_and(|done_ns| {
            self.attained_ns() <= done_ns + done_ns / OVERRUN_DIVISOR + OVERRUN_NS
        })
    }

    /// Notes an order to the task.
    pub(super) fn order(&mut self, is_frozen: bool, reason: FreezeReason, now_ns: u64) {
        self.is_frozen = is_frozen;
        self.reason = reason;
        self.since_ns = now_ns;
        self.call_ns = 0;
        if !is_frozen {
            self.active_ns = now_ns;
        }
    }

    pub(super) fn end_turn(&mut self, now_ns: u64) {
        self.turn_ended_ns = now_ns;
        self.had_grace = false;
    }

    /// Grants a grace time to a frozen task whose call has ended: it may only have to exit. The call must have been
    /// long, or nothing is left to read. One grace time between two turns is allowed. Otherwise a task that repeats
    /// fsync would never stop.
    pub(super) fn grant_grace(&mut self, now_ns: u64) {
        let is_at_its_end = self.last.remaining_bytes == Some(0) && self.call_ns > 0;
        let was_long = self.call_ns >= MIN_LONG_CALL_NS || is_at_its_end;
        let has_returned = self.last.outstanding == 0 && was_long;
        if self.is_frozen && has_returned && !self.had_grace {
            self.had_grace = true;
            self.grace_until_ns = now_ns + GRACE_NS;
        }
    }

    fn look(&mut self, sample: &TaskSample, now_ns: u64) {
        let is_busy = sample.outstanding > 0 || sample.requests != self.last.requests;
        self.moved_bytes = sample.bytes.saturating_sub(self.last.bytes);
        self.moved_requests = sample.requests.saturating_sub(self.last.requests);
        self.served_ns = sample.device_ns.saturating_sub(self.last.device_ns);
        self.call_ns += self.served_ns;
        self.had_outstanding = self.last.outstanding > 0 || sample.outstanding > 0;
        self.active_ns = self.active_ns.max(if is_busy { now_ns } else { sample.last_submit_ns });
        self.last = *sample;
        self.is_seen = true;
        self.all_done_ns = match sample.remaining_bytes {
            Some(0) => self.all_done_ns.or(Some(self.attained_ns())),
            _ => None,
        };
        self.look_for_others_orders(now_ns);
        let is_active =
            self.active_ns > 0 && now_ns.saturating_sub(self.active_ns) < IDLE_TIMEOUT_NS;
        self.wants = self.is_frozen || is_active;
    }

    fn look_for_others_orders(&mut self, now_ns: u64) {
        if self.last.frozen == self.is_frozen {
            self.is_foreign = false;
        } else if now_ns.saturating_sub(self.since_ns) >= ORDER_TIMEOUT_NS {
            // Frozen by others: leave it alone. Thawed by others: they had a reason, so leave it running for a while.
            self.is_foreign = self.last.frozen;
            if self.is_frozen {
                self.order(false, FreezeReason::Starvation, now_ns);
                self.exempt_until_ns = now_ns + super::MIN_TURN_NS;
            }
        }
    }
}

/// A task that no longer exists.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndedTask {
    pub(super) task: TaskId,
    pub(super) attained_ns: u64,
}

/// All tasks, ordered by number.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskTable {
    tasks: Vec<PolicyTask>,
    /// Tasks that arrive frozen, and that we may thaw.
    adopted: BTreeSet<TaskId>,
}

impl TaskTable {
    /// Takes the samples of all tasks. Returns the tasks that ended.
    pub(super) fn look(&mut self, sample: &ThrottleSample<'_>) -> Vec<EndedTask> {
        for task in &mut self.tasks {
            task.is_seen = false;
        }
        for seen in sample.tasks {
            match self.position(seen.task) {
                Ok(i) => self.tasks[i].look(seen, sample.now_ns),
                Err(i) => {
                    let is_adopted = self.adopted.remove(&seen.task);
                    let mut task = PolicyTask::new(seen, is_adopted, sample.now_ns);
                    task.look(seen, sample.now_ns);
                    self.tasks.insert(i, task);
                }
            }
        }
        let ended = self
            .tasks
            .iter()
            .filter(|task| !task.is_seen)
            .map(|task| EndedTask { task: task.id(), attained_ns: task.attained_ns() })
            .collect();
        self.tasks.retain(|task| task.is_seen);
        ended
    }

    pub(super) fn adopt(&mut self, task: TaskId) {
        self.adopted.insert(task);
    }

    fn position(&self, id: TaskId) -> Result<usize, usize> {
        self.tasks.binary_search_by_key(&id, PolicyTask::id)
    }

    pub(super) fn get(&self, id: TaskId) -> Option<&PolicyTask> {
        self.position(id).ok().map(|i| &self.tasks[i])
    }

    pub(super) fn get_mut(&mut self, id: TaskId) -> Option<&mut PolicyTask> {
        self.position(id).ok().map(|i| &mut self.tasks[i])
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &PolicyTask> {
        self.tasks.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PolicyTask> {
        self.tasks.iter_mut()
    }

    pub(super) fn competing(&self) -> impl Iterator<Item = &PolicyTask> {
        self.iter().filter(|task| task.competes())
    }
}
