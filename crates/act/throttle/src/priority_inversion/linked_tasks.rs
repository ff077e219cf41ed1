//! Lists the processes of tasks, and those that share something with frozen tasks.

use std::collections::{BTreeMap, BTreeSet};

use luc_control::throttle::policy_input::TaskId;

use super::search_types::InversionTask;
use super::shared_objects::{
    LinkKind, SharedObject, has_one_thread, list_shared, proc_folder, process_of,
};

/// Largest number of processes of a task that are read.
const MAX_PROCESSES: usize = 64;

/// A process of a task, or a thread that is a task.
#[derive(Debug)]
pub(super) struct TaskProcess {
    pub(super) task: TaskId,
    /// Number of the process, or of its thread that is this task.
    pub(super) id: u32,
    /// Process of a thread that is a task.
    pub(super) of: Option<u32>,
    pub(super) has_one_thread: bool,
    pub(super) shares: BTreeSet<SharedObject>,
}

/// A running task that is linked with frozen ones.
#[derive(Debug)]
pub(super) struct LinkedTask {
    pub(super) task: TaskId,
    pub(super) processes: Vec<LinkedProcess>,
}

/// A process of a waiter, or the thread that is the waiter.
#[derive(Debug)]
pub(super) struct LinkedProcess {
    pub(super) id: u32,
    pub(super) has_one_thread: bool,
    /// Objects that it shares with each frozen task; never empty.
    pub(super) holders: BTreeMap<TaskId, Vec<SharedObject>>,
}

/// Lists the processes of all tasks with what they share. `peers` are the inodes of connected sockets.
pub(super) fn list_processes(
    tasks: &[InversionTask<'_>],
    peers: &BTreeMap<u64, u64>,
) -> Vec<TaskProcess> {
    let mut all = Vec::new();
    let mut of_processes: BTreeMap<u32, BTreeSet<SharedObject>> = BTreeMap::new();
    for task in tasks {
        let processes = task.cgroup.processes().unwrap_or_default();
        for id in processes.into_iter().take(MAX_PROCESSES) {
            all.push(TaskProcess {
                task: task.id,
                id,
                of: None,
                has_one_thread: has_one_thread(id),
                shares: list_shared(&proc_folder(id), peers),
            });
        }
        for id in task.cgroup.single_threads().unwrap_or_default() {
            let Some(process) = process_of(id) else {
                continue;
            };
            let of_process = of_processes
                .entry(process)
                .or_insert_with(|| list_shared(&proc_folder(process), peers));
            let mut shares = of_process.clone();
            shares.insert(SharedObject::new(LinkKind::Memory, "", process.into()));
            all.push(TaskProcess {
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

/// Finds the running tasks that share something with frozen ones.
pub(super) fn find_waiters(
    processes: &[TaskProcess],
    frozen: &BTreeSet<TaskId>,
) -> Vec<LinkedTask> {
    // 1. Frozen processes, by what they share.
    let (holders, running): (Vec<_>, Vec<_>) =
        processes.iter().partition(|process| frozen.contains(&process.task));
    let mut having: BTreeMap<&SharedObject, Vec<&TaskProcess>> = BTreeMap::new();
    for holder in holders {
        for shared in &holder.shares {
            having.entry(shared).or_default().push(holder);
        }
    }
    // 2. Running processes that share some of it.
    let mut waiters: Vec<LinkedTask> = Vec::new();
    for process in running {
        let mut common: BTreeMap<TaskId, Vec<SharedObject>> = BTreeMap::new();
        for shared in &process.shares {
            for holder in having.get(shared).into_iter().flatten() {
                // Threads of one process share all files, and seldom communicate by them.
                let is_same_process = holder.of.is_some() && holder.of == process.of;
                let is_link = !is_same_process || shared.kind == LinkKind::Memory;
                let of_holder = common.entry(holder.task).or_default();
                if is_link && of_holder.last() != Some(shared) {
                    of_holder.push(shared.clone());
                }
            }
        }
        common.retain(|_, shared| !shared.is_empty());
        if common.is_empty() {
            continue;
        }
        let linked = LinkedProcess {
            id: process.id,
            has_one_thread: process.has_one_thread,
            holders: common,
        };
        match waiters.last_mut().filter(|last| last.task == process.task) {
            Some(last) => last.processes.push(linked),
            None => waiters.push(LinkedTask { task: process.task, processes: vec![linked] }),
        }
    }
    waiters
}

#[cfg(test)]
impl TaskProcess {
    /// Makes a process of one thread, for tests.
    pub(super) fn having(task: u32, id: u32, shares: &[SharedObject]) -> Self {
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
        let pipe = SharedObject::new(LinkKind::Pipe, "12", 5);
        let memory = SharedObject::new(LinkKind::Memory, "12", 6);
        let only = std::slice::from_ref;
        let processes = [
            TaskProcess::having(1, 10, &[pipe.clone(), memory.clone()]),
            TaskProcess::having(1, 11, only(&pipe)),
            TaskProcess::having(2, 20, only(&pipe)),
            TaskProcess::having(2, 21, only(&memory)),
            TaskProcess::having(3, 30, &[]),
            TaskProcess::having(4, 40, only(&memory)),
        ];
        let frozen = BTreeSet::from([TaskId(1), TaskId(4)]);
        let waiters = find_waiters(&processes, &frozen);
        assert_eq!(waiters.len(), 1);
        let of = |index: usize| &waiters[0].processes[index];
        assert_eq!((of(0).id, of(1).id), (20, 21));
        // Once, though two processes of the holder have it.
        assert_eq!(of(0).holders, BTreeMap::from([(TaskId(1), vec![pipe])]));
        assert_eq!(of(1).holders.keys().count(), 2);
    }
}
