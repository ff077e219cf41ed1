//! Actors that held callers up. They asked for the commits that callers waited for, had the locks, or kept a
//! transaction locked by a handle. Also each caller's losses by part, held up by somebody or not.
//!
//! [`blame`](crate::blame_ledger) has the owners of the work in a commit; this has the callers that made the commit run
//! at that time.

use luc_events::{Cgroup, Dev, Tgid};

use crate::accounted_threads::AccountedThreads;
use crate::call_split::{CallSplit, WaitHolder};
use crate::call_time_parts::{CallTimePart, CallTimeParts};
use crate::fast_hash::FastMap;
use crate::journal_history::JournalHistory;
use crate::owners::{OwnerId, Owners};
use crate::saturating_grow::SaturatingGrow as _;

/// Maximum number of pairs. Further ones are left out.
const MAX_PAIRS: usize = 1 << 16;
/// Maximum number of victims with losses. Further ones are left out.
const MAX_VICTIMS: usize = 1 << 13;

/// Time by file system, part, victim and holder.
#[derive(Debug, Default)]
pub(crate) struct HolderLosses {
    lost: FastMap<(Dev, OwnerId), CallTimeParts>,
    ns: FastMap<(Dev, CallTimePart, OwnerId, OwnerId), u64>,
}

/// Tables from which holders are named.
pub(crate) struct HolderNames<'a> {
    pub(crate) journal: &'a JournalHistory,
    pub(crate) threads: &'a AccountedThreads,
    pub(crate) owners: &'a mut Owners,
}

impl HolderLosses {
    /// Takes in one call of `victim`.
    pub(crate) fn add(
        &mut self,
        dev: Dev,
        victim: OwnerId,
        split: &CallSplit,
        mut names: HolderNames<'_>,
    ) {
        self.lose(dev, victim, &split.parts);
        for &(part, holder, ns) in &split.held {
            let Some(holder) = holder_of(part, holder, &mut names) else {
                continue;
            };
            let key = (dev, part, victim, holder);
            if self.ns.len() < MAX_PAIRS || self.ns.contains_key(&key) {
                self.ns.entry(key).or_default().grow(ns);
            }
        }
    }

    fn lose(&mut self, dev: Dev, victim: OwnerId, parts: &CallTimeParts) {
        let key = (dev, victim);
        if self.lost.len() < MAX_VICTIMS || self.lost.contains_key(&key) {
            self.lost.entry(key).or_default().add_all(parts);
        }
    }

    /// Returns part, victim and time on a file system, longest first.
    pub(crate) fn lost_on(&self, dev: Dev) -> Vec<(CallTimePart, OwnerId, u64)> {
        let on_dev = self.lost.iter().filter(|((on, _), _)| *on == dev);
        let mut found: Vec<_> = on_dev
            .flat_map(|(&(_, victim), parts)| {
                parts.iter().map(move |(part, ns)| (part, victim, ns))
            })
            .filter(|&(part, ..)| part != CallTimePart::Running)
            .collect();
        found.sort_by_key(|&(part, victim, ns)| (std::cmp::Reverse(ns), part, victim));
        found
    }

    /// Returns part, victim, holder and time on a file system, longest first.
    pub(crate) fn on(&self, dev: Dev) -> Vec<(CallTimePart, OwnerId, OwnerId, u64)> {
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

/// Returns the actor that causes a wait. A locked transaction waits for the owner of the handle that was open
/// longest. Other waits for a commit are caused by the one that asked for it. A wait for a lock is caused by the one
/// that released it. Everybody who filled the journal causes a wait for space in it, whoever asked for the commit
/// that runs meanwhile. So nobody is named for that.
fn holder_of(
    part: CallTimePart,
    holder: WaitHolder,
    names: &mut HolderNames<'_>,
) -> Option<OwnerId> {
    let (thread, process) = match holder {
        WaitHolder::Thread(thread) => (thread, Tgid(0)),
        WaitHolder::Commit(index) => {
            let commit = names.journal.history().get(index)?;
            match part {
                CallTimePart::Checkpoint => return None,
                CallTimePart::LockUp if commit.longest_open().is_some() => {
                    return commit.longest_open();
                }
                _ => (commit.row.asked_by, commit.row.asked_by_process),
            }
        }
    };
    let known = names.threads.actor(thread);
    let (process, cgroup) = known.unwrap_or((process, Cgroup(0)));
    (!process.is_none()).then(|| names.owners.id(process, cgroup))
}
