//! A claim of the thesis set against the sweep: verdicts are computed from figures, and what is said follows from them.

use super::super::report::number;
use super::data::{Curve, Data, Fall, Line, Spread, range};

/// A change of the median below this says nothing: runs that differ by a microsecond go another way.
pub(super) const NOISE: f64 = 0.03;

/// Whether the thesis' claim holds here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Agrees,
    Partly,
    DoesNot,
    NotMeasured,
}

impl Verdict {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Partly => "partly",
            Self::DoesNot => "**does not**",
            Self::NotMeasured => "not measured",
        }
    }
}

/// What came of a claim.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    /// The thesis' figure.
    pub(super) figure: &'static str,
    /// What it claims.
    pub(super) says: &'static str,
    /// What was found here.
    pub(super) found: String,
    pub(super) verdict: Verdict,
    /// The likely cause, for the verdict that it is.
    pub(super) cause: &'static str,
}

/// A claim, with a likely cause for each verdict.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    pub(super) figure: &'static str,
    pub(super) says: &'static str,
    /// If it agrees.
    pub(super) agrees: &'static str,
    /// If it agrees in part.
    pub(super) partly: &'static str,
    /// If it does not agree.
    pub(super) does_not: &'static str,
}

impl Claim {
    pub(super) fn found(self, verdict: Verdict, found: String) -> Finding {
        Finding {
            figure: self.figure,
            says: self.says,
            found,
            verdict,
            cause: match verdict {
                Verdict::Agrees => self.agrees,
                Verdict::Partly => self.partly,
                Verdict::DoesNot => self.does_not,
                Verdict::NotMeasured => "-",
            },
        }
    }

    fn not_measured(self) -> Finding {
        self.found(Verdict::NotMeasured, "-".to_owned())
    }

    /// Faster processors are slower in `lines`: agrees if one falls by `least` or more and half of them by more than
    /// noise, in part if any does by more than noise.
    pub(super) fn slowdown(self, data: &Data, lines: &[Line], least: f64) -> Finding {
        let falls: Vec<(Line, Fall)> = lines
            .iter()
            .filter_map(|line| Some((*line, data.greatest_fall(*line)?)))
            .collect();
        if falls.is_empty() {
            return self.not_measured();
        }
        let sure = falls.iter().filter(|(_, fall)| fall.is_sure);
        let shares: Vec<f64> = sure.map(|(_, fall)| fall.share).collect();
        let worst = shares.iter().copied().fold(0.0, f64::max);
        let fallen = shares.iter().filter(|share| **share > NOISE).count();
        let verdict = match grade(worst, least) {
            Verdict::Agrees if 2 * fallen < falls.len() => Verdict::Partly,
            verdict => verdict,
        };
        let words: Vec<String> = falls
            .iter()
            .map(|(line, fall)| format!("{}: {}", line.name(), fall_words(*fall)))
            .collect();
        self.found(verdict, words.join("; "))
    }

    /// The fastest speed is slower than the slowest in some of `lines`: agrees if any is by `least` or more, in part if
    /// any is by more than noise.
    pub(super) fn end_to_end(self, data: &Data, lines: &[Line], least: f64) -> Finding {
        let change = |line: &Line| Some((*line, data.normalized(*line).last()?.1));
        let changes: Vec<(Line, Spread)> = lines.iter().filter_map(change).collect();
        if changes.is_empty() {
            return self.not_measured();
        }
        let sure = changes.iter().filter(|(_, spread)| spread.most < 1.0);
        let worst = sure
            .map(|(_, spread)| 1.0 - spread.median)
            .fold(0.0, f64::max);
        let words: Vec<String> = changes
            .iter()
            .map(|(line, spread)| format!("{}: {}", line.name(), spread.text()))
            .collect();
        self.found(
            grade(worst, least),
            format!("fastest over slowest: {}", words.join("; ")),
        )
    }

    /// No line falls by more than noise from any speed to a faster one.
    pub(super) fn no_slowdown(self, data: &Data, lines: &[Line]) -> Finding {
        let falls: Vec<(Line, Fall)> = lines
            .iter()
            .filter_map(|line| Some((*line, data.greatest_fall(*line)?)))
            .collect();
        if falls.is_empty() {
            return self.not_measured();
        }
        let is_fall = |(_, fall): &&(Line, Fall)| fall.is_sure && fall.share > NOISE;
        let fallen = falls.iter().filter(is_fall).count();
        let verdict = match fallen {
            0 => Verdict::Agrees,
            some if some < falls.len() => Verdict::Partly,
            _ => Verdict::DoesNot,
        };
        let words: Vec<String> = falls
            .iter()
            .map(|(line, fall)| format!("{}: {}", line.name(), fall_words(*fall)))
            .collect();
        self.found(verdict, words.join("; "))
    }

    /// `line` over `to` gains, `theirs` at most: agrees if every repeat at every speed gains and the greatest median has
    /// at least half of the thesis' gain; in part if any median gains.
    pub(super) fn gain(self, data: &Data, line: Line, to: Line, theirs: f64) -> Finding {
        let curve = data.over(line, to);
        let Some((least, most)) = range(&curve) else {
            return self.not_measured();
        };
        let verdict = gain_verdict(&curve, most, theirs);
        let found = format!("{} to {} times, by speed", number(least), number(most));
        self.found(verdict, found)
    }

    /// `line` over `to` changes nothing: every median is within noise.
    pub(super) fn no_change(self, data: &Data, line: Line, to: Line) -> Finding {
        let Some((least, most)) = range(&data.over(line, to)) else {
            return self.not_measured();
        };
        let verdict = if least > 1.0 - NOISE && most < 1.0 + NOISE {
            Verdict::Agrees
        } else if least > 1.0 - 2.0 * NOISE && most < 1.0 + 2.0 * NOISE {
            Verdict::Partly
        } else {
            Verdict::DoesNot
        };
        self.found(
            verdict,
            format!("{} to {} times, by speed", number(least), number(most)),
        )
    }

    /// `curve` is below `other` at every speed (agrees), or at some (in part). `what` says what it is of.
    pub(super) fn below(self, curve: &Curve, other: &Curve, what: &str) -> Finding {
        let pairs: Vec<(f64, f64)> = curve
            .iter()
            .filter_map(|(mips, spread)| {
                let (_, other) = other.iter().find(|(speed, _)| speed == mips)?;
                Some((spread.median, other.median))
            })
            .collect();
        if pairs.is_empty() {
            return self.not_measured();
        }
        let below = pairs.iter().filter(|(with, without)| with < without);
        let verdict = share(below.count(), pairs.len());
        let words = |of: fn(&(f64, f64)) -> f64| {
            let values = || pairs.iter().map(of);
            let least = values().fold(f64::INFINITY, f64::min);
            let most = values().fold(0.0, f64::max);
            format!("{} to {}", number(least), number(most))
        };
        let found = format!("{what}: {} instead of {}", words(|p| p.0), words(|p| p.1));
        self.found(verdict, found)
    }
}

/// How much of a set holds.
pub(super) fn share(holds: usize, of: usize) -> Verdict {
    match holds {
        _ if of == 0 => Verdict::NotMeasured,
        0 => Verdict::DoesNot,
        holds if holds == of => Verdict::Agrees,
        _ => Verdict::Partly,
    }
}

fn grade(worst: f64, least: f64) -> Verdict {
    if worst >= least {
        Verdict::Agrees
    } else if worst > NOISE {
        Verdict::Partly
    } else {
        Verdict::DoesNot
    }
}

/// Whether a gain is there at every speed, and as large as half of `theirs`.
pub(super) fn gain_verdict(curve: &Curve, most: f64, theirs: f64) -> Verdict {
    let always = curve.iter().all(|(_, spread)| spread.least > 1.0);
    if always && most - 1.0 >= 0.5 * (theirs - 1.0) {
        Verdict::Agrees
    } else if most > 1.0 + NOISE {
        Verdict::Partly
    } else {
        Verdict::DoesNot
    }
}

fn fall_words(fall: Fall) -> String {
    if fall.share <= 0.0 {
        return "never falls".to_owned();
    }
    let sure = if fall.is_sure {
        ""
    } else {
        ", within its range"
    };
    format!(
        "falls by {:.1} % from {} to {} MIPS{sure}",
        fall.share * 100.0,
        fall.from,
        fall.to
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(medians: &[f64]) -> Curve {
        let spread = |median: f64| Spread {
            median,
            least: median * 0.99,
            most: median * 1.01,
        };
        (1..).zip(medians.iter().map(|&m| spread(m))).collect()
    }

    #[test]
    fn verdicts_follow_the_figures() {
        assert_eq!(grade(0.25, 0.1), Verdict::Agrees);
        assert_eq!(grade(0.05, 0.1), Verdict::Partly);
        assert_eq!(grade(0.01, 0.1), Verdict::DoesNot);
        assert_eq!(share(3, 3), Verdict::Agrees);
        assert_eq!(share(0, 3), Verdict::DoesNot);
        assert_eq!(share(0, 0), Verdict::NotMeasured);
        for (medians, theirs, verdict) in [
            ([1.5, 1.9], 2.57, Verdict::Agrees),
            ([1.2, 1.3], 2.57, Verdict::Partly),
            ([0.9, 1.9], 2.57, Verdict::Partly),
            ([1.0, 1.0], 2.57, Verdict::DoesNot),
        ] {
            let curve = curve(&medians);
            let most = medians[0].max(medians[1]);
            assert_eq!(gain_verdict(&curve, most, theirs), verdict, "{medians:?}");
        }
    }

    const CLAIM: Claim = Claim {
        figure: "1",
        says: "it is less",
        agrees: "so",
        partly: "so so",
        does_not: "not so",
    };

    #[test]
    fn what_is_said_follows_from_the_verdict() {
        let (low, high) = (curve(&[1.0, 2.0]), curve(&[3.0, 4.0]));
        let finding = CLAIM.below(&low, &high, "ms");
        assert_eq!((finding.verdict, finding.cause), (Verdict::Agrees, "so"));
        let finding = CLAIM.below(&high, &low, "ms");
        assert_eq!(finding.cause, "not so");
        assert_eq!(finding.found, "ms: 3.00 to 4.00 instead of 1.00 to 2.00");
        let finding = CLAIM.slowdown(&Data::default(), &[Line::new("w", 1, "off")], 0.1);
        assert_eq!(finding.verdict, Verdict::NotMeasured);
    }
}
