//! Decides by earlier results whether to thaw a frozen task for one that may wait for it.

use std::collections::BTreeSet;

use super::shared_objects::ThreadSleep;
use super::thaw_backoff::{HELP_TIMEOUT_NS, ThawBackoff};

/// State of a frozen task and a task that is linked with it.
#[derive(Debug, Default)]
pub(super) struct LinkedPair {
    pub(super) asleep: BTreeSet<ThreadSleep>,
    /// Sleep for which the holder was thawed last, and the time of that, ns.
    thawed_for: Option<(ThreadSleep, u64)>,
    pub(super) backoff: ThawBackoff,
}

impl LinkedPair {
    /// Whether to thaw the holder: a thread that sleeps now did so at the last look, and no pause is in force.
    pub(super) fn should_thaw(&mut self, asleep: BTreeSet<ThreadSleep>, now_ns: u64) -> bool {
        let before = std::mem::replace(&mut self.asleep, asleep);
        let still = self.asleep.intersection(&before).next().copied();
        if let Some((sleep, at_ns)) = self.thawed_for {
            if !self.asleep.contains(&sleep) {
                self.backoff.note_help();
            } else if now_ns < at_ns + HELP_TIMEOUT_NS {
                return false;
            } else {
                self.backoff.note_failure(now_ns);
            }
            self.thawed_for = None;
        }
        if !self.backoff.allows_thaw(now_ns) {
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

    fn only(sleeps: u64) -> BTreeSet<ThreadSleep> {
        BTreeSet::from([ThreadSleep { thread: 7, sleeps }])
    }

    #[test]
    fn one_look_is_not_enough_and_thaws_that_help_count() {
        let mut pair = LinkedPair::default();
        for round in 0..3 {
            let now_ns = round * 300 * MS;
            assert!(!pair.should_thaw(only(round), now_ns));
            assert!(pair.should_thaw(only(round), now_ns + 20 * MS));
            assert!(!pair.should_thaw(only(round), now_ns + 40 * MS), "give it time");
        }
        assert_eq!((pair.backoff.helped, pair.backoff.pause_until_ns), (2, 0));
    }

    #[test]
    fn who_does_not_wake_is_listened_to_ever_more_rarely() {
        let mut pair = LinkedPair::default();
        let thaws = (0..6_000).filter(|look| pair.should_thaw(only(1), look * 20 * MS)).count();
        assert!((4..10).contains(&thaws), "{thaws} in two minutes");
        assert_eq!(pair.backoff.helped, 0);
    }

    #[test]
    fn a_thread_that_ran_in_between_does_not_wait() {
        let mut pair = LinkedPair::default();
        for sleeps in 0..50 {
            assert!(!pair.should_thaw(only(sleeps), sleeps * 20 * MS));
        }
    }
}
