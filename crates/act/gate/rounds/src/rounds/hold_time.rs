//! How long a round is held for callers that are missing, and each caller at most.
//!
//! What other processes wrote can only shorten a caller's longest hold, never lengthen it beyond what
//! this process knows by itself ([`HoldLimits`]).

use core::sync::atomic::Ordering::Relaxed;

use luc_control::setpoint::worth_holding_ns;

use super::shared_layout::{Rounds, split};
use crate::gate_policy::GatePolicy;

/// No caller is held for more than this many commit times.
const LONGEST_WAIT_COMMITS: u64 = 4;

/// Longest time between two callers, 1 ms: then policy `pid` closes the round (LUC section IV.A).
const PID_LONGEST_GAP_NS: u64 = 1_000_000;

/// How often the keeper of an overdue round's timer looks who has come.
const LOOK_AGAIN_NS: u64 = 100_000;

/// How often the caller that keeps a timer looks whether the commit in flight has ended: at its end nobody
/// wakes the sleepers. A part of the commit's time, within these bounds in nanoseconds.
const LOOK_FOR_END_PART: u64 = 64;
const LOOK_FOR_END_NS: (u64, u64) = (100_000, 1_000_000);

/// The commit in flight may take this many times as long as a process' own calls took before.
const OWN_CALLS: u64 = 2;

/// How long the commit in flight may take for a process that has made no call yet, in nanoseconds, and
/// for any other one.
const FIRST_CALL_NS: u64 = 100_000_000;
const LONGEST_CALL_NS: u64 = 1_000_000_000;

/// What a process knows by itself about how long its callers may be held.
#[derive(Clone, Copy, Debug)]
pub struct HoldLimits {
    /// The longest that a caller is held beyond the commit in flight, in nanoseconds.
    pub longest_ns: u64,
    /// The longest that a call of this process took of late, without the gate's part, in nanoseconds; 0
    /// before the first one.
    pub own_call_ns: u64,
}

impl HoldLimits {
    /// The longest that a caller waits for the commit in flight, in nanoseconds, whatever other processes
    /// have written about it.
    pub(super) fn in_flight_ns(&self) -> u64 {
        match self.own_call_ns {
            0 => FIRST_CALL_NS,
            own_ns => own_ns.saturating_mul(OWN_CALLS).min(LONGEST_CALL_NS),
        }
    }
}

/// What the keeper of a round's timer does next.
pub(super) enum TimerStep {
    Close,
    WakeAt(u64),
}

impl TimerStep {
    fn at(closes_ns: u64, now_ns: u64) -> Self {
        if now_ns >= closes_ns { Self::Close } else { Self::WakeAt(closes_ns) }
    }
}

impl Rounds {
    /// Whether the round of `generation` closes now for want of callers, or when to look again.
    pub(super) fn timer(&self, policy: &GatePolicy, generation: u32, now_ns: u64) -> TimerStep {
        let times = self.generation(generation);
        let (first_ns, last_ns) = (times.first_ns.load(Relaxed), times.last_ns.load(Relaxed));
        match policy {
            GatePolicy::Off => TimerStep::Close,
            GatePolicy::Auto => self.timer_auto(generation, first_ns, last_ns, now_ns),
            GatePolicy::Delay(_) | GatePolicy::Pid { .. } => {
                // Both hold the *commit*: time in which another one is in flight does not count.
                if self.commit_in_flight(generation, now_ns) {
                    return TimerStep::WakeAt(self.look_for_end_ns(generation, now_ns));
                }
                let end_ns = self.epoch_ns.0.load(Relaxed);
                let (first_ns, last_ns) = (first_ns.max(end_ns), last_ns.max(end_ns));
                let closes_ns = match policy {
                    GatePolicy::Delay(delay) => delay.deadline_ns(last_ns),
                    _ => first_ns
                        .saturating_add(self.plan.patience_ns.load(Relaxed))
                        .min(last_ns.saturating_add(PID_LONGEST_GAP_NS)),
                };
                TimerStep::at(closes_ns, now_ns)
            }
        }
    }

    /// When to look whether the commit before `gathering` has ended.
    fn look_for_end_ns(&self, gathering: u32, now_ns: u64) -> u64 {
        let commit_ns = self.plan.commit_ns.load(Relaxed);
        let (least_ns, most_ns) = LOOK_FOR_END_NS;
        let pause_ns = (commit_ns / LOOK_FOR_END_PART).clamp(least_ns, most_ns);
        let released_ns = self.generation(gathering.wrapping_sub(1)).released_ns.load(Relaxed);
        released_ns.saturating_add(commit_ns - commit_ns / 8).max(now_ns + pause_ns)
    }

    fn timer_auto(&self, generation: u32, first_ns: u64, last_ns: u64, now_ns: u64) -> TimerStep {
        let commit_ns = self.plan.commit_ns.load(Relaxed);
        let end_ns = if self.commit_in_flight(generation, now_ns) {
            self.expected_end_ns(generation)
        } else {
            self.epoch_ns.0.load(Relaxed)
        };
        let return_ns = self.plan.return_ns.load(Relaxed);
        let expected_ns = first_ns.max(end_ns.saturating_add(return_ns));
        if now_ns < expected_ns {
            return TimerStep::WakeAt(expected_ns);
        }
        let gathered = split(self.round.0.load(Relaxed)).1;
        let missing = self.plan.set_point.load(Relaxed).saturating_sub(gathered);
        let since_end_ns = last_ns.saturating_sub(end_ns);
        let worth_ns = worth_holding_ns(commit_ns, since_end_ns, gathered, missing);
        let patience_ns = self.plan.patience_ns.load(Relaxed);
        let closes_ns = expected_ns
            .saturating_add(patience_ns)
            .min(last_ns.max(end_ns).saturating_add(worth_ns));
        // Each arrival changes what is worth holding for, and does not wake anybody.
        match TimerStep::at(closes_ns, now_ns) {
            TimerStep::Close => TimerStep::Close,
            TimerStep::WakeAt(ns) => TimerStep::WakeAt(ns.min(now_ns + LOOK_AGAIN_NS)),
        }
    }

    /// When a caller that arrived at `arrived_ns` leaves on its own, whatever happens: the longest hold
    /// after its arrival, or after the expected end of the commit that is in flight, for which it would
    /// have to wait in the kernel as well; and four commit times after its arrival at the latest.
    pub(super) fn deadline_ns(&self, gathering: u32, arrived_ns: u64, limits: &HoldLimits) -> u64 {
        let longest_ns = arrived_ns.saturating_add(limits.longest_ns);
        let commit_ns = self.plan.commit_ns.load(Relaxed);
        if commit_ns == 0 {
            return longest_ns;
        }
        let in_flight_ns = if self.commit_in_flight(gathering, arrived_ns) {
            self.expected_end_ns(gathering).saturating_sub(arrived_ns)
        } else {
            0
        };
        longest_ns
            .saturating_add(in_flight_ns.min(limits.in_flight_ns()))
            .min(arrived_ns.saturating_add(commit_ns.saturating_mul(LONGEST_WAIT_COMMITS)))
    }

    /// When the commit of the round before `gathering` should have ended, with a quarter to spare.
    fn expected_end_ns(&self, gathering: u32) -> u64 {
        let commit_ns = self.plan.commit_ns.load(Relaxed);
        let before = self.generation(gathering.wrapping_sub(1));
        before.released_ns.load(Relaxed).saturating_add(commit_ns.saturating_add(commit_ns / 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_control::auto_gate::GatePlan;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_the_shared_memory_says_a_hold_is_bounded_by_what_the_process_knows(
            plan_ns in proptest::array::uniform3(any::<u64>()),
            released_ns in any::<u64>(),
            set_point in any::<u32>(),
            own_call_ns in any::<u64>(),
            longest_ns in 0..20_000_000_u64,
        ) {
            // SAFETY: all zeros is a valid initial state.
            let rounds: Box<Rounds> = Box::new(unsafe { core::mem::zeroed() });
            let [return_ns, patience_ns, commit_ns] = plan_ns;
            let plan = GatePlan { gated: true, trying: false, lost: false, set_point, return_ns, patience_ns, commit_ns };
            rounds.plan.store(&plan);
            rounds.generation(u32::MAX).released_ns.store(released_ns, Relaxed);
            rounds.ended.store(7, Relaxed);
            let arrived_ns = 1_000_000_000_000;
            let limits = HoldLimits { longest_ns, own_call_ns };
            let held_ns = rounds.deadline_ns(0, arrived_ns, &limits) - arrived_ns;
            prop_assert!(held_ns <= longest_ns + LONGEST_CALL_NS);
            prop_assert!(held_ns <= longest_ns + limits.in_flight_ns());
        }
    }
}
