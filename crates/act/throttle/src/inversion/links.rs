//! Who waits for a task with which it shares a pipe, a socket or memory.
//!
//! Two tasks are linked by a pipe (named or not) that both have open, by the two ends of a Unix socket, and by memory
//! that both have mapped shared and may write, as a futex is in; threads of one process that are tasks of their own by
//! all of its memory. Links are looked for every [`SCAN_EVERY_NS`]. A thread of a running task waits for a frozen one
//! that is linked with its process if it sleeps at two successive looks, without having run in between: for memory in
//! futex, for the others in a read or write of it, or in poll and the like. Who has just fallen asleep is looked at
//! again after [`AGAIN_NS`], unless it was found to have run then [`MOST_RESTLESS`] times in a row.
//!
//! That is a guess where a thread polls much else. So whoever did not wake when the other was thawed for it is not
//! listened to for a time that doubles each time.
//!
//! Looking at a hundred tasks each time would be most of a throttle's cost. So a look takes about [`LOOK_NS`]. Tasks
//! that have used a disk lately or are protected, and those that had just fallen asleep when they were last looked at,
//! are urgent. They come first, but for one of the others in each look; of both the one comes first that was looked at
//! the longest ago.

use std::collections::{BTreeMap, BTreeSet};

use luc_control::throttle::sample::TaskId;

use super::candidate::Candidate;
use super::pair::Pair;
pub(super) use super::processes::Kind;
use super::processes::{Shared, Sleep, calls, folder, shares};
use super::sockets::peers;
use super::waiters::{Process, Waiter, processes, waiters};
use crate::clock;

/// How often links are looked for, ns, and how many times as long as looking took passes before at least: reading all
/// files and memory maps of a hundred tasks is dear.
const SCAN_EVERY_NS: u64 = 1_000_000_000;
const SCAN_REST: u64 = 400;
/// No other waiter is looked at after this time, ns, once so many are.
const LOOK_NS: u64 = 40_000;
const LEAST_WAITERS: usize = 2;
/// Who has fallen asleep is looked at again after this time, ns.
const AGAIN_NS: u64 = 10_000_000;
/// And so many times in a row where it has run meanwhile.
const MOST_RESTLESS: u32 = 8;
/// A pair for which so many thaws helped is coupled.
const COUPLED_AFTER: u32 = 2;

/// Somebody who waits for a frozen task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) holder: TaskId,
    pub(super) waiter: TaskId,
    pub(super) kind: Kind,
    /// Whether it was so before, and a thaw helped.
    pub(super) is_usual: bool,
}

/// The links of all tasks, and what is remembered of their waits.
#[derive(Debug, Default)]
pub(super) struct Links {
    scan_ns: u64,
    /// Freezes and thaws until the last look.
    changes: u64,
    /// Inodes of connected sockets.
    peers: BTreeMap<u64, u64>,
    processes: Vec<Process>,
    /// The tasks that were frozen when `waiters` was made.
    frozen: BTreeSet<TaskId>,
    /// Who is linked with them.
    waiters: Vec<Waiter>,
    /// When each was last looked at, ns.
    looked_ns: BTreeMap<TaskId, u64>,
    /// Those that had just fallen asleep then.
    fallen_asleep: BTreeSet<TaskId>,
    /// How often in a row they had run when they were looked at again.
    restless: BTreeMap<TaskId, u32>,
    /// When they are looked at again, ns; 0: nobody is.
    again_ns: u64,
    /// Of the holder and the waiter.
    pairs: BTreeMap<(TaskId, TaskId), Pair>,
}

impl Links {
    /// Who waits for a frozen one of these tasks. `changes` counts freezes and thaws.
    pub(super) fn look<'a>(
        &mut self,
        tasks: impl FnOnce() -> Vec<Candidate<'a>>,
        changes: u64,
        now_ns: u64,
    ) -> Vec<Found> {
        let is_scan_due = now_ns >= self.scan_ns;
        if !is_scan_due && changes == self.changes && self.waiters.is_empty() {
            self.again_ns = 0;
            return Vec::new();
        }
        self.changes = changes;
        let tasks = &tasks()[..];
        let frozen: BTreeSet<TaskId> =
            tasks.iter().filter(|task| task.is_frozen).map(|task| task.id).collect();
        if is_scan_due {
            let begun_ns = clock::now_ns();
            self.scan(tasks);
            let rest_ns = SCAN_REST * clock::now_ns().saturating_sub(begun_ns);
            self.scan_ns = now_ns + rest_ns.max(SCAN_EVERY_NS);
        }
        if is_scan_due || frozen != self.frozen {
            self.waiters = waiters(&self.processes, &frozen);
            self.frozen = frozen;
        }
        let active = tasks.iter().filter(|task| task.is_active);
        let active: BTreeSet<TaskId> = active.map(|task| task.id).collect();
        let begun_ns = clock::now_ns();
        let mut found = Vec::new();
        for (count, index) in self.order(&active, now_ns).into_iter().enumerate() {
            if count >= LEAST_WAITERS && clock::now_ns().saturating_sub(begun_ns) > LOOK_NS {
                break;
            }
            self.look_at(index, now_ns, &mut found);
        }
        let is_looked_at_again = self.fallen_asleep.iter().any(|task| self.is_calm(*task));
        self.again_ns = if is_looked_at_again { now_ns + AGAIN_NS } else { 0 };
        found
    }

    /// When to look again at those who have just fallen asleep, ns, if at any.
    pub(super) fn again_ns(&self) -> Option<u64> {
        Some(self.again_ns).filter(|again_ns| *again_ns > 0)
    }

    /// Who of those who had just fallen asleep waits for a frozen task.
    pub(super) fn look_again(&mut self, now_ns: u64) -> Vec<Found> {
        self.again_ns = 0;
        let begun_ns = clock::now_ns();
        let mut found = Vec::new();
        for index in 0..self.waiters.len() {
            let task = self.waiters[index].task;
            if !self.fallen_asleep.contains(&task) || !self.is_calm(task) {
                continue;
            }
            self.look_at(index, now_ns, &mut found);
            if clock::now_ns().saturating_sub(begun_ns) > LOOK_NS {
                break;
            }
        }
        found
    }

    fn is_calm(&self, task: TaskId) -> bool {
        self.restless.get(&task).is_none_or(|times| *times < MOST_RESTLESS)
    }

    /// Waiters in the order in which they are to be looked at, without those that nobody listens to.
    fn order(&self, active: &BTreeSet<TaskId>, now_ns: u64) -> Vec<usize> {
        let is_heard = |index: &usize| {
            let waiter = &self.waiters[*index];
            let processes = waiter.processes.iter();
            let mut holders = processes.flat_map(|process| process.holders.keys());
            holders.any(|holder| {
                let pair = self.pairs.get(&(*holder, waiter.task));
                pair.is_none_or(|pair| now_ns >= pair.deaf_until_ns)
            })
        };
        let (mut urgent, mut others): (Vec<_>, Vec<_>) =
            (0..self.waiters.len()).filter(is_heard).partition(|index| {
                let task = self.waiters[*index].task;
                active.contains(&task) || self.fallen_asleep.contains(&task)
            });
        let looked_ns = |index: &usize| self.looked_ns.get(&self.waiters[*index].task);
        urgent.sort_by_key(looked_ns);
        others.sort_by_key(looked_ns);
        // However many are urgent, one of the others has its turn.
        let second = urgent.len().min(1);
        urgent.splice(second..second, others.drain(..others.len().min(1)));
        urgent.extend(others);
        urgent
    }

    fn look_at(&mut self, index: usize, now_ns: u64, found: &mut Vec<Found>) {
        let waiter = &self.waiters[index];
        let mut asleep: BTreeMap<TaskId, (BTreeSet<Sleep>, Kind)> = BTreeMap::new();
        for process in &waiter.processes {
            let calls = calls(process.id, process.has_one_thread);
            for (holder, common) in &process.holders {
                let Some((kind, _, _)) = common.first() else {
                    continue;
                };
                let (sleeps, _) = asleep.entry(*holder).or_insert((BTreeSet::new(), *kind));
                let waits = calls.iter().filter(|call| call.may_wait_for(common, &self.peers));
                sleeps.extend(waits.filter_map(|call| call.sleep()));
            }
        }
        self.looked_ns.insert(waiter.task, now_ns);
        let had_fallen_asleep = self.fallen_asleep.remove(&waiter.task);
        for (holder, (sleeps, kind)) in asleep {
            let pair = self.pairs.entry((holder, waiter.task)).or_default();
            if !sleeps.is_subset(&pair.asleep) {
                self.fallen_asleep.insert(waiter.task);
            }
            if pair.waits(sleeps, now_ns) {
                found.push(Found {
                    holder,
                    waiter: waiter.task,
                    kind,
                    is_usual: pair.helped >= COUPLED_AFTER,
                });
            }
        }
        if !self.fallen_asleep.contains(&waiter.task) {
            self.restless.remove(&waiter.task);
        } else if had_fallen_asleep {
            *self.restless.entry(waiter.task).or_default() += 1;
        }
        let waiter = waiter.task;
        found.retain(|one| one.waiter != waiter || self.is_still_linked(index, one.holder));
    }

    /// Whether a holder has still open what it shared with a waiter when links were looked for. A process that took its
    /// turn at a queue of others has closed it since, and a thaw would help nobody. What it closed is forgotten.
    fn is_still_linked(&mut self, index: usize, holder: TaskId) -> bool {
        let is_memory = |one: &Shared| one.0 == Kind::Memory;
        let mut now = BTreeSet::new();
        for process in self.processes.iter_mut().filter(|one| one.task == holder) {
            let has = shares(&folder(process.of.unwrap_or(process.id)), &self.peers);
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
            self.pairs.remove(&(holder, waiter.task));
        }
        is_linked
    }

    fn scan(&mut self, tasks: &[Candidate<'_>]) {
        self.peers = peers();
        self.processes = processes(tasks, &self.peers);
        let is_there = |id: &TaskId| tasks.iter().any(|task| task.id == *id);
        self.pairs.retain(|(holder, waiter), _| is_there(holder) && is_there(waiter));
        self.looked_ns.retain(|task, _| is_there(task));
        self.fallen_asleep.retain(is_there);
        self.restless.retain(|task, _| is_there(task));
    }
}

#[cfg(test)]
mod tests {
    use super::super::waiters::Linked;
    use super::*;

    /// Tasks that share something with task 9.
    fn linked(tasks: u32) -> Links {
        let waiter = |task| Waiter {
            task: TaskId(task),
            processes: vec![Linked {
                id: 1,
                has_one_thread: true,
                holders: BTreeMap::from([(TaskId(9), Vec::new())]),
            }],
        };
        Links { waiters: (0..tasks).map(waiter).collect(), ..Links::default() }
    }

    #[test]
    fn what_the_holder_has_closed_links_it_no_longer() {
        let own = std::process::id();
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let all = shares(&folder(own), &BTreeMap::new());
        let file = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
        let inode = std::os::unix::fs::MetadataExt::ino(&file.metadata().expect("about it"));
        let pipe = all.into_iter().find(|one| one.0 == Kind::Pipe && one.2 == inode);
        let pipe = pipe.expect("the pipe is open");
        let only = std::slice::from_ref(&pipe);
        let processes = vec![Process::having(9, own, only), Process::having(1, 1, only)];
        let mut links = Links {
            waiters: waiters(&processes, &BTreeSet::from([TaskId(9)])),
            processes,
            ..Links::default()
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
        assert_eq!(links.order(&active, 1), [3, 0, 1, 2, 4]);
        links.looked_ns = BTreeMap::from([(TaskId(0), 1), (TaskId(1), 1), (TaskId(3), 1)]);
        assert_eq!(links.order(&active, 2), [3, 2, 4, 0, 1]);
        links.fallen_asleep.insert(TaskId(4));
        assert_eq!(links.order(&active, 2), [4, 2, 3, 0, 1]);
        let mut deaf = Pair::default();
        deaf.deaf_until_ns = 7;
        links.pairs.insert((TaskId(9), TaskId(2)), deaf);
        assert_eq!(links.order(&active, 6), [4, 0, 3, 1]);
        assert_eq!(links.order(&active, 7), [4, 2, 3, 0, 1]);
    }

    #[test]
    fn who_never_sleeps_through_is_not_looked_at_again() {
        let mut links = linked(2);
        links.restless.insert(TaskId(0), MOST_RESTLESS);
        links.fallen_asleep.insert(TaskId(0));
        assert!(!links.is_calm(TaskId(0)) && links.is_calm(TaskId(1)));
        links.again_ns = 7;
        assert!(links.look_again(7).is_empty());
        assert_eq!(links.again_ns(), None);
        assert!(links.looked_ns.is_empty(), "nobody was looked at");
    }

    #[test]
    fn everybody_has_a_turn_however_many_are_urgent() {
        let mut links = linked(8);
        let active: BTreeSet<TaskId> = (0..6).map(TaskId).collect();
        for now_ns in 1..=6 {
            for index in links.order(&active, now_ns).into_iter().take(LEAST_WAITERS) {
                let task = links.waiters[index].task;
                links.looked_ns.insert(task, now_ns);
            }
        }
        assert_eq!(links.looked_ns.len(), 8);
    }
}
