//! State of a controller at a run's end: figures of one look. Only those are reported that belong together.
//!
//! A controller goes on after it has decided: it measures samples, checks, forgets. Its reason belongs to the decision,
//! its rates and the number of its callers to the last sample. So one may contradict the other.

use std::fmt;

use luc_control::auto_gate::{AutoGate, GatePhase, GateReason};
use luc_units::number_formats::FormattedTime;
use serde::Serialize;

/// Maximum relative difference between a gain and the ratio of its two rates.
const MAX_GAIN_DIFFERENCE: f64 = 0.02;
/// Minimum relative gain that counts as one, even if it was not clear enough to decide by.
const MIN_GAIN: f64 = 0.05;
/// Minimum share of the calls of a kind of callers that gets a line.
const MIN_CALL_SHARE: f64 = 0.05;

/// Figures of one look at a controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControllerFigures {
    phase: GatePhase,
    reason: GateReason,
    set_point: u32,
    participants: u32,
    commit_ns: u64,
    gain: f64,
    pairs: u32,
    trials: u32,
    engagements: u32,
    gated_per_s: f64,
    ungated_per_s: f64,
}

impl From<&AutoGate> for ControllerFigures {
    fn from(auto: &AutoGate) -> Self {
        let (gain, pairs) = auto.gain();
        let (trials, engagements) = auto.trials();
        let (gated_per_s, ungated_per_s) = auto.rates_per_s();
        Self {
            phase: auto.phase(),
            reason: auto.reason(),
            set_point: auto.plan().set_point,
            participants: auto.participants(),
            commit_ns: auto.commit_ns(),
            gain,
            pairs,
            trials,
            engagements,
            gated_per_s,
            ungated_per_s,
        }
    }
}

/// Final state of the controller of policy `auto`, with its reason.
#[derive(Clone, Debug, Serialize)]
pub struct GateDecision {
    /// `learning`, `trying`, `engaged` or `aside`.
    pub state: &'static str,
    /// Reason, as a sentence.
    pub reason: &'static str,
    /// Calls of its kind that were served for all runs that share the rounds.
    pub calls: u64,
    /// Number of callers that a round waits for.
    pub set_point: u32,
    /// Number of distinct callers seen recently.
    pub participants: u32,
    /// Commit time, in microseconds.
    pub commit_us: f64,
    /// Ratio of the gated to the ungated rate in the deciding trial; `None` if no trial decided.
    pub gain: Option<f64>,
    /// Number of pairs of samples behind the gain.
    pub pairs: u32,
    /// Trials made since it last began to learn.
    pub trials: u32,
    pub engagements: u32,
    /// Calls served per second in the gated sample of the gain; `None` if that is not the last sample, or one of
    /// several.
    pub gated_per_s: Option<f64>,
    /// Calls served per second in its ungated sample.
    pub ungated_per_s: Option<f64>,
}

impl GateDecision {
    pub(crate) fn new(standing: &ControllerFigures, calls: u64) -> Self {
        let ControllerFigures { gain, pairs, .. } = *standing;
        let (state, reason) = state_and_reason(standing);
        let by_trial = match standing.reason {
            GateReason::GainMeasured => state == "engaged",
            GateReason::NoGainMeasured => state == "aside" && gain < 1.0 + MIN_GAIN,
            _ => false,
        };
        let gain = (by_trial && pairs > 0 && gain.is_finite()).then_some(gain);
        let (gated, ungated) = (standing.gated_per_s, standing.ungated_per_s);
        let are_its_rates = gain.is_some_and(|gain| {
            let ratio = gated / ungated;
            ratio.is_finite() && (ratio / gain - 1.0).abs() <= MAX_GAIN_DIFFERENCE
        });
        Self {
            state,
            reason,
            calls,
            set_point: standing.set_point,
            participants: standing.participants,
            commit_us: standing.commit_ns as f64 / 1e3,
            gain,
            pairs,
            trials: standing.trials,
            engagements: standing.engagements.min(standing.trials),
            gated_per_s: are_its_rates.then_some(gated),
            ungated_per_s: are_its_rates.then_some(ungated),
        }
    }

    /// Writes two lines that begin with `name`. `time` names what callers wait for. `is_held`: calls were held.
    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        name: &str,
        time: &str,
        is_held: bool,
    ) -> fmt::Result {
        write!(f, "     {name}: {}: {}", self.state, self.reason)?;
        if let Some(gain) = self.gain {
            match (self.gated_per_s, self.ungated_per_s) {
                (Some(gated), Some(ungated)) => {
                    write!(f, " ({gain:.2} x: {gated:.0} against {ungated:.0} calls/s ungated)")?
                }
                _ if self.pairs > 1 => write!(f, " ({gain:.2} x in {} pairs)", self.pairs)?,
                _ => write!(f, " ({gain:.2} x)")?,
            }
        }
        writeln!(f)?;
        let mut words = Vec::new();
        // One caller was the reason; more of them came later.
        let came_later = self.reason == ALONE_SENTENCE && self.participants > 1;
        if self.participants > 0 && !came_later {
            let plural = if self.participants == 1 { "" } else { "s" };
            words.push(format!("{} caller{plural}", self.participants));
        }
        if self.commit_us > 0.0 {
            words.push(format!("{time} {}", FormattedTime::from_us(self.commit_us)));
        }
        if self.state == "engaged" {
            words.push(format!("waits for {}", self.set_point));
        }
        let mut line = words.join(", ");
        // After a long silence it forgets what it has counted.
        let is_forgotten = self.trials == 0 && (is_held || self.gain.is_some())
            || self.engagements == 0 && self.state == "engaged";
        if !is_forgotten {
            let separator = if line.is_empty() { "" } else { "; " };
            let plural = if self.trials == 1 { "" } else { "s" };
            line += &format!(
                "{separator}{} trial{plural}, {} of them engaged",
                self.trials, self.engagements
            );
        }
        if line.is_empty() {
            return Ok(());
        }
        writeln!(f, "     {name}: {line}")
    }
}

/// Writes the lines about both kinds of callers: the kind with more calls first, the other one if it matters.
pub(crate) fn write(
    f: &mut fmt::Formatter<'_>,
    commits: Option<&GateDecision>,
    flushes: Option<&GateDecision>,
    is_held: bool,
) -> fmt::Result {
    let of_commits = ("calls that need a commit", "commit", commits);
    let of_flushes = ("calls that only need a flush", "flush", flushes);
    let mut kinds: Vec<_> = [of_commits, of_flushes]
        .into_iter()
        .filter_map(|(kind, time, decision)| Some((kind, time, decision?)))
        .collect();
    kinds.sort_by_key(|(_, _, decision)| std::cmp::Reverse(decision.calls));
    let calls: u64 = kinds.iter().map(|(_, _, decision)| decision.calls).sum();
    let has_both = kinds.len() > 1;
    for (place, (kind, time, decision)) in kinds.into_iter().enumerate() {
        if place > 0 && (decision.calls as f64) < MIN_CALL_SHARE * calls as f64 {
            continue;
        }
        let name =
            if has_both || time == "flush" { format!("auto, {kind}") } else { "auto".to_owned() };
        decision.write(f, &name, time, is_held)?;
    }
    Ok(())
}

/// Sentence that the number of callers must not contradict.
const ALONE_SENTENCE: &str = "only one caller at a time: nobody to share a commit with";

fn state_and_reason(standing: &ControllerFigures) -> (&'static str, &'static str) {
    let ControllerFigures { phase, reason, gain, pairs, .. } = *standing;
    let is_engaged = matches!(phase, GatePhase::Engaged | GatePhase::Check);
    match (phase, reason) {
        (_, GateReason::GainMeasured) if is_engaged && pairs > 0 && gain <= 1.0 => (
            "engaged",
            "a trial showed a gain, and the last check no loss that is worth another trial",
        ),
        (_, GateReason::GainMeasured) if is_engaged => ("engaged", "a trial showed a gain"),
        (
            GatePhase::TryGated | GatePhase::TryUngated | GatePhase::Engaged | GatePhase::Check,
            _,
        ) => ("trying", "a trial was under way at the end"),
        (GatePhase::Learn, GateReason::GainMeasured) => {
            ("learning", "it was measuring anew at the end")
        }
        (GatePhase::Learn, reason) => ("learning", to_sentence(reason)),
        (GatePhase::Aside, reason) => ("aside", to_sentence(reason)),
    }
}

fn to_sentence(reason: GateReason) -> &'static str {
    match reason {
        GateReason::Undecided => "the run was too short to decide",
        GateReason::Alone => ALONE_SENTENCE,
        GateReason::NothingToGain => "commits already serve about as many as they can",
        GateReason::Few => "few of the calls are of this kind: holding them gains nothing",
        GateReason::TooFarApart => "callers come too far apart for a commit to wait for them",
        GateReason::TakenAlong => {
            "a trial held these with calls that need a commit, and showed no gain"
        }
        GateReason::ComeAndGo => "callers come and go: a trial waits until it costs little",
        GateReason::NoGainMeasured => "a trial showed no gain that is worth holding callers",
        GateReason::GainMeasured => "what a trial had gained is gone",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn standings() -> impl Strategy<Value = ControllerFigures> {
        let phases = [
            GatePhase::Learn,
            GatePhase::TryGated,
            GatePhase::TryUngated,
            GatePhase::Engaged,
            GatePhase::Check,
            GatePhase::Aside,
        ];
        let reasons = [
            GateReason::Undecided,
            GateReason::Alone,
            GateReason::NothingToGain,
            GateReason::Few,
            GateReason::TakenAlong,
            GateReason::TooFarApart,
            GateReason::ComeAndGo,
            GateReason::NoGainMeasured,
            GateReason::GainMeasured,
        ];
        let gains = prop_oneof![Just(1.0), Just(f64::NAN), 0.2..3.0f64];
        let rates = || prop_oneof![Just(0.0), 1.0..2000.0f64];
        (
            (proptest::sample::select(phases.to_vec()), proptest::sample::select(reasons.to_vec())),
            (0..40u32, 0..40u32, prop_oneof![Just(0u64), 1_000..100_000_000u64]),
            (gains, 0..5u32, rates(), rates(), any::<bool>()),
            (0..4u32, 0..4u32),
        )
            .prop_map(
                |((phase, reason), (set_point, participants, commit_ns), rates, trials)| {
                    let (gain, pairs, gated_per_s, ungated_per_s, are_its_rates) = rates;
                    ControllerFigures {
                        phase,
                        reason,
                        set_point,
                        participants,
                        commit_ns,
                        gain: if are_its_rates { gated_per_s / ungated_per_s } else { gain },
                        pairs,
                        trials: trials.0,
                        engagements: trials.1,
                        gated_per_s,
                        ungated_per_s,
                    }
                },
            )
    }

    struct Written<'a>(Option<&'a GateDecision>, Option<&'a GateDecision>, bool);

    impl fmt::Display for Written<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write(f, self.0, self.1, self.2)
        }
    }

    /// The number before `word` in a text that has it.
    fn before(text: &str, word: &str) -> Option<f64> {
        let (start, _) = text.split_once(word)?;
        start.rsplit([' ', '(']).next()?.parse().ok()
    }

    /// Contradictions in the text about one controller.
    pub(crate) fn contradictions(text: &str, is_held: bool) -> Vec<&'static str> {
        let gain = before(text, " x");
        let gated = before(text, " against ");
        let ungated = before(text, " calls/s");
        let trials = before(text, " trial, ").or_else(|| before(text, " trials, "));
        let engaged = before(text, " of them engaged");
        let callers = before(text, " callers");
        let mut found = Vec::new();
        let mut check = |is_wrong: bool, what| {
            if is_wrong {
                found.push(what);
            }
        };
        let has_gained = text.contains("engaged: a trial showed a gain");
        let is_checked = text.contains("the last check");
        check(has_gained && !is_checked && gain.is_some_and(|gain| gain < 1.0), "a gain below 1");
        check(text.contains("no gain") && gain.is_some_and(|gain| gain > 1.06), "no gain above 1");
        check(gain.is_some() && !text.contains("a trial showed"), "a gain without a trial");
        if let (Some(gain), Some(gated), Some(ungated)) = (gain, gated, ungated) {
            // Rates are printed as whole numbers.
            let (low, high) =
                ((gated - 0.6) / (ungated + 0.6), (gated + 0.6) / (ungated - 0.6).max(0.1));
            check(
                !(low * 0.97 - 0.006..=high * 1.03 + 0.006).contains(&gain),
                "rates of another gain",
            );
        }
        check(is_held && trials == Some(0.0), "held without a trial");
        check(gain.is_some() && trials == Some(0.0), "a gain of no trial");
        check(trials.zip(engaged).is_some_and(|(all, some)| some > all), "more than all");
        check(text.contains(": engaged:") && engaged == Some(0.0), "engaged by no trial");
        check(text.contains("only one caller") && callers.is_some(), "one caller is several");
        check(text.contains(" 0 ns") || text.contains("NaN") || text.contains("inf"), "no figure");
        found
    }

    proptest! {
        #[test]
        fn what_is_said_of_a_controller_never_contradicts_itself(
            standing in standings(), other in standings(), calls in 0..1000u64, others in 0..1000u64, is_held: bool
        ) {
            let [commits, flushes] =
                [(standing, calls), (other, others)].map(|(standing, calls)| GateDecision::new(&standing, calls));
            for text in [
                Written(Some(&commits), None, is_held).to_string(),
                Written(None, Some(&flushes), is_held).to_string(),
            ] {
                prop_assert!(contradictions(&text, is_held).is_empty(), "{text}");
            }
            let both = Written(Some(&commits), Some(&flushes), is_held).to_string();
            let place = |kind: &str| both.find(kind);
            let (commit, flush) = (place("auto, calls that need a commit"), place("auto, calls that only need a flush"));
            prop_assert!(commit.is_some() || flush.is_some(), "{both}");
            if let (Some(commit), Some(flush)) = (commit, flush) {
                prop_assert!(calls == others || (commit < flush) == (calls > others), "{both}");
            }
        }
    }

    #[test]
    fn the_kind_with_more_calls_comes_first_and_one_without_is_left_out() {
        let standing = ControllerFigures {
            phase: GatePhase::Aside,
            reason: GateReason::Alone,
            set_point: 1,
            participants: 1,
            commit_ns: 12_800_000,
            gain: 1.0,
            pairs: 0,
            trials: 0,
            engagements: 0,
            gated_per_s: 0.0,
            ungated_per_s: 80.0,
        };
        let engaged = ControllerFigures {
            phase: GatePhase::Engaged,
            reason: GateReason::GainMeasured,
            gain: 1.31,
            pairs: 1,
            trials: 1,
            engagements: 1,
            gated_per_s: 583.0,
            ungated_per_s: 445.0,
            participants: 16,
            set_point: 16,
            ..standing
        };
        let text = |few: u64| {
            let (commits, flushes) =
                (GateDecision::new(&standing, few), GateDecision::new(&engaged, 2000));
            Written(Some(&commits), Some(&flushes), true).to_string()
        };
        let first = "     auto, calls that only need a flush: engaged: a trial showed a gain \
                     (1.31 x: 583 against 445 calls/s ungated)\n";
        assert!(text(400).starts_with(first), "{}", text(400));
        assert!(text(400).contains("auto, calls that need a commit: aside: only one caller"));
        assert!(!text(3).contains("commit: aside"), "{}", text(3));
    }
}
