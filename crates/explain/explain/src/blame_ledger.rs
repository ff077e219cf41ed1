//! Waits by victim and culprit.
//!
//! A wait for a commit is a wait for its bytes. These are metadata (blocks that its handles dirtied) and data (written
//! while it ran, or still in the disk's cache). Each owner's share of the wait is its share of the bytes. A wait for
//! data alone is shared by the bytes written meanwhile.
//!
//! Besides the share of the wait, the *load* is kept: the time that an owner's data added to the wait. It is the data's
//! bytes times the nanoseconds per byte of this journal (see `JournalHistory::ns_per_byte`). A share of a tiny commit
//! only means that two owners were in one commit. Load means that one slowed the other down.

use luc_events::{Dev, Transaction};

use crate::fast_hash::FastMap;
use crate::owners::OwnerId;

/// Maximum number of pairs. Further ones are dropped and counted.
const MAX_PAIRS: usize = 1 << 16;

/// The cost of one owner's work to another.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlameSums {
    /// Shares of waits, in nanoseconds.
    pub(crate) waited_ns: f64,
    /// Sum of wait times bytes of data over duration, in bytes: times ns per byte it is the load.
    pub(crate) load_bytes: f64,
    pub(crate) waits: u64,
    /// The commit with the largest share, and that share in nanoseconds.
    pub(crate) worst: (Transaction, f64),
}

impl BlameSums {
    /// Returns the time that the culprit's data added to the waits, in nanoseconds.
    pub(crate) fn load_ns(&self, ns_per_byte: f64) -> f64 {
        (self.load_bytes * ns_per_byte).min(self.waited_ns)
    }
}

/// A wait, for work that took `duration_ns`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitWait {
    pub(crate) dev: Dev,
    pub(crate) victim: OwnerId,
    pub(crate) transaction: Transaction,
    pub(crate) waited_ns: u64,
    pub(crate) duration_ns: u64,
}

/// Costs by victim and culprit.
#[derive(Debug, Default)]
pub(crate) struct BlameLedger {
    pairs: FastMap<(Dev, OwnerId, OwnerId), BlameSums>,
    pub(crate) dropped: u64,
}

impl BlameLedger {
    /// Divides a wait among the owners of `bytes`. `data` is the data among these bytes, by owner.
    pub(crate) fn add(
        &mut self,
        wait: &CommitWait,
        bytes: &[(OwnerId, u64)],
        data: &[(OwnerId, u64)],
    ) {
        let total: u64 = bytes.iter().map(|&(_, bytes)| bytes).sum();
        if total == 0 || wait.waited_ns == 0 {
            return;
        }
        let waited_ns = wait.waited_ns as f64;
        for &(culprit, bytes) in bytes {
            let key = (wait.dev, wait.victim, culprit);
            if self.pairs.len() >= MAX_PAIRS && !self.pairs.contains_key(&key) {
                self.dropped += 1;
                continue;
            }
            let share_ns = waited_ns * bytes as f64 / total as f64;
            let data = data.iter().find(|(owner, _)| *owner == culprit);
            let data_bytes = data.map_or(0, |&(_, bytes)| bytes) as f64;
            let blamed = self.pairs.entry(key).or_default();
            blamed.waited_ns += share_ns;
            blamed.load_bytes += data_bytes * waited_ns / wait.duration_ns.max(1) as f64;
            blamed.waits += 1;
            if share_ns > blamed.worst.1 {
                blamed.worst = (wait.transaction, share_ns);
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Dev, OwnerId, OwnerId, &BlameSums)> {
        self.pairs.iter().map(|(&(dev, victim, culprit), blamed)| (dev, victim, culprit, blamed))
    }
}
