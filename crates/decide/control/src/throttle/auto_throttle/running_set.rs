//! The running set: which tasks hold the disk, their turns, and when the next is admitted.
//!
//! A batch task outside the running set is frozen only when it submits I/O: until then it may compute. So processors
//! stay busy, and a task out of turn costs the disk one request at most.

use std::collections::BTreeMap;

use super::super::policy_input::{FreezeReason, TaskId};
use super::policy_task::{PolicyTask, TaskTable};

/// A task may pass a holder only if that saves at least this many switch times.
const MIN_SAVED_SWITCHES: u64 = 4;
/// Time for which a holder runs before it may be passed, ns. Its lacking time is unknown before.
const MIN_HOLD_NS: u64 = 50_000_000;

/// A task in the running set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TurnHolder {
    pub(super) task: TaskId,
    /// Time that it has run in this turn, ns.
    pub(super) used_ns: u64,
    /// Time that it may run before another task is admitted, ns.
    promised_ns: u64,
    /// Reason of its admission.
    pub(super) reason: FreezeReason,
    /// Run time at which its turn should have ended, ns, if it goes on because it is nearly done.
    ended_ns: Option<u64>,
    /// Task that it interrupted because it was starved. That task goes on after it.
    interrupted: Option<TaskId>,
}

impl TurnHolder {
    fn new(task: TaskId, reason: FreezeReason) -> Self {
        Self { task, used_ns: 0, promised_ns: 0, reason, ended_ns: None, interrupted: None }
    }
}

/// Two tasks that are treated as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CoupledTasks {
    pub(super) tasks: (TaskId, TaskId),
    pub(super) until_ns: u64,
    reason: FreezeReason,
}

/// Input of the running set for one look.
pub(super) struct TurnContest<'a> {
    pub(super) table: &'a TaskTable,
    /// Time since the last look, ns.
    pub(super) elapsed_ns: u64,
    pub(super) max_running: usize,
    pub(super) turn_ns: u64,
    pub(super) switch_ns: u64,
    /// Length of the turn of a starved task, ns.
    pub(super) min_turn_ns: u64,
    /// Task that must run now so that its freeze does not become too long.
    pub(super) starved: Option<TaskId>,
    /// Rank of a task; the second argument says whether it holds the disk.
    pub(super) rank: &'a dyn Fn(&PolicyTask, bool) -> TaskRank,
}

impl TurnContest<'_> {
    /// Whether the first waiting task passes the holder before its turn is over. It must finish in half the time that
    /// the holder lacks. So each task that passes is much shorter than the last, and switches stay few.
    fn is_passed(&self, holder: &TurnHolder, own: &TaskRank, first: &Waiting) -> bool {
        let switches_ns = MIN_SAVED_SWITCHES * self.switch_ns;
        let is_known = holder.used_ns >= switches_ns.max(MIN_HOLD_NS);
        let is_shorter = first.rank.lacking_ns + switches_ns < own.lacking_ns / 2;
        // A task that pauses between its requests gives its turn up again and again.
        let is_new = self.table.get(first.task).is_some_and(|task| task.turn_ended_ns == 0);
        is_known && is_shorter && is_new && first.rank.place < own.place
    }
}

/// Position of a task in the order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TaskRank {
    /// Smaller is served first.
    pub(super) place: f64,
    /// Lead in `place` that another task needs to take over.
    pub(super) margin: f64,
    /// Whether it is in front because it would be late.
    pub(super) is_late: bool,
    /// Device time that it lacks, known or believed, ns.
    pub(super) lacking_ns: u64,
    /// Its size class, if its size is unknown.
    pub(super) class: Option<u32>,
    /// Whether its lacking time is known, and so short that it should finish first.
    pub(super) is_nearly_done: bool,
}

impl TaskRank {
    /// Whether a waiting task may take over from a holder at all.
    fn may_pass(&self, holder: &Self) -> bool {
        self.class.is_none() || self.class != holder.class
    }
}

/// A task that competes for the disk and is not in the running set.
struct Waiting {
    task: TaskId,
    rank: TaskRank,
}

/// The running set, with its couples.
#[derive(Clone, Debug, Default)]
pub(super) struct RunningSet {
    holders: BTreeMap<TaskId, TurnHolder>,
    couples: Vec<CoupledTasks>,
}

impl RunningSet {
    pub(super) fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.holders.keys().copied()
    }

    /// Time until another task can be admitted, ns.
    pub(super) fn busy_for_ns(&self, turn_ns: u64) -> u64 {
        let left = self.holders.values().map(|holder| turn_ns.saturating_sub(holder.used_ns));
        left.min().unwrap_or(0)
    }

    /// Treats two tasks as one until `until_ns`. An earlier, longer coupling stays.
    pub(super) fn couple(&mut self, (a, b): (TaskId, TaskId), reason: FreezeReason, until_ns: u64) {
        let tasks = (a.min(b), a.max(b));
        let known = (self.couples.iter_mut()).find(|couple| couple.tasks == tasks);
        match known {
            Some(couple) if couple.until_ns >= until_ns => {}
            Some(couple) => (couple.until_ns, couple.reason) = (until_ns, reason),
            None => self.couples.push(CoupledTasks { tasks, until_ns, reason }),
        }
    }

    pub(super) fn forget_couples(&mut self, now_ns: u64) {
        self.couples.retain(|couple| couple.until_ns > now_ns);
    }

    /// Begins turns with this task.
    pub(super) fn begin(&mut self, task: TaskId, reason: FreezeReason) {
        self.holders.clear();
        self.holders.insert(task, TurnHolder::new(task, reason));
    }

    /// Tasks that are coupled with this one, and why.
    fn partners(&self, task: TaskId) -> impl Iterator<Item = (TaskId, FreezeReason)> {
        self.couples.iter().filter_map(move |couple| match couple.tasks {
            (a, b) if a == task => Some((b, couple.reason)),
            (a, b) if b == task => Some((a, couple.reason)),
            _ => None,
        })
    }

    /// Reason why a task is in the running set, by itself or by its partner.
    pub(super) fn admission_of(&self, task: TaskId) -> Option<FreezeReason> {
        if let Some(holder) = self.holders.get(&task) {
            return Some(holder.reason);
        }
        self.partners(task)
            .find(|(partner, _)| self.holders.contains_key(partner))
            .map(|(_, reason)| reason)
    }

    /// Whether a task of the running set is coupled with another.
    pub(super) fn has_couple(&self) -> bool {
        self.tasks().any(|task| self.partners(task).next().is_some())
    }

    fn uses_the_disk(&self, table: &TaskTable, task: TaskId) -> bool {
        let wants = |task| table.get(task).is_some_and(PolicyTask::competes);
        wants(task) || self.partners(task).any(|(partner, _)| wants(partner))
    }

    /// Updates the running set.
    pub(super) fn settle(&mut self, contest: &TurnContest<'_>) {
        let table = contest.table;
        for holder in self.holders.values_mut() {
            if table.get(holder.task).is_some_and(|task| !task.is_frozen) {
                holder.used_ns += contest.elapsed_ns;
            }
        }
        self.holders.retain(|id, _| table.get(*id).is_some_and(PolicyTask::is_ours));
        let reason = self.drop_idle(table);
        self.rescue(contest);
        let mut waiting = self.list_waiting(contest);
        self.end_turns(contest, &mut waiting);
        for Waiting { task, rank } in waiting {
            // A task whose partner was admitted before needs no place.
            if self.holders.len() < contest.max_running && self.admission_of(task).is_none() {
                let reason = if rank.is_late { FreezeReason::Slowdown } else { reason };
                self.admit(TurnHolder::new(task, reason));
            }
        }
        self.trim(contest);
    }

    fn admit(&mut self, holder: TurnHolder) {
        self.holders.insert(holder.task, holder);
    }

    /// Removes idle holders if other tasks wait. Returns the reason for the next admission.
    fn drop_idle(&mut self, table: &TaskTable) -> FreezeReason {
        let is_outside = |task: &PolicyTask| self.admission_of(task.id()).is_none();
        if !table.competing().any(is_outside) {
            return FreezeReason::Turn;
        }
        let idle: Vec<TaskId> = self.tasks().filter(|id| !self.uses_the_disk(table, *id)).collect();
        for id in &idle {
            self.holders.remove(id);
        }
        if idle.is_empty() { FreezeReason::Turn } else { FreezeReason::Idle }
    }

    /// Admits a starved task, in the place of a holder whose promised time is over.
    fn rescue(&mut self, contest: &TurnContest<'_>) {
        let Some(starved) = contest.starved.filter(|id| self.admission_of(*id).is_none()) else {
            return;
        };
        let mut holder = TurnHolder::new(starved, FreezeReason::Starvation);
        holder.promised_ns = contest.min_turn_ns;
        if self.holders.len() >= contest.max_running {
            let is_over = |holder: &TurnHolder| holder.used_ns >= holder.promised_ns;
            let Some(before) = self.holders.values().copied().find(is_over) else {
                return;
            };
            self.holders.remove(&before.task);
            holder.interrupted = before.interrupted.or(Some(before.task));
        }
        self.admit(holder);
    }

    /// Ends turns that are over, if a `waiting` task should have the next one.
    fn end_turns(&mut self, contest: &TurnContest<'_>, waiting: &mut Vec<Waiting>) {
        let holders: Vec<TurnHolder> = self.holders.values().copied().collect();
        for holder in holders {
            let is_rescued = holder.promised_ns > 0;
            let turn_ns = if is_rescued { holder.promised_ns } else { contest.turn_ns };
            let Some(task) = contest.table.get(holder.task) else {
                continue;
            };
            let own = (contest.rank)(task, true);
            let Some(place) = waiting.iter().position(|other| other.rank.may_pass(&own)) else {
                continue;
            };
            let first = &waiting[place];
            let is_over = holder.used_ns >= turn_ns;
            let is_passed = !is_rescued && contest.is_passed(&holder, &own, first);
            if !is_over && !is_passed {
                continue;
            }
            let next = if is_passed || first.rank.place + own.margin < own.place {
                Some(place)
            } else {
                // The interrupted task goes on, unless it is far behind by now.
                waiting
                    .iter()
                    .position(|other| Some(other.task) == holder.interrupted)
                    .filter(|i| waiting[*i].rank.place < own.place + own.margin)
            };
            if let Some(i) = next.filter(|_| !self.may_finish(&holder, &own, turn_ns)) {
                let Waiting { task, rank } = waiting.remove(i);
                let reason = if rank.is_late { FreezeReason::Slowdown } else { FreezeReason::Turn };
                self.holders.remove(&holder.task);
                self.admit(TurnHolder::new(task, reason));
            }
        }
    }

    /// Whether a holder whose turn ends goes on because it is nearly done. It does so for half a turn at most, since it
    /// may lack more than is known.
    fn may_finish(&mut self, holder: &TurnHolder, own: &TaskRank, turn_ns: u64) -> bool {
        if !own.is_nearly_done {
            return false;
        }
        let place = self.holders.get_mut(&holder.task);
        let ended_ns = place.map_or(0, |held| *held.ended_ns.get_or_insert(holder.used_ns));
        holder.used_ns < ended_ns + turn_ns / 2
    }

    fn list_waiting(&self, contest: &TurnContest<'_>) -> Vec<Waiting> {
        let mut waiting: Vec<Waiting> = contest
            .table
            .competing()
            .filter(|task| self.admission_of(task.id()).is_none())
            .map(|task| Waiting { task: task.id(), rank: (contest.rank)(task, false) })
            .collect();
        waiting.sort_by(|a, b| a.rank.place.total_cmp(&b.rank.place));
        waiting
    }

    /// Shrinks the running set to the allowed number, but keeps promised times.
    fn trim(&mut self, contest: &TurnContest<'_>) {
        while self.holders.len() > contest.max_running.max(1) {
            let place = |holder: &&TurnHolder| {
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
