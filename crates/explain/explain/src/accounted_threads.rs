//! Threads: identity, recent waits, and accounts of all their time.

mod thread_time;

use std::collections::{BTreeMap, VecDeque};

use luc_events::event_kinds::WaitState;
use luc_events::tables::{BriefWait, OffCpuWait, ThreadInfo};
use luc_events::{Cgroup, Pid, Tgid, WaitCause};

use crate::call_split::SplitWait;
use crate::device_wait::DeviceWait;
use crate::fast_hash::{FastMap, FastSet};
use crate::report::{TimeAccount, TimeAccounts};
use crate::saturating_grow::SaturatingGrow as _;

pub(crate) use thread_time::ThreadTime;

/// Minimum length of a wait that is followed to its root.
pub(crate) const MIN_FOLLOWED_NS: u64 = 1_000_000;
/// Maximum number of waits kept per thread until the call around them is complete. Of longer calls the split loses the
/// earliest waits (the accounts do not), and the report counts them.
const MAX_RECENT_WAITS: usize = 512;
/// Maximum number of threads with accounts in the report. The others are only in the accounts of processes and cgroups.
const MAX_REPORTED_THREADS: usize = 1_000;

/// Maximum number of ended threads whose times are kept apart.
const MAX_EXITED_TIMES: usize = 1 << 14;

/// A thread's time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    wall: u64,
    user: u64,
    system: u64,
    runnable: u64,
    blocked: [u64; WaitCause::ALL.len()],
    /// Number of times that it was frozen; for several threads, that of the thread with most.
    freezes: u64,
    /// Longest of these times; for several threads, the longest of all.
    longest_frozen: u64,
    /// Waits that are too short to be followed.
    brief: u64,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.wall.grow(other.wall);
        self.user.grow(other.user);
        self.system.grow(other.system);
        self.runnable.grow(other.runnable);
        for (sum, ns) in self.blocked.iter_mut().zip(other.blocked) {
            sum.grow(ns);
        }
        self.freezes = self.freezes.max(other.freezes);
        self.longest_frozen = self.longest_frozen.max(other.longest_frozen);
        self.brief.grow(other.brief);
    }
}

/// Waits since a thread's last fsync.
#[derive(Clone, Copy, Debug, Default)]
struct Cycle {
    /// End of that fsync; 0 without one.
    since_ns: u64,
    /// Time blocked on other things than the journal and its locks.
    thinking_ns: u64,
    waited_ns: u64,
    /// Brief waits: thinking, and all. They are sums over several cycles, so the rest of one cycle is left for the
    /// next.
    brief_thinking_ns: u64,
    brief_ns: u64,
}

/// Thread of a trace: identity, recent waits, and sums of its time.
#[derive(Debug, Default)]
pub(crate) struct AccountedThread {
    pub(crate) process: Tgid,
    pub(crate) cgroup: Cgroup,
    cycle: Cycle,
    device_wait: DeviceWait,
    recent: VecDeque<SplitWait>,
    sums: Sums,
    begin_ns: u64,
    comm: String,
    task: Option<(u64, u64)>,
    /// Whether it has rows of waits or calls.
    is_recorded: bool,
}

/// Parent of all kernel threads.
const KTHREADD: Tgid = Tgid(2);

/// All threads of a trace, with the accounts of their time.
#[derive(Debug, Default)]
pub(crate) struct AccountedThreads {
    threads: FastMap<Pid, AccountedThread>,
    comms: FastMap<Tgid, String>,
    /// Processes that are kernel threads.
    kernel: FastSet<Tgid>,
    exited: Vec<TimeAccount>,
    exited_sums: FastMap<(u32, u64), Sums>,
    exited_times: FastMap<Pid, ThreadTime>,
    pub(crate) forgotten_waits: u64,
    start_ns: u64,
}

/// Returns whether a wait is for the journal, or for a lock whose holder waits for the journal.
fn is_for_journal(cause: WaitCause) -> bool {
    matches!(
        cause,
        WaitCause::CommitWait
            | WaitCause::FastCommit
            | WaitCause::ShadowBuffer
            | WaitCause::TransactionLocked
            | WaitCause::Checkpoint
            | WaitCause::DirectoryLock
            | WaitCause::InodeLock
    )
}

/// Returns whether a wait can lie inside a file-system call and takes part in its split.
fn is_in_calls(row: &OffCpuWait) -> bool {
    row.state == WaitState::Uninterruptible
        || !matches!(
            row.cause,
            WaitCause::Futex
                | WaitCause::Sleep
                | WaitCause::Poll
                | WaitCause::PipeSocket
                | WaitCause::FullPipe
                | WaitCause::AsyncIo
                | WaitCause::Frozen
                | WaitCause::Stopped
                | WaitCause::Throttled
        )
}

impl AccountedThreads {
    /// Sets the begin of the trace: earlier times do not count.
    pub(crate) fn begin_at(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
    }

    /// Returns a thread that has a row of a wait or a call at `at_ns`, with its process and cgroup.
    pub(crate) fn see(
        &mut self,
        thread: Pid,
        process: Tgid,
        cgroup: Cgroup,
        at_ns: u64,
    ) -> &mut AccountedThread {
        let found = self.know(thread, process, cgroup, at_ns);
        found.is_recorded = true;
        found
    }

    fn know(
        &mut self,
        thread: Pid,
        process: Tgid,
        cgroup: Cgroup,
        at_ns: u64,
    ) -> &mut AccountedThread {
        let start_ns = self.start_ns;
        let found = self.threads.entry(thread).or_insert_with(|| AccountedThread {
            begin_ns: at_ns.max(start_ns),
            ..AccountedThread::default()
        });
        found.process = process;
        found.cgroup = cgroup;
        found
    }

    pub(crate) fn add_wait(&mut self, row: &OffCpuWait) {
        let piece = SplitWait::of(row);
        let thread = self.see(row.thread, row.process, row.cgroup, row.off_ns);
        let off_ns = piece.off_ns.max(thread.begin_ns).min(piece.on_ns);
        let woken_ns = piece.woken_ns.max(off_ns);
        let blocked = &mut thread.sums.blocked[usize::from(piece.cause.code())];
        blocked.grow(woken_ns - off_ns);
        thread.sums.runnable.grow(piece.on_ns - woken_ns);
        thread.cycle.waited_ns.grow(piece.on_ns - off_ns);
        if !is_for_journal(piece.cause) {
            thread.cycle.thinking_ns.grow(woken_ns - off_ns);
        }
        if piece.on_ns - off_ns < MIN_FOLLOWED_NS && !is_storage(piece.cause) {
            thread.sums.brief.grow(piece.on_ns - off_ns);
        }
        if piece.cause == WaitCause::Frozen {
            thread.sums.freezes.grow(1);
            thread.sums.longest_frozen = thread.sums.longest_frozen.max(woken_ns - off_ns);
        }
        thread.device_wait.add(row);
        if is_in_calls(row) {
            thread.recent.push_back(piece);
            if thread.recent.len() > MAX_RECENT_WAITS {
                thread.recent.pop_front();
                self.forgotten_waits += 1;
            }
        }
    }

    /// Adds sums of brief waits, which are too short to matter to a call's split.
    pub(crate) fn add_brief_wait(&mut self, row: &BriefWait) {
        let thread = self.see(row.thread, row.process, row.cgroup, row.since_ns);
        let cause = usize::from(row.cause.code());
        let (blocked_ns, runnable_ns) = match row.cause {
            WaitCause::Preempted => (0, row.blocked_ns.saturating_add(row.runnable_ns)),
            _ => (row.blocked_ns, row.runnable_ns),
        };
        thread.sums.blocked[cause].grow(blocked_ns);
        thread.sums.runnable.grow(runnable_ns);
        thread.sums.brief.grow(blocked_ns.saturating_add(runnable_ns));
        thread.cycle.brief_ns.grow(blocked_ns.saturating_add(runnable_ns));
        if !is_for_journal(row.cause) {
            thread.cycle.brief_thinking_ns.grow(blocked_ns);
        }
    }

    /// Returns a thread's name; empty if unknown.
    pub(crate) fn thread_comm(&self, thread: Pid) -> &str {
        let known = self.threads.get(&thread);
        known.map_or("", |thread| &thread.comm)
    }

    pub(crate) fn add_task(&mut self, row: &ThreadInfo) {
        let (start_ns, at_ns) = (self.start_ns, row.at_ns);
        if row.process.0 == row.thread.0 || !self.comms.contains_key(&row.process) {
            self.comms.insert(row.process, row.comm.clone());
            if row.process == KTHREADD || row.parent == KTHREADD {
                self.kernel.insert(row.process);
            }
        }
        let is_new = row.start_ns >= start_ns && row.start_ns > 0;
        let seen_ns = if is_new { row.start_ns } else { at_ns };
        let thread = self.know(row.thread, row.process, row.cgroup, seen_ns);
        if is_new {
            thread.begin_ns = row.start_ns;
        }
        thread.comm.clone_from(&row.comm);
        let (user, system) =
            *thread.task.get_or_insert(if is_new { (0, 0) } else { (row.user_ns, row.system_ns) });
        thread.sums.user = row.user_ns.saturating_sub(user);
        thread.sums.system = row.system_ns.saturating_sub(system);
        if row.exit_ns > 0
            && let Some(thread) = self.threads.remove(&row.thread)
        {
            let sums = thread.sums_until(row.exit_ns);
            let key = (thread.process.0, thread.cgroup.0);
            self.exited_sums.entry(key).or_default().add(&sums);
            if thread.is_recorded {
                self.keep_time(ThreadTime::of(row.thread, thread.process, sums));
            }
            if self.exited.len() < MAX_REPORTED_THREADS {
                self.exited.push(account(
                    &sums,
                    Some(row.thread),
                    Some(thread.process),
                    thread.cgroup,
                    &thread.comm,
                ));
            }
        }
    }

    /// Keeps the times of a thread that has ended. Further ones are summed by process.
    fn keep_time(&mut self, time: ThreadTime) {
        let is_full = self.exited_times.len() >= MAX_EXITED_TIMES;
        let thread = if is_full { Pid(time.process.0) } else { time.thread };
        let kept = self.exited_times.entry(thread);
        kept.and_modify(|kept| kept.sums.add(&time.sums)).or_insert(ThreadTime { thread, ..time });
    }

    /// Returns a thread's process and cgroup, if it has been seen and has not ended.
    pub(crate) fn actor(&self, thread: Pid) -> Option<(Tgid, Cgroup)> {
        let thread = self.threads.get(&thread)?;
        Some((thread.process, thread.cgroup))
    }

    /// Returns the thread's last wait for a device.
    pub(crate) fn device_wait(&self, thread: Pid) -> DeviceWait {
        let found = self.threads.get(&thread);
        found.map_or_else(DeviceWait::default, |found| found.device_wait)
    }

    /// Returns a process' name; empty if unknown.
    pub(crate) fn comm(&self, process: Tgid) -> &str {
        self.comms.get(&process).map_or("", String::as_str)
    }

    /// Returns whether a process is a kernel thread; `None` if unknown.
    pub(crate) fn is_kernel(&self, process: Tgid) -> Option<bool> {
        (self.comms.contains_key(&process)).then(|| self.kernel.contains(&process))
    }

    /// Returns the times of all recorded threads, those of the kernel apart.
    pub(crate) fn thread_times(&self) -> impl Iterator<Item = ThreadTime> {
        let alive = self.threads.iter().filter(|(_, thread)| thread.is_recorded);
        let alive = alive.map(|(&pid, thread)| ThreadTime::of(pid, thread.process, thread.sums));
        let all = alive.chain(self.exited_times.values().copied());
        all.filter(|time| !self.kernel.contains(&time.process))
    }

    /// Returns the accounts at `end_ns`, longest waits for storage first.
    pub(crate) fn accounts(&self, end_ns: u64) -> TimeAccounts {
        let mut owners = self.exited_sums.clone();
        let mut threads = self.exited.clone();
        for (&pid, thread) in &self.threads {
            let sums = thread.sums_until(end_ns);
            let key = (thread.process.0, thread.cgroup.0);
            owners.entry(key).or_default().add(&sums);
            threads.push(account(
                &sums,
                Some(pid),
                Some(thread.process),
                thread.cgroup,
                &thread.comm,
            ));
        }
        let mut processes: FastMap<u32, (Sums, Cgroup)> = FastMap::default();
        let mut cgroups: FastMap<u64, Sums> = FastMap::default();
        for ((process, cgroup), sums) in owners {
            let entry = processes.entry(process).or_default();
            entry.0.add(&sums);
            entry.1 = Cgroup(cgroup);
            cgroups.entry(cgroup).or_default().add(&sums);
        }
        let mut accounts = TimeAccounts {
            threads_in_all: threads.len() as u64,
            threads,
            processes: processes
                .into_iter()
                .map(|(process, (sums, cgroup))| {
                    account(&sums, None, Some(Tgid(process)), cgroup, self.comm(Tgid(process)))
                })
                .collect(),
            cgroups: cgroups
                .into_iter()
                .map(|(cgroup, sums)| account(&sums, None, None, Cgroup(cgroup), ""))
                .collect(),
        };
        for list in [&mut accounts.threads, &mut accounts.processes, &mut accounts.cgroups] {
            list.sort_by_key(|account| {
                let id = (account.thread, account.process, account.cgroup);
                (std::cmp::Reverse(account.storage_ns), std::cmp::Reverse(account.wall_ns), id)
            });
        }
        accounts.threads.truncate(MAX_REPORTED_THREADS);
        accounts
    }
}

impl AccountedThread {
    /// Moves the waits that lie in a call to the end of `into`, and forgets earlier ones. Returns the number moved.
    pub(crate) fn take_waits(&mut self, enter_ns: u64, into: &mut VecDeque<SplitWait>) -> usize {
        let before = into.len();
        for wait in &self.recent {
            if wait.on_ns > enter_ns {
                into.push_back(*wait);
            }
        }
        self.recent.clear();
        into.len() - before
    }

    /// Ends a round trip with an fsync that ended at `exit_ns` and had the waits `inside`. Returns the thinking time
    /// and the processor time since the thread's previous fsync, if there was one.
    pub(crate) fn end_cycle<'a>(
        &mut self,
        exit_ns: u64,
        inside: impl Iterator<Item = &'a SplitWait>,
    ) -> Option<(u64, u64)> {
        let cycle = self.cycle;
        let (mut waited, mut thinking_inside) = (0, 0);
        for wait in inside {
            waited.grow(wait.on_ns - wait.off_ns);
            if !is_for_journal(wait.cause) {
                thinking_inside.grow(wait.woken_ns - wait.off_ns);
            }
        }
        let length_ns = exit_ns.saturating_sub(cycle.since_ns);
        let unwaited_ns = length_ns.saturating_sub(cycle.waited_ns.max(waited));
        let brief_ns = cycle.brief_ns.min(unwaited_ns);
        let brief_thinking_ns = cycle.brief_thinking_ns.min(brief_ns);
        self.cycle = Cycle {
            since_ns: exit_ns,
            brief_ns: cycle.brief_ns - brief_ns,
            brief_thinking_ns: cycle.brief_thinking_ns - brief_thinking_ns,
            ..Cycle::default()
        };
        let thinking_ns = cycle.thinking_ns.saturating_sub(thinking_inside);
        (cycle.since_ns > 0)
            .then_some((thinking_ns.saturating_add(brief_thinking_ns), unwaited_ns - brief_ns))
    }

    fn sums_until(&self, end_ns: u64) -> Sums {
        Sums { wall: end_ns.saturating_sub(self.begin_ns), ..self.sums }
    }
}

/// Returns whether blocked time of this cause is idle: waiting for work.
pub(crate) fn is_idle(cause: WaitCause) -> bool {
    matches!(cause, WaitCause::Sleep | WaitCause::Poll | WaitCause::PipeSocket | WaitCause::AsyncIo)
}

/// Returns whether blocked time of this cause is due to files and disks.
pub fn is_storage(cause: WaitCause) -> bool {
    match cause {
        WaitCause::CommitWait
        | WaitCause::DataWriteback
        | WaitCause::ShadowBuffer
        | WaitCause::TransactionLocked
        | WaitCause::Checkpoint
        | WaitCause::InodeLock
        | WaitCause::DirectoryLock
        | WaitCause::DirtyThrottle
        | WaitCause::Device
        | WaitCause::FastCommit
        | WaitCause::Flush
        | WaitCause::Updates => true,
        WaitCause::Other
        | WaitCause::Futex
        | WaitCause::Sleep
        | WaitCause::Poll
        | WaitCause::PipeSocket
        | WaitCause::Preempted
        | WaitCause::PageFault
        | WaitCause::KernelLock
        | WaitCause::Frozen
        | WaitCause::Stopped
        | WaitCause::Throttled
        | WaitCause::Flock
        | WaitCause::FullPipe
        | WaitCause::FileServer
        | WaitCause::MemoryLimit
        | WaitCause::AsyncIo
        | WaitCause::HeldBack => false,
    }
}

fn account(
    sums: &Sums,
    thread: Option<Pid>,
    process: Option<Tgid>,
    cgroup: Cgroup,
    comm: &str,
) -> TimeAccount {
    let by_cause = || WaitCause::ALL.iter().zip(sums.blocked);
    let total = |of: fn(WaitCause) -> bool| {
        let chosen = by_cause().filter(|&(&cause, _)| of(cause));
        chosen.fold(0_u64, |sum, (_, ns)| sum.saturating_add(ns))
    };
    let named = |is_meant: fn(WaitCause) -> bool| -> BTreeMap<&'static str, u64> {
        let meant = by_cause().filter(|&(&cause, ns)| ns > 0 && is_meant(cause));
        meant.map(|(cause, ns)| (cause.name(), ns)).collect()
    };
    let blocked = named(|cause| !is_idle(cause));
    let idle_ns = total(is_idle);
    let parts = [sums.user, sums.system, sums.runnable, idle_ns];
    let known_ns = parts
        .iter()
        .chain(blocked.values())
        .fold(0, |sum: i64, &ns| sum.saturating_add_unsigned(ns));
    TimeAccount {
        thread,
        process,
        cgroup,
        comm: comm.to_owned(),
        wall_ns: sums.wall,
        user_ns: sums.user,
        system_ns: sums.system,
        runnable_ns: sums.runnable,
        storage_ns: total(is_storage),
        blocked,
        freezes: sums.freezes,
        longest_frozen_ns: sums.longest_frozen,
        idle_ns,
        idle: named(is_idle),
        unaccounted_ns: 0_i64.saturating_add_unsigned(sums.wall).saturating_sub(known_ns),
    }
}
