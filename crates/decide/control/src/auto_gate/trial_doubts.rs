//! Decides whether a trial is worth making, whether it can be trusted, and when to question a decision early.

use super::{AutoGate, GLANCE_NS, GatePhase, GateReason};
use crate::commit_end::CommitEnd;
use crate::commit_sample::{CommitSample, SampleResult};
use crate::engagement::{CheckBackoff, EngagementVerdict, HOPELESS_GAIN, OBVIOUS_GAIN};

/// Smallest gain for which a trial is worth its cost, if each commit served all callers.
const MIN_PROMISING_GAIN: f64 = 1.05;
/// Callers come and go if this part of the calls are their first: processes that synchronize once or twice and end. A
/// round cannot predict the next one, so a trial seldom pays.
const MIN_NEWCOMERS_SHARE: f64 = 0.25;
/// The population is closed if the mean number of calls under way is this part of the largest number. Each caller that
/// ends is followed by another at once. So a round that waits for the next caller does not wait in vain.
const MIN_CLOSED_SHARE: f64 = 0.78;
/// Number of commits whose time a trial that does not pay loses.
const TRIAL_COMMITS: u64 = 10;
/// Smallest part of all callers that is worth a trial. If the part is smaller, other callers decide the speed of all.
const MIN_OWN_SHARE: f64 = 0.25;
/// Part of the time that the calls must fill, at one commit time each. Below it the disk rests in between, and no
/// caller waits for another's commit.
const MIN_BUSY_SHARE: f64 = 0.75;
/// Mean number of calls under way up to which no caller can be waited for. A service that starts makes one call after
/// the other, from several callers.
const MAX_SERIAL_CALLS: f64 = 1.0;
/// Factor by which participants or commit time must change to void old findings.
const CHANGE_FACTOR: f64 = 1.5;
/// Callers have fallen behind if their rate times this is below the last rate that was measured the other way.
const FALLEN_BEHIND_FACTOR: f64 = 1.1;
/// A trial has lost much if its gated rate times this is below the ungated rate.
const LARGE_LOSS_FACTOR: f64 = 1.4;
/// Stops a losing trial early: after n commits, when ungated rate > gated rate * (1 + 0.8 / n). The factor is 1.4 after
/// two commits, 1.1 after eight.
const LOSS_MARGIN_COMMITS: f64 = 0.8;
/// Gain above which held callers may have been as fast as ungated ones.
const MIN_NEAR_GAIN: f64 = 0.95;
/// Part of the calls from which on a rate counts as that of the controller's own callers.
const MIN_ATTRIBUTED_SHARE: f64 = 0.9;
/// Longest call in held commits: a caller waits for the commit in flight and for its own.
const MAX_CALL_COMMITS: f64 = 2.0;
/// Shortest time until the next trial, as a multiple of the time that the last one lost.
const LOST_PART: f64 = 100.0;

impl AutoGate {
    /// Notes the state of the other controller. Rates include its callers. A sample in which it begins or stops holding
    /// them cannot be compared, so a trial starts over.
    pub(super) fn note_others(&mut self, epoch: &CommitEnd<'_>) {
        self.others_try = u32::from(epoch.others.trying);
        let others_gated = u32::from(epoch.others.gated);
        if self.others_gated == others_gated {
            return;
        }
        self.others_gated = others_gated;
        if self.is_trying() {
            self.enter(GatePhase::Learn);
        }
        self.sample = CommitSample::default();
    }

    /// Begins a trial after an ungated sample, or notes why not.
    pub(super) fn consider_trial(&mut self, epoch: &CommitEnd<'_>, measured: &SampleResult) {
        let (now_ns, own_share) = (epoch.end_ns, measured.own_share);
        let come_and_go =
            measured.newcomers_share >= MIN_NEWCOMERS_SHARE && measured.closed < MIN_CLOSED_SHARE;
        let commit_s = self.ungated_commit_ns.max(1) as f64 / 1e9;
        let at_best = f64::from(self.participants) / commit_s;
        if own_share < MIN_OWN_SHARE {
            self.step_aside(now_ns, GateReason::Few, GLANCE_NS);
        } else if self.participants < 2 {
            self.step_aside(now_ns, GateReason::Alone, GLANCE_NS);
        } else if epoch.others.lost && own_share <= 1.0 - MIN_OWN_SHARE {
            self.step_aside(now_ns, GateReason::TakenAlong, GLANCE_NS);
        } else if !epoch.exact && self.are_apart(measured) {
            self.step_aside(now_ns, GateReason::TooFarApart, GLANCE_NS);
        } else if at_best < MIN_PROMISING_GAIN * self.ungated_rate {
            self.step_aside(now_ns, GateReason::NothingToGain, GLANCE_NS);
        } else if come_and_go && !self.is_trial_cheap(now_ns) && !epoch.exact {
            self.step_aside(now_ns, GateReason::ComeAndGo, GLANCE_NS);
        } else if self.others_try == 1 {
            self.sample.go_on();
        } else {
            self.start_trial(epoch);
        }
    }

    /// Whether callers come one after the other, so that none can be waited for. The number of calls under way is
    /// unknown where a return is only noticed at the caller's next call.
    fn are_apart(&self, measured: &SampleResult) -> bool {
        let commit_s = self.ungated_commit_ns as f64 / 1e9;
        measured.calls_at_once() <= MAX_SERIAL_CALLS
            || measured.rate * measured.own_share * commit_s < MIN_BUSY_SHARE
    }

    /// Whether the possible loss of a trial is small against the time since the first commit.
    fn is_trial_cheap(&self, now_ns: u64) -> bool {
        let trial_ns = self.ungated_commit_ns.saturating_mul(TRIAL_COMMITS);
        now_ns.saturating_sub(self.begun_ns) as f64 >= LOST_PART * trial_ns as f64
    }

    /// Whether a trial is under way.
    pub(super) fn is_trying(&self) -> bool {
        matches!(self.phase(), GatePhase::TryGated | GatePhase::TryUngated) || self.is_confirming()
    }

    /// Whether a check confirms a gain that looks obvious.
    pub(super) fn is_confirming(&self) -> bool {
        self.phase() == GatePhase::Check && self.confirms == 1
    }

    /// Takes the results of an ungated sample.
    pub(super) fn note_ungated(&mut self, measured: &SampleResult) {
        self.ungated_rate = measured.rate;
        self.ungated_latency_s =
            if measured.own_share >= MIN_ATTRIBUTED_SHARE { measured.latency_s } else { 0.0 };
    }

    /// Whether an obvious gain may only be work that has come since the ungated sample. Then another ungated sample
    /// must decide.
    ///
    /// Callers that are not held make at most the calls that fit into their time. A rate that is obviously beyond
    /// that is a real gain. A call may have taken longer in the ungated sample than it would now, but not longer than
    /// two commits.
    pub(super) fn is_doubtful(&self, epoch: &CommitEnd<'_>, measured: &SampleResult) -> bool {
        let longest_call_s = MAX_CALL_COMMITS * measured.interval_s;
        // Where commits are seen exactly, their time is known, and that of calls is not.
        let call_s =
            if epoch.exact { longest_call_s } else { self.ungated_latency_s.min(longest_call_s) };
        let busy_callers = measured.rate * measured.own_share * call_s;
        let is_obvious = busy_callers >= OBVIOUS_GAIN * f64::from(epoch.participants);
        self.pairs.count() <= 1 && !is_obvious
    }

    /// Whether callers that are held are clearly slower than they were alone.
    pub(super) fn falls_behind_held(&self, now_ns: u64, rate: f64) -> bool {
        now_ns >= self.decided_ns.saturating_add(GLANCE_NS)
            && rate * FALLEN_BEHIND_FACTOR < self.ungated_rate
    }

    /// Pause before the next trial, ns, from the loss of the trial that ends with this commit. The loss is its time
    /// beyond that in which ungated callers would have been served as often.
    pub(super) fn loss_pause_ns(&self, epoch: &CommitEnd<'_>) -> u64 {
        let took_ns = epoch.end_ns.saturating_sub(self.trial_ns) as f64;
        let served = epoch.completions.saturating_sub(self.trial_completions) as f64;
        let lost_ns = took_ns - served * 1e9 / self.ungated_rate.max(1e-3);
        ((lost_ns.max(0.0) * LOST_PART) as u64).min(CheckBackoff::LONGEST_NS)
    }

    /// Whether callers that were left alone are no longer as fast as held ones.
    ///
    /// Callers that were released together stay in step for a while when they are no longer held. They share commits as
    /// if they were held. So an ungated sample right after a gated one looks as good. In time callers fall back into
    /// groups that wait for each other.
    pub(super) fn has_fallen_behind(&self, now_ns: u64, rate: f64) -> bool {
        self.reason() == GateReason::NoGainMeasured
            && now_ns >= self.decided_ns.saturating_add(GLANCE_NS)
            && !self.trial_backoff.has_grown()
            && (self.loss_pause_ns == 0 || self.pairs.gain() > MIN_NEAR_GAIN)
            && !self.has_changed()
            && rate * FALLEN_BEHIND_FACTOR < self.gated_rate
    }

    /// Rate of a trial's gated sample so far, if it is too bad for the rest to change the result.
    pub(super) fn lost_rate(&self, epoch: &CommitEnd<'_>) -> Option<f64> {
        let is_gated = self.phase() == GatePhase::TryGated;
        let (rate, commits) = self.sample.so_far(epoch).filter(|_| is_gated)?;
        let margin = 1.0 + LOSS_MARGIN_COMMITS / f64::from(commits);
        (rate * margin < self.ungated_rate).then_some(rate)
    }

    /// Restarts the trial's gated sample if a single commit causes its loss: without that commit, callers would be as
    /// fast as ungated ones. The disk or the processors were busy otherwise then. That says nothing about holding, and
    /// would delay the next trial for long. A trial restarts once, because holding itself may cost a long commit now
    /// and then.
    pub(super) fn measures_once_more(&mut self, epoch: &CommitEnd<'_>) -> bool {
        let loses = self.gated_rate <= HOPELESS_GAIN * self.ungated_rate;
        let rest_rate = self.sample.rate_but_for_longest();
        let is_one_commit = rest_rate.is_some_and(|rate| rate >= self.ungated_rate);
        if self.has_repeated != 0 || !loses || !is_one_commit {
            return false;
        }
        self.has_repeated = 1;
        (self.trial_ns, self.trial_completions) = (epoch.end_ns, epoch.completions);
        self.enter(GatePhase::TryGated);
        true
    }

    /// Verdict after one more pair of a trial. A trial that finds held callers slower more than once ends, whatever the
    /// amount.
    pub(super) fn add_pair(&mut self) -> EngagementVerdict {
        let verdict = self.pairs.add(self.gated_rate, self.ungated_rate);
        let is_slower = self.pairs.count() >= 2 && self.pairs.gain() < 1.0;
        match verdict {
            EngagementVerdict::More if is_slower => EngagementVerdict::DoesNotPay,
            verdict => verdict,
        }
    }

    /// Whether the last trial lost so much that only different callers could gain. Until the next trial is due, a
    /// change of their number is not enough: it may change all the time if callers are not seen exactly.
    pub(super) fn has_lost(&self, epoch: &CommitEnd<'_>) -> bool {
        !epoch.exact
            && self.reason() == GateReason::NoGainMeasured
            && self.trial_backoff.has_grown()
            && self.gated_rate * LARGE_LOSS_FACTOR < self.ungated_rate
    }

    /// Whether the last decision is old enough to be questioned early.
    pub(super) fn has_rested(&self, now_ns: u64) -> bool {
        let rest_ns = self.loss_pause_ns.max(CheckBackoff::FIRST_NS);
        now_ns >= self.decided_ns.saturating_add(rest_ns)
    }

    /// Whether participants or the ungated commit time differ much from those of the last decision.
    pub(super) fn has_changed(&self) -> bool {
        let far = |now: f64, then: f64| now > CHANGE_FACTOR * then || then > CHANGE_FACTOR * now;
        far(f64::from(self.participants), f64::from(self.decided_participants))
            || far(self.ungated_commit_ns as f64, self.decided_commit_ns as f64)
    }
}
