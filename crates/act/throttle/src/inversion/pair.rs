//! Whether a frozen task is to be thawed for one that may wait for it, by what thaws did before.

use std::collections::BTreeSet;

use super::processes::Sleep;

/// A thaw should have woken the waiter within this time, ns.
const HELPS_WITHIN_NS: u64 = 250_000_000;
/// A waiter that thaws did not wake is not listened to for at most this long, ns.
const LONGEST_DEAF_NS: u64 = 60_000_000_000;

/// What is remembered of a frozen task and one that is linked with it.
#[derive(Debug, Default)]
pub(super) struct Pair {
    pub(super) asleep: BTreeSet<Sleep>,
    /// For whom the holder was thawed last, and when, ns.
    thawed_for: Option<(Sleep, u64)>,
    pub(super) helped: u32,
    in_vain: u32,
    /// It is not thawed for the waiter before, ns.
    pub(super) deaf_until_ns: u64,
}

impl Pair {
    /// Whether one of the threads that sleep now did so at the last look, and the holder is to be thawed for it.
    pub(super) fn waits(&mut self, asleep: BTreeSet<Sleep>, now_ns: u64) -> bool {
        let before = std::mem::replace(&mut self.asleep, asleep);
        let still = self.asleep.intersection(&before).next().copied();
        if let Some((sleep, at_ns)) = self.thawed_for {
            if !self.asleep.contains(&sleep) {
                self.thawed_for = None;
                self.helped += 1;
                self.in_vain = 0;
            } else if now_ns < at_ns + HELPS_WITHIN_NS {
                return false;
            } else {
                self.thawed_for = None;
                self.in_vain += 1;
                let deaf_ns = HELPS_WITHIN_NS << self.in_vain.min(20);
                self.deaf_until_ns = now_ns + deaf_ns.min(LONGEST_DEAF_NS);
            }
        }
        if now_ns < self.deaf_until_ns {
            return false;
        }
        self.thawed_for = still.map(|sleep| (sleep, now_ns));
        still.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn only(sleeps: u64) -> BTreeSet<Sleep> {
        BTreeSet::from([(7, sleeps)])
    }

    #[test]
    fn one_look_is_not_enough_and_thaws_that_help_count() {
        let mut pair = Pair::default();
        for round in 0..3 {
            let now_ns = round * 300 * MS;
            assert!(!pair.waits(only(round), now_ns));
            assert!(pair.waits(only(round), now_ns + 20 * MS));
            assert!(!pair.waits(only(round), now_ns + 40 * MS), "give it time");
        }
        assert_eq!((pair.helped, pair.in_vain), (2, 0));
    }

    #[test]
    fn who_does_not_wake_is_listened_to_ever_more_rarely() {
        let mut pair = Pair::default();
        let thaws = (0..6_000).filter(|look| pair.waits(only(1), look * 20 * MS));
        let thaws = thaws.count();
        assert!((4..10).contains(&thaws), "{thaws} in two minutes");
        assert_eq!(pair.helped, 0);
    }

    #[test]
    fn a_thread_that_ran_in_between_does_not_wait() {
        let mut pair = Pair::default();
        for sleeps in 0..50 {
            assert!(!pair.waits(only(sleeps), sleeps * 20 * MS));
        }
    }
}
