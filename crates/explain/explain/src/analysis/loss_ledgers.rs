//! Ledgers of lost time, by victim, culprit and holder. Each call is entered after its split.

use luc_events::tables::FsyncCall;
use luc_events::{Dev, Transaction};

use crate::blame_ledger::{BlameLedger, CommitWait};
use crate::call_split::CallSplit;
use crate::call_time_parts::{CallTimePart, CallTimeParts};
use crate::fast_hash::FastMap;
use crate::holder_losses::{HolderLosses, HolderNames};
use crate::journal_history::JournalHistory;
use crate::owner_traffic::{OwnerBytes, OwnerTraffic, add_share};
use crate::owners::OwnerId;
use crate::saturating_grow::SaturatingGrow as _;

/// Maximum number of reported fsyncs: the longest.
const MAX_SLOWEST: usize = 50;

/// Ledgers of lost time over a whole trace.
#[derive(Debug, Default)]
pub(super) struct LossLedgers {
    /// Waits by the owner of the awaited work.
    pub(super) work: BlameLedger,
    /// Waits by the owner that held calls up.
    pub(super) holders: HolderLosses,
    pub(super) by_owner: FastMap<OwnerId, OwnerCallSums>,
    /// The longest fsyncs; the shortest of these is the first.
    pub(super) slowest: Vec<SlowestSync>,
    /// Number of calls that must have waited, by their length, and have no recorded wait.
    pub(super) syncs_without_waits: u64,
    /// Bytes written during the present call, by owner. Kept so that the list is allocated once.
    written_meanwhile: OwnerBytes,
}

/// Sums over the calls of one owner.
#[derive(Debug, Default)]
pub(super) struct OwnerCallSums {
    pub(super) syncs: CallTimeSums,
    pub(super) calls: CallTimeSums,
}

/// Calls of one sort, with their time and its parts.
#[derive(Debug, Default)]
pub(super) struct CallTimeSums {
    pub(super) count: u64,
    pub(super) ns: u64,
    pub(super) parts: CallTimeParts,
}

impl CallTimeSums {
    pub(super) fn add(&mut self, duration_ns: u64, parts: &CallTimeParts) {
        self.count += 1;
        self.ns.grow(duration_ns);
        self.parts.add_all(parts);
    }
}

/// One of the slowest fsyncs, with the parts of its time.
#[derive(Clone, Debug)]
pub(super) struct SlowestSync {
    pub(super) row: FsyncCall,
    pub(super) owner: OwnerId,
    pub(super) parts: CallTimeParts,
    pub(super) commits: Vec<(Transaction, u64)>,
}

impl SlowestSync {
    pub(super) fn duration_ns(&self) -> u64 {
        self.row.exit_ns.saturating_sub(self.row.enter_ns)
    }
}

impl LossLedgers {
    /// Enters a call of `victim`: its holders, and the owners of the work in the commits that it waited for. Adds the
    /// work's shares of the wait to `culprits`, if there are any.
    pub(super) fn add_call(
        &mut self,
        dev: Dev,
        victim: OwnerId,
        split: &CallSplit,
        names: HolderNames<'_>,
        mut culprits: Option<&mut OwnerBytes>,
    ) {
        let journal = names.journal;
        self.holders.add(dev, victim, split, names);
        for &(index, waited_ns) in &split.commits {
            let Some(commit) = journal.history().get(index) else {
                continue;
            };
            let wait = CommitWait {
                dev,
                victim,
                transaction: commit.row.transaction,
                waited_ns,
                duration_ns: commit.duration_ns(),
            };
            self.work.add(&wait, &commit.bytes, &commit.data);
            share_out(culprits.as_deref_mut(), &commit.bytes, waited_ns);
        }
    }

    /// Enters an fsync's wait for data outside of commits, by the data's owner.
    pub(super) fn add_data_wait(
        &mut self,
        row: &FsyncCall,
        victim: OwnerId,
        parts: &CallTimeParts,
        traffic: &OwnerTraffic,
        culprits: Option<&mut OwnerBytes>,
    ) {
        let waited_ns = parts.get(CallTimePart::DataWriteback) + parts.get(CallTimePart::Device);
        if waited_ns == 0 {
            return;
        }
        let data = &mut self.written_meanwhile;
        traffic.fill_between(data, row.dev, row.enter_ns, row.exit_ns);
        let wait = CommitWait {
            dev: row.dev,
            victim,
            transaction: Transaction::default(),
            waited_ns,
            duration_ns: row.exit_ns.saturating_sub(row.enter_ns),
        };
        self.work.add(&wait, data, data);
        share_out(culprits, data, waited_ns);
    }

    /// Keeps an fsync if it is among the longest.
    pub(super) fn add_slow(
        &mut self,
        row: FsyncCall,
        owner: OwnerId,
        split: &CallSplit,
        journal: &JournalHistory,
    ) {
        let duration_ns = row.exit_ns.saturating_sub(row.enter_ns);
        let is_full = self.slowest.len() >= MAX_SLOWEST;
        if is_full && duration_ns <= self.slowest[0].duration_ns() {
            return;
        }
        let slow =
            SlowestSync { row, owner, parts: split.parts, commits: transactions(journal, split) };
        if is_full {
            self.slowest[0] = slow;
        } else {
            self.slowest.push(slow);
        }
        let shortest =
            (0..self.slowest.len()).min_by_key(|&index| self.slowest[index].duration_ns());
        self.slowest.swap(0, shortest.unwrap_or(0));
    }
}

/// Returns the transactions that a call waited for, with times.
pub(super) fn transactions(journal: &JournalHistory, split: &CallSplit) -> Vec<(Transaction, u64)> {
    split
        .commits
        .iter()
        .filter_map(|&(index, ns)| Some((journal.history().get(index)?.row.transaction, ns)))
        .collect()
}

/// Adds to each owner its share of a wait, by bytes.
fn share_out(culprits: Option<&mut OwnerBytes>, bytes: &[(OwnerId, u64)], waited_ns: u64) {
    let Some(culprits) = culprits else { return };
    let total: u128 = bytes.iter().map(|&(_, bytes)| u128::from(bytes)).sum();
    for &(owner, bytes) in bytes {
        let share = u128::from(waited_ns) * u128::from(bytes) / total.max(1);
        add_share(culprits, owner, share as u64);
    }
}
