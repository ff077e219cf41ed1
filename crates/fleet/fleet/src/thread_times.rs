//! Sums of what a host's threads did with their time.

use std::collections::{BTreeMap, HashMap};

use luc_events::WaitCause;

use crate::read_hosts::RecordedHost;
use crate::wait_causes;

/// Class of waits in the page's bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WaitClass {
    Storage,
    Lock,
    Input,
    Timer,
    Other,
}

impl WaitClass {
    /// All classes, each with its name.
    pub(crate) const NAMES: [(Self, &str); 5] = [
        (Self::Storage, "storage, journal, memory"),
        (Self::Lock, "locks"),
        (Self::Input, "input: messages, files"),
        (Self::Timer, "a time to pass"),
        (Self::Other, "other"),
    ];

    fn of(cause: WaitCause) -> Self {
        match cause {
            WaitCause::CommitWait
            | WaitCause::ShadowBuffer
            | WaitCause::TransactionLocked
            | WaitCause::Checkpoint
            | WaitCause::FastCommit
            | WaitCause::Updates
            | WaitCause::DataWriteback
            | WaitCause::Device
            | WaitCause::Flush
            | WaitCause::DirtyThrottle
            | WaitCause::PageFault
            | WaitCause::FileServer
            | WaitCause::MemoryLimit
            | WaitCause::HeldBack => Self::Storage,
            WaitCause::InodeLock
            | WaitCause::DirectoryLock
            | WaitCause::KernelLock
            | WaitCause::Futex
            | WaitCause::Flock => Self::Lock,
            WaitCause::Poll | WaitCause::PipeSocket | WaitCause::FullPipe | WaitCause::AsyncIo => {
                Self::Input
            }
            WaitCause::Sleep => Self::Timer,
            WaitCause::Other
            | WaitCause::Preempted
            | WaitCause::Frozen
            | WaitCause::Stopped
            | WaitCause::Throttled => Self::Other,
        }
    }
}

/// Time of a host's threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ThreadTimes {
    /// Time on processors in user mode.
    pub(crate) user_ns: u64,
    /// Time on processors in kernel mode.
    pub(crate) system_ns: u64,
    /// Time that threads could run but waited for a processor.
    pub(crate) runnable_ns: u64,
    /// Time of waits by their class.
    waits_ns: BTreeMap<WaitClass, u64>,
}

impl ThreadTimes {
    /// Sums rows that are in order of time.
    pub(crate) fn new(recorded: &RecordedHost) -> Self {
        let mut times = Self::default();
        let begin_ns = recorded.trace.start_ns;
        // Processor time of each thread at its first and last row.
        let mut used: HashMap<(u32, u64), [(u64, u64); 2]> = HashMap::new();
        for row in &recorded.tasks {
            let now = (row.user_ns, row.system_ns);
            let is_new = row.start_ns >= begin_ns && row.start_ns > 0;
            let first = if is_new { (0, 0) } else { now };
            used.entry((row.thread.0, row.start_ns)).or_insert([first, now])[1] = now;
        }
        for [first, last] in used.values() {
            add(&mut times.user_ns, last.0.saturating_sub(first.0));
            add(&mut times.system_ns, last.1.saturating_sub(first.1));
        }
        let causes_at_begin: HashMap<(u32, u64), WaitCause> =
            wait_causes::causes_at_begin(recorded).collect();
        for row in &recorded.waits {
            let seen = causes_at_begin.get(&(row.thread.0, row.off_ns));
            let cause = seen.copied().unwrap_or(row.cause);
            let woken_ns = match cause {
                WaitCause::Preempted => row.off_ns,
                _ if row.woken_ns > 0 => row.woken_ns,
                _ => row.on_ns,
            };
            let woken_ns = woken_ns.max(begin_ns);
            times.add_wait(cause, woken_ns.saturating_sub(row.off_ns.max(begin_ns)));
            add(&mut times.runnable_ns, row.on_ns.saturating_sub(woken_ns));
        }
        for row in &recorded.brief_waits {
            times.add_wait(row.cause, row.blocked_ns);
            add(&mut times.runnable_ns, row.runnable_ns);
        }
        times
    }

    fn add_wait(&mut self, cause: WaitCause, ns: u64) {
        if ns > 0 {
            add(self.waits_ns.entry(WaitClass::of(cause)).or_default(), ns);
        }
    }

    /// Time that threads waited for causes of a class.
    pub(crate) fn waits_for_ns(&self, class: WaitClass) -> u64 {
        self.waits_ns.get(&class).copied().unwrap_or(0)
    }
}

/// Adds without overflow: damaged rows have times of any length.
fn add(sum_ns: &mut u64, ns: u64) {
    *sum_ns = sum_ns.saturating_add(ns);
}

#[cfg(test)]
mod tests {
    use luc_events::Pid;
    use luc_events::tables::{AsleepThread, BriefWait, OffCpuWait, ThreadInfo, TraceDescription};

    use super::*;

    #[test]
    fn times_are_those_of_the_trace() {
        let task = |thread, start_ns, at_ns, user_ns, system_ns| ThreadInfo {
            thread: Pid(thread),
            start_ns,
            at_ns,
            user_ns,
            system_ns,
            ..ThreadInfo::default()
        };
        let wait = |cause, off_ns, woken_ns, on_ns| OffCpuWait {
            cause,
            off_ns,
            woken_ns,
            on_ns,
            ..OffCpuWait::default()
        };
        let times = ThreadTimes::new(&RecordedHost {
            trace: TraceDescription { start_ns: 100, ..TraceDescription::default() },
            tasks: vec![
                task(1, 5, 100, 1_000, 500),
                task(2, 150, 151, 1, 2),
                task(1, 5, 300, 1_070, 520),
                task(2, 150, 300, 30, 7),
            ],
            waits: vec![
                wait(WaitCause::Futex, 40, 130, 135),
                wait(WaitCause::Preempted, 90, 0, 102),
                OffCpuWait { thread: Pid(3), ..wait(WaitCause::Other, 101, 0, 108) },
                wait(WaitCause::Preempted, 140, 0, 150),
                wait(WaitCause::Device, 200, 0, 220),
            ],
            asleep: vec![AsleepThread {
                thread: Pid(3),
                at_ns: 101,
                cause: WaitCause::Futex,
                ..AsleepThread::default()
            }],
            brief_waits: vec![BriefWait {
                cause: WaitCause::Device,
                blocked_ns: 4,
                runnable_ns: 3,
                ..BriefWait::default()
            }],
            ..RecordedHost::default()
        });
        assert_eq!((times.user_ns, times.system_ns), (100, 27));
        assert_eq!(times.runnable_ns, 5 + 2 + 10 + 3);
        // One of them was seen in its system call when the trace began.
        assert_eq!(times.waits_for_ns(WaitClass::Lock), 30 + 7);
        assert_eq!(times.waits_for_ns(WaitClass::Other), 0);
        assert_eq!(times.waits_for_ns(WaitClass::Storage), 24);
    }
}
