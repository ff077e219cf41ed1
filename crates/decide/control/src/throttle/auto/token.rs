//! Who holds the disk: the running set, its turns, and when the next is let in.
//!
//! A batch task outside the running set is not frozen before it submits I/O: it may compute. So processors stay busy,
//! and a task out of turn costs the disk a request at most.

use std::collections::BTreeMap;

use super::super::sample::{Reason, TaskId};
use super::task::{Table, Task};

/// A task that passes another saves it at least this many switches.
const PASSING_SWITCHES: u64 = 4;
/// Nobody is passed before it has run for so long, ns: what it lacks is not known before.
const PASSED_AFTER_NS: u64 = 50_000_000;

/// A task in the running set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) task: TaskId,
    /// How long it has run in this turn, ns.
    pub(super) used_ns: u64,
    /// How long it may run before somebody else is let in, ns.
    promised_ns: u64,
    /// Why it got in.
    pub(super) reason: Reason,
    /// How long it had run when its turn should have ended, where it goes on since it is nearly done, ns.
    ended_ns: Option<u64>,
    /// Whom it interrupted because it was starved: that task goes on after it.
    interrupted: Option<TaskId>,
}

impl Holder {
    fn new(task: TaskId, reason: Reason) -> Self {
        Self { task, used_ns: 0, promised_ns: 0, reason, ended_ns: None, interrupted: None }
    }
}

/// Two tasks that are treated as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Couple {
    pub(super) tasks: (TaskId, TaskId),
    pub(super) until_ns: u64,
    /// Why.
    reason: Reason,
}

/// What the token needs to know for a look.
pub(super) struct Contest<'a> {
    pub(super) table: &'a Table,
    /// Time since the last look, ns.
    pub(super) elapsed_ns: u64,
    /// How many may run.
    pub(super) size: usize,
    /// How long a turn is, ns.
    pub(super) turn_ns: u64,
    /// Cost of a switch, ns.
    pub(super) switch_ns: u64,
    /// How long the turn of a starved task is, ns.
    pub(super) least_turn_ns: u64,
    /// A task that must run now lest it be frozen too long.
    pub(super) starved: Option<TaskId>,
    /// Order among tasks: smaller is served first. Whether it holds the disk is the second argument.
    pub(super) rank: &'a dyn Fn(&Task, bool) -> Rank,
}

impl Contest<'_> {
    /// Whether the first of those that wait is so much shorter that it passes the holder before its turn is over: it
    /// is to be done in half the time that the holder lacks. So whoever passes one that passed is shorter again, and
    /// there are few switches.
    fn is_passed(&self, holder: &Holder, own: &Rank, (id, first): &(TaskId, Rank)) -> bool {
        let switches_ns = PASSING_SWITCHES * self.switch_ns;
        let is_known = holder.used_ns >= switches_ns.max(PASSED_AFTER_NS);
        let is_shorter = first.lacking_ns + switches_ns < own.lacking_ns / 2;
        // One that thinks between its requests gives its turn up again and again.
        let is_new = (self.table.get(*id)).is_some_and(|task| task.turn_ended_ns == 0);
        is_known && is_shorter && is_new && first.place < own.place
    }
}

/// A place in the order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rank {
    /// Smaller is served first.
    pub(super) place: f64,
    /// By how much another must be ahead to take over.
    pub(super) margin: f64,
    /// Whether it is so far in front because it would be late.
    pub(super) is_late: bool,
    /// Device time that it lacks, as far as is known or believed, ns.
    pub(super) lacking_ns: u64,
    /// Its size class, where its size is not known.
    pub(super) class: Option<u32>,
    /// Whether what it lacks is known, and so little that it had better be done first.
    pub(super) is_nearly_done: bool,
}

impl Rank {
    /// Whether a task that waits may take over from a holder at all.
    fn may_pass(&self, holder: &Self) -> bool {
        self.class.is_none() || self.class != holder.class
    }
}

/// The running set.
#[derive(Clone, Debug, Default)]
pub(super) struct Token {
    holders: BTreeMap<TaskId, Holder>,
    couples: Vec<Couple>,
}

impl Token {
    /// The tasks of the running set.
    pub(super) fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.holders.keys().copied()
    }

    /// How long it takes until somebody else can be let in, ns.
    pub(super) fn busy_for_ns(&self, turn_ns: u64) -> u64 {
        let left = self.holders.values().map(|holder| turn_ns.saturating_sub(holder.used_ns));
        left.min().unwrap_or(0)
    }

    /// Treats two tasks as one until then, or for longer where that was said before.
    pub(super) fn couple(&mut self, (a, b): (TaskId, TaskId), reason: Reason, until_ns: u64) {
        let tasks = (a.min(b), a.max(b));
        let known = (self.couples.iter_mut()).find(|couple| couple.tasks == tasks);
        match known {
            Some(couple) if couple.until_ns >= until_ns => {}
            Some(couple) => (couple.until_ns, couple.reason) = (until_ns, reason),
            None => self.couples.push(Couple { tasks, until_ns, reason }),
        }
    }

    pub(super) fn forget_couples(&mut self, now_ns: u64) {
        self.couples.retain(|couple| couple.until_ns > now_ns);
    }

    /// Turns begin, with this task's.
    pub(super) fn begin(&mut self, task: TaskId, reason: Reason) {
        self.holders.clear();
        self.holders.insert(task, Holder::new(task, reason));
    }

    /// Tasks that are treated as one with this one, and why.
    fn partners(&self, task: TaskId) -> impl Iterator<Item = (TaskId, Reason)> {
        self.couples.iter().filter_map(move |couple| match couple.tasks {
            (a, b) if a == task => Some((b, couple.reason)),
            (a, b) if b == task => Some((a, couple.reason)),
            _ => None,
        })
    }

    /// Why a task is in the running set, by itself or by its partner.
    pub(super) fn admits(&self, task: TaskId) -> Option<Reason> {
        if let Some(holder) = self.holders.get(&task) {
            return Some(holder.reason);
        }
        self.partners(task)
            .find(|(partner, _)| self.holders.contains_key(partner))
            .map(|(_, reason)| reason)
    }

    /// Whether a task of the running set is treated as one with another.
    pub(super) fn has_coupled(&self) -> bool {
        self.tasks().any(|task| self.partners(task).next().is_some())
    }

    fn uses_the_disk(&self, table: &Table, task: TaskId) -> bool {
        let wants = |task| table.get(task).is_some_and(Task::competes);
        wants(task) || self.partners(task).any(|(partner, _)| wants(partner))
    }

    /// Brings the running set up to date.
    pub(super) fn settle(&mut self, contest: &Contest<'_>) {
        let table = contest.table;
        for holder in self.holders.values_mut() {
            if table.get(holder.task).is_some_and(|task| !task.is_frozen) {
                holder.used_ns += contest.elapsed_ns;
            }
        }
        self.holders.retain(|id, _| table.get(*id).is_some_and(Task::is_ours));
        let reason = self.drop_idle(table);
        self.rescue(contest);
        let mut waiting = self.waiting(contest);
        self.end_turns(contest, &mut waiting);
        for (task, rank) in waiting {
            // Whoever's partner was let in before it needs no place.
            if self.holders.len() < contest.size && self.admits(task).is_none() {
                let reason = if rank.is_late { Reason::Slowdown } else { reason };
                self.admit(Holder::new(task, reason));
            }
        }
        self.trim(contest);
    }

    fn admit(&mut self, holder: Holder) {
        self.holders.insert(holder.task, holder);
    }

    /// Whoever does nothing makes room for whoever waits; says why the next comes in.
    fn drop_idle(&mut self, table: &Table) -> Reason {
        let is_outside = |task: &Task| self.admits(task.id()).is_none();
        if !table.competing().any(is_outside) {
            return Reason::Turn;
        }
        let idle: Vec<TaskId> = self.tasks().filter(|id| !self.uses_the_disk(table, *id)).collect();
        for id in &idle {
            self.holders.remove(id);
        }
        if idle.is_empty() { Reason::Turn } else { Reason::Idle }
    }

    /// Lets a starved task in, in the place of somebody who was promised no more.
    fn rescue(&mut self, contest: &Contest<'_>) {
        let Some(starved) = contest.starved.filter(|id| self.admits(*id).is_none()) else {
            return;
        };
        let mut holder = Holder::new(starved, Reason::Starvation);
        holder.promised_ns = contest.least_turn_ns;
        if self.holders.len() >= contest.size {
            let has_had_its_part = |holder: &&Holder| holder.used_ns >= holder.promised_ns;
            let Some(before) =
                self.holders.values().copied().find(|holder| has_had_its_part(&holder))
            else {
                return;
            };
            self.holders.remove(&before.task);
            holder.interrupted = before.interrupted.or(Some(before.task));
        }
        self.admit(holder);
    }

    /// Ends turns that are over where one of those `waiting` is to have the next one.
    fn end_turns(&mut self, contest: &Contest<'_>, waiting: &mut Vec<(TaskId, Rank)>) {
        let holders: Vec<Holder> = self.holders.values().copied().collect();
        for holder in holders {
            let is_rescued = holder.promised_ns > 0;
            let turn_ns = if is_rescued { holder.promised_ns } else { contest.turn_ns };
            let Some(task) = contest.table.get(holder.task) else {
                continue;
            };
            let own = (contest.rank)(task, true);
            let Some(place) = waiting.iter().position(|(_, rank)| rank.may_pass(&own)) else {
                continue;
            };
            let first = &waiting[place];
            let is_over = holder.used_ns >= turn_ns;
            let is_passed = !is_rescued && contest.is_passed(&holder, &own, first);
            if !is_over && !is_passed {
                continue;
            }
            let interrupted = waiting.iter().position(|(id, _)| Some(*id) == holder.interrupted);
            let next = if is_passed || first.1.place + own.margin < own.place {
                Some(place)
            } else {
                // The one that was interrupted goes on, unless it is far behind by now.
                interrupted.filter(|i| waiting[*i].1.place < own.place + own.margin)
            };
            if let Some(i) = next.filter(|_| !self.is_let_finish(&holder, &own, turn_ns)) {
                let (id, rank) = waiting.remove(i);
                let reason = if rank.is_late { Reason::Slowdown } else { Reason::Turn };
                self.holders.remove(&holder.task);
                self.admit(Holder::new(id, reason));
            }
        }
    }

    /// Whether a holder whose turn ends is so nearly done that it goes on; not for longer than half a turn, since it
    /// may lack more than is known.
    fn is_let_finish(&mut self, holder: &Holder, own: &Rank, turn_ns: u64) -> bool {
        if !own.is_nearly_done {
            return false;
        }
        let place = self.holders.get_mut(&holder.task);
        let ended_ns = place.map_or(0, |held| *held.ended_ns.get_or_insert(holder.used_ns));
        holder.used_ns < ended_ns + turn_ns / 2
    }

    /// Those that wait, in order.
    fn waiting(&self, contest: &Contest<'_>) -> Vec<(TaskId, Rank)> {
        let mut waiting: Vec<(TaskId, Rank)> = contest
            .table
            .competing()
            .filter(|task| self.admits(task.id()).is_none())
            .map(|task| (task.id(), (contest.rank)(task, false)))
            .collect();
        waiting.sort_by(|a, b| a.1.place.total_cmp(&b.1.place));
        waiting
    }

    /// Makes the running set as small as it should be, keeping promises.
    fn trim(&mut self, contest: &Contest<'_>) {
        while self.holders.len() > contest.size.max(1) {
            let place = |holder: &&Holder| {
                let task = contest.table.get(holder.task);
                task.map_or(f64::INFINITY, |task| (contest.rank)(task, true).place)
            };
            let last = self
                .holders
                .values()
                .filter(|holder| holder.used_ns >= holder.promised_ns)
                .max_by(|a, b| place(a).total_cmp(&place(b)))
                .map(|holder| holder.task);
            let Some(last) = last else { return };
            self.holders.remove(&last);
        }
    }
}
