//! Finds waits for a task with which the waiter shares a pipe, a socket or memory.
//!
//! Two tasks are linked by a pipe (named or not) that both have open. The two ends of a Unix socket link tasks, too.
//! Tasks are also linked by memory that both have mapped shared and may write, such as that of a futex. Threads of
//! one process that are tasks of their own are linked by all of its memory. Links are searched for every
//! [`SCAN_INTERVAL_NS`].
//!
//! A thread counts as waiting for a linked, frozen task if it sleeps at two successive looks without running between.
//! For memory it must sleep in futex. For the others it must sleep in a read or write of the object, or in poll and
//! the like. A thread that has just fallen asleep gets a second look after [`RELOOK_DELAY_NS`]. It gets none if it
//! had run again by then [`MAX_RESTLESS_LOOKS`] times in a row.
//!
//! That is a guess if a thread polls much else. If thawing the holder did not wake the waiter, this pair is ignored,
//! twice as long each time.
//!
//! Looking at a hundred tasks each time would be most of a throttle's cost, so a look takes about [`LOOK_BUDGET_NS`].
//! Urgent tasks are those that have used a disk lately, are protected, or had just fallen asleep. They come first,
//! except for one of the others in each look. Within both groups the task that was looked at longest ago comes first.

use std::collections::{BTreeMap, BTreeSet};

use luc_control::throttle::policy_input::TaskId;

use super::linked_pair::LinkedPair;
use super::linked_tasks::{LinkedTask, TaskProcess, find_waiters, list_processes};
use super::search_types::InversionTask;
use super::shared_objects::{
    LinkKind, SharedObject, ThreadSleep, list_calls, list_shared, proc_folder,
};
use super::thaw_backoff::MIN_HELPFUL_THAWS;
use super::unix_sockets::read_peers;
use crate::kernel_clocks;

/// Shortest interval between two scans for links, ns, and the shortest pause as a multiple of a scan's duration.
/// Reading all files and memory maps of a hundred tasks is expensive.
const SCAN_INTERVAL_NS: u64 = 1_000_000_000;
const MIN_SCAN_PAUSE_FACTOR: u64 = 400;
/// Duration after which a look ends, ns, once it has covered `MIN_WAITERS_PER_LOOK`.
const LOOK_BUDGET_NS: u64 = 40_000;
const MIN_WAITERS_PER_LOOK: usize = 2;
/// Delay before a second look at a thread that has fallen asleep, ns.
const RELOOK_DELAY_NS: u64 = 10_000_000;
/// Maximum number of second looks in a row at which a task had run. It then gets no more second looks.
const MAX_RESTLESS_LOOKS: u32 = 8;

/// A wait for a frozen task.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkWait {
    pub(super) holder: TaskId,
    pub(super) waiter: TaskId,
    pub(super) kind: LinkKind,
    /// Whether the holder and the waiter should be treated as one task.
    pub(super) should_couple: bool,
}

/// Key of a frozen task and a task that is linked with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PairId {
    holder: TaskId,
    waiter: TaskId,
}

/// Links of all tasks, and the state of their waits.
#[derive(Debug, Default)]
pub(super) struct TaskLinks {
    scan_ns: u64,
    /// Number of freezes and thaws until the last look.
    changes: u64,
    /// Inodes of connected sockets.
    peers: BTreeMap<u64, u64>,
    processes: Vec<TaskProcess>,
    /// The tasks that were frozen when `waiters` was made.
    frozen: BTreeSet<TaskId>,
    /// Tasks that are linked with them.
    waiters: Vec<LinkedTask>,
    /// Time of the last look at each task, ns.
    looked_ns: BTreeMap<TaskId, u64>,
    /// Tasks that had just fallen asleep then.
    fallen_asleep: BTreeSet<TaskId>,
    /// Number of second looks in a row at which each task had run.
    restless: BTreeMap<TaskId, u32>,
    /// Time of the second look at them, ns; 0: none.
    relook_ns: u64,
    pairs: BTreeMap<PairId, LinkedPair>,
}

impl TaskLinks {
    /// Finds the waits for frozen ones of these tasks. `changes` counts freezes and thaws.
    pub(super) fn look<'a>(
        &mut self,
        tasks: impl FnOnce() -> Vec<InversionTask<'a>>,
        changes: u64,
        now_ns: u64,
    ) -> Vec<LinkWait> {
        // 1. Links, if a scan is due, and the waiters that follow from them.
        let is_scan_due = now_ns >= self.scan_ns;
        if !is_scan_due && changes == self.changes && self.waiters.is_empty() {
            self.relook_ns = 0;
            return Vec::new();
        }
        self.changes = changes;
        let tasks = &tasks()[..];
        let frozen: BTreeSet<TaskId> =
            tasks.iter().filter(|task| task.is_frozen).map(|task| task.id).collect();
        if is_scan_due {
            let begun_ns = kernel_clocks::now_ns();
            self.scan(tasks);
            let rest_ns = MIN_SCAN_PAUSE_FACTOR * kernel_clocks::now_ns().saturating_sub(begun_ns);
            self.scan_ns = now_ns + rest_ns.max(SCAN_INTERVAL_NS);
        }
        if is_scan_due || frozen != self.frozen {
            self.waiters = find_waiters(&self.processes, &frozen);
            self.frozen = frozen;
        }
        // 2. Waits, the most urgent first, as far as the time allows.
        let active: BTreeSet<TaskId> =
            tasks.iter().filter(|task| task.is_active).map(|task| task.id).collect();
        let begun_ns = kernel_clocks::now_ns();
        let mut found = Vec::new();
        for (count, index) in self.prioritize(&active, now_ns).into_iter().enumerate() {
            if count >= MIN_WAITERS_PER_LOOK
                && kernel_clocks::now_ns().saturating_sub(begun_ns) > LOOK_BUDGET_NS
            {
                break;
            }
            self.look_at(index, now_ns, &mut found);
        }
        let needs_relook = self.fallen_asleep.iter().any(|task| self.is_calm(*task));
        self.relook_ns = if needs_relook { now_ns + RELOOK_DELAY_NS } else { 0 };
        found
    }

    /// Time of the second look at tasks that have just fallen asleep, ns, if there is one.
    pub(super) fn relook_ns(&self) -> Option<u64> {
        Some(self.relook_ns).filter(|relook_ns| *relook_ns > 0)
    }

    /// Finds the waits among tasks that had just fallen asleep.
    pub(super) fn look_again(&mut self, now_ns: u64) -> Vec<LinkWait> {
        self.relook_ns = 0;
        let begun_ns = kernel_clocks::now_ns();
        let mut found = Vec::new();
        for index in 0..self.waiters.len() {
            let task = self.waiters[index].task;
            if !self.fallen_asleep.contains(&task) || !self.is_calm(task) {
                continue;
            }
            self.look_at(index, now_ns, &mut found);
            if kernel_clocks::now_ns().saturating_sub(begun_ns) > LOOK_BUDGET_NS {
                break;
            }
        }
        found
    }

    fn is_calm(&self, task: TaskId) -> bool {
        self.restless.get(&task).is_none_or(|times| *times < MAX_RESTLESS_LOOKS)
    }

    /// Waiters in the order of looks, without those that are ignored.
    fn prioritize(&self, active: &BTreeSet<TaskId>, now_ns: u64) -> Vec<usize> {
        let may_be_thawed_for = |index: &usize| {
            let waiter = &self.waiters[*index];
            let mut holders = waiter.processes.iter().flat_map(|process| process.holders.keys());
            holders.any(|holder| {
                let pair = self.pairs.get(&PairId { holder: *holder, waiter: waiter.task });
                pair.is_none_or(|pair| pair.backoff.allows_thaw(now_ns))
            })
        };
        let (mut urgent, mut others): (Vec<_>, Vec<_>) =
            (0..self.waiters.len()).filter(may_be_thawed_for).partition(|index| {
                let task = self.waiters[*index].task;
                active.contains(&task) || self.fallen_asleep.contains(&task)
            });
        let looked_ns = |index: &usize| self.looked_ns.get(&self.waiters[*index].task);
        urgent.sort_by_key(looked_ns);
        others.sort_by_key(looked_ns);
        // One of the others has its turn, however many are urgent.
        let second = urgent.len().min(1);
        urgent.splice(second..second, others.drain(..others.len().min(1)));
        urgent.extend(others);
        urgent
    }

    fn look_at(&mut self, index: usize, now_ns: u64, found: &mut Vec<LinkWait>) {
        // 1. Sleeps of the waiter that may be waits, by holder.
        let waiter = &self.waiters[index];
        let mut asleep: BTreeMap<TaskId, (BTreeSet<ThreadSleep>, LinkKind)> = BTreeMap::new();
        for process in &waiter.processes {
            let calls = list_calls(process.id, process.has_one_thread);
            for (holder, common) in &process.holders {
                let Some(SharedObject { kind, .. }) = common.first() else {
                    continue;
                };
                let (sleeps, _) = asleep.entry(*holder).or_insert((BTreeSet::new(), *kind));
                let waits = calls.iter().filter(|call| call.may_wait_for(common, &self.peers));
                sleeps.extend(waits.filter_map(|call| call.sleep()));
            }
        }
        // 2. Waits: sleeps that were there at the last look, too.
        let waiter = waiter.task;
        self.looked_ns.insert(waiter, now_ns);
        let had_fallen_asleep = self.fallen_asleep.remove(&waiter);
        for (holder, (sleeps, kind)) in asleep {
            let pair = self.pairs.entry(PairId { holder, waiter }).or_default();
            if !sleeps.is_subset(&pair.asleep) {
                self.fallen_asleep.insert(waiter);
            }
            if pair.should_thaw(sleeps, now_ns) {
                let should_couple = pair.backoff.helped >= MIN_HELPFUL_THAWS;
                found.push(LinkWait { holder, waiter, kind, should_couple });
            }
        }
        // 3. Whether a second look is worthwhile, and whether the links are still there.
        if !self.fallen_asleep.contains(&waiter) {
            self.restless.remove(&waiter);
        } else if had_fallen_asleep {
            *self.restless.entry(waiter).or_default() += 1;
        }
        found.retain(|one| one.waiter != waiter || self.is_still_linked(index, one.holder));
    }

    /// Whether a holder still has open what it shared with a waiter at the last scan. A process that took its turn at a
    /// queue has closed it, and a thaw would help nothing. Closed objects are forgotten.
    fn is_still_linked(&mut self, index: usize, holder: TaskId) -> bool {
        let is_memory = |one: &SharedObject| one.kind == LinkKind::Memory;
        let mut now = BTreeSet::new();
        for process in self.processes.iter_mut().filter(|one| one.task == holder) {
            let has = list_shared(&proc_folder(process.of.unwrap_or(process.id)), &self.peers);
            process.shares.retain(|one| is_memory(one) || has.contains(one));
            now.extend(has);
        }
        let waiter = &mut self.waiters[index];
        let mut is_linked = false;
        for process in &mut waiter.processes {
            if let Some(common) = process.holders.get_mut(&holder) {
                common.retain(|one| is_memory(one) || now.contains(one));
                is_linked |= !common.is_empty();
            }
            process.holders.retain(|_, common| !common.is_empty());
        }
        if !is_linked {
            self.pairs.remove(&PairId { holder, waiter: waiter.task });
        }
        is_linked
    }

    fn scan(&mut self, tasks: &[InversionTask<'_>]) {
        self.peers = read_peers();
        self.processes = list_processes(tasks, &self.peers);
        let is_there = |id: &TaskId| tasks.iter().any(|task| task.id == *id);
        self.pairs.retain(|pair, _| is_there(&pair.holder) && is_there(&pair.waiter));
        self.looked_ns.retain(|task, _| is_there(task));
        self.fallen_asleep.retain(is_there);
        self.restless.retain(|task, _| is_there(task));
    }
}

#[cfg(test)]
mod tests {
    use super::super::linked_tasks::LinkedProcess;
    use super::*;

    /// Tasks that share something with task 9.
    fn linked(tasks: u32) -> TaskLinks {
        let waiter = |task| LinkedTask {
            task: TaskId(task),
            processes: vec![LinkedProcess {
                id: 1,
                has_one_thread: true,
                holders: BTreeMap::from([(TaskId(9), Vec::new())]),
            }],
        };
        TaskLinks { waiters: (0..tasks).map(waiter).collect(), ..TaskLinks::default() }
    }

    #[test]
    fn what_the_holder_has_closed_links_it_no_longer() {
        let own = std::process::id();
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let all = list_shared(&proc_folder(own), &BTreeMap::new());
        let file = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
        let inode = std::os::unix::fs::MetadataExt::ino(&file.metadata().expect("about it"));
        let pipe = all.into_iter().find(|one| one.kind == LinkKind::Pipe && one.inode == inode);
        let pipe = pipe.expect("the pipe is open");
        let only = std::slice::from_ref(&pipe);
        let processes = vec![TaskProcess::having(9, own, only), TaskProcess::having(1, 1, only)];
        let mut links = TaskLinks {
            waiters: find_waiters(&processes, &BTreeSet::from([TaskId(9)])),
            processes,
            ..TaskLinks::default()
        };
        assert!(links.is_still_linked(0, TaskId(9)));
        drop((reader, file));
        assert!(!links.is_still_linked(0, TaskId(9)));
        assert!(links.processes[0].shares.is_empty(), "also for others");
    }

    #[test]
    fn who_uses_the_disk_is_looked_at_first_and_the_others_in_turn() {
        let mut links = linked(5);
        let active = BTreeSet::from([TaskId(3)]);
        assert_eq!(links.prioritize(&active, 1), [3, 0, 1, 2, 4]);
        links.looked_ns = BTreeMap::from([(TaskId(0), 1), (TaskId(1), 1), (TaskId(3), 1)]);
        assert_eq!(links.prioritize(&active, 2), [3, 2, 4, 0, 1]);
        links.fallen_asleep.insert(TaskId(4));
        assert_eq!(links.prioritize(&active, 2), [4, 2, 3, 0, 1]);
        let mut paused = LinkedPair::default();
        paused.backoff.pause_until_ns = 7;
        links.pairs.insert(PairId { holder: TaskId(9), waiter: TaskId(2) }, paused);
        assert_eq!(links.prioritize(&active, 6), [4, 0, 3, 1]);
        assert_eq!(links.prioritize(&active, 7), [4, 2, 3, 0, 1]);
    }

    #[test]
    fn who_never_sleeps_through_is_not_looked_at_again() {
        let mut links = linked(2);
        links.restless.insert(TaskId(0), MAX_RESTLESS_LOOKS);
        links.fallen_asleep.insert(TaskId(0));
        assert!(!links.is_calm(TaskId(0)) && links.is_calm(TaskId(1)));
        links.relook_ns = 7;
        assert!(links.look_again(7).is_empty());
        assert_eq!(links.relook_ns(), None);
        assert!(links.looked_ns.is_empty(), "nobody was looked at");
    }

    #[test]
    fn everybody_has_a_turn_however_many_are_urgent() {
        let mut links = linked(8);
        let active: BTreeSet<TaskId> = (0..6).map(TaskId).collect();
        for now_ns in 1..=6 {
            for index in links.prioritize(&active, now_ns).into_iter().take(MIN_WAITERS_PER_LOOK) {
                let task = links.waiters[index].task;
                links.looked_ns.insert(task, now_ns);
            }
        }
        assert_eq!(links.looked_ns.len(), 8);
    }
}
