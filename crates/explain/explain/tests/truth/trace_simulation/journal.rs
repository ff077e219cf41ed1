//! The model's journal: callers come, a commit begins and ends, callers return.

use std::collections::BTreeMap;

use luc_events::event_kinds::{CommitKind, SyncKind};
use luc_events::tables::{FsyncCall, JournalCommit, JournalHandle};
use luc_events::{Cgroup, Inode, Pid, Tgid, Transaction, WaitCause};

use super::{Actor, CALL_CPU_NS, INTERVAL_NS, RUN_QUEUE_NS, TraceSimulation, Waiter, bytes_in};

/// Time from a commit's end until its callers are woken.
const WAKE_NS: u64 = 5_000;
/// Time from a request for a commit until it begins.
const START_NS: u64 = 30_000;

impl TraceSimulation {
    pub(super) fn arrive(&mut self, thread: usize, enter_ns: u64, data_ns: u64, now_ns: u64) {
        let waiter = Waiter {
            thread,
            transaction: self.running,
            enter_ns,
            data_ns,
            off_ns: now_ns,
            busy_until_ns: self.committing.as_ref().map_or(0, |commit| commit.end_ns),
        };
        if self.setting.gate > 0 {
            self.gathered.push(waiter);
            if self.gathered.len() >= self.setting.gate && self.committing.is_none() {
                self.release(now_ns);
            }
            return;
        }
        self.waiters.push(waiter);
        self.request(now_ns);
    }

    /// Opens the gate: all callers call fsync now.
    fn release(&mut self, now_ns: u64) {
        for waiter in std::mem::take(&mut self.gathered) {
            // In the gate the thread waits for a futex, before its own fsync.
            self.wait(waiter.thread, waiter.off_ns, now_ns, WaitCause::Futex);
            self.waiters.push(Waiter {
                transaction: self.running,
                enter_ns: now_ns + RUN_QUEUE_NS,
                off_ns: now_ns + RUN_QUEUE_NS + CALL_CPU_NS,
                data_ns: 0,
                busy_until_ns: 0,
                ..waiter
            });
        }
        self.request(now_ns + RUN_QUEUE_NS + CALL_CPU_NS);
    }

    fn request(&mut self, now_ns: u64) {
        if self.committing.is_none() && !self.begins {
            self.begins = true;
            self.later(now_ns + START_NS, Actor::CommitBegins);
        }
    }

    pub(super) fn begin_commit(&mut self, now_ns: u64) {
        let setting = self.setting;
        let bytes: u64 = self.burst.as_ref().map_or(0, |burst| {
            let to_ns = now_ns + setting.logging_ns;
            (now_ns / INTERVAL_NS..=to_ns / INTERVAL_NS)
                .map(|interval| bytes_in(burst, interval))
                .sum()
        });
        let asker = self.waiters.iter().find(|waiter| waiter.transaction == self.running);
        let asker = asker.map(|waiter| (waiter.off_ns, self.threads[waiter.thread].clone()));
        let (asked_ns, asked_by, process) =
            asker.map_or((0, 0, 0), |(at_ns, thread)| (at_ns, thread.pid, thread.process));
        let flushing_ns = now_ns + setting.locking_ns;
        let logging_ns = flushing_ns + setting.flushing_ns;
        let end_ns = logging_ns + setting.logging_ns + (bytes as f64 * setting.ns_per_byte) as u64;
        let full = |at_ns: u64| if setting.fast { 0 } else { at_ns };
        self.committing = Some(JournalCommit {
            dev: setting.dev,
            transaction: Transaction(self.running),
            asked_ns,
            asked_by: Pid(asked_by),
            asked_by_process: Tgid(process),
            start_ns: now_ns,
            locking_ns: full(now_ns),
            flushing_ns: full(flushing_ns),
            logging_ns: full(logging_ns),
            end_ns,
            kind: if setting.fast { CommitKind::Fast } else { CommitKind::Full },
            handles: 3,
            blocks: 10,
            blocks_logged: 8,
            dropped: 0,
        });
        self.begins = false;
        self.running += 1;
        self.later(end_ns, Actor::CommitEnds);
    }

    pub(super) fn end_commit(&mut self, now_ns: u64) {
        let Some(commit) = self.committing.take() else {
            return;
        };
        let (served, left): (Vec<Waiter>, Vec<Waiter>) = std::mem::take(&mut self.waiters)
            .into_iter()
            .partition(|waiter| waiter.transaction == commit.transaction.0);
        self.waiters = left;
        let mut handles: BTreeMap<(u32, u32, u64), u32> = BTreeMap::new();
        for waiter in served {
            let thread = &self.threads[waiter.thread];
            *handles.entry((thread.pid, thread.process, thread.cgroup)).or_default() += 3;
            self.return_from_fsync(&waiter, &commit);
        }
        for ((pid, process, cgroup), dirtied) in handles {
            self.events.push(
                JournalHandle {
                    at_ns: commit.start_ns,
                    dev: commit.dev,
                    transaction: commit.transaction,
                    thread: Pid(pid),
                    process: Tgid(process),
                    cgroup: Cgroup(cgroup),
                    count: 3,
                    dirtied,
                    total_ns: 10_000,
                    ..JournalHandle::default()
                }
                .into(),
            );
        }
        self.events.push(commit.into());
        if self.setting.gate > 0 && self.gathered.len() >= self.setting.gate {
            self.release(now_ns);
        } else if !self.waiters.is_empty() {
            self.request(now_ns);
        }
    }

    fn return_from_fsync(&mut self, waiter: &Waiter, commit: &JournalCommit) {
        let cause = if self.setting.fast { WaitCause::FastCommit } else { WaitCause::CommitWait };
        let on_ns = self.wait(waiter.thread, waiter.off_ns, commit.end_ns + WAKE_NS, cause);
        let exit_ns = on_ns + CALL_CPU_NS;
        let thread = &self.threads[waiter.thread];
        self.events.push(
            FsyncCall {
                thread: Pid(thread.pid),
                process: Tgid(thread.process),
                cgroup: Cgroup(thread.cgroup),
                dev: self.setting.dev,
                inode: Inode(u64::from(thread.pid)),
                kind: SyncKind::Fsync,
                enter_ns: waiter.enter_ns,
                exit_ns,
                wanted_enter: Transaction(waiter.transaction),
                wanted_exit: Transaction(waiter.transaction),
                ..FsyncCall::default()
            }
            .into(),
        );
        self.later(exit_ns, Actor::Thread(waiter.thread));
        if exit_ns <= self.end_ns {
            self.note_truth(waiter, commit, exit_ns);
        }
    }

    fn note_truth(&mut self, waiter: &Waiter, commit: &JournalCommit, exit_ns: u64) {
        let truth = &mut self.truth;
        let predecessor_ns = waiter.busy_until_ns.saturating_sub(waiter.off_ns);
        let own_ns = commit.end_ns - commit.start_ns.max(waiter.off_ns);
        truth.syncs += 1;
        truth.total_ns += exit_ns - waiter.enter_ns;
        truth.data_ns += waiter.data_ns;
        truth.predecessor_ns += predecessor_ns;
        let start_ns = commit.start_ns.saturating_sub(waiter.off_ns.max(waiter.busy_until_ns));
        truth.start_ns += start_ns;
        truth.own_ns += own_ns;
        // A fast commit's part begins with its request and ends with the caller's wake-up.
        if self.setting.fast {
            truth.fast_ns += start_ns + own_ns + WAKE_NS;
        }
        truth.commits_waited += 1 + u64::from(predecessor_ns > 0);
    }
}
