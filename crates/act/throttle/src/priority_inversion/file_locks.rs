//! Finds waits for a file lock of a frozen task.
//!
//! `/proc/locks` shows processes that sleep until a lock is free. It does not show processes that only try to take a
//! lock and sleep in between, as SQLite does. The probe remembers those that were refused a lock repeatedly, and
//! `/proc/locks` names the holder.
//!
//! Reading `/proc/locks` is expensive, so it is read only if the result may differ from the last one. That is after a
//! new wait, after a new refusal, and after a freeze or thaw while others wait. Otherwise it is read every
//! [`READ_INTERVAL_NS`], since the probe may miss something. Where the probe does not report waits, it is read at each
//! look.

use std::collections::BTreeSet;
use std::path::Path;

use luc_control::throttle::policy_input::TaskId;
use luc_probe::disk_contention::{LockNews, RefusedLock};

use super::proc_locks::{self, LockWait, ProcLocks};
use super::refused_thaws::{LockClaim, RefusedThaws};
use super::search_types::{AwaitedObject, Inversion, InversionTask, LOOK_INTERVAL_NS};
use super::thaw_backoff::MIN_HELPFUL_THAWS;
use crate::CgroupHierarchy;
use crate::disk_observer::DiskObserver;

/// Longest time between two reads of `/proc/locks`, ns.
const READ_INTERVAL_NS: u64 = 1_000_000_000;
/// Time after a refusal at which the process may have given up, ns.
const REFUSAL_TIMEOUT_NS: u64 = 250_000_000;
/// Largest number of remembered refused locks that no frozen task holds.
const MAX_UNHELD_LOCKS: usize = 256;
/// Largest number of processes of a frozen task that are searched for an open file with a lock.
const MAX_PROCESSES: usize = 64;

/// State of the search for waits on file locks.
#[derive(Debug, Default)]
pub(super) struct FileLockSearch {
    /// End of the pause in notifications, ns. Each notification wakes the throttle.
    notify_pause_until_ns: u64,
    last: LastLook,
    refusals: RefusedThaws,
}

#[derive(Debug, Default)]
struct LastLook {
    news: LockNews,
    /// Number of freezes and thaws by then.
    changes: u64,
    /// Time of the last read of `/proc/locks`, ns; 0: never.
    read_ns: u64,
    /// Whether a process waited then.
    has_waiters: bool,
    /// Refused locks that no frozen task held.
    unheld: BTreeSet<LockClaim>,
}

impl LastLook {
    /// Whether a process may wait that did not wait then.
    fn may_have_waiters(&self, news: LockNews, changes: u64, now_ns: u64) -> bool {
        news.waits != self.news.waits
            || self.has_waiters && changes != self.changes
            || now_ns >= self.read_ns + READ_INTERVAL_NS
    }
}

impl FileLockSearch {
    /// Whether the probe has news that justify a look at once.
    pub(super) fn has_news(&self, observer: &DiskObserver, now_ns: u64) -> bool {
        now_ns >= self.notify_pause_until_ns
            && observer.lock_news().is_some_and(|news| news != self.last.news)
    }

    /// Finds the waits for frozen tasks. `changes` counts freezes and thaws.
    pub(super) fn look<'a>(
        &mut self,
        hierarchy: &CgroupHierarchy,
        observer: &DiskObserver,
        candidates: impl Fn() -> Vec<InversionTask<'a>>,
        changes: u64,
        now_ns: u64,
    ) -> Vec<Inversion> {
        // 1. News from the probe: is there anything to look for?
        let news = observer.lock_news();
        let (has_waiters, refused) = match news {
            None => (true, Vec::new()),
            Some(news) => {
                let has_waiters = self.last.may_have_waiters(news, changes, now_ns);
                (has_waiters, self.list_refused(observer, news, changes, now_ns))
            }
        };
        let news = news.unwrap_or_default();
        if news != self.last.news {
            self.notify_pause_until_ns = now_ns + LOOK_INTERVAL_NS;
        } else if now_ns >= self.notify_pause_until_ns {
            observer.notify_lock();
        }
        self.last.news = news;
        self.last.changes = changes;
        if !has_waiters && refused.is_empty() {
            return Vec::new();
        }
        // 2. Processes that sleep until a lock is free.
        self.last.read_ns = now_ns;
        let candidates = &candidates()[..];
        let held = ProcLocks::read();
        let waits = held.waits();
        self.last.has_waiters = !waits.is_empty();
        let inversion_of = |wait: &LockWait| find_inversion(hierarchy, candidates, wait);
        let mut found: Vec<Inversion> = waits.iter().filter_map(inversion_of).collect();
        // 3. Processes that were refused a lock.
        for lock in refused {
            let before = found.len();
            found.extend(held.in_the_way_of(&lock).iter().filter_map(inversion_of));
            if found.len() == before {
                self.last.unheld.insert(LockClaim::of(&lock));
                continue;
            }
            let helped = self.refusals.note_thaw(&lock, now_ns);
            for inversion in &mut found[before..] {
                inversion.should_couple = helped >= MIN_HELPFUL_THAWS;
            }
        }
        if !found.is_empty() {
            // Thaws are few, so the next wait is notified at once.
            self.notify_pause_until_ns = now_ns;
            observer.notify_lock();
        }
        found
    }

    /// Refused locks for which a thaw is allowed.
    fn list_refused(
        &mut self,
        observer: &DiskObserver,
        news: LockNews,
        changes: u64,
        now_ns: u64,
    ) -> Vec<RefusedLock> {
        if changes != self.last.changes || self.last.unheld.len() > MAX_UNHELD_LOCKS {
            self.last.unheld.clear();
        } else if news.refusals == self.last.news.refusals {
            return Vec::new();
        }
        let mut refused = observer.refused_locks(now_ns.saturating_sub(REFUSAL_TIMEOUT_NS));
        refused.retain(|lock| {
            !self.last.unheld.contains(&LockClaim::of(lock))
                && self.refusals.allow_thaw(lock, now_ns)
        });
        refused
    }
}

/// Makes an inversion of a wait for a lock, if a frozen task holds it.
fn find_inversion(
    hierarchy: &CgroupHierarchy,
    candidates: &[InversionTask<'_>],
    wait: &LockWait,
) -> Option<Inversion> {
    // A cgroup is frozen by any level above. The task is the innermost of these levels.
    let frozen = |path: &Path| Some(find_innermost(candidates, path, |task| task.is_frozen)?.id);
    let cgroup_of = |process: u32| hierarchy.of_process(process).ok();
    let holder = match wait.holder.and_then(cgroup_of) {
        Some(cgroup) => frozen(&cgroup)?,
        None => find_heir(candidates, wait)?,
    };
    let waiter_cgroup = wait.waiter.and_then(cgroup_of);
    let path = waiter_cgroup.as_deref();
    // A frozen waiter would not run after the thaw.
    if path.is_some_and(|path| frozen(path).is_some()) {
        return None;
    }
    let waiter = path.and_then(|path| Some(find_innermost(candidates, path, |_| true)?.id));
    Some(Inversion {
        holder,
        waiter,
        waiter_cgroup,
        resource: AwaitedObject::FileLock,
        should_couple: true,
    })
}

/// Finds the innermost wanted task that contains a cgroup.
fn find_innermost<'a, 'b>(
    candidates: &'a [InversionTask<'b>],
    cgroup: &Path,
    is_wanted: impl Fn(&InversionTask<'b>) -> bool,
) -> Option<&'a InversionTask<'b>> {
    candidates
        .iter()
        .filter(|candidate| is_wanted(candidate) && cgroup.starts_with(candidate.cgroup.path()))
        .max_by_key(|candidate| candidate.cgroup.path().components().count())
}

/// Finds the frozen task that still has the locked file open. Used if the process that took the lock is gone or
/// unknown.
fn find_heir(candidates: &[InversionTask<'_>], wait: &LockWait) -> Option<TaskId> {
    let has = |candidate: &&InversionTask<'_>| {
        let processes = candidate.cgroup.processes().unwrap_or_default();
        let mut processes = processes.into_iter().take(MAX_PROCESSES);
        processes.any(|process| proc_locks::is_held_by(process, &wait.lock))
    };
    let mut frozen = candidates.iter().filter(|candidate| candidate.is_frozen);
    frozen.find(has).map(|candidate| candidate.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_read_only_where_the_answer_may_be_another() {
        let second = READ_INTERVAL_NS;
        let mut last = LastLook::default();
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
