//! Feeds the controller commits that each test describes.

use luc_control::auto_gate::{AutoGate, GatePhase, GatePlan, GateReason};
use luc_control::commit_end::{CommitEnd, OtherController};

use crate::MS;

/// A controller that is fed one commit after the other.
#[derive(Default)]
struct Feed {
    auto: AutoGate,
    plan: GatePlan,
    now_ns: u64,
    held_ns: u64,
    completions: u64,
    own_completions: u64,
    /// Number of calls of processes that make one and end.
    newcomers: u64,
    most_at_once: u32,
    latencies_ns: u64,
}

impl Feed {
    /// Ends a commit that took `commit_ns`. `served` of eight callers return.
    fn commit(&mut self, commit_ns: u64, served: u32, participants: u32, others: OtherController) {
        self.now_ns += commit_ns;
        self.held_ns += if self.plan.gated { commit_ns } else { 0 };
        let arrivals_ns: Vec<u32> = (1..=served).map(|order| order * 1_000_000).collect();
        self.plan = self.auto.on_epoch(&CommitEnd {
            end_ns: self.now_ns,
            completions: self.completions,
            own_completions: self.own_completions,
            others,
            newcomers: self.newcomers,
            most_at_once: self.most_at_once,
            latencies_ns: self.latencies_ns,
            participants,
            commit_ns,
            released: if self.plan.gated { served } else { 0 },
            exact: false,
            arrivals_ns: &arrivals_ns,
        });
        self.completions += u64::from(served);
        self.own_completions += u64::from(served);
    }
}

/// Callers whose threads change all the time, as in Go. Their number always differs, and held callers wait for threads
/// that do not return.
#[test]
fn trials_that_lose_are_short_and_rare_however_callers_seem_to_change() {
    let mut feed = Feed::default();
    for commit in 0.. {
        // Held, a commit takes three times as long and serves as many.
        let commit_ns = if feed.plan.gated { 60 * MS } else { 20 * MS };
        let participants = if commit / 20 % 2 == 0 { 8 } else { 16 };
        feed.commit(commit_ns, 6, participants, OtherController::default());
        if feed.now_ns > 60_000 * MS {
            break;
        }
    }
    assert_eq!(feed.auto.reason(), GateReason::NoGainMeasured);
    assert!(feed.auto.trials().0 >= 2, "{:?}", feed.auto.trials());
    assert!(feed.held_ns < 1_000 * MS, "held for {} ns of 60 s", feed.held_ns);
}

/// Services that get their first requests during a trial.
#[test]
fn more_work_is_not_taken_for_a_gain() {
    let mut feed = Feed::default();
    while feed.now_ns < 6_000 * MS {
        let is_busy = feed.now_ns > 400 * MS;
        let (commit_ns, served) = match (feed.plan.gated, is_busy) {
            (_, false) => (20 * MS, 2),
            (true, true) => (30 * MS, 6),
            (false, true) => (24 * MS, 8),
        };
        feed.commit(commit_ns, served, 8, OtherController::default());
    }
    assert_eq!(feed.auto.phase(), GatePhase::Aside);
    assert_eq!(feed.auto.reason(), GateReason::NoGainMeasured);
    assert_eq!(feed.auto.trials().1, 0);
    assert!(feed.held_ns < 600 * MS, "held for {} ns of 6 s", feed.held_ns);
}

/// Callers that need a flush are slow while a trial holds those that need a commit. That says nothing about them.
#[test]
fn the_end_of_another_s_trial_is_not_taken_for_a_gain() {
    let mut feed = Feed::default();
    while feed.now_ns < 6_000 * MS {
        let is_trial = (1_000 * MS..4_000 * MS).contains(&feed.now_ns) && feed.auto.trials().0 == 0;
        let others = OtherController { gated: is_trial, trying: is_trial, lost: false };
        let served = match (feed.plan.gated, is_trial) {
            (_, true) => 2,
            (true, false) => 5,
            (false, false) => 8,
        };
        // Until then they are too many to gain.
        let participants = if feed.now_ns < 1_000 * MS { 8 } else { 12 };
        feed.commit(24 * MS, served, participants, others);
    }
    assert_eq!(feed.auto.trials().1, 0, "{:?}", feed.auto.reason());
    assert!(feed.held_ns < 600 * MS, "held for {} ns of 6 s", feed.held_ns);
}

#[test]
fn no_trial_begins_during_another_s() {
    let mut feed = Feed::default();
    let others = OtherController { trying: true, ..OtherController::default() };
    while feed.now_ns < 3_000 * MS {
        feed.commit(24 * MS, 4, 8, others);
    }
    assert_eq!(feed.auto.trials(), (0, 0));
    while feed.now_ns < 4_000 * MS {
        feed.commit(24 * MS, 4, 8, OtherController::default());
    }
    assert_eq!(feed.auto.trials().0, 1);
}

#[test]
fn callers_that_are_few_among_others_are_left_alone() {
    let mut feed = Feed::default();
    while feed.now_ns < 6_000 * MS {
        feed.completions += 16;
        feed.commit(24 * MS, 4, 8, OtherController::default());
    }
    assert_eq!(feed.auto.reason(), GateReason::Few);
    assert_eq!(feed.auto.trials(), (0, 0));
}

/// Processes that synchronize twice and end, like git's. A round cannot predict the next one.
#[test]
fn callers_that_come_and_go_are_tried_when_that_costs_little() {
    let mut feed = Feed::default();
    while feed.now_ns < 11_000 * MS {
        feed.newcomers += 2;
        feed.commit(13 * MS, 4, 8, OtherController::default());
    }
    assert_eq!(feed.auto.reason(), GateReason::ComeAndGo);
    assert_eq!(feed.auto.trials(), (0, 0));
    while feed.now_ns < 15_000 * MS {
        feed.newcomers += 2;
        feed.commit(13 * MS, 4, 8, OtherController::default());
    }
    assert!(feed.auto.trials().0 > 0);
}

/// Processes that follow each other at once: the largest number of calls is always under way.
#[test]
fn callers_that_follow_one_another_are_tried_at_once() {
    let mut feed = Feed { most_at_once: 8, ..Feed::default() };
    while feed.now_ns < 500 * MS {
        feed.newcomers += 4;
        feed.latencies_ns += 7 * 13 * MS;
        feed.commit(13 * MS, 4, 8, OtherController::default());
    }
    assert_eq!(feed.auto.trials().0, 1, "{:?}", feed.auto.reason());
}

/// A database's journal commits between flushes of its log, which belong to other callers. The disk is idle for these
/// callers most of the time.
#[test]
fn callers_whose_commits_are_apart_make_no_trial() {
    let mut feed = Feed::default();
    while feed.now_ns < 6_000 * MS {
        feed.now_ns += 20 * MS;
        feed.completions += 2;
        feed.commit(13 * MS, 1, 3, OtherController::default());
    }
    assert_eq!(feed.auto.reason(), GateReason::TooFarApart);
    assert_eq!(feed.auto.trials(), (0, 0));
}

/// Held callers are a little slower, but not enough to show at once.
#[test]
fn a_trial_that_finds_callers_slower_twice_is_over() {
    let mut feed = Feed::default();
    // Rates differ from sample to sample, so that a mean of few says little.
    let held_us = [26_000, 22_600, 26_500, 22_500];
    let (mut samples, mut was_gated) = (0, false);
    while feed.now_ns < 3_000 * MS {
        samples += usize::from(was_gated && !feed.plan.gated);
        was_gated = feed.plan.gated;
        let commit_ns = if was_gated { held_us[samples % 4] * 1_000 } else { 24 * MS };
        feed.commit(commit_ns, 5, 8, OtherController::default());
    }
    assert_eq!(feed.auto.reason(), GateReason::NoGainMeasured);
    assert_eq!(feed.auto.trials(), (1, 0));
    assert!(feed.held_ns < 700 * MS, "held for {} ns of 3 s", feed.held_ns);
}

/// Less work after a trial that lost is no reason for another one.
#[test]
fn callers_that_slow_down_after_a_loss_are_left_alone() {
    let mut feed = Feed::default();
    while feed.now_ns < 3_000 * MS {
        let served = match (feed.plan.gated, feed.auto.trials().0 > 0) {
            (true, _) => 4,
            (false, false) => 6,
            (false, true) => 3,
        };
        feed.commit(24 * MS, served, 8, OtherController::default());
    }
    assert_eq!(feed.auto.trials(), (1, 0));
}

/// Callers that need a flush were held with those that need a commit, in vain.
#[test]
fn callers_that_were_taken_along_in_vain_make_no_trial() {
    let lost = OtherController { lost: true, ..OtherController::default() };
    let feed_for = |others_share: u64| {
        let mut feed = Feed::default();
        while feed.now_ns < 3_000 * MS {
            feed.completions += others_share;
            feed.commit(24 * MS, 3, 8, lost);
        }
        feed.auto
    };
    let mixed = feed_for(2);
    assert_eq!(mixed.reason(), GateReason::TakenAlong);
    assert_eq!(mixed.trials(), (0, 0));
    // Where nearly nobody commits, that trial says nothing.
    assert!(feed_for(0).trials().0 > 0);
}

/// The work changes when the gate has just engaged.
#[test]
fn held_callers_that_are_slower_than_alone_are_soon_let_go() {
    let mut feed = Feed::default();
    while feed.auto.phase() != GatePhase::Engaged {
        feed.commit(24 * MS, if feed.plan.gated { 8 } else { 4 }, 8, OtherController::default());
        assert!(feed.now_ns < 10_000 * MS, "{:?}", feed.auto.reason());
    }
    let (begun_ns, begun_held_ns) = (feed.now_ns, feed.held_ns);
    while feed.now_ns < begun_ns + 6_000 * MS {
        feed.commit(24 * MS, if feed.plan.gated { 2 } else { 4 }, 8, OtherController::default());
    }
    assert_eq!(feed.auto.phase(), GatePhase::Aside);
    let held_ns = feed.held_ns - begun_held_ns;
    assert!(held_ns < 700 * MS, "held for {held_ns} ns of 6 s");
}

/// Feeds 3 s of commits. A held commit serves `held` callers. The held commits numbered in `stalls` take 400 ms
/// instead of 24 ms.
fn feed_with_a_stall(held: u32, stalls: &[u64]) -> Feed {
    let mut feed = Feed::default();
    let mut held_commits = 0;
    while feed.now_ns < 3_000 * MS {
        held_commits += u64::from(feed.plan.gated);
        let is_stall = feed.plan.gated && stalls.contains(&held_commits);
        let served = if feed.plan.gated { held } else { 4 };
        feed.commit(
            if is_stall { 400 * MS } else { 24 * MS },
            served,
            8,
            OtherController::default(),
        );
    }
    feed
}

#[test]
fn one_long_commit_does_not_decide_a_trial() {
    // At the beginning of the sample, where a loss would end it, or later.
    for stall in [3, 4, 6, 9] {
        let feed = feed_with_a_stall(8, &[stall]);
        assert_eq!(feed.auto.phase(), GatePhase::Engaged, "stall {stall}");
        assert_eq!(feed.auto.trials(), (1, 1), "stall {stall}");
    }
}

#[test]
fn a_trial_is_measured_once_more_and_no_more() {
    let feed = feed_with_a_stall(8, &[4, 9, 14, 19]);
    assert_eq!(feed.auto.reason(), GateReason::NoGainMeasured);
    assert_eq!(feed.auto.trials().1, 0);
    // What loses without the long commit, too, is not measured again.
    let feed = feed_with_a_stall(2, &[4]);
    assert_eq!(feed.auto.reason(), GateReason::NoGainMeasured);
    assert!(feed.held_ns < 600 * MS, "held for {} ns", feed.held_ns);
}
