//! Whom thaws help who try again and again to take a file lock.
//!
//! Somebody may try for ever to take a lock that its holder never gives, such as one that says which of two servers is
//! in charge. So whoever did not get it within [`HELPS_WITHIN_NS`] of a thaw, while nobody else got it either, is not
//! listened to for a time that doubles each time.

use std::collections::BTreeMap;

use luc_probe::contention::RefusedLock;

/// Whoever waits should have taken the lock within this time after a thaw, ns. Until then its holder may be thawed
/// again.
const HELPS_WITHIN_NS: u64 = 250_000_000;
/// Whom thaws did not help is not listened to for at most this long, ns.
const LONGEST_DEAF_NS: u64 = 60_000_000_000;
/// Locks for which somebody was thawed that are remembered, at most.
const MOST: usize = 256;

/// Who wants which lock: cgroup, device, inode, first byte, and whether by flock.
pub(super) type Key = (u64, u32, u64, u64, bool);

pub(super) fn key(lock: &RefusedLock) -> Key {
    let RefusedLock { cgroup, dev, inode, first_byte, is_flock, .. } = *lock;
    (cgroup, dev.0, inode, first_byte, is_flock)
}

/// What thaws did for those who try.
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<Key, Outcome>);

#[derive(Debug, Default)]
struct Outcome {
    /// When somebody was thawed, ns, and how often whoever waits and others had taken the lock before.
    thawed: Option<(u64, u32, u32)>,
    /// When that was last, ns.
    thawed_ns: u64,
    helped: u32,
    in_vain: u32,
    deaf_until_ns: u64,
}

impl Refusals {
    /// Whether somebody may be thawed for this.
    pub(super) fn listens_to(&mut self, lock: &RefusedLock, now_ns: u64) -> bool {
        let Some(outcome) = self.0.get_mut(&key(lock)) else {
            return true;
        };
        if let Some((at_ns, takings, takings_by_others)) = outcome.thawed {
            if lock.takings != takings {
                outcome.thawed = None;
                outcome.helped += 1;
                outcome.in_vain = 0;
            } else if lock.takings_by_others != takings_by_others {
                // It was given, and somebody else was faster.
                outcome.thawed = None;
                outcome.in_vain = 0;
            } else if now_ns >= at_ns + HELPS_WITHIN_NS {
                outcome.thawed = None;
                outcome.in_vain += 1;
                let deaf_ns = HELPS_WITHIN_NS << outcome.in_vain.min(20);
                outcome.deaf_until_ns = now_ns + deaf_ns.min(LONGEST_DEAF_NS);
            }
        }
        now_ns >= outcome.deaf_until_ns
    }

    /// Notes that somebody is thawed for this; how often that helped before.
    pub(super) fn note_thaw(&mut self, lock: &RefusedLock, now_ns: u64) -> u32 {
        let key = key(lock);
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            let oldest = self.0.iter().min_by_key(|(_, outcome)| outcome.thawed_ns);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.0.remove(&oldest);
            }
        }
        let outcome = self.0.entry(key).or_default();
        outcome.thawed.get_or_insert((now_ns, lock.takings, lock.takings_by_others));
        outcome.thawed_ns = now_ns;
        outcome.helped
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

    /// The thaws in so many looks of 20 ms, where whoever waits and others take the lock after so many of them.
    fn thaws(looks: u64, after: u64, others_after: u64) -> (usize, u32) {
        let mut refusals = Refusals::default();
        let (mut count, mut helped) = (0, 0);
        for look in 0..looks {
            let lock = lock(1, (look / after) as u32, (look / others_after) as u32);
            if refusals.listens_to(&lock, look * 20 * MS) {
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
        let mut refusals = Refusals::default();
        for cgroup in 0..10_000 {
            refusals.note_thaw(&lock(cgroup, 0, 0), cgroup);
        }
        assert_eq!(refusals.0.len(), MOST);
        assert!(refusals.0.contains_key(&key(&lock(9_999, 0, 0))));
    }
}
