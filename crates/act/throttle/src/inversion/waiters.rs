//! Which processes there are, and who of them shares something with frozen tasks.

use std::collections::{BTreeMap, BTreeSet};

use luc_control::throttle::sample::TaskId;

use super::candidate::Candidate;
use super::processes::{Kind, Shared, folder, has_one_thread, process_of, shares};

/// Processes of a task that are looked at, at most.
const MOST_PROCESSES: usize = 64;

/// A process of a task, or a thread that is one.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) task: TaskId,
    /// Of the process, or of the one thread of it that is this task.
    pub(super) id: u32,
    /// The process of a thread that is a task.
    pub(super) of: Option<u32>,
    pub(super) has_one_thread: bool,
    pub(super) shares: BTreeSet<Shared>,
}

/// A running task that is linked with frozen ones.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) task: TaskId,
    pub(super) processes: Vec<Linked>,
}

/// A process of it, or the one thread that is this task.
#[derive(Debug)]
pub(super) struct Linked {
    pub(super) id: u32,
    pub(super) has_one_thread: bool,
    /// What it shares with each frozen task; never nothing.
    pub(super) holders: BTreeMap<TaskId, Vec<Shared>>,
}

/// The processes of all tasks, and what each shares with others. `peers` are inodes of connected sockets.
pub(super) fn processes(tasks: &[Candidate<'_>], peers: &BTreeMap<u64, u64>) -> Vec<Process> {
    let mut all = Vec::new();
    let mut of_processes: BTreeMap<u32, BTreeSet<Shared>> = BTreeMap::new();
    for task in tasks {
        let processes = task.cgroup.processes().unwrap_or_default();
        for id in processes.into_iter().take(MOST_PROCESSES) {
            let shares = shares(&folder(id), peers);
            all.push(Process {
                task: task.id,
                id,
                of: None,
                has_one_thread: has_one_thread(id),
                shares,
            });
        }
        for id in task.cgroup.single_threads().unwrap_or_default() {
            let Some(process) = process_of(id) else {
                continue;
            };
            let of_process =
                of_processes.entry(process).or_insert_with(|| shares(&folder(process), peers));
            let mut shares = of_process.clone();
            shares.insert((Kind::Memory, String::new(), process.into()));
            all.push(Process {
                task: task.id,
                id,
                of: Some(process),
                has_one_thread: true,
                shares,
            });
        }
    }
    all
}

/// The running tasks that share something with frozen ones.
pub(super) fn waiters(processes: &[Process], frozen: &BTreeSet<TaskId>) -> Vec<Waiter> {
    let (holders, running): (Vec<_>, Vec<_>) =
        processes.iter().partition(|process| frozen.contains(&process.task));
    let mut having: BTreeMap<&Shared, Vec<&Process>> = BTreeMap::new();
    for holder in holders {
        for shared in &holder.shares {
            having.entry(shared).or_default().push(holder);
        }
    }
    let mut waiters: Vec<Waiter> = Vec::new();
    for process in running {
        let mut common: BTreeMap<TaskId, Vec<Shared>> = BTreeMap::new();
        for shared in &process.shares {
            for holder in having.get(shared).into_iter().flatten() {
                // Threads have all files in common, and seldom talk by them.
                let is_of_one = holder.of.is_some() && holder.of == process.of;
                let of_holder = common.entry(holder.task).or_default();
                if (!is_of_one || shared.0 == Kind::Memory) && of_holder.last() != Some(shared) {
                    of_holder.push(shared.clone());
                }
            }
        }
        common.retain(|_, shared| !shared.is_empty());
        if common.is_empty() {
            continue;
        }
        let linked =
            Linked { id: process.id, has_one_thread: process.has_one_thread, holders: common };
        match waiters.last_mut().filter(|last| last.task == process.task) {
            Some(last) => last.processes.push(linked),
            None => waiters.push(Waiter { task: process.task, processes: vec![linked] }),
        }
    }
    waiters
}

#[cfg(test)]
impl Process {
    /// A process of one thread, for tests.
    pub(super) fn having(task: u32, id: u32, shares: &[Shared]) -> Self {
        Self {
            task: TaskId(task),
            id,
            of: None,
            has_one_thread: true,
            shares: shares.iter().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_are_tasks_with_all_of_their_processes() {
        let pipe: Shared = (Kind::Pipe, "12".to_owned(), 5);
        let memory: Shared = (Kind::Memory, "12".to_owned(), 6);
        let only = std::slice::from_ref;
        let processes = [
            Process::having(1, 10, &[pipe.clone(), memory.clone()]),
            Process::having(1, 11, only(&pipe)),
            Process::having(2, 20, only(&pipe)),
            Process::having(2, 21, only(&memory)),
            Process::having(3, 30, &[]),
            Process::having(4, 40, only(&memory)),
        ];
        let frozen = BTreeSet::from([TaskId(1), TaskId(4)]);
        let waiters = waiters(&processes, &frozen);
        assert_eq!(waiters.len(), 1);
        let of = |index: usize| &waiters[0].processes[index];
        assert_eq!((of(0).id, of(1).id), (20, 21));
        // Once, though two processes of the holder have it.
        assert_eq!(of(0).holders, BTreeMap::from([(TaskId(1), vec![pipe])]));
        assert_eq!(of(1).holders.keys().count(), 2);
    }
}
