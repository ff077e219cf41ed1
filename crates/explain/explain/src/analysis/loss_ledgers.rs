//! Ledgers of lost time, by victim, culprit and holder. Each call is entered after its split.

use luc_events::tables::Sync;
use luc_events::{Dev, Transaction};

use crate::blame::{Ledger, Waited};
use crate::fast::FastMap;
use crate::grow::Grow as _;
use crate::holders::{Holders, Names};
use crate::journal::Journal;
use crate::owners::OwnerId;
use crate::parts::{Part, Parts};
use crate::split::Split;
use crate::traffic::{Shares, Traffic, add_share};

/// Maximum number of reported fsyncs: the longest.
const MAX_SLOWEST: usize = 50;

#[derive(Debug, Default)]
pub(super) struct Ledgers {
    /// Waits by the owner of the awaited work.
    pub(super) work: Ledger,
    /// Waits by the owner that held calls up.
    pub(super) holders: Holders,
    pub(super) by_owner: FastMap<OwnerId, OwnerSums>,
    /// The longest fsyncs; the shortest of these is the first.
    pub(super) slowest: Vec<Slow>,
    /// Number of calls that must have waited, by their length, and have no recorded wait.
    pub(super) syncs_without_waits: u64,
    /// Bytes written during the present call, by owner. Kept so that the list is allocated once.
    written_meanwhile: Shares,
}

#[derive(Debug, Default)]
pub(super) struct OwnerSums {
    pub(super) syncs: Spent,
    pub(super) calls: Spent,
}

/// Calls of one sort, with their time and its parts.
#[derive(Debug, Default)]
pub(super) struct Spent {
    pub(super) count: u64,
    pub(super) ns: u64,
    pub(super) parts: Parts,
}

impl Spent {
    pub(super) fn add(&mut self, duration_ns: u64, parts: &Parts) {
        self.count += 1;
        self.ns.grow(duration_ns);
        self.parts.add_all(parts);
    }
}

#[derive(Clone, Debug)]
pub(super) struct Slow {
    pub(super) row: Sync,
    pub(super) owner: OwnerId,
    pub(super) parts: Parts,
    pub(super) commits: Vec<(Transaction, u64)>,
}

impl Slow {
    pub(super) fn duration_ns(&self) -> u64 {
        self.row.exit_ns.saturating_sub(self.row.enter_ns)
    }
}

impl Ledgers {
    /// Enters a call of `victim`: its holders, and the owners of the work in the commits that it waited for. Adds the
    /// work's shares of the wait to `culprits`, if there are any.
    pub(super) fn add_call(
        &mut self,
        dev: Dev,
        victim: OwnerId,
        split: &Split,
        names: Names<'_>,
        mut culprits: Option<&mut Shares>,
    ) {
        let journal = names.journal;
        self.holders.add(dev, victim, split, names);
        for &(index, waited_ns) in &split.commits {
            let Some(commit) = journal.history().get(index) else {
                continue;
            };
            let wait = Waited {
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
        row: &Sync,
        victim: OwnerId,
        parts: &Parts,
        traffic: &Traffic,
        culprits: Option<&mut Shares>,
    ) {
        let waited_ns = parts.get(Part::DataWriteback) + parts.get(Part::Device);
        if waited_ns == 0 {
            return;
        }
        let data = &mut self.written_meanwhile;
        traffic.fill_between(data, row.dev, row.enter_ns, row.exit_ns);
        let wait = Waited {
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
    pub(super) fn add_slow(&mut self, row: Sync, owner: OwnerId, split: &Split, journal: &Journal) {
        let duration_ns = row.exit_ns.saturating_sub(row.enter_ns);
        let is_full = self.slowest.len() >= MAX_SLOWEST;
        if is_full && duration_ns <= self.slowest[0].duration_ns() {
            return;
        }
        let slow = Slow { row, owner, parts: split.parts, commits: transactions(journal, split) };
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
pub(super) fn transactions(journal: &Journal, split: &Split) -> Vec<(Transaction, u64)> {
    split
        .commits
        .iter()
        .filter_map(|&(index, ns)| Some((journal.history().get(index)?.row.transaction, ns)))
        .collect()
}

/// Adds to each owner its share of a wait, by bytes.
fn share_out(culprits: Option<&mut Shares>, bytes: &[(OwnerId, u64)], waited_ns: u64) {
    let Some(culprits) = culprits else { return };
    let total: u128 = bytes.iter().map(|&(_, bytes)| u128::from(bytes)).sum();
    for &(owner, bytes) in bytes {
        let share = u128::from(waited_ns) * u128::from(bytes) / total.max(1);
        add_share(culprits, owner, share as u64);
    }
}
