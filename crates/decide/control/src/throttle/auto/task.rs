//! What is remembered of each task between two looks.

use std::collections::BTreeSet;

use super::super::sample::{Class, Reason, Sample, TaskId, TaskSample};

/// A task that has done nothing for this long does not want the disk, ns.
pub(super) const IDLE_NS: u64 = 20_000_000;
/// An order that does not show in the samples after this time was undone by somebody else, ns.
const ORDER_SHOWS_NS: u64 = 100_000_000;
/// Rates are learned over this much time, then the older half is forgotten, ns.
const MEMORY_NS: f64 = 10e9;
/// A task that has had all that was known of it is about to end, until it has had this part of that more,
const OUTLIVED_PART: u64 = 10;
/// and this much, ns.
const OUTLIVED_NS: u64 = 50_000_000;
/// A call in which a frozen task used the disk for so long has been worth a switch, ns.
const LONG_CALL_NS: u64 = 50_000_000;
/// How long a task may run on after such a call, ns: until it is seen whether it wants the disk again.
const AFTER_CALL_NS: u64 = 25_000_000;
/// A rate is known when it was watched for this long, ns.
pub(super) const KNOWN_NS: f64 = 30e6;

/// A rate with a memory: amounts and the time that they took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rate {
    amount: f64,
    time_ns: f64,
}

impl Rate {
    pub(super) fn add(&mut self, amount: u64, time_ns: u64) {
        self.amount += amount as f64;
        self.time_ns += time_ns as f64;
        if self.time_ns > MEMORY_NS {
            self.amount /= 2.0;
            self.time_ns /= 2.0;
        }
    }

    /// Amount per nanosecond, once it is known.
    pub(super) fn per_ns(&self) -> Option<f64> {
        self.per_ns_after(KNOWN_NS)
    }

    /// Amount per nanosecond, once it was watched for this long, ns.
    pub(super) fn per_ns_after(&self, time_ns: f64) -> Option<f64> {
        (self.time_ns >= time_ns && self.amount > 0.0).then(|| self.amount / self.time_ns)
    }

    pub(super) fn is_known(&self) -> bool {
        self.per_ns().is_some()
    }
}

/// A task and what was seen of it.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// What was seen at the last look.
    pub(super) last: TaskSample,
    /// When it was first seen, ns.
    pub(super) arrived_ns: u64,
    /// Device time that it had had by then, ns.
    began_device_ns: u64,
    /// Bytes between the last two looks.
    pub(super) moved_bytes: u64,
    /// Requests completed between the last two looks.
    pub(super) moved_requests: u64,
    /// Device time between the last two looks, ns.
    pub(super) served_ns: u64,
    /// Whether it had a request outstanding at the last look or the one before.
    pub(super) had_outstanding: bool,
    /// The last moment at which it was seen to use the disk, or was allowed to; 0: never.
    pub(super) active_ns: u64,
    /// Whether it wants the disk.
    pub(super) wants: bool,
    /// Whether it is frozen by our order.
    pub(super) is_frozen: bool,
    /// Since when it is so, ns.
    pub(super) since_ns: u64,
    /// Why it is so.
    pub(super) reason: Reason,
    /// Whether somebody else froze it: it is left alone.
    pub(super) is_foreign: bool,
    /// It is not frozen before, ns.
    pub(super) exempt_until_ns: u64,
    /// When its last turn ended; 0: it had none.
    pub(super) turn_ended_ns: u64,
    /// Device time since it was frozen, ns: of a call, such as an fsync, that no freeze interrupts.
    call_ns: u64,
    /// Until when it runs on after such a call, ns.
    pub(super) runs_on_until_ns: u64,
    /// Whether it ran on after such a call since its last turn.
    ran_on: bool,
    /// Bytes per nanosecond while it had the disk to itself.
    pub(super) solo: Rate,
    /// Requests over which that was learned.
    pub(super) solo_requests: u64,
    /// Bytes per nanosecond of device time while it had the disk to itself.
    pub(super) solo_device: Rate,
    /// Bytes per nanosecond while everybody may run.
    pub(super) together: Rate,
    /// Device time that it had had when nothing was left of what is known of it, ns.
    all_done_ns: Option<u64>,
    is_seen: bool,
}

impl Task {
    fn new(sample: &TaskSample, is_adopted: bool, now_ns: u64) -> Self {
        Self {
            last: *sample,
            arrived_ns: now_ns,
            began_device_ns: sample.device_ns,
            moved_bytes: 0,
            moved_requests: 0,
            served_ns: 0,
            had_outstanding: false,
            active_ns: 0,
            wants: false,
            is_frozen: sample.frozen && is_adopted,
            since_ns: now_ns,
            reason: Reason::Turn,
            is_foreign: sample.frozen && !is_adopted,
            exempt_until_ns: 0,
            turn_ended_ns: 0,
            call_ns: 0,
            runs_on_until_ns: 0,
            ran_on: false,
            solo: Rate::default(),
            solo_requests: 0,
            solo_device: Rate::default(),
            together: Rate::default(),
            all_done_ns: None,
            is_seen: true,
        }
    }

    pub(super) fn id(&self) -> TaskId {
        self.last.task
    }

    /// Whether it may be frozen.
    pub(super) fn is_ours(&self) -> bool {
        self.last.class == Class::Batch && !self.is_foreign
    }

    /// Whether it takes part in the contest for the disk.
    pub(super) fn competes(&self) -> bool {
        self.is_ours() && self.wants
    }

    /// Device time since it was first seen, ns.
    pub(super) fn attained_ns(&self) -> u64 {
        self.last.device_ns.saturating_sub(self.began_device_ns)
    }

    /// Whether nothing is left of what is known of it, and it has not gone on for long since.
    pub(super) fn is_about_to_end(&self) -> bool {
        self.all_done_ns.is_some_and(|done_ns| {
            self.attained_ns() <= done_ns + done_ns / OUTLIVED_PART + OUTLIVED_NS
        })
    }

    /// Notes an order to it.
    pub(super) fn order(&mut self, is_frozen: bool, reason: Reason, now_ns: u64) {
        self.is_frozen = is_frozen;
        self.reason = reason;
        self.since_ns = now_ns;
        self.call_ns = 0;
        if !is_frozen {
            self.active_ns = now_ns;
        }
    }

    /// Its turn has ended.
    pub(super) fn end_turn(&mut self, now_ns: u64) {
        self.turn_ended_ns = now_ns;
        self.ran_on = false;
    }

    /// Lets it run on where it was frozen in a call that has ended, if that was long, or if nothing was left to read
    /// before: it may have nothing more to do than to exit. It does so once between two turns, or a task that calls
    /// fsync again and again would never stop.
    pub(super) fn run_on_after_call(&mut self, now_ns: u64) {
        let is_at_its_end = self.last.remaining_bytes == Some(0) && self.call_ns > 0;
        let was_long = self.call_ns >= LONG_CALL_NS || is_at_its_end;
        let has_returned = self.last.outstanding == 0 && was_long;
        if self.is_frozen && has_returned && !self.ran_on {
            self.ran_on = true;
            self.runs_on_until_ns = now_ns + AFTER_CALL_NS;
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
        let is_active = self.active_ns > 0 && now_ns.saturating_sub(self.active_ns) < IDLE_NS;
        self.wants = self.is_frozen || is_active;
    }

    fn look_for_others_orders(&mut self, now_ns: u64) {
        if self.last.frozen == self.is_frozen {
            self.is_foreign = false;
        } else if now_ns.saturating_sub(self.since_ns) >= ORDER_SHOWS_NS {
            // Frozen without us: somebody else's business. Thawed without us: for a reason, so let it be for a while.
            self.is_foreign = self.last.frozen;
            if self.is_frozen {
                self.order(false, Reason::Starvation, now_ns);
                self.exempt_until_ns = now_ns + super::MIN_TURN_NS;
            }
        }
    }
}

/// A task that is no longer there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) task: TaskId,
    /// Device time that it has had, ns.
    pub(super) attained_ns: u64,
}

/// All tasks, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    tasks: Vec<Task>,
    /// Tasks that come frozen, and are ours to thaw.
    adopted: BTreeSet<TaskId>,
}

impl Table {
    /// Takes a look at all tasks; returns those that ended.
    pub(super) fn look(&mut self, sample: &Sample<'_>) -> Vec<Ended> {
        for task in &mut self.tasks {
            task.is_seen = false;
        }
        for seen in sample.tasks {
            match self.position(seen.task) {
                Ok(i) => self.tasks[i].look(seen, sample.now_ns),
                Err(i) => {
                    let is_adopted = self.adopted.remove(&seen.task);
                    let mut task = Task::new(seen, is_adopted, sample.now_ns);
                    task.look(seen, sample.now_ns);
                    self.tasks.insert(i, task);
                }
            }
        }
        let ended = self
            .tasks
            .iter()
            .filter(|task| !task.is_seen)
            .map(|task| Ended { task: task.id(), attained_ns: task.attained_ns() })
            .collect();
        self.tasks.retain(|task| task.is_seen);
        ended
    }

    pub(super) fn adopt(&mut self, task: TaskId) {
        self.adopted.insert(task);
    }

    fn position(&self, id: TaskId) -> Result<usize, usize> {
        self.tasks.binary_search_by_key(&id, Task::id)
    }

    pub(super) fn get(&self, id: TaskId) -> Option<&Task> {
        self.position(id).ok().map(|i| &self.tasks[i])
    }

    pub(super) fn get_mut(&mut self, id: TaskId) -> Option<&mut Task> {
        self.position(id).ok().map(|i| &mut self.tasks[i])
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Task> {
        self.tasks.iter_mut()
    }

    /// Those that compete for the disk.
    pub(super) fn competing(&self) -> impl Iterator<Item = &Task> {
        self.iter().filter(|task| task.competes())
    }
}
