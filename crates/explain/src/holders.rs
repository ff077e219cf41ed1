//! Who held whom up: who asked for the commits that callers waited for, who had the locks.
//!
//! Where [`blame`](crate::blame) says whose work was in a commit, this says whose call made it run just then.

use luc_events::{Cgroup, Dev, Tgid};

use crate::fast::FastMap;
use crate::journal::Journal;
use crate::owners::{OwnerId, Owners};
use crate::parts::Part;
use crate::split::{Holder, Split};
use crate::threads::Threads;

/// Pairs that are told apart; further ones are left out.
const MEMORY_PAIRS: usize = 1 << 16;

/// Time by file system, part, victim and holder.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    ns: FastMap<(Dev, Part, OwnerId, OwnerId), u64>,
}

/// What is needed to name a holder.
pub(crate) struct Names<'a> {
    pub(crate) journal: &'a Journal,
    pub(crate) threads: &'a Threads,
    pub(crate) owners: &'a mut Owners,
}

impl Holders {
    /// Takes in one call of `victim`.
    pub(crate) fn add(&mut self, dev: Dev, victim: OwnerId, split: &Split, names: Names<'_>) {
        for &(part, holder, ns) in &split.held {
            let (thread, process) = match holder {
                Holder::Thread(thread) => (thread, Tgid(0)),
                Holder::Commit(index) => match names.journal.history().get(index) {
                    Some(commit) => (commit.row.asked_by, commit.row.asked_by_process),
                    None => continue,
                },
            };
            let known = names.threads.party(thread);
            let (process, cgroup) = known.unwrap_or((process, Cgroup(0)));
            if process.is_none() {
                continue;
            }
            let key = (dev, part, victim, names.owners.id(process, cgroup));
            if self.ns.len() < MEMORY_PAIRS || self.ns.contains_key(&key) {
                let sum = self.ns.entry(key).or_default();
                *sum = sum.saturating_add(ns);
            }
        }
    }

    /// Part, victim, holder and time on a file system, longest first.
    pub(crate) fn on(&self, dev: Dev) -> Vec<(Part, OwnerId, OwnerId, u64)> {
        let mut found: Vec<_> = self
            .ns
            .iter()
            .filter(|((on, ..), _)| *on == dev)
            .map(|(&(_, part, victim, holder), &ns)| (part, victim, holder, ns))
            .collect();
        found.sort_by_key(|&(part, victim, holder, ns)| {
            (std::cmp::Reverse(ns), part, victim, holder)
        });
        found
    }
}
