//! The analysis of one call: its split, the models, the ledgers.

use luc_events::event_kinds::{CommitKind, FileCallKind};
use luc_events::tables::{FileCall, FsyncCall};
use luc_events::{Pid, WaitCause};

use super::loss_ledgers::transactions;
use super::trace_totals::named;
use super::{Analysis, needs_commit};
use crate::analysis_observer::{ExplainedCall, ExplainedSync};
use crate::call_split::{CallCommits, CallSpan, CallSplit, SplitWait};
use crate::call_time_parts::CallTimePart;
use crate::file_system_sums::FileSystemSums;
use crate::holder_losses::HolderNames;
use crate::journal_history::JournalHistory;
use crate::late_callers::SyncCommits;
use crate::owner_traffic::OwnerBytes;
use crate::owners::OwnerId;
use crate::sync_ways::SyncWay;
use crate::thesis_models::{WriteClassId, classify};

/// Minimum length of a call that must have waited. Without a recorded wait it counts as blocked all the time.
const UNSEEN_NS: u64 = 1_000_000_000;

impl Analysis<'_> {
    /// Analyses an fsync whose waits are in `self.waits`.
    pub(super) fn explain_sync(&mut self, row: FsyncCall, owner: OwnerId) {
        let (totals, split) = (&mut self.totals, &mut self.split);
        let sums = totals.file_systems.entry(row.dev).or_default();
        let first = sums.journal.ended_after(row.enter_ns);
        let wanted = (row.wanted_enter, row.wanted_exit);
        let own = sums.journal.own_commit(wanted, first, row.exit_ns);
        let commits = CallCommits { first, own };
        let is_unseen = split_sync(split, &row, &self.waits, commits, &sums.journal);
        if needs_commit(row.kind) {
            compare(sums, &row, commits, split);
        }
        if SyncWay::of(row.kind, totals.threads.thread_comm(row.thread)) == SyncWay::Call {
            let parts = &split.parts;
            let overhead_ns = parts.get(CallTimePart::Start)
                + parts.get(CallTimePart::Done)
                + parts.get(CallTimePart::Flush);
            sums.callers.sync(parts.get(CallTimePart::DataWriteback), overhead_ns);
        }
        let parts = split.parts;
        let duration_ns = row.exit_ns.saturating_sub(row.enter_ns);
        let gap_ns = parts.sum().abs_diff(duration_ns);
        let is_closed = !is_unseen && gap_ns <= duration_ns / 100;
        sums.syncs.add_parts(&parts, is_closed);

        let journal = &sums.journal;
        let names = HolderNames { journal, threads: &totals.threads, owners: &mut totals.owners };
        let mut culprits = self.observer.is_some().then(OwnerBytes::new);
        let ledgers = &mut totals.ledgers;
        ledgers.syncs_without_waits += u64::from(is_unseen);
        ledgers.add_call(row.dev, owner, split, names, culprits.as_mut());
        ledgers.add_data_wait(&row, owner, &parts, &totals.traffic, culprits.as_mut());
        let by_owner = ledgers.by_owner.entry(owner).or_default();
        by_owner.syncs.add(duration_ns, &parts);
        if let Some(observer) = &mut self.observer {
            let mut culprits = culprits.unwrap_or_default();
            culprits.sort_by_key(|&(_, ns)| std::cmp::Reverse(ns));
            observer.sync(&ExplainedSync {
                row: &row,
                parts: &parts,
                pieces: &split.pieces,
                own: own.and_then(|own| journal.history().get(own)).map(|own| &own.row),
                waited: &transactions(journal, split),
                culprits: &named(&culprits, &totals.owners),
            });
        }
        ledgers.add_slow(row, owner, split, journal);
    }

    /// Analyses another call whose waits are in `self.waits`.
    pub(super) fn explain_call(&mut self, row: &FileCall, owner: OwnerId) {
        let (totals, split) = (&mut self.totals, &mut self.split);
        let sums = totals.file_systems.entry(row.dev).or_default();
        let journal = &mut sums.journal;
        let first = journal.ended_after(row.enter_ns);
        // A call that waits for a commit by itself (dirsync, O_SYNC) has its own changes in the last one.
        let own = self
            .waits
            .iter()
            .any(|wait| wait.cause == WaitCause::CommitWait)
            .then(|| journal.own_commit(Default::default(), first, row.exit_ns))
            .flatten();
        let span = CallSpan {
            enter_ns: row.enter_ns,
            exit_ns: row.exit_ns,
            thread: row.thread,
            waits: &self.waits,
            commits: CallCommits { first, own },
        };
        split.fill(&span, journal.history());
        let parts = &split.parts;
        if row.kind == FileCallKind::Write {
            let delayed_ns = parts.get(CallTimePart::WriteDelay) + parts.get(CallTimePart::LockUp);
            compare_write(sums, row, first, delayed_ns);
        }
        sums.calls.entry(row.kind).or_default().add(row, parts);

        let journal = &sums.journal;
        let names = HolderNames { journal, threads: &totals.threads, owners: &mut totals.owners };
        let ledgers = &mut totals.ledgers;
        ledgers.add_call(row.dev, owner, split, names, None);
        let duration_ns = row.exit_ns.saturating_sub(row.enter_ns);
        let by_owner = ledgers.by_owner.entry(owner).or_default();
        by_owner.calls.add(duration_ns, parts);
        if let Some(observer) = &mut self.observer {
            observer.call(&ExplainedCall {
                row,
                parts,
                pieces: &split.pieces,
                waited: &transactions(journal, split),
            });
        }
    }
}

/// Splits an fsync over its commits. A call of [`UNSEEN_NS`] or more must have waited: if the trace has no wait of
/// it, its waits were lost. It then counts as one wait for the commit. Returns whether that is so.
fn split_sync(
    split: &mut CallSplit,
    row: &FsyncCall,
    waits: &[SplitWait],
    commits: CallCommits,
    journal: &JournalHistory,
) -> bool {
    let unseen = [SplitWait {
        off_ns: row.enter_ns,
        woken_ns: row.exit_ns,
        on_ns: row.exit_ns,
        cause: WaitCause::CommitWait,
        waker: Pid(0),
    }];
    let duration_ns = row.exit_ns.saturating_sub(row.enter_ns);
    let is_unseen = waits.is_empty() && duration_ns >= UNSEEN_NS && commits.own.is_some();
    let span = CallSpan {
        enter_ns: row.enter_ns,
        exit_ns: row.exit_ns,
        thread: row.thread,
        waits: if is_unseen { &unseen } else { waits },
        commits,
    };
    split.fill(&span, journal.history());
    is_unseen
}

/// Compares the models with one fsync.
fn compare(
    sums: &mut FileSystemSums,
    row: &FsyncCall,
    CallCommits { first, own }: CallCommits,
    split: &CallSplit,
) {
    let parts = &split.parts;
    let waited_for_own =
        own.is_some_and(|own| split.commits.iter().any(|&(index, _)| index == own));
    sums.fsync_model.waited(split.commits.len());
    if let Some(own) = own.filter(|_| waited_for_own) {
        let served = sums.journal.get_mut(own).map_or(0, |commit| {
            commit.served += 1;
            commit.served - 1
        });
        let place = SyncCommits { first, own, served };
        sums.spread.add(row, place, &sums.journal, split);
    } else if parts.get(CallTimePart::FastCommit) == 0 {
        sums.syncs.without_commit += 1;
    }
    let after_ns = parts.get(CallTimePart::Flush);
    let own_row = own.and_then(|own| sums.journal.history().get(own)).map(|own| &own.row);
    let ours_ns = match own_row {
        Some(own) if waited_for_own && own.kind == CommitKind::Full => {
            own.end_ns.saturating_sub(row.enter_ns) + after_ns
        }
        _ => {
            let parts = [
                CallTimePart::DataWriteback,
                CallTimePart::Predecessor,
                CallTimePart::FastCommit,
                CallTimePart::UnknownCommit,
            ];
            parts.iter().map(|&part| split.parts.get(part)).sum::<u64>() + after_ns
        }
    };
    let next = (sums.journal.first_begun_after(first, row.enter_ns)).map(|commit| &commit.row);
    sums.fsync_model.compare(row.enter_ns, row.exit_ns, next, ours_ns);
}

/// Compares the model of writes with one write, which was delayed for `delayed_ns`. `first` is the first commit that
/// ended after the write began.
fn compare_write(sums: &mut FileSystemSums, row: &FileCall, first: usize, delayed_ns: u64) {
    let Some(commit) = sums.journal.get_mut(first) else {
        sums.write_model.add(WriteClassId::X, 0, delayed_ns, false);
        return;
    };
    let (class, predicted_ns) = classify(row.enter_ns, row.exit_ns, Some(&commit.row));
    let early = class != WriteClassId::X && row.exit_ns < commit.row.end_ns;
    commit.blocked_writes += u32::from(class != WriteClassId::X);
    sums.write_model.add(class, predicted_ns, delayed_ns, early);
}
