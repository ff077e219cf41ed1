//! The default policy: learns, tries the gate, engages it where it pays, and steps aside where it does not.
//!
//! [`Auto`] takes the end of every commit ([`Epoch`]) and returns a [`Plan`]. Ungated, it learns the commit time, the
//! rate and the number of callers. A trial compares gated with ungated samples ([`crate::engagement`]). Gated, it
//! learns how soon callers return ([`crate::setpoint`]) and waits for the number that serves the most calls per time.
//! The PID controller steers its patience with late callers.

mod doubts;
mod plan;

pub use plan::{Phase, Plan, Reason};

use crate::engagement::{Backoff, Pairs, Verdict};
use crate::epoch::Epoch;
use crate::pid::{Gains, SteeredDelay};
use crate::sample::{Measured, Sample};
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
pub struct Auto {
    phase: u32,
    reason: u32,
    participants: u32,
    sample: Sample,
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
    pairs: Pairs,
    check_backoff: Backoff,
    trial_backoff: Backoff,
    trials: u32,
    engagements: u32,
    /// End of the first commit, ns.
    begun_ns: u64,
    /// Whether the trial began because callers fell behind ([`Auto::has_fallen_behind`]): 1, or 0.
    is_comeback: u32,
    /// Whether a check confirms an obvious gain of a trial: 1, or 0.
    confirms: u32,
    /// Whether a gated sample of the trial was repeated ([`Auto::measures_once_more`]): 1, or 0.
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

impl Auto {
    /// Takes the end of a commit and returns the plan until the next.
    pub fn on_epoch(&mut self, epoch: &Epoch<'_>) -> Plan {
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
    pub fn plan(&self) -> Plan {
        Plan {
            gated: matches!(self.phase(), Phase::TryGated | Phase::Engaged),
            trying: self.is_trying(),
            lost: self.phase() == Phase::Aside && self.reason() == Reason::NoGainMeasured,
            set_point: self.set_point.max(1),
            return_ns: self.return_ns,
            patience_ns: self.patience.delay_ns(),
            commit_ns: self.commit_ns(),
        }
    }

    /// Present phase of the controller.
    pub fn phase(&self) -> Phase {
        match self.phase {
            1 => Phase::TryGated,
            2 => Phase::TryUngated,
            3 => Phase::Engaged,
            4 => Phase::Check,
            5 => Phase::Aside,
            _ => Phase::Learn,
        }
    }

    /// Reason for the present phase.
    pub fn reason(&self) -> Reason {
        match self.reason {
            1 => Reason::Alone,
            2 => Reason::NothingToGain,
            3 => Reason::TooFarApart,
            4 => Reason::NoGainMeasured,
            5 => Reason::GainMeasured,
            6 => Reason::Few,
            7 => Reason::TakenAlong,
            8 => Reason::ComeAndGo,
            _ => Reason::Undecided,
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
        if !matches!(self.phase(), Phase::TryGated | Phase::Engaged) || released == 0 {
            return;
        }
        let commit_ns = self.commit_ns();
        // The first rounds of a trial wait for all callers, so that their return times can be observed.
        let settled = self.phase() == Phase::Engaged || self.sample.has_settled(0);
        if let (true, Some(SetPoint { callers, return_ns, .. })) =
            (settled, self.profile.best(commit_ns))
        {
            self.set_point = callers;
            self.return_ns = return_ns;
        }
        let slope_ns = (self.return_ns / u64::from(self.set_point.max(1))).max(10_000);
        let bounds_ns = (MIN_PATIENCE_NS.max(self.return_ns / 4), commit_ns);
        self.patience.update(&Gains::PAPER, self.set_point, released, slope_ns, bounds_ns);
    }

    fn end_sample(&mut self, epoch: &Epoch<'_>, measured: &Measured) {
        let (now_ns, rate) = (epoch.end_ns, measured.rate);
        match self.phase() {
            Phase::Learn => {
                self.note_ungated(measured);
                self.consider_trial(epoch, measured);
            }
            Phase::TryGated => {
                self.gated_rate = rate;
                if self.pairs.takes_second_look(rate, self.ungated_rate) {
                    self.sample.go_on();
                } else if !self.measures_once_more(epoch) {
                    let verdict = self.add_pair();
                    if verdict == Verdict::Pays && self.is_doubtful(epoch, measured) {
                        self.confirms = 1;
                        self.enter(Phase::Check);
                    } else {
                        self.conclude(epoch, verdict);
                    }
                }
            }
            Phase::TryUngated => {
                self.note_ungated(measured);
                self.enter(Phase::TryGated);
            }
            Phase::Engaged => {
                self.gated_rate = rate;
                let suspicious = rate < self.ungated_rate || self.has_changed();
                let is_due = now_ns >= self.next_ns
                    || (self.has_rested(now_ns) && suspicious)
                    || (!epoch.exact && self.falls_behind_held(now_ns, rate));
                if is_due && self.others_try == 0 {
                    self.enter(Phase::Check);
                } else {
                    self.sample.go_on();
                }
            }
            Phase::Check => self.end_check(epoch, measured),
            Phase::Aside => {
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

    fn end_check(&mut self, epoch: &Epoch<'_>, measured: &Measured) {
        let (now_ns, is_confirming) = (epoch.end_ns, self.is_confirming());
        self.confirms = 0;
        self.note_ungated(measured);
        if is_confirming && measured.rate < MAX_CONFIRMING_RATIO * self.gated_rate {
            return self.engage_anew(now_ns);
        }
        self.pairs = Pairs::default();
        let verdict = self.pairs.add(self.gated_rate, self.ungated_rate);
        if is_confirming {
            self.conclude(epoch, Verdict::DoesNotPay);
        } else if self.pairs.pays_still() {
            self.engage(now_ns, 3);
        } else if verdict == Verdict::DoesNotPay && !epoch.exact {
            self.conclude(epoch, verdict);
        } else {
            // One pair may be bad luck, so a trial decides.
            self.begin_trial(epoch);
            self.enter(Phase::TryGated);
        }
    }

    fn start_trial(&mut self, epoch: &Epoch<'_>) {
        self.begin_trial(epoch);
        self.pairs = Pairs::default();
        self.is_comeback = 0;
        self.enter(Phase::TryGated);
    }

    fn begin_trial(&mut self, epoch: &Epoch<'_>) {
        self.trials = self.trials.saturating_add(1);
        self.has_repeated = 0;
        (self.trial_ns, self.trial_completions) = (epoch.end_ns, epoch.completions);
    }

    fn watch_sample(&mut self, epoch: &Epoch<'_>) {
        let now_ns = epoch.end_ns;
        match self.phase() {
            Phase::Engaged | Phase::TryGated if self.sample.has_settled(0) => {
                if self.participants <= 1 {
                    self.step_aside(now_ns, Reason::Alone, GLANCE_NS);
                } else if self.set_point <= 1 && self.sample.has_settled(2) {
                    let pause_ns = self.trial_backoff.lengthen(4);
                    self.step_aside(now_ns, Reason::TooFarApart, pause_ns);
                } else if let Some(rate) = self.lost_rate(epoch) {
                    self.gated_rate = rate;
                    if !self.measures_once_more(epoch) {
                        let verdict = self.add_pair();
                        self.conclude(epoch, verdict);
                    }
                }
            }
            Phase::Aside
                if now_ns >= self.next_ns
                    || (self.has_rested(now_ns) && self.has_changed() && !self.has_lost(epoch)) =>
            {
                self.enter(Phase::Learn);
            }
            _ => {}
        }
    }

    fn conclude(&mut self, epoch: &Epoch<'_>, verdict: Verdict) {
        let now_ns = epoch.end_ns;
        match verdict {
            Verdict::Pays => self.engage_anew(now_ns),
            Verdict::DoesNotPay => {
                let loss_pause_ns = self.loss_pause_ns(epoch);
                let pause_ns = self.trial_backoff.lengthen(4).max(loss_pause_ns);
                self.step_aside(now_ns, Reason::NoGainMeasured, pause_ns);
                self.loss_pause_ns = loss_pause_ns;
            }
            Verdict::More => self.enter(Phase::TryUngated),
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
        self.decide(now_ns, Reason::GainMeasured);
        self.next_ns = now_ns.saturating_add(self.check_backoff.lengthen(lengthen_by));
        if self.phase() == Phase::TryGated {
            self.phase = Phase::Engaged as u32;
            self.sample.go_on();
        } else {
            self.enter(Phase::Engaged);
        }
    }

    fn step_aside(&mut self, now_ns: u64, reason: Reason, pause_ns: u64) {
        self.decide(now_ns, reason);
        self.next_ns = now_ns.saturating_add(pause_ns);
        self.enter(Phase::Aside);
    }

    fn decide(&mut self, now_ns: u64, reason: Reason) {
        self.decided_ns = now_ns;
        self.decided_participants = self.participants;
        self.decided_commit_ns = self.ungated_commit_ns;
        self.reason = reason as u32;
        self.loss_pause_ns = 0;
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase as u32;
        self.sample = Sample::default();
        if phase != Phase::Check {
            self.confirms = 0;
        }
        if phase == Phase::TryGated {
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
