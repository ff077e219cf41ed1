//! The default policy: learn, try, engage where it pays, step aside where it does not.
//!
//! [`Auto`] is fed the end of every commit ([`Epoch`]) and answers with a [`Plan`]. Ungated it learns the
//! commit time, the rate and how many callers take part. A trial compares gated with ungated samples
//! ([`crate::engagement`]). Gated it learns how soon callers come back ([`crate::setpoint`]), waits for
//! as many of them as serve the most per time, and lets the PID steer how long it is patient with late
//! ones.

mod doubts;
mod plan;

pub use plan::{Phase, Plan, Reason};

use crate::engagement::{Backoff, Pairs, Verdict};
use crate::epoch::Epoch;
use crate::pid::{Gains, SteeredDelay};
use crate::sample::{Measured, Sample};
use crate::setpoint::{ReturnProfile, SetPoint};

/// An obvious gain is confirmed if callers are not faster than this when they are let go after it.
const CONFIRMED: f64 = 1.05;
/// How soon to look again when nothing but ungated observation is needed, in nanoseconds.
const GLANCE_NS: u64 = 100_000_000;
/// Patience with late callers is at least this, in nanoseconds.
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
    /// When the first commit ended.
    begun_ns: u64,
    /// Whether the trial began because callers fell behind ([`Auto::has_fallen_behind`]): 1, or 0.
    is_comeback: u32,
    /// Whether a check confirms an obvious gain of a trial: 1, or 0.
    confirms: u32,
    /// Whether a gated sample of the trial was measured once more ([`Auto::measures_once_more`]): 1, or 0.
    has_repeated: u32,
    /// Whether the callers of another controller are held, and whether it makes a trial: 1, or 0.
    others_gated: u32,
    others_try: u32,
    /// When the last trial began, and how many calls had been served then.
    trial_ns: u64,
    trial_completions: u64,
    /// How long what it has lost rules out the next one.
    loss_pause_ns: u64,
    /// How long a call took that was not held, in the sample of `ungated_rate`, in seconds; 0 if that is not known.
    ungated_latency_s: f64,
    profile: ReturnProfile,
}

impl Auto {
    /// Takes the end of a commit and says how to go on.
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
            self.end_of_sample(epoch, &measured);
        } else {
            self.within_sample(epoch);
        }
        self.plan()
    }

    /// The plan that holds now.
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

    /// The controller's phase.
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

    /// Why it stands there.
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

    /// The commit time in nanoseconds: of gated commits if any were seen, else of ungated ones.
    pub fn commit_ns(&self) -> u64 {
        if self.gated_commit_ns > 0 { self.gated_commit_ns } else { self.ungated_commit_ns }
    }

    /// Distinct callers of the last window.
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

    /// How many trials were made, and how many of them engaged the gate.
    pub fn trials(&self) -> (u32, u32) {
        (self.trials, self.engagements)
    }

    fn steer(&mut self, released: u32) {
        if !matches!(self.phase(), Phase::TryGated | Phase::Engaged) || released == 0 {
            return;
        }
        let commit_ns = self.commit_ns();
        // The first rounds of a trial wait for everybody: only so can their returns be seen.
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

    fn end_of_sample(&mut self, epoch: &Epoch<'_>, measured: &Measured) {
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
            Phase::Check if self.is_confirming() => {
                self.confirms = 0;
                self.note_ungated(measured);
                if rate < CONFIRMED * self.gated_rate {
                    self.pays(now_ns);
                } else {
                    self.pairs = Pairs::default();
                    self.pairs.add(self.gated_rate, rate);
                    self.conclude(epoch, Verdict::DoesNotPay);
                }
            }
            Phase::Check => {
                self.note_ungated(measured);
                self.pairs = Pairs::default();
                let verdict = self.pairs.add(self.gated_rate, self.ungated_rate);
                if self.pairs.pays_still() {
                    self.engage(now_ns, 3);
                } else if verdict == Verdict::DoesNotPay && !epoch.exact {
                    self.conclude(epoch, verdict);
                } else {
                    // One pair may be bad luck, so a trial decides.
                    self.begin_trial(epoch);
                    self.enter(Phase::TryGated);
                }
            }
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

    fn within_sample(&mut self, epoch: &Epoch<'_>) {
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
            Verdict::Pays => self.pays(now_ns),
            Verdict::DoesNotPay => {
                let loss_pause_ns = self.loss_pause_ns(epoch);
                let pause_ns = self.trial_backoff.lengthen(4).max(loss_pause_ns);
                self.step_aside(now_ns, Reason::NoGainMeasured, pause_ns);
                self.loss_pause_ns = loss_pause_ns;
            }
            Verdict::More => self.enter(Phase::TryUngated),
        }
    }

    /// A trial has found that holding pays.
    fn pays(&mut self, now_ns: u64) {
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
            self.phase = 3;
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
        self.reason = match reason {
            Reason::Undecided => 0,
            Reason::Alone => 1,
            Reason::NothingToGain => 2,
            Reason::TooFarApart => 3,
            Reason::NoGainMeasured => 4,
            Reason::GainMeasured => 5,
            Reason::Few => 6,
            Reason::TakenAlong => 7,
            Reason::ComeAndGo => 8,
        };
        self.loss_pause_ns = 0;
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = match phase {
            Phase::Learn => 0,
            Phase::TryGated => 1,
            Phase::TryUngated => 2,
            Phase::Engaged => 3,
            Phase::Check => 4,
            Phase::Aside => 5,
        };
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

/// Moves a time by an eighth of the difference to the sample; the first sample is taken as it is, and 0
/// is none.
fn smooth(value_ns: &mut u64, sample_ns: u64) {
    *value_ns = match (*value_ns, sample_ns) {
        (known_ns, 0) => known_ns,
        (0, sample_ns) => sample_ns,
        (known_ns, sample_ns) => (known_ns - known_ns / 8).saturating_add(sample_ns / 8),
    };
}
