//! Rounds among threads of one process; `crates/luc/tests/e2e/gate.rs` has the processes and the journal.

use core::sync::atomic::Ordering::Relaxed;
use std::thread;

use luc_control::auto_gate::{GatePhase, GatePlan};

use super::hold_time::HoldLimits;
use super::join::{JoinedRound, RoundRole};
use super::shared_layout::split;
use super::{FileSystemActivity, Rounds};
use crate::gate_policy::GatePolicy;

/// A wait that no test reaches unless something is wrong.
const LONG_NS: u64 = 20_000_000_000;

/// Limits that only the longest hold bounds.
fn limits(longest_ns: u64) -> HoldLimits {
    HoldLimits { longest_ns, own_call_ns: LONG_NS }
}

/// Rounds as they are mapped: all zeros, and never freed.
fn rounds(set_point: u32) -> &'static Rounds {
    // SAFETY: all zeros is a valid initial state.
    let rounds: &Rounds = Box::leak(Box::new(unsafe { core::mem::zeroed() }));
    rounds.plan.store(&GatePlan {
        gated: set_point > 0,
        trying: false,
        lost: false,
        set_point,
        return_ns: LONG_NS,
        patience_ns: LONG_NS,
        commit_ns: LONG_NS,
    });
    rounds
}

fn join_all(rounds: &'static Rounds, callers: usize, longest_ns: u64) -> Vec<JoinedRound> {
    let threads: Vec<_> = (0..callers)
        .map(|_| {
            thread::spawn(move || {
                rounds.join(&GatePolicy::Auto, RoundRole::Member, &limits(longest_ns))
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
}

#[test]
fn a_full_round_is_released_together() {
    // Below and above the size from which callers are called to attention.
    for callers in [2, 5, 24] {
        let rounds = rounds(callers as u32);
        for generation in 0..3 {
            let joined = join_all(rounds, callers, LONG_NS);
            assert!(
                joined.iter().all(|j| j.generation == generation && !j.timed_out),
                "{joined:?}"
            );
            let ends: Vec<bool> = joined
                .iter()
                .map(|joined| {
                    rounds.returned_from_round(
                        &GatePolicy::Delay(Default::default()),
                        joined,
                        FileSystemActivity::default(),
                    )
                })
                .collect();
            let end = ends.iter().position(|&ends| ends);
            assert_eq!(end, Some(1), "with the second that comes back: {ends:?}");
            assert_eq!(ends.iter().filter(|&&ends| ends).count(), 1);
            rounds.plan.store(&GatePlan {
                gated: true,
                trying: false,
                lost: false,
                set_point: callers as u32,
                return_ns: LONG_NS,
                patience_ns: LONG_NS,
                commit_ns: LONG_NS,
            });
        }
    }
}

#[test]
fn a_caller_that_needs_a_flush_rides_on_the_commit_of_the_others() {
    let rounds = rounds(2);
    rounds.plan.commit_ns.store(8_000_000, Relaxed);
    let flush_only = thread::spawn(move || {
        rounds.join(&GatePolicy::Auto, RoundRole::FlushOnly, &limits(LONG_NS))
    });
    while split(rounds.round.0.load(Relaxed)).1 == 0 {
        thread::yield_now();
    }
    let committer = rounds.join(&GatePolicy::Auto, RoundRole::Member, &limits(LONG_NS));
    let flush_only = flush_only.join().expect("no panic");
    let released_ns = rounds.generation(0).released_ns.load(Relaxed);
    assert!(flush_only.shares_flush && !committer.shares_flush);
    assert!(crate::call_path_syscalls::now_ns() >= released_ns + 2_000_000);
    // Its return is not the commit's end.
    assert!(!rounds.returned_from_round(
        &GatePolicy::Off,
        &flush_only,
        FileSystemActivity::default()
    ));
    assert!(rounds.returned_from_round(
        &GatePolicy::Off,
        &committer,
        FileSystemActivity::default()
    ));
}

#[test]
fn a_round_without_a_commit_goes_at_once_and_teaches_no_commit_time() {
    let rounds = rounds(2);
    let joined: Vec<_> = (0..2)
        .map(|_| {
            thread::spawn(move || {
                rounds.join(&GatePolicy::Auto, RoundRole::FlushOnly, &limits(LONG_NS))
            })
        })
        .collect();
    for caller in joined {
        let joined = caller.join().expect("no panic");
        assert!(!joined.shares_flush && !joined.timed_out);
        rounds.returned_from_round(&GatePolicy::Auto, &joined, FileSystemActivity::default());
    }
    assert_eq!(rounds.snapshot().auto.commit_ns(), 0);
}

#[test]
fn a_killed_caller_only_costs_its_place() {
    let rounds = rounds(3);
    rounds.round.0.store(1, Relaxed);
    let joined = join_all(rounds, 2, LONG_NS);
    assert!(joined.iter().all(|j| !j.timed_out), "{joined:?}");
}

#[test]
fn without_the_keeper_of_the_timer_everybody_has_a_deadline() {
    let rounds = rounds(9);
    // The first caller was counted and killed; nobody will fill the round.
    rounds.round.0.store(1, Relaxed);
    let joined = join_all(rounds, 1, 5_000_000);
    assert!(joined[0].timed_out);
    assert_eq!(split(rounds.round.0.load(Relaxed)), (1, 0));
}

#[test]
fn a_plan_that_ends_gating_frees_who_still_gathers() {
    let rounds = rounds(9);
    let waiting =
        thread::spawn(move || rounds.join(&GatePolicy::Auto, RoundRole::Member, &limits(LONG_NS)));
    while split(rounds.round.0.load(Relaxed)).1 == 0 {
        thread::yield_now();
    }
    rounds.plan.set_point.store(0, Relaxed);
    rounds.release_if_full(&GatePolicy::Auto);
    assert!(!waiting.join().expect("no panic").timed_out);
}

#[test]
fn a_controller_whose_holder_was_killed_starts_over() {
    let rounds = rounds(0);
    rounds.control_taken_ns.0.store(1, Relaxed);
    let snapshot = rounds.snapshot();
    assert_eq!(snapshot.auto.phase(), GatePhase::Learn);
    assert_eq!(rounds.control_taken_ns.0.load(Relaxed), 0);
}

#[test]
fn participants_are_counted_once_per_window() {
    let rounds = rounds(0);
    let (first, second) = (Default::default(), Default::default());
    for _ in 0..5 {
        rounds.count_participant(&first);
        rounds.count_participant(&second);
    }
    assert_eq!(rounds.window_participants.load(Relaxed), 2);
    rounds.window.0.store(7, Relaxed);
    rounds.count_participant(&first);
    assert_eq!(rounds.window_participants.load(Relaxed), 3);
    assert_eq!(rounds.newcomers.load(Relaxed), 2, "each caller is new once");
}

#[test]
fn a_plan_of_long_ago_holds_nobody() {
    let rounds = rounds(9);
    rounds.epoch_ns.0.store(1_000, Relaxed);
    let (soon_ns, late_ns) = (1_000_000_000, 6_000_000_000);
    assert!(rounds.is_gated(&GatePolicy::Auto, soon_ns));
    assert!(!rounds.is_gated(&GatePolicy::Auto, late_ns));
    // The other policies learn nothing that could be forgotten.
    assert!(rounds.is_gated(&GatePolicy::Pid { set_point: None }, late_ns));
}
