//! The default policy: learn, try, engage where it pays, step aside where it does not.
//!
//! [`Auto`] is fed the end of every commit ([`Epoch`]) and answers with a [`Plan`]. Ungated it learns the
//! commit time, the rate and how many callers take part. A trial compares gated with ungated samples
//! ([`crate::engagement`]). Gated it learns how soon callers come back ([`crate::setpoint`]), waits for
//! as many of them as serve the most per time, and lets the PID steer how long it is patient with late
//! ones.

use crate::engagement::{Backoff, Pairs, Verdict};
use crate::epoch::Epoch;
use crate::pid::{Gains, SteeredDelay};
use crate::sample::Sample;
use crate::setpoint::{ReturnProfile, SetPoint};

/// A trial is not worth its cost when even everybody in each commit would gain less than this.
const PROMISING: f64 = 1.05;
/// Participants or commit time that change by this factor make old findings void.
const CHANGED: f64 = 1.5;
/// Ungated callers have fallen behind when their rate times this is below the last gated rate.
const FALLEN_BEHIND: f64 = 1.1;
/// A first gated sample whose rate so far times this is below the ungated one ends at once: it costs what it loses.
const LOST: f64 = 1.4;
/// How soon to look again when nothing but ungated observation is needed, in nanoseconds.
const GLANCE_NS: u64 = 100_000_000;
/// Patience with late callers is at least this, in nanoseconds.
const MIN_PATIENCE_NS: u64 = 50_000;

/// The gate's actions until the next end of a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Whether callers are brought into rounds at all.
    pub gated: bool,
    /// A round of this many callers is released.
    pub set_point: u32,
    /// When the last of them is expected, after the end of a commit.
    pub return_ns: u64,
    /// How long a round that is short of callers waits beyond that.
    pub patience_ns: u64,
    /// The commit time that the plan assumes; no caller is held longer than four of these.
    pub commit_ns: u64,
}

/// The controller's phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Ungated: watching.
    Learn,
    /// Gated sample of a trial.
    TryGated,
    /// Ungated sample of a trial.
    TryUngated,
    /// Gated: it pays.
    Engaged,
    /// Ungated sample between gated ones: does it still pay?
    Check,
    /// Ungated: it does not pay.
    Aside,
}

/// Why the controller stands aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No decision yet.
    Undecided,
    /// Fewer than two callers: nobody to share a commit with.
    Alone,
    /// Commits already serve about as many as they could.
    NothingToGain,
    /// Callers come back too far apart, measured against the commit time.
    TooFarApart,
    /// A trial measured no gain.
    NoGainMeasured,
    /// A trial measured a gain.
    GainMeasured,
}

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
    /// Whether the trial began because callers fell behind ([`Auto::has_fallen_behind`]): 1, or 0.
    is_comeback: u32,
    profile: ReturnProfile,
}

impl Auto {
    /// Takes the end of a commit and says how to go on.
    pub fn on_epoch(&mut self, epoch: &Epoch<'_>) -> Plan {
        let interval_ns = epoch.end_ns.saturating_sub(self.last_end_ns);
        self.last_end_ns = epoch.end_ns;
        self.participants = epoch.participants;
        if epoch.released > 0 {
            smooth(&mut self.gated_commit_ns, epoch.commit_ns);
            self.profile.observe(epoch.arrivals_ns, interval_ns);
        } else {
            smooth(
                &mut self.ungated_commit_ns,
                epoch.commit_ns.min(interval_ns),
            );
        }
        self.steer(epoch.released);
        if let Some(rate) = self.sample.observe(epoch, self.phase() == Phase::Check) {
            self.end_of_sample(epoch.end_ns, rate);
        } else {
            self.within_sample(epoch);
        }
        self.plan()
    }

    /// The plan that holds now.
    pub fn plan(&self) -> Plan {
        Plan {
            gated: matches!(self.phase(), Phase::TryGated | Phase::Engaged),
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
            _ => Reason::Undecided,
        }
    }

    /// The commit time in nanoseconds: of gated commits if any were seen, else of ungated ones.
    pub fn commit_ns(&self) -> u64 {
        if self.gated_commit_ns > 0 {
            self.gated_commit_ns
        } else {
            self.ungated_commit_ns
        }
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
        if let (
            true,
            Some(SetPoint {
                callers, return_ns, ..
            }),
        ) = (settled, self.profile.best(commit_ns))
        {
            self.set_point = callers;
            self.return_ns = return_ns;
        }
        let slope_ns = (self.return_ns / u64::from(self.set_point.max(1))).max(10_000);
        let bounds_ns = (MIN_PATIENCE_NS.max(self.return_ns / 4), commit_ns);
        self.patience
            .update(&Gains::PAPER, self.set_point, released, slope_ns, bounds_ns);
    }

    fn end_of_sample(&mut self, now_ns: u64, rate: f64) {
        match self.phase() {
            Phase::Learn => {
                self.ungated_rate = rate;
                self.consider_trial(now_ns);
            }
            Phase::TryGated => {
                self.gated_rate = rate;
                if self.pairs.takes_second_look(rate, self.ungated_rate) {
                    self.sample.go_on();
                } else {
                    let verdict = self.pairs.add(rate, self.ungated_rate);
                    self.conclude(now_ns, verdict);
                }
            }
            Phase::TryUngated => {
                self.ungated_rate = rate;
                self.enter(Phase::TryGated);
            }
            Phase::Engaged => {
                self.gated_rate = rate;
                let suspicious = rate < self.ungated_rate || self.has_changed();
                if now_ns >= self.next_ns || (self.has_rested(now_ns) && suspicious) {
                    self.enter(Phase::Check);
                } else {
                    self.sample.go_on();
                }
            }
            Phase::Check => {
                self.ungated_rate = rate;
                self.pairs = Pairs::default();
                self.pairs.add(self.gated_rate, self.ungated_rate);
                if self.pairs.pays_still() {
                    self.engage(now_ns, 3);
                } else {
                    // One pair may be bad luck, so a trial decides.
                    self.trials = self.trials.saturating_add(1);
                    self.enter(Phase::TryGated);
                }
            }
            Phase::Aside => {
                if self.has_fallen_behind(now_ns, rate) {
                    self.ungated_rate = rate;
                    self.start_trial();
                    self.is_comeback = 1;
                } else {
                    self.sample.go_on();
                }
            }
        }
    }

    /// Whether callers, left alone because that was as fast, are no longer as fast.
    ///
    /// Callers that were released together stay in step for a while when they are no longer held, and so
    /// share commits as if they were: ungated right after gated looks as good. In time they fall back into
    /// groups that wait for each other.
    fn has_fallen_behind(&self, now_ns: u64, rate: f64) -> bool {
        self.reason() == Reason::NoGainMeasured
            && now_ns >= self.decided_ns.saturating_add(GLANCE_NS)
            && !self.trial_backoff.has_grown()
            && !self.has_changed()
            && rate * FALLEN_BEHIND < self.gated_rate
    }

    fn start_trial(&mut self) {
        self.trials = self.trials.saturating_add(1);
        self.pairs = Pairs::default();
        self.is_comeback = 0;
        self.enter(Phase::TryGated);
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
                    let verdict = self.pairs.add(rate, self.ungated_rate);
                    self.conclude(now_ns, verdict);
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

    /// The rate of a trial's first gated sample so far, if it is so bad that the rest of it would change nothing.
    fn lost_rate(&self, epoch: &Epoch<'_>) -> Option<f64> {
        let is_first = self.phase() == Phase::TryGated && self.pairs.count() == 0;
        let rate = self.sample.so_far(epoch).filter(|_| is_first)?;
        (rate * LOST < self.ungated_rate).then_some(rate)
    }

    /// Whether the last trial lost so much that others than the same callers would have to be there to gain. Until the
    /// next one is due it takes more than a change of their number: where callers are not seen exactly, that may change
    /// all the time.
    fn has_lost(&self, epoch: &Epoch<'_>) -> bool {
        !epoch.exact
            && self.reason() == Reason::NoGainMeasured
            && self.trial_backoff.has_grown()
            && self.gated_rate * LOST < self.ungated_rate
    }

    fn consider_trial(&mut self, now_ns: u64) {
        let commit_s = self.ungated_commit_ns.max(1) as f64 / 1e9;
        let at_best = f64::from(self.participants) / commit_s;
        if self.participants < 2 {
            self.step_aside(now_ns, Reason::Alone, GLANCE_NS);
        } else if at_best < PROMISING * self.ungated_rate {
            self.step_aside(now_ns, Reason::NothingToGain, GLANCE_NS);
        } else {
            self.start_trial();
        }
    }

    fn conclude(&mut self, now_ns: u64, verdict: Verdict) {
        match verdict {
            Verdict::Pays => {
                self.engagements = self.engagements.saturating_add(1);
                self.trial_backoff.reset();
                if self.is_comeback == 0 {
                    self.check_backoff.reset();
                }
                self.engage(now_ns, 3);
            }
            Verdict::DoesNotPay => {
                let pause_ns = self.trial_backoff.lengthen(4);
                self.step_aside(now_ns, Reason::NoGainMeasured, pause_ns);
            }
            Verdict::More => self.enter(Phase::TryUngated),
        }
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
        };
    }

    /// Whether the last decision is old enough to be questioned before its time.
    fn has_rested(&self, now_ns: u64) -> bool {
        now_ns >= self.decided_ns.saturating_add(Backoff::FIRST_NS)
    }

    /// Whether participants (or, ungated, the commit time) are far from what the last decision saw.
    fn has_changed(&self) -> bool {
        let far = |now: f64, then: f64| now > CHANGED * then || then > CHANGED * now;
        far(
            f64::from(self.participants),
            f64::from(self.decided_participants),
        ) || far(self.ungated_commit_ns as f64, self.decided_commit_ns as f64)
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
