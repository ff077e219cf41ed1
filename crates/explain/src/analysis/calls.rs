//! Taking in one call: its split, its blame, the models.

use luc_events::codes::CommitKind;
use luc_events::tables::{Call, Sync};
use luc_events::{Cause, Pid, Transaction};

use super::{
    Analysis, CallKind, Class, ExplainedCall, ExplainedSync, Names, OwnerId, Part, Piece, SLOWEST,
    Slow, Span, Split, SyncKind, UNSEEN_NS, Waited, classify, named, needs_commit,
};
use crate::file_system::FileSystemSums;
use crate::journal::Journal;
use crate::traffic::{Shares, add_share};

impl Analysis<'_> {
    pub(super) fn explain_sync(
        &mut self,
        row: Sync,
        owner: OwnerId,
        waits: &[Piece],
        split: &mut Split,
    ) {
        let sums = self.file_systems.entry(row.dev).or_default();
        let journal = &mut sums.journal;
        let wanted = (row.wanted_enter, row.wanted_exit);
        let first = journal.ended_after(row.enter_ns);
        let own = journal.own_commit(wanted, first, row.exit_ns);
        let duration_ns = row.exit_ns.saturating_sub(row.enter_ns);
        // Without a single wait in so long a call, waits were lost: take it as one wait for the commit.
        let unseen = [Piece {
            off_ns: row.enter_ns,
            woken_ns: row.exit_ns,
            on_ns: row.exit_ns,
            cause: Cause::CommitWait,
            waker: Pid(0),
        }];
        let is_unseen = waits.is_empty() && duration_ns >= UNSEEN_NS && own.is_some();
        let span = Span {
            enter_ns: row.enter_ns,
            exit_ns: row.exit_ns,
            thread: row.thread,
            waits: if is_unseen { &unseen } else { waits },
            own,
            first,
        };
        split.fill(&span, journal.history());
        let parts = split.parts;
        self.syncs_without_waits += u64::from(is_unseen);
        if needs_commit(row.kind) {
            compare(sums, &row, (first, own), split);
        }
        sums.syncs.parts.add_all(&parts);
        if let own_ns @ 1.. = parts.own_commit() + parts.get(Part::FastCommit) {
            sums.syncs.own_commit.record(own_ns);
        }
        let gap_ns = parts.sum().abs_diff(duration_ns);
        sums.syncs.closed += u64::from(!is_unseen && gap_ns <= duration_ns / 100);

        let journal = &sums.journal;
        let names = Names {
            journal,
            threads: &self.threads,
            owners: &mut self.owners,
        };
        self.holders.add(row.dev, owner, split, names);
        let is_observed = self.observer.is_some();
        let mut culprits = Shares::new();
        for &(index, waited_ns) in &split.commits {
            let Some(commit) = journal.history().get(index) else {
                continue;
            };
            let wait = Waited {
                dev: row.dev,
                victim: owner,
                transaction: commit.row.transaction,
                waited_ns,
                duration_ns: commit.duration_ns(),
            };
            self.ledger.add(&wait, &commit.bytes, &commit.data);
            if is_observed {
                share_out(&mut culprits, &commit.bytes, waited_ns);
            }
        }
        let data_ns = parts.get(Part::DataWriteback) + parts.get(Part::Device);
        if data_ns > 0 {
            let mut data = std::mem::take(&mut self.written_meanwhile);
            let (enter_ns, exit_ns) = (row.enter_ns, row.exit_ns);
            (self.traffic).fill_between(&mut data, row.dev, enter_ns, exit_ns);
            let wait = Waited {
                dev: row.dev,
                victim: owner,
                transaction: Transaction::default(),
                waited_ns: data_ns,
                duration_ns,
            };
            self.ledger.add(&wait, &data, &data);
            if is_observed {
                share_out(&mut culprits, &data, data_ns);
            }
            self.written_meanwhile = data;
        }

        let by_owner = self.by_owner.entry(owner).or_default();
        by_owner.syncs += 1;
        by_owner.sync_ns = by_owner.sync_ns.saturating_add(duration_ns);
        by_owner.sync_parts.add_all(&parts);
        if let Some(observer) = &mut self.observer {
            let waited = transactions(journal, split);
            culprits.sort_by_key(|&(_, ns)| std::cmp::Reverse(ns));
            let culprits = named(&culprits, &self.owners);
            observer.sync(&ExplainedSync {
                row: &row,
                parts: &parts,
                pieces: &split.pieces,
                own: own
                    .and_then(|own| journal.history().get(own))
                    .map(|own| &own.row),
                waited: &waited,
                culprits: &culprits,
            });
        }
        if self.slowest.len() < SLOWEST || duration_ns > self.slowest[0].length_ns() {
            let commits = transactions(journal, split);
            self.note_slow(Slow {
                row,
                owner,
                parts,
                commits,
            });
        }
    }

    /// Keeps the longest fsyncs, the shortest of them first once there are enough.
    fn note_slow(&mut self, slow: Slow) {
        if self.slowest.len() < SLOWEST {
            self.slowest.push(slow);
        } else {
            self.slowest[0] = slow;
        }
        let shortest = (0..self.slowest.len()).min_by_key(|&index| self.slowest[index].length_ns());
        self.slowest.swap(0, shortest.unwrap_or(0));
    }

    pub(super) fn explain_call(
        &mut self,
        row: &Call,
        owner: OwnerId,
        waits: &[Piece],
        split: &mut Split,
    ) {
        let sums = self.file_systems.entry(row.dev).or_default();
        let journal = &mut sums.journal;
        let first = journal.ended_after(row.enter_ns);
        // A call that waits for a commit by itself (dirsync, O_SYNC) has its own changes in the last one.
        let own = waits
            .iter()
            .any(|wait| wait.cause == Cause::CommitWait)
            .then(|| journal.own_commit(Default::default(), first, row.exit_ns))
            .flatten();
        let span = Span {
            enter_ns: row.enter_ns,
            exit_ns: row.exit_ns,
            thread: row.thread,
            waits,
            own,
            first,
        };
        split.fill(&span, journal.history());
        let parts = &split.parts;
        let (delay_ns, lock_up_ns) = (parts.get(Part::WriteDelay), parts.get(Part::LockUp));
        let duration_ns = row.exit_ns.saturating_sub(row.enter_ns);
        if row.kind == CallKind::Write
            && let Some(commit) = journal.get_mut(first)
        {
            let (class, predicted_ns) = classify(row.enter_ns, row.exit_ns, Some(&commit.row));
            let early = class != Class::X && row.exit_ns < commit.row.end_ns;
            commit.blocked_writes += u32::from(class != Class::X);
            sums.write_model
                .add(class, predicted_ns, delay_ns + lock_up_ns, early);
        } else if row.kind == CallKind::Write {
            sums.write_model
                .add(Class::X, 0, delay_ns + lock_up_ns, false);
        }
        let calls = sums.calls.entry(row.kind).or_default();
        calls.latency.record(duration_ns);
        calls.errors += u64::from(row.errno != 0);
        calls.bytes = calls.bytes.saturating_add(row.bytes);
        calls.parts.add_all(parts);
        calls.delayed += u64::from(delay_ns > 0);
        calls.locked_up += u64::from(lock_up_ns > 0);

        let journal = &sums.journal;
        let names = Names {
            journal,
            threads: &self.threads,
            owners: &mut self.owners,
        };
        self.holders.add(row.dev, owner, split, names);
        for &(index, waited_ns) in &split.commits {
            let Some(commit) = journal.history().get(index) else {
                continue;
            };
            let wait = Waited {
                dev: row.dev,
                victim: owner,
                transaction: commit.row.transaction,
                waited_ns,
                duration_ns: commit.duration_ns(),
            };
            self.ledger.add(&wait, &commit.bytes, &commit.data);
        }
        let by_owner = self.by_owner.entry(owner).or_default();
        by_owner.calls += 1;
        by_owner.call_ns = by_owner.call_ns.saturating_add(duration_ns);
        by_owner.call_parts.add_all(parts);
        if let Some(observer) = &mut self.observer {
            let waited = transactions(journal, split);
            observer.call(&ExplainedCall {
                row,
                parts,
                pieces: &split.pieces,
                waited: &waited,
            });
        }
    }
}

/// Counts what the models say of one fsync.
fn compare(
    sums: &mut FileSystemSums,
    row: &Sync,
    (first, own): (usize, Option<usize>),
    split: &Split,
) {
    let parts = &split.parts;
    let waited_for_own =
        own.is_some_and(|own| split.commits.iter().any(|&(index, _)| index == own));
    sums.fsync_model.waited(split.commits.len());
    if waited_for_own {
        if let Some(commit) = own.and_then(|own| sums.journal.get_mut(own)) {
            commit.served += 1;
        }
    } else if parts.get(Part::FastCommit) == 0 {
        sums.syncs.without_commit += 1;
    }
    let after_ns = parts.get(Part::Flush);
    let own_row = own
        .and_then(|own| sums.journal.history().get(own))
        .map(|own| &own.row);
    let ours_ns = match own_row {
        Some(own) if waited_for_own && own.kind == CommitKind::Full => {
            own.end_ns.saturating_sub(row.enter_ns) + after_ns
        }
        _ => {
            let parts = [
                Part::DataWriteback,
                Part::Predecessor,
                Part::FastCommit,
                Part::UnknownCommit,
            ];
            parts.iter().map(|&part| split.parts.get(part)).sum::<u64>() + after_ns
        }
    };
    let next = (sums.journal.first_begun_after(first, row.enter_ns)).map(|commit| &commit.row);
    sums.fsync_model
        .compare(row.enter_ns, row.exit_ns, next, ours_ns);
    if matches!(
        row.kind,
        SyncKind::Fsync | SyncKind::Fdatasync | SyncKind::SyncWrite
    ) {
        let overhead_ns = parts.get(Part::Start) + parts.get(Part::Done) + parts.get(Part::Flush);
        sums.callers
            .sync(parts.get(Part::DataWriteback), overhead_ns);
    }
}

/// The transactions that a call waited for, and how long.
fn transactions(journal: &Journal, split: &Split) -> Vec<(Transaction, u64)> {
    split
        .commits
        .iter()
        .filter_map(|&(index, ns)| Some((journal.history().get(index)?.row.transaction, ns)))
        .collect()
}

/// Gives each owner its share of a wait, by bytes.
fn share_out(culprits: &mut Shares, bytes: &[(OwnerId, u64)], waited_ns: u64) {
    let total: u128 = bytes.iter().map(|&(_, bytes)| u128::from(bytes)).sum();
    for &(owner, bytes) in bytes {
        let share = u128::from(waited_ns) * u128::from(bytes) / total.max(1);
        add_share(culprits, owner, share as u64);
    }
}
