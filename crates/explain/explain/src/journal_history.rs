//! A journal's recent commits and their content.

use std::collections::VecDeque;

use luc_events::event_kinds::CommitKind;
use luc_events::tables::{JournalCommit, JournalHandle};
use luc_events::{Dev, Transaction};

use crate::fast_hash::FastMap;
use crate::owner_traffic::{OwnerTraffic, add_share};
use crate::owners::{OwnerId, Owners};
use crate::saturating_grow::SaturatingGrow as _;

mod commits;

pub(crate) use commits::{CommitContent, CommitSums, OwnerHandles};

/// Minimum number of remembered commits. A longer call is split without the earliest of its commits.
const MIN_HISTORY_COMMITS: usize = 1_024;
/// Minimum time for which commits are remembered: on a fast disk 1,024 commits take milliseconds.
const MIN_HISTORY_NS: u64 = 1_000_000_000;
/// Maximum number of remembered commits.
const MAX_HISTORY_COMMITS: usize = 1 << 16;
/// Maximum number of transactions whose handles are kept until their commit is taken in. Handles of fast commits stay
/// longer, because no full commit takes them.
const MAX_PENDING_TRANSACTIONS: u32 = 1_024;
/// Time after which written data has left the disk's cache by itself.
const MAX_CACHED_NS: u64 = 5_000_000_000;
/// Maximum time by which a commit's end is noted after its callers went on.
const MAX_END_DELAY_NS: u64 = 1_000_000;
/// Maximum number of commits that are reported in full: the longest.
const MAX_REPORTED_COMMITS: usize = 20;
/// Metadata block size when the file system's is not known.
const DEFAULT_BLOCK_BYTES: u64 = 4_096;

/// The journal of a file system.
#[derive(Debug, Default)]
pub(crate) struct JournalHistory {
    history: VecDeque<CommitContent>,
    unsettled: VecDeque<JournalCommit>,
    handles: FastMap<u32, Vec<(OwnerId, OwnerHandles)>>,
    longest: Vec<CommitContent>,
    last_end_ns: u64,
    /// Last result of [`JournalHistory::ended_after`].
    found: usize,
    /// Commits that no call waits for any more, if somebody wants them.
    pub(crate) over: Option<Vec<CommitContent>>,
    pub(crate) block_bytes: u64,
    pub(crate) sums: CommitSums,
}

impl JournalHistory {
    pub(crate) fn add_handle(&mut self, row: &JournalHandle, owner: OwnerId) {
        let sum = OwnerHandles {
            count: u64::from(row.count),
            dirtied: u64::from(row.dirtied),
            open_ns: row.total_ns,
            longest_ns: row.total_ns / u64::from(row.count.max(1)),
        };
        if self.handles.len() > MAX_PENDING_TRANSACTIONS as usize {
            let oldest = Transaction(row.transaction.0.wrapping_sub(MAX_PENDING_TRANSACTIONS / 2));
            self.handles.retain(|&tid, _| !Transaction(tid).is_before(oldest));
        }
        let owners = self.handles.entry(row.transaction.0).or_default();
        match owners.iter_mut().find(|(found, _)| *found == owner) {
            Some((_, found)) => found.add(sum),
            None => owners.push((owner, sum)),
        }
        let of_owner = self.sums.handles_by.entry(owner).or_default();
        of_owner.add(sum);
    }

    pub(crate) fn add_commit(&mut self, row: JournalCommit) {
        self.unsettled.push_back(row);
    }

    /// Takes in the commits that ended by `until_ns`, so that all their bytes and handles are known. Calls `show` for
    /// each.
    pub(crate) fn settle(
        &mut self,
        until_ns: u64,
        traffic: &OwnerTraffic,
        owners: &mut Owners,
        mut show: impl FnMut(&CommitContent, &Owners),
    ) {
        while self.unsettled.front().is_some_and(|row| row.end_ns <= until_ns) {
            let Some(row) = self.unsettled.pop_front() else {
                break;
            };
            self.take_in(row, traffic, owners);
            if let Some(commit) = self.history.back() {
                show(commit, owners);
            }
        }
    }

    fn take_in(&mut self, row: JournalCommit, traffic: &OwnerTraffic, owners: &mut Owners) {
        let from_ns =
            self.last_end_ns.min(row.start_ns).max(row.start_ns.saturating_sub(MAX_CACHED_NS));
        let data = traffic.between(row.dev, from_ns, row.end_ns);
        let mut bytes = data.clone();
        let block_bytes =
            if self.block_bytes == 0 { DEFAULT_BLOCK_BYTES } else { self.block_bytes };
        let mut handles = Vec::new();
        if row.kind == CommitKind::Full {
            handles = self.handles.remove(&row.transaction.0).unwrap_or_default();
        }
        for &(owner, sum) in &handles {
            add_share(&mut bytes, owner, sum.dirtied * block_bytes);
        }
        let asker = (!row.asked_by_process.is_none())
            .then(|| owners.id(row.asked_by_process, luc_events::Cgroup(0)));
        let committed = CommitContent { row, bytes, data, handles, served: 0, blocked_writes: 0 };
        self.count(&committed, asker);
        self.last_end_ns = self.last_end_ns.max(committed.row.end_ns);
        self.history.push_back(committed);
        while self.history.len() > MIN_HISTORY_COMMITS && self.may_forget_first() {
            self.forget_first();
        }
    }

    fn count(&mut self, committed: &CommitContent, asker: Option<OwnerId>) {
        let (row, sums) = (&committed.row, &mut self.sums);
        let duration_ns = committed.duration_ns();
        match row.kind {
            CommitKind::Full => sums.full.record(duration_ns),
            CommitKind::Fast => sums.fast.record(duration_ns),
        }
        if row.kind == CommitKind::Full && row.logging_ns > 0 {
            let grow = |sum: &mut u64, from_ns: u64, to_ns: u64| {
                sum.grow(to_ns.saturating_sub(from_ns));
            };
            grow(&mut sums.locking_ns, row.start_ns, row.flushing_ns);
            grow(&mut sums.flushing_ns, row.flushing_ns, row.logging_ns);
            grow(&mut sums.logging_ns, row.logging_ns, row.end_ns);
        }
        sums.asked += u64::from(row.asked_ns > 0);
        sums.handles += u64::from(row.handles);
        sums.blocks_logged += u64::from(row.blocks_logged);
        if let Some(asker) = asker {
            *sums.asked_by.entry(asker).or_default() += 1;
        }
        let mut data_bytes = 0;
        for &(owner, bytes) in &committed.data {
            *sums.data_by.entry(owner).or_default() += bytes;
            data_bytes += bytes;
        }
        if row.kind == CommitKind::Full {
            sums.by_bytes.add(data_bytes as f64, duration_ns as f64);
        }
    }

    fn may_forget_first(&self) -> bool {
        let first_end_ns = self.history.front().map_or(0, |commit| commit.row.end_ns);
        self.history.len() > MAX_HISTORY_COMMITS || first_end_ns + MIN_HISTORY_NS < self.last_end_ns
    }

    /// Counts the fsyncs and writes of the oldest commit, and drops it.
    fn forget_first(&mut self) {
        let Some(commit) = self.history.pop_front() else {
            return;
        };
        self.found = self.found.saturating_sub(1);
        self.sums.add_served(&commit);
        if self.longest.len() < MAX_REPORTED_COMMITS
            || (self.longest.last()).is_some_and(|last| last.duration_ns() < commit.duration_ns())
        {
            let longer = |known: &CommitContent| known.duration_ns() >= commit.duration_ns();
            let place = self.longest.partition_point(longer);
            self.longest.insert(place, commit.clone());
            self.longest.truncate(MAX_REPORTED_COMMITS);
        }
        if let Some(over) = &mut self.over {
            over.push(commit);
        }
    }

    /// Returns the longest commits so far, longest first.
    pub(crate) fn longest(&self) -> Vec<&CommitContent> {
        let enough_ns = match self.longest.last() {
            Some(last) if self.longest.len() >= MAX_REPORTED_COMMITS => last.duration_ns(),
            _ => 0,
        };
        let recent = self.history.iter().filter(|commit| commit.duration_ns() >= enough_ns);
        let mut longest: Vec<&CommitContent> = self.longest.iter().chain(recent).collect();
        longest
            .sort_by_key(|commit| (std::cmp::Reverse(commit.duration_ns()), commit.row.start_ns));
        longest.truncate(MAX_REPORTED_COMMITS);
        longest
    }

    /// Counts the commits that are still remembered.
    pub(crate) fn finish(&mut self) {
        while !self.history.is_empty() {
            self.forget_first();
        }
    }

    /// Returns the index of the first remembered commit that ended after `from_ns`. It is usually near the last result,
    /// so the search starts there in steps that double.
    pub(crate) fn ended_after(&mut self, from_ns: u64) -> usize {
        let history = &self.history;
        let ended = |index: usize| history[index].row.end_ns <= from_ns;
        // All before `low` have ended, and those from `high` on have not.
        let (mut low, mut high) = (self.found + 1, history.len());
        let mut step = 1;
        if self.found < high && ended(self.found) {
            while low + step < high && ended(low + step) {
                low += step + 1;
                step *= 2;
            }
            high = high.min(low + step);
        } else {
            high = high.min(self.found);
            while step <= high && !ended(high - step) {
                high -= step;
                step *= 2;
            }
            low = (high + 1).saturating_sub(step);
        }
        while low < high {
            let middle = low.midpoint(high);
            if ended(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.found = low;
        low
    }

    pub(crate) fn history(&self) -> &VecDeque<CommitContent> {
        &self.history
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut CommitContent> {
        self.history.get_mut(index)
    }

    /// Returns the commit that an fsync needed. The fsync wanted a transaction in `wanted` and ended at `exit_ns`. If
    /// the transaction is unknown, it is the last commit that ended inside the call.
    ///
    /// Others may change the file while the caller waits, which moves the file's transaction on. So the commit is the
    /// latest wanted one that ended in time. `first` is the first that ended after the call began.
    pub(crate) fn own_commit(
        &self,
        wanted: (Transaction, Transaction),
        first: usize,
        exit_ns: u64,
    ) -> Option<usize> {
        let in_time = |commit: &CommitContent| {
            commit.row.end_ns <= exit_ns + MAX_END_DELAY_NS && commit.row.start_ns <= exit_ns
        };
        let found = self.history.range(first..).enumerate().rev();
        let mut candidates = found.filter(|(_, commit)| in_time(commit));
        let index = if wanted.1.is_none() {
            candidates.next()
        } else {
            let from = if wanted.0.is_none() { wanted.1 } else { wanted.0 };
            candidates.find(|(_, commit)| {
                let tid = commit.row.transaction;
                !tid.is_before(from) && !wanted.1.is_before(tid)
            })
        };
        index.map(|(offset, _)| first + offset)
    }

    /// Returns the first full commit that began after `enter_ns`. `first` is the first that ended after it.
    pub(crate) fn first_begun_after(&self, first: usize, enter_ns: u64) -> Option<&CommitContent> {
        self.history
            .range(first..)
            .find(|commit| commit.row.kind == CommitKind::Full && commit.row.start_ns > enter_ns)
    }

    /// Returns the nanoseconds that a byte of data adds to a commit: the slope of the commits' durations by their
    /// bytes. If the bytes are large but do not vary, it comes from the largest amount written in 10 ms.
    pub(crate) fn ns_per_byte(&self, dev: Dev, traffic: &OwnerTraffic) -> f64 {
        const LARGE_BYTES: f64 = (1 << 20) as f64;
        let by_bytes = &self.sums.by_bytes;
        let peak = traffic.peak_bytes_per_s(dev);
        match by_bytes.rising_slope() {
            Some(slope) => slope,
            None if by_bytes.mean_x() >= LARGE_BYTES && peak > 0.0 => 1e9 / peak,
            None => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(commits: &[(u32, u64, u64)]) -> JournalHistory {
        let mut journal = JournalHistory::default();
        for &(transaction, start_ns, end_ns) in commits {
            journal.add_commit(JournalCommit {
                transaction: Transaction(transaction),
                start_ns,
                end_ns,
                ..JournalCommit::default()
            });
        }
        let (traffic, mut owners) = (OwnerTraffic::default(), Owners::default());
        journal.settle(u64::MAX, &traffic, &mut owners, |_, _| ());
        journal
    }

    const MS: u64 = 1_000_000;

    fn own(
        journal: &mut JournalHistory,
        wanted: (u32, u32),
        enter_ms: u64,
        exit_ms: u64,
    ) -> Option<u32> {
        let wanted = (Transaction(wanted.0), Transaction(wanted.1));
        let first = journal.ended_after(enter_ms * MS);
        let index = journal.own_commit(wanted, first, exit_ms * MS)?;
        Some(journal.history()[index].row.transaction.0)
    }

    #[test]
    fn the_own_commit_is_found_by_its_id() {
        let mut journal = journal(&[(7, 0, 10 * MS), (8, 11 * MS, 20 * MS), (9, 21 * MS, 30 * MS)]);
        assert_eq!(own(&mut journal, (8, 8), 5, 20), Some(8));
        // Delayed allocation moved it while the caller was in fsync.
        assert_eq!(own(&mut journal, (7, 8), 5, 20), Some(8));
        // Another thread moved it after the caller began to wait.
        assert_eq!(own(&mut journal, (8, 10), 5, 20), Some(8));
        // It was committed before the call.
        assert_eq!(own(&mut journal, (7, 7), 15, 20), None);
        // Not known: the last that ended inside the call.
        assert_eq!(own(&mut journal, (0, 0), 5, 22), Some(8));
    }

    #[test]
    fn the_search_finds_every_place() {
        let commits: Vec<(u32, u64, u64)> =
            (0..100).map(|n| (n, 10 * u64::from(n), 10 * u64::from(n) + 5)).collect();
        for length in [0, 1, 2, 3, 64, 100] {
            let mut journal = journal(&commits[..length]);
            // Near the place before, and anywhere.
            for at_ns in (0..1_010).chain((0..1_010).map(|n| n * 7_919 % 1_010)) {
                let truth = commits[..length].iter().filter(|commit| commit.2 <= at_ns).count();
                assert_eq!(journal.ended_after(at_ns), truth, "{length} {at_ns}");
            }
        }
    }

    #[test]
    fn ids_wrap_around() {
        let mut journal =
            journal(&[(u32::MAX, 0, 10 * MS), (0, 11 * MS, 20 * MS), (1, 21 * MS, 30 * MS)]);
        assert_eq!(own(&mut journal, (u32::MAX, 1), 5, 30), Some(1));
        assert_eq!(own(&mut journal, (u32::MAX, 1), 5, 20), Some(0));
    }
}
