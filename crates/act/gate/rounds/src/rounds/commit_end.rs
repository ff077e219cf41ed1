//! The end of a commit: one of the first callers to come back notes it and asks the controller.
//!
//! Of a round with several callers it is the second. Of a commit all come back at once; but where no commit
//! is needed, the first request for a flush is sent to the device alone, at once, and all others share the
//! next flush (`blk_kick_flush()` in block/blk-flush.c). The round is over with that one.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::fence;

use luc_control::MAX_PARTICIPANTS;
use luc_control::auto_gate::GatePlan;
use luc_control::commit_end::CommitEnd;
use luc_control::pid::PidGains;

use super::join::{JoinedRound, LONGEST_WAIT_NS};
use super::shared_layout::{ControllerMemory, FORGOTTEN_NS, Rounds, RoundsSnapshot, split};
use super::user_rounds::FileSystemActivity;
use crate::call_path_syscalls;
use crate::gate_policy::GatePolicy;

/// Participants are counted over this many ends of commits.
const WINDOW_EPOCHS: u32 = 4;

/// The set point of policy `pid` that nobody gave leaves out this part of the callers. The paper's was half
/// of the threads; half is what a commit serves without holding anybody (callers fall into two groups), so
/// it would change nothing here. Seven eighths leave somebody out of every round of eight or more, so that one
/// slow caller holds nobody up.
const PID_LEAVES_PART: u32 = 8;

/// Who has held the controller this long was killed with it.
const ABANDONED_NS: u64 = 1_000_000_000;

/// What one more caller costs under policy `pid` before anything was measured, in nanoseconds.
const PID_SLOPE_NS: u64 = 50_000;

/// A round ends when this many of its callers have come back.
const ENDS_WITH: u32 = 2;

/// Callers that return within this part of a call's latency after the last end of a commit come from
/// the same commit.
const SAME_COMMIT: u64 = 4;

/// What the end of one commit was like.
struct Ended {
    end_ns: u64,
    /// 0 if nobody needed a commit, only a flush.
    commit_ns: u64,
    released: u32,
    beside: FileSystemActivity,
    last_end_ns: u64,
}

impl Rounds {
    /// To be called when the real call of a caller that `joined` a round has returned. Tells whether the
    /// round ended with it.
    pub fn returned_from_round(
        &self,
        policy: &GatePolicy,
        joined: &JoinedRound,
        beside: FileSystemActivity,
    ) -> bool {
        if joined.shares_flush {
            return false;
        }
        let generation = joined.generation;
        let ended = self.ended.load(Acquire);
        // Someone of this round, or of a later one, was here before.
        if ended.wrapping_sub(generation.wrapping_add(1)) < u32::MAX / 2 {
            return false;
        }
        let times = self.generation(generation);
        let returned = times.returned.fetch_add(1, AcqRel).saturating_add(1);
        let released = times.released.load(Relaxed).max(1);
        // Callers that share a flush are not counted; without committers there are none.
        let members = match times.committers.load(Relaxed) {
            0 => released,
            committers => released.min(committers),
        };
        if returned < members.min(ENDS_WITH) {
            return false;
        }
        let mine = generation.wrapping_add(1);
        if self.ended.compare_exchange(ended, mine, AcqRel, Acquire).is_err() {
            return false;
        }
        let end_ns = call_path_syscalls::now_ns();
        if end_ns == call_path_syscalls::NO_TIME_NS {
            return false;
        }
        let released_ns = times.released_ns.load(Relaxed);
        let has_commit =
            times.committers.load(Relaxed) > 0 && released_ns != call_path_syscalls::NO_TIME_NS;
        let commit_ns = if has_commit { end_ns.saturating_sub(released_ns) } else { 0 };
        self.end_commit(
            policy,
            &Ended {
                end_ns,
                commit_ns,
                released,
                beside,
                last_end_ns: self.epoch_ns.0.load(Relaxed),
            },
        );
        self.release_if_full(policy);
        true
    }

    /// To be called when an ungated call that took `latency_ns` has returned at `end_ns`.
    pub fn returned_ungated(
        &self,
        policy: &GatePolicy,
        end_ns: u64,
        latency_ns: u64,
        beside: FileSystemActivity,
    ) {
        let last_ns = self.epoch_ns.0.load(Relaxed);
        if end_ns.saturating_sub(last_ns) <= latency_ns / SAME_COMMIT {
            return;
        }
        if self.epoch_ns.0.compare_exchange(last_ns, end_ns, AcqRel, Relaxed).is_ok() {
            self.end_commit(
                policy,
                &Ended { end_ns, commit_ns: latency_ns, released: 0, beside, last_end_ns: last_ns },
            );
        }
    }

    /// A look at the state, for reports.
    pub fn snapshot(&self) -> RoundsSnapshot {
        let control =
            self.with_control(call_path_syscalls::now_ns(), |control| *control).unwrap_or_default();
        RoundsSnapshot {
            auto: control.auto,
            rounds: split(self.round.0.load(Relaxed)).0,
            completions: self.completions.0.load(Relaxed),
            set_point: self.plan.set_point.load(Relaxed),
            commit_ns: self.plan.commit_ns.load(Relaxed),
            participants: control.participants,
        }
    }

    /// Makes the gate act from the first call on, for policies that need no learning.
    pub fn start(&self, policy: &GatePolicy) {
        if matches!(policy, GatePolicy::Delay(_) | GatePolicy::Pid { .. }) {
            self.plan.set_point.store(u32::MAX, Relaxed);
        }
    }

    /// Forgets what the controller has learnt, and lets go whoever gathers.
    pub(super) fn forget(&self, policy: &GatePolicy) {
        // If somebody was killed in the middle of an update, the next one at it forgets everything.
        let _ = self.with_control(call_path_syscalls::now_ns(), ControllerMemory::reset);
        self.plan.store(&GatePlan::default());
        self.release_if_full(policy);
    }

    fn end_commit(&self, policy: &GatePolicy, ended: &Ended) {
        let waiting = split(self.round.0.load(Acquire)).1;
        self.epoch_ns.0.store(ended.end_ns, Relaxed);
        let idle = ended.end_ns.saturating_sub(ended.last_end_ns) > FORGOTTEN_NS;
        if ended.commit_ns > 0 {
            self.committed_ns.store(ended.end_ns, Relaxed);
        }
        let arrived = (self.arrivals.swap(waiting, Relaxed) as usize).min(MAX_PARTICIPANTS);
        let plan = self.with_control(ended.end_ns, |control| {
            if idle {
                control.reset();
            }
            for (copy, shared) in control.arrivals_ns.0[..arrived].iter_mut().zip(&self.arrivals_ns)
            {
                *copy = shared.load(Relaxed);
            }
            self.count_window(control);
            decide(
                policy,
                control,
                arrived,
                &CommitEnd {
                    end_ns: ended.end_ns,
                    completions: ended.beside.served,
                    own_completions: self.completions(),
                    others: ended.beside.others,
                    newcomers: self.newcomers.load(Relaxed),
                    most_at_once: ended.beside.crowd.most,
                    latencies_ns: ended.beside.crowd.latencies_ns,
                    participants: control.participants,
                    commit_ns: ended.commit_ns,
                    released: ended.released,
                    exact: false,
                    arrivals_ns: &[],
                },
            )
        });
        for shared in self.arrivals_ns.iter().take(waiting as usize) {
            shared.store(0, Relaxed);
        }
        if let Some(plan) = plan {
            self.plan.store(&plan);
        }
    }

    /// Callers that arrived during the commit may already be as many as the next round wants.
    pub(super) fn release_if_full(&self, policy: &GatePolicy) {
        // Pairs with the fence of a caller that has just been counted.
        fence(SeqCst);
        let set_point = self.plan.set_point.load(Relaxed);
        let (generation, count) = split(self.round.0.load(Acquire));
        // An ungated plan also frees whoever still gathers.
        if *policy == GatePolicy::Auto && count >= set_point {
            self.release(generation);
        }
    }

    fn count_window(&self, control: &mut ControllerMemory) {
        control.window_epochs = control.window_epochs.saturating_add(1);
        if control.window_epochs >= WINDOW_EPOCHS {
            control.window_epochs = 0;
            let counted = self.window_participants.swap(0, Relaxed);
            self.window.0.fetch_add(1, Relaxed);
            control.participants = counted.max(control.previous_participants);
            control.previous_participants = counted;
        }
    }

    /// Runs `step` on the controller's memory unless somebody else is at it.
    fn with_control<T>(
        &self,
        now_ns: u64,
        step: impl FnOnce(&mut ControllerMemory) -> T,
    ) -> Option<T> {
        let taken = &self.control_taken_ns.0;
        let holder_ns = taken.load(Relaxed);
        if holder_ns != 0 && now_ns.saturating_sub(holder_ns) < ABANDONED_NS {
            return None;
        }
        taken.compare_exchange(holder_ns, now_ns.max(1), Acquire, Relaxed).ok()?;
        // SAFETY: `control_taken_ns` was won by this thread, and nobody else touches `control` until it
        // is given back or abandoned for a second. Should a holder have been stopped that long and go
        // on, both write plain numbers for which every bit pattern is valid.
        let control = unsafe { &mut *self.control.get() };
        if holder_ns != 0 {
            // Its holder was killed in the middle of an update.
            control.reset();
        }
        let outcome = step(control);
        taken.store(0, Release);
        Some(outcome)
    }
}

/// What follows from the end `epoch`, before which the first `arrived` of the control's arrivals came.
fn decide(
    policy: &GatePolicy,
    control: &mut ControllerMemory,
    arrived: usize,
    epoch: &CommitEnd<'_>,
) -> GatePlan {
    control.commit_ns = match (control.commit_ns, epoch.commit_ns) {
        (known_ns, 0) => known_ns,
        (0, commit_ns) => commit_ns,
        (known_ns, commit_ns) => (known_ns - known_ns / 8).saturating_add(commit_ns / 8),
    };
    let held = GatePlan {
        gated: true,
        trying: false,
        lost: false,
        set_point: u32::MAX,
        return_ns: 0,
        patience_ns: 0,
        commit_ns: control.commit_ns,
    };
    match policy {
        GatePolicy::Auto => control
            .auto
            .on_epoch(&CommitEnd { arrivals_ns: &control.arrivals_ns.0[..arrived], ..*epoch }),
        GatePolicy::Off => GatePlan { gated: false, ..held },
        GatePolicy::Delay(_) => held,
        GatePolicy::Pid { set_point } => {
            let seen = control.participants;
            let set_point = set_point.unwrap_or(seen - seen / PID_LEAVES_PART).max(1);
            let bounds_ns = (0, LONGEST_WAIT_NS);
            let patience_ns = control.pid.update(
                &PidGains::PAPER,
                set_point,
                epoch.released,
                PID_SLOPE_NS,
                bounds_ns,
            );
            GatePlan { patience_ns, ..held }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use luc_control::auto_gate::GatePhase;

    use super::*;

    const COMMIT_NS: u64 = 13_000_000;

    /// Commits of sixteen callers that do nothing but call: of two groups in turn, or of all where they are held. When
    /// the last one ended.
    fn commits(rounds: &Rounds, callers: &[Cell<u32>; 16], mut end_ns: u64, number: u32) -> u64 {
        for _ in 0..number {
            let last_end_ns = end_ns;
            end_ns += COMMIT_NS;
            let is_held = rounds.is_gated(&GatePolicy::Auto, end_ns);
            let group = if is_held { 16 } else { 8 };
            let first = rounds.completions() as usize % 16;
            for caller in callers.iter().cycle().skip(first).take(group) {
                rounds.count_participant(caller);
                rounds.complete();
            }
            let ended = Ended {
                end_ns,
                commit_ns: if is_held { COMMIT_NS } else { 2 * COMMIT_NS },
                released: if is_held { 16 } else { 0 },
                beside: FileSystemActivity {
                    served: rounds.completions(),
                    ..FileSystemActivity::default()
                },
                last_end_ns,
            };
            rounds.end_commit(&GatePolicy::Auto, &ended);
        }
        end_ns
    }

    /// Stands for a `lucd` that is killed twice: each time nobody counts calls for 0.7 s. A trial that counted this time
    /// as its cost would rule out the next one for a minute.
    #[test]
    fn a_supervisor_that_forgets_is_soon_where_its_predecessor_was() {
        for (forgets, phase) in [(false, GatePhase::Aside), (true, GatePhase::Engaged)] {
            // SAFETY: all zeros is a valid initial state.
            let rounds: Box<Rounds> = Box::new(unsafe { core::mem::zeroed() });
            let callers: [Cell<u32>; 16] = Default::default();
            let mut end_ns = 1_000_000_000;
            while rounds.snapshot().auto.phase() != GatePhase::TryGated {
                end_ns = commits(&rounds, &callers, end_ns, 1);
                assert!(end_ns < 3_000_000_000, "no trial begins");
            }
            // One long commit alone would not decide a trial.
            for _ in 0..2 {
                end_ns = commits(&rounds, &callers, end_ns, 3);
                if forgets {
                    rounds.forget(&GatePolicy::Auto);
                    assert!(!rounds.is_gated(&GatePolicy::Auto, end_ns));
                }
                end_ns += 700_000_000;
            }
            commits(&rounds, &callers, end_ns, 1_500);
            let auto = rounds.snapshot().auto;
            assert_eq!(auto.phase(), phase, "{:?}", auto.trials());
        }
    }
}
