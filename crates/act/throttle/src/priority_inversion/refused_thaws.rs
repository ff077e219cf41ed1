//! Remembers whether thaws helped processes that try repeatedly to take a file lock.
//!
//! A process may try for ever to take a lock that its holder never gives. An example is the lock that decides which of
//! two servers is in charge. So a thaw fails if no process takes the lock within [`HELP_TIMEOUT_NS`]. Each failure in a
//! row doubles the time in which the process is ignored.

use std::collections::BTreeMap;

use luc_probe::disk_contention::RefusedLock;

use super::thaw_backoff::{HELP_TIMEOUT_NS, ThawBackoff};

const MAX_CLAIMS: usize = 256;

/// A cgroup's claim to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LockClaim {
    cgroup: u64,
    dev: u32,
    inode: u64,
    first_byte: u64,
    is_flock: bool,
}

impl LockClaim {
    pub(super) fn of(lock: &RefusedLock) -> Self {
        let RefusedLock { cgroup, dev, inode, first_byte, is_flock, .. } = *lock;
        Self { cgroup, dev: dev.0, inode, first_byte, is_flock }
    }
}

/// Results of thaws, by claim.
#[derive(Debug, Default)]
pub(super) struct RefusedThaws(BTreeMap<LockClaim, ThawResults>);

#[derive(Debug, Default)]
struct ThawResults {
    /// Thaw whose result is open, with the refusal that caused it.
    open: Option<(u64, RefusedLock)>,
    thawed_ns: u64,
    backoff: ThawBackoff,
}

impl RefusedThaws {
    /// Whether a holder may be thawed for this lock. Judges the last thaw first. Its holder may be thawed again
    /// before the result is clear.
    pub(super) fn allow_thaw(&mut self, lock: &RefusedLock, now_ns: u64) -> bool {
        let Some(ThawResults { open, backoff, .. }) = self.0.get_mut(&LockClaim::of(lock)) else {
            return true;
        };
        if let Some((at_ns, before)) = open {
            if lock.takings != before.takings {
                backoff.note_help();
                *open = None;
            } else if lock.takings_by_others != before.takings_by_others {
                // The holder gave the lock, and another process was faster.
                backoff.note_help_for_other();
                *open = None;
            } else if now_ns >= *at_ns + HELP_TIMEOUT_NS {
                backoff.note_failure(now_ns);
                *open = None;
            }
        }
        backoff.allows_thaw(now_ns)
    }

    /// Notes a thaw for this lock. Returns the number of earlier thaws that helped.
    pub(super) fn note_thaw(&mut self, lock: &RefusedLock, now_ns: u64) -> u32 {
        let claim = LockClaim::of(lock);
        if self.0.len() >= MAX_CLAIMS && !self.0.contains_key(&claim) {
            let oldest = self.0.iter().min_by_key(|(_, results)| results.thawed_ns);
            if let Some(oldest) = oldest.map(|(claim, _)| *claim) {
                self.0.remove(&oldest);
            }
        }
        let results = self.0.entry(claim).or_default();
        results.open.get_or_insert((now_ns, *lock));
        results.thawed_ns = now_ns;
        results.backoff.helped
    }
}

#[cfg(test)]
mod tests {
    use luc_events::Dev;

    use super::*;

    const MS: u64 = 1_000_000;

    fn lock(cgroup: u64, takings: u32, takings_by_others: u32) -> RefusedLock {
        RefusedLock {
            cgroup,
            process: 1,
            dev: Dev::new(8, 0),
            inode: 2,
            first_byte: 0,
            last_byte: 0,
            is_flock: false,
            refusals: 2,
            takings,
            takings_by_others,
            last_ns: 0,
        }
    }

    /// Number of thaws in `looks` looks of 20 ms, and of those that helped. The process and others take the lock every
    /// `after` and `others_after` looks.
    fn thaws(looks: u64, after: u64, others_after: u64) -> (usize, u32) {
        let mut refusals = RefusedThaws::default();
        let (mut count, mut helped) = (0, 0);
        for look in 0..looks {
            let lock = lock(1, (look / after) as u32, (look / others_after) as u32);
            if refusals.allow_thaw(&lock, look * 20 * MS) {
                count += 1;
                helped = refusals.note_thaw(&lock, look * 20 * MS);
            }
        }
        (count, helped)
    }

    #[test]
    fn who_gets_the_lock_is_always_listened_to() {
        assert_eq!(thaws(6_000, 10, u64::MAX), (6_000, 599));
        assert_eq!(thaws(6_000, u64::MAX, 10), (6_000, 0));
    }

    #[test]
    fn who_never_gets_it_is_listened_to_ever_more_rarely() {
        let (count, helped) = thaws(6_000, u64::MAX, u64::MAX);
        // 13 looks each of nine times in two minutes.
        assert!((65..=130).contains(&count), "{count}");
        assert_eq!(helped, 0);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut refusals = RefusedThaws::default();
        for cgroup in 0..10_000 {
            refusals.note_thaw(&lock(cgroup, 0, 0), cgroup);
        }
        assert_eq!(refusals.0.len(), MAX_CLAIMS);
        assert!(refusals.0.contains_key(&LockClaim::of(&lock(9_999, 0, 0))));
    }
}
