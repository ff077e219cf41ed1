//! Synchronizations of each process, by the recorder: they show the processes that take no part in the gate.

use std::collections::{BTreeMap, HashMap};

use luc_events::event_kinds::SyncKind;
use luc_events::tables::FsyncCall;
use luc_events::{Pid, Tgid, TraceEvent};
use luc_explain::{SyncWay, SyncWayCounts};
use luc_launch::participants::SeenProcess;
use luc_launch::preload_obstacle::{
    PreloadObstacle, PreloadState, ProcessInspector, name_of, own_number,
};

/// The inode of the first namespace of processes (PROC_PID_INIT_INO of include/linux/proc_ns.h).
pub(crate) const HOST_PROCESSES: u64 = 0xEFFF_FFFC;

/// Maximum number of processes that are kept.
const MAX_PROCESSES: usize = 65_536;

/// Counts synchronizations by process and way.
#[derive(Debug, Default)]
pub(crate) struct SyncWitness {
    look: ProcessInspector,
    processes: BTreeMap<Tgid, Process>,
    /// Threads' names, as far as they are needed.
    comms: HashMap<Pid, String>,
    ways: SyncWayCounts,
}

#[derive(Debug, Default)]
struct Process {
    /// Its number in its own namespace, and that namespace's inode.
    own: (u32, u64),
    program: String,
    calls: u64,
    obstacle: Option<PreloadObstacle>,
}

/// Processes that synchronized, by the recorder.
#[derive(Debug)]
pub(crate) struct RecordedSyncs {
    pub(crate) ways: SyncWayCounts,
    pub(crate) seen: Vec<SeenProcess>,
}

impl SyncWitness {
    /// Looks at processes that synchronize for the first time, as long as they are there.
    pub(crate) fn look_at(&mut self, batch: &[TraceEvent]) {
        for event in batch {
            let TraceEvent::FsyncCall(row) = event else {
                continue;
            };
            if self.processes.len() < MAX_PROCESSES && !self.processes.contains_key(&row.process) {
                let obstacle = match self.look.at(row.process.0) {
                    PreloadState::Obstacle(obstacle) => Some(obstacle),
                    PreloadState::Loaded => Some(PreloadObstacle::Direct),
                    PreloadState::Gone => None,
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
    pub(crate) fn add(&mut self, event: &TraceEvent) {
        match event {
            TraceEvent::ThreadInfo(row) => {
                self.comms.insert(row.thread, row.comm.clone());
            }
            TraceEvent::FsyncCall(row) => self.add_sync(row),
            _ => {}
        }
    }

    fn add_sync(&mut self, row: &FsyncCall) {
        let comm = self.comms.get(&row.thread).map_or("", String::as_str);
        let way = SyncWay::of(row.kind, comm);
        if way == SyncWay::Call && is_of_unknown_way(row) {
            return;
        }
        self.ways.add(way);
        if way == SyncWay::Call
            && let Some(process) = self.processes.get_mut(&row.process)
        {
            process.calls += 1;
        }
    }

    pub(crate) fn testify(self) -> RecordedSyncs {
        let mut comms = self.comms;
        let seen = self.processes.into_iter().map(|(process, found)| SeenProcess {
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
        RecordedSyncs { ways: self.ways, seen: seen.collect() }
    }
}

/// Whether only the file system's part of a call was seen, because system calls were not traced yet: it may have been a
/// write.
fn is_of_unknown_way(row: &FsyncCall) -> bool {
    row.kind != SyncKind::Msync
        && row.file_system_enter_ns != 0
        && row.enter_ns == row.file_system_enter_ns
        && row.exit_ns == row.file_system_exit_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_events::tables::ThreadInfo;

    #[test]
    fn each_way_is_counted_and_calls_by_process() {
        let own = std::process::id();
        let task = |thread, comm: &str| {
            TraceEvent::ThreadInfo(ThreadInfo {
                thread: Pid(thread),
                process: Tgid(own),
                comm: comm.to_owned(),
                ..ThreadInfo::default()
            })
        };
        let sync = |thread, kind, enter_ns| {
            TraceEvent::FsyncCall(FsyncCall {
                thread: Pid(thread),
                process: Tgid(own),
                kind,
                enter_ns,
                file_system_enter_ns: 5,
                exit_ns: 9,
                file_system_exit_ns: 9,
                ..FsyncCall::default()
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
        let mut witness = SyncWitness::default();
        witness.look_at(&events);
        events.iter().for_each(|event| witness.add(event));
        let RecordedSyncs { ways, seen } = witness.testify();
        assert_eq!((ways.calls, ways.sync_writes, ways.io_uring), (1, 1, 1));
        assert_eq!(seen.len(), 1);
        assert_eq!((seen[0].program.as_str(), seen[0].calls), (name_of(own).as_str(), 1));
        // This process is under no luc run, so the library is not there.
        assert!(seen[0].obstacle.is_some());
    }
}
