//! The default policy: learns, tries the gate, engages it where it pays, and steps aside where it does not.
//!
//! [`AutoGate`] takes the end of every commit ([`CommitEnd`]) and returns a [`GatePlan`]. Ungated, it learns the commit
//! time, the rate and the number of callers. A trial compares gated with ungated samples ([`crate::engagement`]).
//! Gated, it learns how soon callers return ([`crate::setpoint`]) and waits for the number that serves the most calls
//! per time. The PID controller steers its patience with late callers.

mod gate_plan;
mod trial_doubts;

pub use gate_plan::{GatePhase, GatePlan, GateReason};

use crate::commit_end::CommitEnd;
use crate::commit_sample::{CommitSample, SampleResult};
use crate::engagement::{CheckBackoff, EngagementVerdict, RatePairs};
use crate::pid::{PidGains, SteeredDelay};
use crate::setpoint::{ReturnProfile, SetPoint};

/// Ratio of ungated to gated rate below which a check confirms an obvious gain.
const MAX_CONFIRMING_RATIO: f64 = 1.05;
/// Time until the next look if only ungated observation is needed, ns.
const GLANCE_NS: u64 = 100_000_000;
/// Shortest patience with late callers, ns.
const MIN_PATIENCE_NS: u64 = 50_000;

/// The controller. All zeros is the initial state; every bit pattern is safe to use.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct AutoGate {
    phase: u32,
    reason: u32,
    participants: u32,
    sample: CommitSample,
    next_ns: u64,
    decided_ns: u64,
    gated_commit_ns: u64,
    ungated_commit_ns: u64,
    last_end_ns: u64,
    gated_rate: f64,
    ungated_rate: f64,
    decided_commit_ns: u64,
    decided_participants: u32,
    set_point: u32,
    return_ns: u64,
    patience: SteeredDelay,
    pairs: RatePairs,
    check_backoff: CheckBackoff,
    trial_backoff: CheckBackoff,
    trials: u32,
    engagements: u32,
    /// End of the first commit, ns.
    begun_ns: u64,
    /// Whether the trial began because callers fell behind ([`AutoGate::has_fallen_behind`]): 1, or 0.
    is_comeback: u32,
    /// Whether a check confirms an obvious gain of a trial: 1, or 0.
    confirms: u32,
    /// Whether a gated sample of the trial was repeated ([`AutoGate::measures_once_more`]): 1, or 0.
    has_repeated: u32,
    /// Whether the other controller holds its callers, and whether it makes a trial: 1, or 0.
    others_gated: u32,
    others_try: u32,
    /// Start of the last trial, ns, and the number of calls served by then.
    trial_ns: u64,
    trial_completions: u64,
    /// Pause before the next trial because of the last one's loss, ns.
    loss_pause_ns: u64,
    /// Latency of a call that was not held, in the sample of `ungated_rate`, s; 0 if unknown.
    ungated_latency_s: f64,
    profile: ReturnProfile,
}

impl AutoGate {
    /// Takes the end of a commit and returns the plan until the next.
    pub fn on_epoch(&mut self, epoch: &CommitEnd<'_>) -> GatePlan {
        let interval_ns = epoch.end_ns.saturating_sub(self.last_end_ns);
        self.last_end_ns = epoch.end_ns;
        if self.begun_ns == 0 {
            self.begun_ns = epoch.end_ns;
        }
        self.participants = epoch.participants;
        if epoch.released > 0 {
            smooth(&mut self.gated_commit_ns, epoch.commit_ns);
            self.profile.observe(epoch.arrivals_ns, interval_ns);
        } else {
            smooth(&mut self.ungated_commit_ns, epoch.commit_ns.min(interval_ns));
        }
        self.note_others(epoch);
        self.steer(epoch.released);
        if let Some(measured) = self.sample.observe(epoch, self.phase()) {
            self.end_sample(epoch, &measured);
        } else {
            self.watch_sample(epoch);
        }
        self.plan()
    }

    /// The plan in force now.
    pub fn plan(&self) -> GatePlan {
        GatePlan {
            gated: matches!(self.phase(), GatePhase::TryGated | GatePhase::Engaged),
            trying: self.is_trying(),
            lost: self.phase() == GatePhase::Aside && self.reason() == GateReason::NoGainMeasured,
            set_point: self.set_point.max(1),
            return_ns: self.return_ns,
            patience_ns: self.patience.delay_ns(),
            commit_ns: self.commit_ns(),
        }
    }

    /// Present phase of the controller.
    pub fn phase(&self) -> GatePhase {
        match self.phase {
            1 => GatePhase::TryGated,
            2 => GatePhase::TryUngated,
            3 => GatePhase::Engaged,
            4 => GatePhase::Check,
            5 => GatePhase::Aside,
            _ => GatePhase::Learn,
        }
    }

    /// Reason for the present phase.
    pub fn reason(&self) -> GateReason {
        match self.reason {
            1 => GateReason::Alone,
            2 => GateReason::NothingToGain,
            3 => GateReason::TooFarApart,
            4 => GateReason::NoGainMeasured,
            5 => GateReason::GainMeasured,
            6 => GateReason::Few,
            7 => GateReason::TakenAlong,
            8 => GateReason::ComeAndGo,
            _ => GateReason::Undecided,
        }
    }

    /// The commit time, ns: of gated commits if any were observed, else of ungated ones.
    pub fn commit_ns(&self) -> u64 {
        if self.gated_commit_ns > 0 { self.gated_commit_ns } else { self.ungated_commit_ns }
    }

    /// Number of distinct callers in the last window.
    pub fn participants(&self) -> u32 {
        self.participants
    }

    /// Callers served per second in the last gated and the last ungated sample; 0 if there was none.
    pub fn rates_per_s(&self) -> (f64, f64) {
        (self.gated_rate, self.ungated_rate)
    }

    /// Gain that the last trial or check measured, as a ratio of rates, and its number of pairs.
    pub fn gain(&self) -> (f64, u32) {
        (self.pairs.gain(), self.pairs.count())
    }

    /// Number of trials, and the number of them that engaged the gate.
    pub fn trials(&self) -> (u32, u32) {
        (self.trials, self.engagements)
    }

    fn steer(&mut self, released: u32) {
        if !matches!(self.phase(), GatePhase::TryGated | GatePhase::Engaged) || released == 0 {
            return;
        }
        let commit_ns = self.commit_ns();
        // The first rounds of a trial wait for all callers, so that their return times can be observed.
        let settled = self.phase() == GatePhase::Engaged || self.sample.has_settled(0);
        if let (true, Some(SetPoint { callers, return_ns, .. })) =
            (settled, self.profile.best(commit_ns))
        {
            self.set_point = callers;
            self.return_ns = return_ns;
        }
        let slope_ns = (self.return_ns / u64::from(self.set_point.max(1))).max(10_000);
        let bounds_ns = (MIN_PATIENCE_NS.max(self.return_ns / 4), commit_ns);
        self.patience.update(&PidGains::PAPER, self.set_point, released, slope_ns, bounds_ns);
    }

    fn end_sample(&mut self, epoch: &CommitEnd<'_>, measured: &SampleResult) {
        let (now_ns, rate) = (epoch.end_ns, measured.rate);
        match self.phase() {
            GatePhase::Learn => {
                self.note_ungated(measured);
                self.consider_trial(epoch, measured);
            }
            GatePhase::TryGated => {
                self.gated_rate = rate;
                if self.pairs.takes_second_look(rate, self.ungated_rate) {
                    self.sample.go_on();
                } else if !self.measures_once_more(epoch) {
                    let verdict = self.add_pair();
                    if verdict == EngagementVerdict::Pays && self.is_doubtful(epoch, measured) {
                        self.confirms = 1;
                        self.enter(GatePhase::Check);
                    } else {
                        self.conclude(epoch, verdict);
                    }
                }
            }
            GatePhase::TryUngated => {
                self.note_ungated(measured);
                self.enter(GatePhase::TryGated);
            }
            GatePhase::Engaged => {
                self.gated_rate = rate;
                let suspicious = rate < self.ungated_rate || self.has_changed();
                let is_due = now_ns >= self.next_ns
                    || (self.has_rested(now_ns) && suspicious)
                    || (!epoch.exact && self.falls_behind_held(now_ns, rate));
                if is_due && self.others_try == 0 {
                    self.enter(GatePhase::Check);
                } else {
                    self.sample.go_on();
                }
            }
            GatePhase::Check => self.end_check(epoch, measured),
            GatePhase::Aside => {
                if self.others_try == 0 && self.has_fallen_behind(now_ns, rate) {
                    self.note_ungated(measured);
                    self.start_trial(epoch);
                    self.is_comeback = 1;
                } else {
                    self.sample.go_on();
                }
            }
        }
    }

    fn end_check(&mut self, epoch: &CommitEnd<'_>, measured: &SampleResult) {
        let (now_ns, is_confirming) = (epoch.end_ns, self.is_confirming());
        self.confirms = 0;
        self.note_ungated(measured);
        if is_confirming && measured.rate < MAX_CONFIRMING_RATIO * self.gated_rate {
            return self.engage_anew(now_ns);
        }
        self.pairs = RatePairs::default();
        let verdict = self.pairs.add(self.gated_rate, self.ungated_rate);
        if is_confirming {
            self.conclude(epoch, EngagementVerdict::DoesNotPay);
        } else if self.pairs.pays_still() {
            self.engage(now_ns, 3);
        } else if verdict == EngagementVerdict::DoesNotPay && !epoch.exact {
            self.conclude(epoch, verdict);
        } else {
            // One pair may be bad luck, so a trial decides.
            self.begin_trial(epoch);
            self.enter(GatePhase::TryGated);
        }
    }

    fn start_trial(&mut self, epoch: &CommitEnd<'_>) {
        self.begin_trial(epoch);
        self.pairs = RatePairs::default();
        self.is_comeback = 0;
        self.enter(GatePhase::TryGated);
    }

    fn begin_trial(&mut self, epoch: &CommitEnd<'_>) {
        self.trials = self.trials.saturating_add(1);
        self.has_repeated = 0;
        (self.trial_ns, self.trial_completions) = (epoch.end_ns, epoch.completions);
    }

    fn watch_sample(&mut self, epoch: &CommitEnd<'_>) {
        let now_ns = epoch.end_ns;
        match self.phase() {
            GatePhase::Engaged | GatePhase::TryGated if self.sample.has_settled(0) => {
                if self.participants <= 1 {
                    self.step_aside(now_ns, GateReason::Alone, GLANCE_NS);
                } else if self.set_point <= 1 && self.sample.has_settled(2) {
                    let pause_ns = self.trial_backoff.lengthen(4);
                    self.step_aside(now_ns, GateReason::TooFarApart, pause_ns);
                } else if let Some(rate) = self.lost_rate(epoch) {
                    self.gated_rate = rate;
                    if !self.measures_once_more(epoch) {
                        let verdict = self.add_pair();
                        self.conclude(epoch, verdict);
                    }
                }
            }
            GatePhase::Aside
                if now_ns >= self.next_ns
                    || (self.has_rested(now_ns) && self.has_changed() && !self.has_lost(epoch)) =>
            {
                self.enter(GatePhase::Learn);
            }
            _ => {}
        }
    }

    fn conclude(&mut self, epoch: &CommitEnd<'_>, verdict: EngagementVerdict) {
        let now_ns = epoch.end_ns;
        match verdict {
            EngagementVerdict::Pays => self.engage_anew(now_ns),
            EngagementVerdict::DoesNotPay => {
                let loss_pause_ns = self.loss_pause_ns(epoch);
                let pause_ns = self.trial_backoff.lengthen(4).max(loss_pause_ns);
                self.step_aside(now_ns, GateReason::NoGainMeasured, pause_ns);
                self.loss_pause_ns = loss_pause_ns;
            }
            EngagementVerdict::More => self.enter(GatePhase::TryUngated),
        }
    }

    /// Engages the gate after a trial with a gain.
    fn engage_anew(&mut self, now_ns: u64) {
        self.engagements = self.engagements.saturating_add(1);
        self.trial_backoff.reset();
        if self.is_comeback == 0 {
            self.check_backoff.reset();
        }
        self.engage(now_ns, 3);
    }

    fn engage(&mut self, now_ns: u64, lengthen_by: u64) {
        self.decide(now_ns, GateReason::GainMeasured);
        self.next_ns = now_ns.saturating_add(self.check_backoff.lengthen(lengthen_by));
        if self.phase() == GatePhase::TryGated {
            self.phase = GatePhase::Engaged as u32;
            self.sample.go_on();
        } else {
            self.enter(GatePhase::Engaged);
        }
    }

    fn step_aside(&mut self, now_ns: u64, reason: GateReason, pause_ns: u64) {
        self.decide(now_ns, reason);
        self.next_ns = now_ns.saturating_add(pause_ns);
        self.enter(GatePhase::Aside);
    }

    fn decide(&mut self, now_ns: u64, reason: GateReason) {
        self.decided_ns = now_ns;
        self.decided_participants = self.participants;
        self.decided_commit_ns = self.ungated_commit_ns;
        self.reason = reason as u32;
        self.loss_pause_ns = 0;
    }

    fn enter(&mut self, phase: GatePhase) {
        self.phase = phase as u32;
        self.sample = CommitSample::default();
        if phase != GatePhase::Check {
            self.confirms = 0;
        }
        if phase == GatePhase::TryGated {
            let commit_ns = self.commit_ns();
            self.set_point = self.participants;
            self.return_ns = 0;
            self.patience.restart(commit_ns);
        }
    }
}

/// Moves a time by an eighth of its difference to the sample. The first sample is taken unchanged. 0 means no sample.
fn smooth(value_ns: &mut u64, sample_ns: u64) {
    *value_ns = match (*value_ns, sample_ns) {
        (known_ns, 0) => known_ns,
        (0, sample_ns) => sample_ns,
        (known_ns, sample_ns) => (known_ns - known_ns / 8).saturating_add(sample_ns / 8),
    };
}
