//! A discrete-event model of threads, a journal and a disk. It writes a trace of itself and keeps the truth about it.

mod journal;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use luc_events::event_kinds::{DataDirection, FileCallKind, WaitState};
use luc_events::tables::{
    FileCall, FileData, JournalCommit, MountedFileSystem, OffCpuWait, ThreadInfo, TraceDescription,
};
use luc_events::{Cgroup, Dev, Inode, Pid, Tgid, TraceEvent, WaitCause};

/// Time from a wake-up until the thread runs.
const RUN_QUEUE_NS: u64 = 20_000;
/// Processor time of a call at its beginning and at its end.
const CALL_CPU_NS: u64 = 2_000;
/// Length of the intervals over which data is summed.
const INTERVAL_NS: u64 = 10_000_000;

/// An operation of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SimulatedOp {
    Think(u64),
    /// Runs in user mode.
    Compute(u64),
    /// Makes its file's data durable, which takes `data_ns`, and waits for the commit.
    Fsync {
        data_ns: u64,
    },
    /// Writes; if `shared`, into a buffer that each commit writes, too.
    Write {
        shared: bool,
    },
    /// Creates a file, holding the directory's lock for `hold_ns`.
    Create {
        hold_ns: u64,
    },
    /// Waits for space in the journal, in a write, for this time.
    Checkpoint(u64),
}

/// Simulated threads that all do the same: their process, cgroup, number and operations.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedProgram {
    pub(crate) process: u32,
    pub(crate) cgroup: u64,
    pub(crate) threads: u32,
    pub(crate) ops: Vec<SimulatedOp>,
}

/// Parameters of the journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JournalParameters {
    pub(crate) dev: Dev,
    pub(crate) locking_ns: u64,
    pub(crate) flushing_ns: u64,
    pub(crate) logging_ns: u64,
    /// Nanoseconds that a byte of data adds to a commit.
    pub(crate) ns_per_byte: f64,
    /// Callers whom a gate brings together before each commit; 0: no gate.
    pub(crate) gate: usize,
    /// Commits are fast ones that the caller makes.
    pub(crate) fast: bool,
}

impl JournalParameters {
    pub(crate) fn plain(dev: Dev) -> Self {
        Self {
            dev,
            locking_ns: 50_000,
            flushing_ns: 150_000,
            logging_ns: 12_000_000,
            ns_per_byte: 0.0,
            gate: 0,
            fast: false,
        }
    }
}

/// Bytes that a process makes dirty and a flusher writes, in each interval of the seconds given.
#[derive(Clone, Debug)]
pub(crate) struct DirtyBurst {
    pub(crate) process: u32,
    pub(crate) cgroup: u64,
    pub(crate) bytes_per_interval: u64,
    /// Length of a burst in intervals. It begins with each second.
    pub(crate) intervals_per_s: u64,
}

/// Parts of the fsyncs' time in the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrueSyncTimes {
    pub(crate) syncs: u64,
    pub(crate) total_ns: u64,
    pub(crate) data_ns: u64,
    pub(crate) predecessor_ns: u64,
    pub(crate) start_ns: u64,
    pub(crate) own_ns: u64,
    pub(crate) fast_ns: u64,
    pub(crate) commits_waited: u64,
}

#[derive(Clone, Debug)]
struct Thread {
    pid: u32,
    process: u32,
    cgroup: u64,
    ops: Vec<SimulatedOp>,
    next: usize,
    used_ns: u64,
}

/// A caller that waits for its commit.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    thread: usize,
    transaction: u32,
    enter_ns: u64,
    data_ns: u64,
    off_ns: u64,
    /// End of the commit that was running at its arrival; 0 without one.
    busy_until_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Actor {
    CommitEnds,
    CommitBegins,
    Thread(usize),
    /// A thread that has written its data comes to the journal (or the gate).
    Arrives(usize, u64, u64),
}

/// Simulated threads, journal and disk that write a trace of themselves.
#[derive(Debug)]
pub(crate) struct TraceSimulation {
    setting: JournalParameters,
    burst: Option<DirtyBurst>,
    threads: Vec<Thread>,
    queue: BinaryHeap<Reverse<(u64, Actor)>>,
    events: Vec<TraceEvent>,
    running: u32,
    committing: Option<JournalCommit>,
    begins: bool,
    waiters: Vec<Waiter>,
    gathered: Vec<Waiter>,
    directory_free_ns: u64,
    end_ns: u64,
    pub(crate) truth: TrueSyncTimes,
}

impl TraceSimulation {
    pub(crate) fn new(
        setting: JournalParameters,
        programs: &[SimulatedProgram],
        burst: Option<DirtyBurst>,
    ) -> Self {
        let mut threads = Vec::new();
        for program in programs {
            for number in 0..program.threads {
                threads.push(Thread {
                    pid: program.process + number,
                    process: program.process,
                    cgroup: program.cgroup,
                    ops: program.ops.clone(),
                    next: 0,
                    used_ns: 0,
                });
            }
        }
        // Not all at the same moment.
        let starts = (0..threads.len()).map(|index| {
            let index_ns = index as u64;
            Reverse((1_000_000 + index_ns * 137_000, Actor::Thread(index)))
        });
        Self {
            setting,
            burst,
            queue: starts.collect(),
            threads,
            events: Vec::new(),
            running: 100,
            committing: None,
            begins: false,
            waiters: Vec::new(),
            gathered: Vec::new(),
            directory_free_ns: 0,
            end_ns: 0,
            truth: TrueSyncTimes::default(),
        }
    }

    /// Plays until `end_ns`; returns the events in the order of time.
    pub(crate) fn play(mut self, end_ns: u64) -> (Vec<TraceEvent>, TrueSyncTimes) {
        self.end_ns = end_ns;
        self.frame(end_ns);
        while let Some(Reverse((now_ns, actor))) = self.queue.pop() {
            if now_ns >= end_ns {
                break;
            }
            match actor {
                Actor::Thread(index) => self.step(index, now_ns),
                Actor::Arrives(index, enter_ns, data_ns) => {
                    self.arrive(index, enter_ns, data_ns, now_ns);
                }
                Actor::CommitBegins => self.begin_commit(now_ns),
                Actor::CommitEnds => self.end_commit(now_ns),
            }
        }
        for thread in &self.threads {
            self.events.push(task(thread, end_ns, thread.used_ns).into());
        }
        self.events.retain(|event| event.time_ns() <= end_ns);
        self.events.sort_by_key(TraceEvent::time_ns);
        (self.events, self.truth)
    }

    /// Describes the trace of a world.
    pub(crate) fn description(end_ns: u64) -> TraceDescription {
        TraceDescription {
            start_ns: 0,
            end_ns,
            processors: 64,
            mode: "events".to_owned(),
            ..TraceDescription::default()
        }
    }

    fn frame(&mut self, end_ns: u64) {
        self.events.push(
            MountedFileSystem {
                at_ns: 0,
                dev: self.setting.dev,
                kind: "ext4".to_owned(),
                mount_point: format!("/mnt/{}", self.setting.dev.minor()),
                options: "rw,relatime".to_owned(),
                journal_dev: self.setting.dev,
                journal_blocks: 16_384,
                block_bytes: 4_096,
                fast_commit: self.setting.fast,
                ..MountedFileSystem::default()
            }
            .into(),
        );
        for thread in &self.threads {
            self.events.push(task(thread, 0, 0).into());
        }
        let Some(burst) = self.burst.clone() else {
            return;
        };
        for interval in 0..end_ns / INTERVAL_NS {
            let bytes = bytes_in(&burst, interval);
            if bytes > 0 {
                let row = FileData {
                    at_ns: (interval + 1) * INTERVAL_NS,
                    dev: self.setting.dev,
                    inode: Inode(7_777),
                    thread: Pid(burst.process),
                    process: Tgid(burst.process),
                    cgroup: Cgroup(burst.cgroup),
                    bytes,
                    direction: DataDirection::Dirtied,
                };
                let written = FileData {
                    thread: Pid(2),
                    process: Tgid(2),
                    cgroup: Cgroup(1),
                    direction: DataDirection::WrittenByFlusher,
                    ..row.clone()
                };
                self.events.push(row.into());
                self.events.push(written.into());
            }
        }
    }

    fn later(&mut self, at_ns: u64, actor: Actor) {
        self.queue.push(Reverse((at_ns, actor)));
    }

    fn step(&mut self, index: usize, now_ns: u64) {
        let thread = &mut self.threads[index];
        let op = thread.ops[thread.next];
        thread.next = (thread.next + 1) % thread.ops.len();
        match op {
            SimulatedOp::Think(ns) => {
                let on_ns = self.wait(index, now_ns, now_ns + ns, WaitCause::Sleep);
                self.later(on_ns, Actor::Thread(index));
            }
            SimulatedOp::Compute(ns) => {
                thread.used_ns += ns;
                self.later(now_ns + ns, Actor::Thread(index));
            }
            SimulatedOp::Fsync { data_ns } => {
                thread.used_ns += 2 * CALL_CPU_NS;
                let mut ready_ns = now_ns + CALL_CPU_NS;
                if data_ns > 0 {
                    ready_ns =
                        self.wait(index, ready_ns, ready_ns + data_ns, WaitCause::DataWriteback);
                }
                self.later(ready_ns, Actor::Arrives(index, now_ns, data_ns));
            }
            SimulatedOp::Write { shared } => {
                let blocked_ns = match &self.committing {
                    Some(commit) if shared && now_ns >= commit.logging_ns => commit.end_ns - 1_000,
                    _ => 0,
                };
                self.blocked_call(
                    index,
                    now_ns,
                    blocked_ns,
                    FileCallKind::Write,
                    WaitCause::ShadowBuffer,
                );
            }
            SimulatedOp::Create { hold_ns } => {
                let free_ns = self.directory_free_ns.max(now_ns + CALL_CPU_NS);
                let waits = free_ns > now_ns + CALL_CPU_NS;
                let held_from_ns = if waits { free_ns + RUN_QUEUE_NS } else { free_ns };
                self.directory_free_ns = held_from_ns + hold_ns;
                let until_ns = if waits { free_ns } else { 0 };
                self.threads[index].used_ns += hold_ns;
                self.blocked_call_holding(index, now_ns, until_ns, hold_ns);
            }
            SimulatedOp::Checkpoint(ns) => {
                self.blocked_call(
                    index,
                    now_ns,
                    now_ns + ns,
                    FileCallKind::Write,
                    WaitCause::Checkpoint,
                );
            }
        }
    }

    /// A call that is blocked until `until_ns` (0: not at all).
    fn blocked_call(
        &mut self,
        index: usize,
        enter_ns: u64,
        until_ns: u64,
        kind: FileCallKind,
        cause: WaitCause,
    ) {
        let mut now_ns = enter_ns + CALL_CPU_NS;
        if until_ns > now_ns {
            now_ns = self.wait(index, now_ns, until_ns, cause);
        }
        self.end_call(index, enter_ns, now_ns + CALL_CPU_NS, kind);
        self.threads[index].used_ns += 2 * CALL_CPU_NS;
    }

    fn blocked_call_holding(&mut self, index: usize, enter_ns: u64, until_ns: u64, hold_ns: u64) {
        let mut now_ns = enter_ns + CALL_CPU_NS;
        if until_ns > now_ns {
            now_ns = self.wait(index, now_ns, until_ns, WaitCause::DirectoryLock);
        }
        self.end_call(index, enter_ns, now_ns + hold_ns, FileCallKind::Create);
        self.threads[index].used_ns += CALL_CPU_NS;
    }

    fn end_call(&mut self, index: usize, enter_ns: u64, exit_ns: u64, kind: FileCallKind) {
        let thread = &self.threads[index];
        self.events.push(
            FileCall {
                thread: Pid(thread.pid),
                process: Tgid(thread.process),
                cgroup: Cgroup(thread.cgroup),
                kind,
                enter_ns,
                exit_ns,
                dev: self.setting.dev,
                inode: Inode(u64::from(thread.pid)),
                bytes: 4_096,
                errno: 0,
            }
            .into(),
        );
        self.later(exit_ns, Actor::Thread(index));
    }

    /// Notes a wait; returns when the thread runs again.
    fn wait(&mut self, index: usize, off_ns: u64, woken_ns: u64, cause: WaitCause) -> u64 {
        let thread = &self.threads[index];
        let on_ns = woken_ns + RUN_QUEUE_NS;
        self.events.push(
            OffCpuWait {
                thread: Pid(thread.pid),
                process: Tgid(thread.process),
                cgroup: Cgroup(thread.cgroup),
                off_ns,
                woken_ns,
                on_ns,
                state: WaitState::Uninterruptible,
                cause,
                ..OffCpuWait::default()
            }
            .into(),
        );
        on_ns
    }
}

fn bytes_in(burst: &DirtyBurst, interval: u64) -> u64 {
    if interval % (1_000_000_000 / INTERVAL_NS) < burst.intervals_per_s {
        burst.bytes_per_interval
    } else {
        0
    }
}

fn task(thread: &Thread, at_ns: u64, user_ns: u64) -> ThreadInfo {
    ThreadInfo {
        at_ns,
        thread: Pid(thread.pid),
        process: Tgid(thread.process),
        parent: Tgid(1),
        comm: format!("p{}", thread.process),
        cgroup: Cgroup(thread.cgroup),
        start_ns: 0,
        exit_ns: 0,
        user_ns,
        system_ns: 0,
    }
}
