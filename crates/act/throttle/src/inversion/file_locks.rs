//! Who waits for a file lock of a frozen task.
//!
//! Who sleeps until the lock is free is shown by `/proc/locks`. Who only tries to take it, and sleeps in between, as
//! SQLite does, is not: the probe remembers who was refused a lock again and again, and `/proc/locks` says whose it is.
//!
//! Reading that is dear, so it is only done where the answer may be another: somebody has begun to wait, or was refused
//! again, or somebody was frozen or thawed while others wait. Without these it is read every [`READ_EVERY_NS`], since
//! the probe may miss something; at each look where it does not tell of waits.

use std::collections::BTreeSet;
use std::path::Path;

use luc_control::throttle::sample::TaskId;
use luc_probe::contention::{LockNews, RefusedLock};

use super::candidate::Candidate;
use super::found::{Inversion, LOOK_EVERY_NS, Resource};
use super::locks::{self, Locks, Wait};
use super::refusals::{Key, Refusals, key};
use crate::Hierarchy;
use crate::observer::Observer;

/// `/proc/locks` is read after this time in any case, ns.
const READ_EVERY_NS: u64 = 1_000_000_000;
/// Who was refused longer ago than this may have given up, ns.
const RECENT_NS: u64 = 250_000_000;
/// A couple for which so many thaws helped is treated as one, where one of them only tries to take a lock.
const USUAL_AFTER: u32 = 2;
/// Refused locks that no frozen task has that are remembered, at most.
const MOST_IN_VAIN: usize = 256;
/// Processes of a frozen task that are asked whether they have an open file with a lock, at most.
const MOST_PROCESSES: usize = 64;

/// What is remembered of file locks.
#[derive(Debug, Default)]
pub(super) struct FileLocks {
    /// News are not told at once before this time, ns: each would wake the throttle.
    rests_until_ns: u64,
    last: Last,
    refusals: Refusals,
}

#[derive(Debug, Default)]
struct Last {
    news: LockNews,
    /// Freezes and thaws until then.
    changes: u64,
    /// When `/proc/locks` was read, ns; 0: never.
    read_ns: u64,
    /// Whether somebody waited then.
    has_waiters: bool,
    /// Who was refused a lock that no frozen task had.
    in_vain: BTreeSet<Key>,
}

impl Last {
    /// Whether somebody may wait who did not then.
    fn may_have_waiters(&self, news: LockNews, changes: u64, now_ns: u64) -> bool {
        news.waits != self.news.waits
            || self.has_waiters && changes != self.changes
            || now_ns >= self.read_ns + READ_EVERY_NS
    }
}

impl FileLocks {
    /// Whether something was heard that is worth a look at once.
    pub(super) fn has_news(&self, observer: &Observer, now_ns: u64) -> bool {
        now_ns >= self.rests_until_ns
            && observer.lock_news().is_some_and(|news| news != self.last.news)
    }

    /// Who waits for a frozen task now. `changes` counts freezes and thaws.
    pub(super) fn look<'a>(
        &mut self,
        hierarchy: &Hierarchy,
        observer: &Observer,
        candidates: impl Fn() -> Vec<Candidate<'a>>,
        changes: u64,
        now_ns: u64,
    ) -> Vec<Inversion> {
        let news = observer.lock_news();
        let (has_waiters, refused) = match news {
            None => (true, Vec::new()),
            Some(news) => {
                let has_waiters = self.last.may_have_waiters(news, changes, now_ns);
                (has_waiters, self.refused(observer, news, changes, now_ns))
            }
        };
        let news = news.unwrap_or_default();
        if news != self.last.news {
            self.rests_until_ns = now_ns + LOOK_EVERY_NS;
        } else if now_ns >= self.rests_until_ns {
            observer.notify_lock();
        }
        self.last.news = news;
        self.last.changes = changes;
        if !has_waiters && refused.is_empty() {
            return Vec::new();
        }
        self.last.read_ns = now_ns;
        let candidates = &candidates()[..];
        let held = Locks::read();
        let waits = held.waits();
        self.last.has_waiters = !waits.is_empty();
        let mut found: Vec<Inversion> =
            waits.iter().filter_map(|wait| behind_lock(hierarchy, candidates, wait)).collect();
        for lock in refused {
            let in_the_way = held.in_the_way_of(&lock);
            let inversions =
                in_the_way.iter().filter_map(|wait| behind_lock(hierarchy, candidates, wait));
            let before = found.len();
            found.extend(inversions);
            if found.len() == before {
                self.last.in_vain.insert(key(&lock));
                continue;
            }
            let helped = self.refusals.note_thaw(&lock, now_ns);
            for inversion in &mut found[before..] {
                inversion.is_usual = helped >= USUAL_AFTER;
            }
        }
        if !found.is_empty() {
            // Thaws are few: whoever waits next is heard at once.
            self.rests_until_ns = now_ns;
            observer.notify_lock();
        }
        found
    }

    /// Who tries to take a lock and is to be listened to.
    fn refused(
        &mut self,
        observer: &Observer,
        news: LockNews,
        changes: u64,
        now_ns: u64,
    ) -> Vec<RefusedLock> {
        if changes != self.last.changes || self.last.in_vain.len() > MOST_IN_VAIN {
            self.last.in_vain.clear();
        } else if news.refusals == self.last.news.refusals {
            return Vec::new();
        }
        let mut refused = observer.refused_locks(now_ns.saturating_sub(RECENT_NS));
        refused.retain(|lock| {
            !self.last.in_vain.contains(&key(lock)) && self.refusals.listens_to(lock, now_ns)
        });
        refused
    }
}

/// Whether a wait for a lock is one for a frozen task.
fn behind_lock(
    hierarchy: &Hierarchy,
    candidates: &[Candidate<'_>],
    wait: &Wait,
) -> Option<Inversion> {
    // Frozen is frozen from any level; tasks are told apart by the innermost.
    let frozen = |path: &Path| {
        let above = innermost(candidates, path, |candidate| candidate.is_frozen)?;
        Some(above.id)
    };
    let cgroup_of = |process: u32| hierarchy.of_process(process).ok();
    let holder = match wait.holder.and_then(cgroup_of) {
        Some(cgroup) => frozen(&cgroup)?,
        None => heir(candidates, wait)?,
    };
    let waiter_cgroup = wait.waiter.and_then(cgroup_of);
    let of = waiter_cgroup.as_deref();
    // Who is frozen as well would not go on.
    if of.is_some_and(|cgroup| frozen(cgroup).is_some()) {
        return None;
    }
    let waiter = of.and_then(|cgroup| innermost(candidates, cgroup, |_| true));
    let waiter = waiter.map(|candidate| candidate.id);
    Some(Inversion { holder, waiter, waiter_cgroup, resource: Resource::FileLock, is_usual: true })
}

/// The innermost task of those wanted to which a cgroup belongs.
fn innermost<'a, 'b>(
    candidates: &'a [Candidate<'b>],
    cgroup: &Path,
    is_wanted: impl Fn(&Candidate<'b>) -> bool,
) -> Option<&'a Candidate<'b>> {
    candidates
        .iter()
        .filter(|candidate| is_wanted(candidate) && cgroup.starts_with(candidate.cgroup.path()))
        .max_by_key(|candidate| candidate.cgroup.path().components().count())
}

/// The frozen task that has the open file with a lock, where whoever took it is gone or not known.
fn heir(candidates: &[Candidate<'_>], wait: &Wait) -> Option<TaskId> {
    let has = |candidate: &&Candidate<'_>| {
        let processes = candidate.cgroup.processes().unwrap_or_default();
        let mut processes = processes.into_iter().take(MOST_PROCESSES);
        processes.any(|process| locks::is_held_by(process, &wait.lock))
    };
    let mut frozen = candidates.iter().filter(|candidate| candidate.is_frozen);
    frozen.find(has).map(|candidate| candidate.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_read_only_where_the_answer_may_be_another() {
        let second = READ_EVERY_NS;
        let mut last = Last::default();
        let quiet = LockNews::default();
        let waits = LockNews { waits: 1, ..LockNews::default() };
        assert!(last.may_have_waiters(quiet, 0, second), "never read");
        last.read_ns = second;
        assert!(!last.may_have_waiters(quiet, 0, second + 1));
        assert!(!last.may_have_waiters(quiet, 1, second + 1), "nobody waits");
        assert!(last.may_have_waiters(waits, 0, second + 1));
        last.news = waits;
        last.has_waiters = true;
        assert!(!last.may_have_waiters(waits, 0, second + 1));
        assert!(last.may_have_waiters(waits, 1, second + 1));
        assert!(last.may_have_waiters(waits, 0, 2 * second));
    }
}
