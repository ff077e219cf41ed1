//! Synchronizations of each process, by the recorder: they show the processes that take no part in the gate.

use std::collections::{BTreeMap, HashMap};

use luc_events::codes::SyncKind;
use luc_events::tables::Sync;
use luc_events::{Event, Pid, Tgid};
use luc_explain::{Way, Ways};
use luc_launch::obstacle::{Found, Look, Obstacle, name_of, own_number};
use luc_launch::participants::Seen;

/// The inode of the first namespace of processes (PROC_PID_INIT_INO of include/linux/proc_ns.h).
pub(crate) const HOST_PROCESSES: u64 = 0xEFFF_FFFC;

/// Maximum number of processes that are kept.
const MAX_PROCESSES: usize = 65_536;

/// Counts synchronizations by process and way.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    look: Look,
    processes: BTreeMap<Tgid, Process>,
    /// Threads' names, as far as they are needed.
    comms: HashMap<Pid, String>,
    ways: Ways,
}

#[derive(Debug, Default)]
struct Process {
    /// Its number in its own namespace, and that namespace's inode.
    own: (u32, u64),
    program: String,
    calls: u64,
    obstacle: Option<Obstacle>,
}

/// Processes that synchronized, by the recorder.
#[derive(Debug)]
pub(crate) struct Testimony {
    pub(crate) ways: Ways,
    pub(crate) seen: Vec<Seen>,
}

impl Witness {
    /// Looks at processes that synchronize for the first time, as long as they are there.
    pub(crate) fn look_at(&mut self, batch: &[Event]) {
        for event in batch {
            let Event::Sync(row) = event else {
                continue;
            };
            if self.processes.len() < MAX_PROCESSES && !self.processes.contains_key(&row.process) {
                let obstacle = match self.look.at(row.process.0) {
                    Found::Obstacle(obstacle) => Some(obstacle),
                    Found::Loaded => Some(Obstacle::Direct),
                    Found::Gone => None,
                };
                let process = Process {
                    own: own_number(row.process.0).unwrap_or((row.process.0, HOST_PROCESSES)),
                    program: name_of(row.process.0),
                    calls: 0,
                    obstacle,
                };
                self.processes.insert(row.process, process);
            }
        }
    }

    /// Adds an event; a thread's name comes before its calls.
    pub(crate) fn add(&mut self, event: &Event) {
        match event {
            Event::Task(row) => {
                self.comms.insert(row.thread, row.comm.clone());
            }
            Event::Sync(row) => self.add_sync(row),
            _ => {}
        }
    }

    fn add_sync(&mut self, row: &Sync) {
        let comm = self.comms.get(&row.thread).map_or("", String::as_str);
        let way = Way::of(row.kind, comm);
        if way == Way::Call && is_of_unknown_way(row) {
            return;
        }
        self.ways.add(way);
        if way == Way::Call
            && let Some(process) = self.processes.get_mut(&row.process)
        {
            process.calls += 1;
        }
    }

    pub(crate) fn testify(self) -> Testimony {
        let mut comms = self.comms;
        let seen = self.processes.into_iter().map(|(process, found)| Seen {
            process: found.own.0,
            namespace: found.own.1,
            program: if found.program.is_empty() {
                // It had ended by then.
                luc_units::plain(&comms.remove(&Pid(process.0)).unwrap_or_default())
            } else {
                found.program
            },
            calls: found.calls,
            obstacle: found.obstacle,
        });
        Testimony { ways: self.ways, seen: seen.collect() }
    }
}

/// Whether only the file system's part of a call was seen, because system calls were not traced yet: it may have been a write.
fn is_of_unknown_way(row: &Sync) -> bool {
    row.kind != SyncKind::Msync
        && row.file_system_enter_ns != 0
        && row.enter_ns == row.file_system_enter_ns
        && row.exit_ns == row.file_system_exit_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_events::tables::Task;

    #[test]
    fn each_way_is_counted_and_calls_by_process() {
        let own = std::process::id();
        let task = |thread, comm: &str| {
            Event::Task(Task {
                thread: Pid(thread),
                process: Tgid(own),
                comm: comm.to_owned(),
                ..Task::default()
            })
        };
        let sync = |thread, kind, enter_ns| {
            Event::Sync(Sync {
                thread: Pid(thread),
                process: Tgid(own),
                kind,
                enter_ns,
                file_system_enter_ns: 5,
                exit_ns: 9,
                file_system_exit_ns: 9,
                ..Sync::default()
            })
        };
        let events = [
            task(own, "fio"),
            task(7, "iou-wrk-1"),
            sync(own, SyncKind::Fsync, 4),
            // Seen in the file system alone.
            sync(own, SyncKind::Fsync, 5),
            sync(own, SyncKind::SyncWrite, 5),
            sync(7, SyncKind::Fsync, 5),
        ];
        let mut witness = Witness::default();
        witness.look_at(&events);
        events.iter().for_each(|event| witness.add(event));
        let Testimony { ways, seen } = witness.testify();
        assert_eq!((ways.calls, ways.sync_writes, ways.io_uring), (1, 1, 1));
        assert_eq!(seen.len(), 1);
        assert_eq!((seen[0].program.as_str(), seen[0].calls), (name_of(own).as_str(), 1));
        // This process is under no luc run, so the library is not there.
        assert!(seen[0].obstacle.is_some());
    }
}
