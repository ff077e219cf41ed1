//! Commits, what each was made of, and their sums.

use luc_events::event_kinds::CommitKind;
use luc_events::tables::JournalCommit;

use crate::fast_hash::FastMap;
use crate::latency_histogram::LatencyHistogram;
use crate::line_fit::LineFit;
use crate::owner_traffic::OwnerBytes;
use crate::owners::OwnerId;
use crate::saturating_grow::SaturatingGrow as _;

/// A commit, and what it was made of.
#[derive(Clone, Debug)]
pub(crate) struct CommitContent {
    pub(crate) row: JournalCommit,
    /// Metadata and data bytes by owner.
    pub(crate) bytes: OwnerBytes,
    /// The data among these bytes.
    pub(crate) data: OwnerBytes,
    /// Its handles by owner.
    pub(crate) handles: Vec<(OwnerId, OwnerHandles)>,
    /// fsyncs that waited for it as their own.
    pub(crate) served: u32,
    /// Writes that Algorithm 4.2 takes as blocked by it.
    pub(crate) blocked_writes: u32,
}

impl CommitContent {
    pub(crate) fn duration_ns(&self) -> u64 {
        self.row.end_ns.saturating_sub(self.row.start_ns)
    }

    /// Returns the owner of the handle that was open longest. Callers that find the transaction locked wait for it.
    pub(crate) fn longest_open(&self) -> Option<OwnerId> {
        let longest = self.handles.iter().max_by_key(|(_, sum)| sum.longest_ns);
        longest.map(|&(owner, _)| owner)
    }
}

/// An owner's handles in a transaction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnerHandles {
    pub(crate) count: u64,
    pub(crate) dirtied: u64,
    pub(crate) open_ns: u64,
    /// Time that the longest of them was open. A row has the sum of a thread's handles; their mean is taken.
    pub(crate) longest_ns: u64,
}

impl OwnerHandles {
    pub(super) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.dirtied += other.dirtied;
        self.open_ns.grow(other.open_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// Sums over a journal's commits.
#[derive(Debug, Default)]
pub(crate) struct CommitSums {
    pub(crate) full: LatencyHistogram,
    pub(crate) fast: LatencyHistogram,
    pub(crate) locking_ns: u64,
    pub(crate) flushing_ns: u64,
    pub(crate) logging_ns: u64,
    pub(crate) asked: u64,
    pub(crate) handles: u64,
    pub(crate) blocks_logged: u64,
    /// Commits that served an fsync, those fsyncs, and the writes they blocked.
    pub(crate) serving: u64,
    pub(crate) served: u64,
    pub(crate) blocked_writes: u64,
    /// Duration by data bytes, and by fsyncs served.
    pub(crate) by_bytes: LineFit,
    pub(crate) by_served: LineFit,
    pub(crate) asked_by: FastMap<OwnerId, u64>,
    pub(crate) handles_by: FastMap<OwnerId, OwnerHandles>,
    pub(crate) data_by: FastMap<OwnerId, u64>,
}

impl CommitSums {
    /// Counts the calls that a commit served, which are known later than the commit.
    pub(super) fn add_served(&mut self, commit: &CommitContent) {
        if commit.served > 0 {
            self.serving += 1;
            self.served += u64::from(commit.served);
            if commit.row.kind == CommitKind::Full {
                self.by_served.add(f64::from(commit.served), commit.duration_ns() as f64);
            }
        }
        self.blocked_writes += u64::from(commit.blocked_writes);
    }
}
