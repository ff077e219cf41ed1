//! When a trial is worth making, whether it may be believed, and when a decision is questioned before its time.

use super::{Auto, GLANCE_NS, Phase, Reason};
use crate::engagement::{Backoff, HOPELESS, OBVIOUS, Verdict};
use crate::epoch::Epoch;
use crate::sample::{Measured, Sample};

/// A trial is not worth its cost when even everybody in each commit would gain less than this.
const PROMISING: f64 = 1.05;
/// Callers come and go if this part of the calls are their first: processes that synchronize once or twice and end. A round
/// cannot know when the next one comes, so a trial seldom pays.
const COME_AND_GO: f64 = 0.25;
/// The population is closed where so many calls of the most at once are under way in the mean: whoever ends is followed
/// by another at once, so a round that waits for the next one does not wait in vain, whichever process that is.
const CLOSED: f64 = 0.78;
/// A trial that does not pay loses about as much time as this many commits take.
const TRIAL_COMMITS: u64 = 10;
/// Callers that are fewer than this part of all are not worth a trial: others decide how fast all are.
const LEAST_SHARE: f64 = 0.25;
/// Where the callers' calls, of one commit's time each, fill less than this part of the time, the disk rests in between, and
/// nobody waits for another's commit.
const BUSY: f64 = 0.75;
/// Where no more calls than this are under way at once, in the mean, there is nobody to wait for: a service that starts
/// makes one call after the other, and not all by the same caller.
const ONE_AT_A_TIME: f64 = 1.0;
/// Participants or commit time that change by this factor make old findings void.
const CHANGED: f64 = 1.5;
/// Callers have fallen behind when their rate times this is below the last one that was measured the other way.
const FALLEN_BEHIND: f64 = 1.1;
/// A trial has lost much when its gated rate times this is below the ungated one.
const LOST: f64 = 1.4;
/// A trial's gated sample that has measured n commits ends at once, as it costs what it loses, when its rate so far times
/// 1 + LOST_COMMITS / n is below the ungated one: 1.4 after two commits, 1.1 after eight.
const LOST_COMMITS: f64 = 0.8;
/// Held callers may have been as fast as others when a trial has measured more than this.
const NEARLY_AS_FAST: f64 = 0.95;
/// Rates are of these callers if this part of the calls is theirs.
const NEARLY_ALL: f64 = 0.9;
/// A caller waits for the commit in flight and for its own, which is for as long as two held commits take from one end to
/// the next.
const LONGEST_CALL_COMMITS: f64 = 2.0;
/// What a trial has lost is to be this part of the time until the next one, at most.
const LOST_PART: f64 = 100.0;

impl Auto {
    /// Takes note of what another controller does. Rates are of its callers, too, so a sample in which it begins or ends
    /// to hold them compares with nothing, and a trial starts over.
    pub(super) fn note_others(&mut self, epoch: &Epoch<'_>) {
        self.others_try = u32::from(epoch.others.trying);
        let others_gated = u32::from(epoch.others.gated);
        if self.others_gated == others_gated {
            return;
        }
        self.others_gated = others_gated;
        if self.is_trying() {
            self.enter(Phase::Learn);
        }
        self.sample = Sample::default();
    }

    /// Begins a trial after an ungated sample, or says why not.
    pub(super) fn consider_trial(&mut self, epoch: &Epoch<'_>, measured: &Measured) {
        let (now_ns, own_share) = (epoch.end_ns, measured.own_share);
        let come_and_go = measured.newcomers_share >= COME_AND_GO && measured.closed < CLOSED;
        let commit_s = self.ungated_commit_ns.max(1) as f64 / 1e9;
        let at_best = f64::from(self.participants) / commit_s;
        if own_share < LEAST_SHARE {
            self.step_aside(now_ns, Reason::Few, GLANCE_NS);
        } else if self.participants < 2 {
            self.step_aside(now_ns, Reason::Alone, GLANCE_NS);
        } else if epoch.others.lost && own_share <= 1.0 - LEAST_SHARE {
            self.step_aside(now_ns, Reason::TakenAlong, GLANCE_NS);
        } else if !epoch.exact && self.are_apart(measured) {
            self.step_aside(now_ns, Reason::TooFarApart, GLANCE_NS);
        } else if at_best < PROMISING * self.ungated_rate {
            self.step_aside(now_ns, Reason::NothingToGain, GLANCE_NS);
        } else if come_and_go && !self.is_trial_cheap(now_ns) && !epoch.exact {
            self.step_aside(now_ns, Reason::ComeAndGo, GLANCE_NS);
        } else if self.others_try == 1 {
            self.sample.go_on();
        } else {
            self.start_trial(epoch);
        }
    }

    /// Whether callers come one after the other, so that there is nobody to wait for. How many calls are under way at once is
    /// not known where a call is only seen to have returned when its caller comes again.
    fn are_apart(&self, measured: &Measured) -> bool {
        let commit_s = self.ungated_commit_ns as f64 / 1e9;
        measured.calls_at_once() <= ONE_AT_A_TIME
            || measured.rate * measured.own_share * commit_s < BUSY
    }

    /// Whether what a trial may lose is little of the time since the first commit.
    fn is_trial_cheap(&self, now_ns: u64) -> bool {
        let trial_ns = self.ungated_commit_ns.saturating_mul(TRIAL_COMMITS);
        now_ns.saturating_sub(self.begun_ns) as f64 >= LOST_PART * trial_ns as f64
    }

    /// Whether a trial goes on.
    pub(super) fn is_trying(&self) -> bool {
        matches!(self.phase(), Phase::TryGated | Phase::TryUngated) || self.is_confirming()
    }

    /// Whether a check decides about a gain that looks obvious.
    pub(super) fn is_confirming(&self) -> bool {
        self.phase() == Phase::Check && self.confirms == 1
    }

    /// Takes what an ungated sample has measured.
    pub(super) fn note_ungated(&mut self, measured: &Measured) {
        self.ungated_rate = measured.rate;
        self.ungated_latency_s =
            if measured.own_share >= NEARLY_ALL { measured.latency_s } else { 0.0 };
    }

    /// Whether an obvious gain may be nothing but more work that has come since the ungated sample: then it takes
    /// another ungated sample to tell.
    ///
    /// Callers that are not held make at most as many calls as they have time for, if each of them does nothing but call.
    /// A rate that is obviously beyond that is no matter of work. A call may have taken longer in the ungated sample than
    /// it would now, but not longer than two commits.
    pub(super) fn is_doubtful(&self, epoch: &Epoch<'_>, measured: &Measured) -> bool {
        let longest_call_s = LONGEST_CALL_COMMITS * measured.interval_s;
        // Where commits are seen exactly, it is they whose time is known, and not that of calls.
        let call_s =
            if epoch.exact { longest_call_s } else { self.ungated_latency_s.min(longest_call_s) };
        let busy_callers = measured.rate * measured.own_share * call_s;
        let is_obvious = busy_callers >= OBVIOUS * f64::from(epoch.participants);
        self.pairs.count() <= 1 && !is_obvious
    }

    /// Whether callers, held because that was faster, are clearly slower than they were alone.
    pub(super) fn falls_behind_held(&self, now_ns: u64, rate: f64) -> bool {
        now_ns >= self.decided_ns.saturating_add(GLANCE_NS)
            && rate * FALLEN_BEHIND < self.ungated_rate
    }

    /// How long a trial that ends with this commit rules the next one out, by what it has lost: the time beyond that in
    /// which callers that are let go would have been served as often. In nanoseconds.
    pub(super) fn loss_pause_ns(&self, epoch: &Epoch<'_>) -> u64 {
        let took_ns = epoch.end_ns.saturating_sub(self.trial_ns) as f64;
        let served = epoch.completions.saturating_sub(self.trial_completions) as f64;
        let lost_ns = took_ns - served * 1e9 / self.ungated_rate.max(1e-3);
        ((lost_ns.max(0.0) * LOST_PART) as u64).min(Backoff::LONGEST_NS)
    }

    /// Whether callers, left alone because that was as fast, are no longer as fast.
    ///
    /// Callers that were released together stay in step for a while when they are no longer held, and so
    /// share commits as if they were: ungated right after gated looks as good. In time they fall back into
    /// groups that wait for each other.
    pub(super) fn has_fallen_behind(&self, now_ns: u64, rate: f64) -> bool {
        self.reason() == Reason::NoGainMeasured
            && now_ns >= self.decided_ns.saturating_add(GLANCE_NS)
            && !self.trial_backoff.has_grown()
            && (self.loss_pause_ns == 0 || self.pairs.gain() > NEARLY_AS_FAST)
            && !self.has_changed()
            && rate * FALLEN_BEHIND < self.gated_rate
    }

    /// The rate of a trial's gated sample so far, if it is so bad that the rest of it would change nothing.
    pub(super) fn lost_rate(&self, epoch: &Epoch<'_>) -> Option<f64> {
        let is_gated = self.phase() == Phase::TryGated;
        let (rate, commits) = self.sample.so_far(epoch).filter(|_| is_gated)?;
        let margin = 1.0 + LOST_COMMITS / f64::from(commits);
        (rate * margin < self.ungated_rate).then_some(rate)
    }

    /// Begins the trial's gated sample anew if it loses by one commit alone: without it callers would be served as fast as
    /// ungated ones. The disk or the processors had something else to do then, which says nothing about holding, and would
    /// rule out the next trial for long. A trial does so once: holding itself may cost a long commit now and then.
    pub(super) fn measures_once_more(&mut self, epoch: &Epoch<'_>) -> bool {
        let loses = self.gated_rate <= HOPELESS * self.ungated_rate;
        let rest_rate = self.sample.rate_but_for_longest();
        let is_one_commit = rest_rate.is_some_and(|rate| rate >= self.ungated_rate);
        if self.has_repeated != 0 || !loses || !is_one_commit {
            return false;
        }
        self.has_repeated = 1;
        (self.trial_ns, self.trial_completions) = (epoch.end_ns, epoch.completions);
        self.enter(Phase::TryGated);
        true
    }

    /// What follows from one more pair of a trial. One that finds callers slower when they are held, not only once, is
    /// not worth finding out how much.
    pub(super) fn add_pair(&mut self) -> Verdict {
        let verdict = self.pairs.add(self.gated_rate, self.ungated_rate);
        let is_slower = self.pairs.count() >= 2 && self.pairs.gain() < 1.0;
        match verdict {
            Verdict::More if is_slower => Verdict::DoesNotPay,
            verdict => verdict,
        }
    }

    /// Whether the last trial lost so much that others than the same callers would have to be there to gain. Until the
    /// next one is due it takes more than a change of their number: where callers are not seen exactly, that may change
    /// all the time.
    pub(super) fn has_lost(&self, epoch: &Epoch<'_>) -> bool {
        !epoch.exact
            && self.reason() == Reason::NoGainMeasured
            && self.trial_backoff.has_grown()
            && self.gated_rate * LOST < self.ungated_rate
    }

    /// Whether the last decision is old enough to be questioned before its time.
    pub(super) fn has_rested(&self, now_ns: u64) -> bool {
        let rest_ns = self.loss_pause_ns.max(Backoff::FIRST_NS);
        now_ns >= self.decided_ns.saturating_add(rest_ns)
    }

    /// Whether participants (or, ungated, the commit time) are far from what the last decision saw.
    pub(super) fn has_changed(&self) -> bool {
        let far = |now: f64, then: f64| now > CHANGED * then || then > CHANGED * now;
        far(f64::from(self.participants), f64::from(self.decided_participants))
            || far(self.ungated_commit_ns as f64, self.decided_commit_ns as f64)
    }
}
