//! The present state during a recording: the rows with which a recording would begin now.

use std::collections::{BTreeMap, HashMap, HashSet};

use luc_events::tables::{
    AsleepThread, ClockSample, KernelStack, MountedFileSystem, ProcessProgram, SocketConnection,
    ThreadInfo, ThreadStart,
};
use luc_events::{ConnectionId, Dev, Pid, Tgid, TraceEvent};

/// A thread: its id is used again.
type Thread = (Pid, u64);

/// Number of new rows of programs and threads' functions after which those of ended threads are dropped.
const MAX_NEW_ROWS: usize = 4096;

/// The last row of each thread, connection and the like.
#[derive(Debug, Default)]
pub(super) struct StandingRows {
    /// Begin of the last visit of the present state.
    visited_ns: u64,
    /// Whether that visit is going on.
    is_visiting: bool,
    tasks: BTreeMap<Thread, ThreadInfo>,
    starts: HashMap<Thread, ThreadStart>,
    programs: BTreeMap<Tgid, ProcessProgram>,
    /// Number of rows of these two kinds since ended ones were dropped.
    new_rows: usize,
    connections: BTreeMap<ConnectionId, SocketConnection>,
    asleep: BTreeMap<Pid, AsleepThread>,
    file_systems: HashMap<Dev, MountedFileSystem>,
    /// Rows refer to stacks by number, including those of waits that have not ended yet.
    stacks: Vec<KernelStack>,
    clock: Option<ClockSample>,
}

impl StandingRows {
    /// Takes in a row. Returns whether it is part of the state.
    pub(super) fn see(&mut self, event: &TraceEvent) -> bool {
        match event {
            TraceEvent::ThreadInfo(row) => {
                let thread = (row.thread, row.start_ns);
                if row.exit_ns > 0 {
                    self.tasks.remove(&thread);
                    self.starts.remove(&thread);
                    self.asleep.remove(&row.thread);
                } else {
                    self.tasks.insert(thread, row.clone());
                }
            }
            TraceEvent::ThreadStart(row) => {
                self.starts.insert((row.thread, row.start_ns), row.clone());
                self.count();
            }
            TraceEvent::ProcessProgram(row) => {
                self.programs.insert(row.process, row.clone());
                self.count();
            }
            // Its last row. In a visit it may be one that is closed and still read from.
            TraceEvent::SocketConnection(row) if row.closed_ns > 0 && !self.is_visiting => {
                self.connections.remove(&row.connection);
            }
            TraceEvent::SocketConnection(row) => {
                self.connections.insert(row.connection, row.clone());
            }
            TraceEvent::AsleepThread(row) => {
                self.asleep.insert(row.thread, row.clone());
            }
            TraceEvent::MountedFileSystem(row) => {
                self.file_systems.insert(row.dev, row.clone());
            }
            TraceEvent::KernelStack(row) => self.stacks.push(row.clone()),
            TraceEvent::ClockSample(row) => self.clock = Some(row.clone()),
            _ => return false,
        }
        true
    }

    /// Begins a visit: all present threads and connections have a row again from now on.
    pub(super) fn visit_begins(&mut self, at_ns: u64) {
        self.visited_ns = at_ns;
        self.is_visiting = true;
        self.asleep.clear();
    }

    /// A thread or process may have ended before the row of its function or program comes.
    fn count(&mut self) {
        self.new_rows += 1;
        if self.new_rows >= MAX_NEW_ROWS {
            self.forget_ended();
        }
    }

    /// Drops functions and programs of ended threads and processes.
    fn forget_ended(&mut self) {
        self.new_rows = 0;
        let tasks = &self.tasks;
        self.starts.retain(|thread, _| tasks.contains_key(thread));
        let processes: HashSet<Tgid> = tasks.values().map(|row| row.process).collect();
        self.programs.retain(|process, _| processes.contains(process));
    }

    /// Returns the rows for a segment that begins at `start_ns`, after a visit. Drops everything that the visit has not
    /// found.
    pub(super) fn rows(&mut self, start_ns: u64) -> impl Iterator<Item = TraceEvent> + '_ {
        self.is_visiting = false;
        let visited_ns = self.visited_ns;
        self.tasks.retain(|_, row| row.at_ns >= visited_ns);
        self.connections.retain(|_, row| row.at_ns >= visited_ns);
        self.forget_ended();
        // These are as old as the recorder. Others have been looked at just now.
        let at_ns = start_ns;
        let starts = self.starts.values().cloned();
        let programs = self.programs.values().cloned();
        let file_systems = self.file_systems.values().cloned();
        let stacks = self.stacks.iter().cloned();
        let tasks = self.tasks.values().cloned().map(TraceEvent::from);
        tasks
            .chain(starts.map(move |row| ThreadStart { at_ns, ..row }.into()))
            .chain(programs.map(move |row| ProcessProgram { at_ns, ..row }.into()))
            .chain(self.connections.values().cloned().map(TraceEvent::from))
            .chain(self.asleep.values().cloned().map(TraceEvent::from))
            .chain(file_systems.map(move |row| MountedFileSystem { at_ns, ..row }.into()))
            .chain(stacks.map(move |row| KernelStack { at_ns, ..row }.into()))
            .chain(self.clock.iter().cloned().map(TraceEvent::from))
    }
}

#[cfg(test)]
mod tests {
    use luc_events::tables::OffCpuWait;

    use super::*;

    fn task(thread: u32, at_ns: u64, exit_ns: u64) -> TraceEvent {
        let row = ThreadInfo {
            at_ns,
            thread: Pid(thread),
            process: Tgid(thread / 10),
            start_ns: 1,
            exit_ns,
            ..ThreadInfo::default()
        };
        row.into()
    }

    fn start(thread: u32) -> TraceEvent {
        let row =
            ThreadStart { at_ns: 2, thread: Pid(thread), start_ns: 1, ..ThreadStart::default() };
        row.into()
    }

    fn program(process: u32) -> TraceEvent {
        let row = ProcessProgram { process: Tgid(process), ..ProcessProgram::default() };
        row.into()
    }

    fn connection(number: u32, at_ns: u64) -> TraceEvent {
        let row = SocketConnection {
            at_ns,
            connection: ConnectionId(number),
            ..SocketConnection::default()
        };
        row.into()
    }

    fn asleep(thread: u32, at_ns: u64) -> TraceEvent {
        let row = AsleepThread { at_ns, thread: Pid(thread), ..AsleepThread::default() };
        row.into()
    }

    #[test]
    fn a_segment_begins_with_what_the_visit_finds() {
        let mut standing = StandingRows::default();
        let before = [
            task(10, 3, 0),
            task(11, 3, 0),
            task(20, 3, 0),
            start(10),
            start(11),
            start(20),
            program(1),
            program(2),
            connection(1, 3),
            connection(2, 3),
            asleep(10, 3),
            asleep(11, 3),
        ];
        assert!(before.iter().all(|row| standing.see(row)));
        standing.visit_begins(100);
        for row in [task(10, 101, 0), task(11, 101, 0), task(11, 102, 102)] {
            standing.see(&row);
        }
        standing.see(&connection(2, 101));
        standing.see(&asleep(10, 101));
        let rows: Vec<TraceEvent> = standing.rows(200).collect();
        let again = |event: TraceEvent| match event {
            TraceEvent::ThreadStart(row) => ThreadStart { at_ns: 200, ..row }.into(),
            TraceEvent::ProcessProgram(row) => ProcessProgram { at_ns: 200, ..row }.into(),
            other => other,
        };
        let expected = [
            task(10, 101, 0),
            again(start(10)),
            again(program(1)),
            connection(2, 101),
            asleep(10, 101),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_closed_connection_stands_only_if_the_visit_finds_it() {
        let closed = |number, at_ns| match connection(number, at_ns) {
            TraceEvent::SocketConnection(row) => {
                TraceEvent::from(SocketConnection { closed_ns: at_ns, ..row })
            }
            other => other,
        };
        let mut standing = StandingRows::default();
        standing.see(&connection(1, 3));
        standing.see(&closed(1, 4));
        assert!(standing.connections.is_empty());
        standing.visit_begins(100);
        standing.see(&closed(2, 101));
        assert_eq!(standing.rows(200).collect::<Vec<TraceEvent>>(), [closed(2, 101)]);
        standing.see(&closed(2, 201));
        assert!(standing.connections.is_empty());
    }

    #[test]
    fn what_ends_between_two_cuts_is_not_kept() {
        let mut standing = StandingRows::default();
        let lasting = [task(10, 3, 0), start(10), program(1)];
        assert!(lasting.iter().all(|row| standing.see(row)));
        for thread in (20..).take(3 * MAX_NEW_ROWS) {
            // What it runs is read after it has ended.
            let short = [task(thread, 3, 0), task(thread, 4, 4), start(thread)];
            assert!(short.iter().all(|row| standing.see(row)));
            standing.see(&program(thread));
            assert!(standing.starts.len() + standing.programs.len() <= MAX_NEW_ROWS + 2);
        }
        standing.visit_begins(100);
        standing.see(&task(10, 101, 0));
        assert_eq!(standing.rows(200).count(), lasting.len());
    }

    #[test]
    fn stacks_and_file_systems_stay_and_the_last_clock_sample() {
        let mut standing = StandingRows::default();
        for at_ns in [1, 2] {
            standing.see(&KernelStack { at_ns, ..KernelStack::default() }.into());
            standing.see(&MountedFileSystem { at_ns, ..MountedFileSystem::default() }.into());
            standing.see(&ClockSample { at_ns, ..ClockSample::default() }.into());
        }
        standing.visit_begins(100);
        let times: Vec<u64> = standing.rows(200).map(|row| row.time_ns()).collect();
        assert_eq!(times, [200, 200, 200, 2]);
    }

    #[test]
    fn events_do_not_stand() {
        assert!(!StandingRows::default().see(&OffCpuWait::default().into()));
    }
}
