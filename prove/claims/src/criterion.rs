//! The criterion "not slower": the ratio, and the lower end of its interval, that a target asks for.
//!
//! - `power`: rounds that a criterion needs, by the scatter of a round.
//! - `simulated`: how often rounds of a known ratio pass.

pub mod power;
pub mod simulated;

use luc_stats::{RatioEnds, interpolated_interval, median, median_interval, resampled_ratios};
use serde::{Deserialize, Serialize};

/// Confidence of the interval whose lower end a sure ratio has: a fifth of all true ratios is below it.
const LIKELY_CONFIDENCE: f64 = 0.6;

/// A ratio that rounds gave, with what a criterion and a page need to know of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ComparedRatio {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    /// Number of runs, if the ends are their range.
    pub range_of: Option<usize>,
    /// Lower end of the interval of 60 %.
    likely_low: f64,
    /// Rounds, or runs of the smaller side.
    pub rounds: usize,
    /// Standard deviation of the logarithm of a round's ratio.
    pub scatter: f64,
}

/// Bounds of a ratio that is not slower.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Criterion {
    least_ratio: f64,
    least_low: f64,
    /// Whether the lower end of the 60 % interval must reach `least_ratio`, not only the ratio itself.
    is_sure: bool,
}

/// The criterion of all pages.
pub const NOT_SLOWER: Criterion = Criterion { least_ratio: 0.98, least_low: 0.95, is_sure: false };

/// The same bounds, made sure: a true ratio at either one mostly fails.
pub const SURELY_NOT_SLOWER: Criterion = Criterion { is_sure: true, ..NOT_SLOWER };

impl Criterion {
    pub fn is_met(&self, compared: &ComparedRatio) -> bool {
        self.margin(compared) >= 0.0
    }

    /// Returns how far a ratio is above the bound that it meets worst. Below 0 it is not met.
    pub fn margin(&self, compared: &ComparedRatio) -> f64 {
        let ratio = if self.is_sure { compared.likely_low } else { compared.ratio };
        (ratio - self.least_ratio).min(compared.low - self.least_low)
    }

    /// Describes the bounds, as a target's text ends.
    pub fn words(&self, range_of: Option<usize>) -> String {
        let Self { least_ratio, least_low, is_sure } = self;
        let ratio = if *is_sure { "lower end of its 60 % interval" } else { "ratio" };
        let ends = range_of.map_or("interval".to_owned(), |runs| format!("range of {runs}"));
        format!("not slower ({ratio} >= {least_ratio}, lower end of its {ends} >= {least_low})")
    }
}

impl ComparedRatio {
    /// Takes the median of the rounds' ratios, and its 95 % interval from order statistics. With fewer than 6 rounds
    /// the ends are the range. `None` for fewer than 2.
    pub fn of_ratios(ratios: &[f64]) -> Option<Self> {
        let ratio = median(ratios)?;
        let scatter = log_scatter(ratios)?;
        let interval = median_interval(ratios);
        let (low, high) = interval.map_or_else(
            || ratios.iter().fold((ratio, ratio), |(a, b), value| (a.min(*value), b.max(*value))),
            |interval| (interval.low, interval.high),
        );
        let range_of = interval.is_none().then_some(ratios.len());
        // Of five the innermost pair with an interval covers 62.5 %.
        let likely = interpolated_interval(ratios, LIKELY_CONFIDENCE)
            .or_else(|| interpolated_interval(ratios, 0.63));
        let likely_low = likely.map_or(low, |interval| interval.low);
        Some(Self { ratio, low, high, range_of, likely_low, rounds: ratios.len(), scatter })
    }

    /// Takes the ratio of the sides' medians, and its 95 % bootstrap interval. With fewer than 5 runs of a side the
    /// ends are a range. `None` for fewer than 2.
    pub fn of_medians(with: &[f64], without: &[f64], seed: u64) -> Option<Self> {
        let resampled = resampled_ratios(with, without, seed).ok()?;
        let RatioEnds { ratio, low, high, range_of } = resampled.ends();
        let likely_low = range_of.map_or_else(|| resampled.low(LIKELY_CONFIDENCE), |_| low);
        let scatter = log_scatter(with)?.hypot(log_scatter(without)?);
        let rounds = with.len().min(without.len());
        Some(Self { ratio, low, high, range_of, likely_low, rounds, scatter })
    }

    /// Returns what the same rounds would give with a side that is faster by a factor.
    pub fn times(&self, factor: f64) -> Self {
        let Self { ratio, low, high, likely_low, .. } = *self;
        let [ratio, low, high, likely_low] = [ratio, low, high, likely_low].map(|end| end * factor);
        Self { ratio, low, high, likely_low, ..*self }
    }

    pub fn ends(&self) -> RatioEnds {
        let Self { ratio, low, high, range_of, .. } = *self;
        RatioEnds { ratio, low, high, range_of }
    }
}

/// Returns the standard deviation of the logarithms; `None` of fewer than 2 values, or of one without a logarithm.
fn log_scatter(values: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    if logs.len() < 2 || logs.iter().any(|log| !log.is_finite()) {
        return None;
    }
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    Some((squares / (logs.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_ratios_of_rounds() {
        let few = ComparedRatio::of_ratios(&[1.0, 0.9, 1.2]).expect("three");
        assert_eq!((few.ratio, few.low, few.high, few.range_of), (1.0, 0.9, 1.2, Some(3)));
        let ratios: Vec<f64> = (1..=10).map(f64::from).collect();
        let many = ComparedRatio::of_ratios(&ratios).expect("ten");
        assert_eq!((many.ratio, many.low, many.high, many.range_of), (5.5, 2.0, 9.0, None));
        assert!(many.low < many.likely_low && many.likely_low < many.ratio, "{many:?}");
        assert_eq!(ComparedRatio::of_ratios(&[1.0]), None);
        // Logarithms 0, 1 and 2.
        let steps = [0.0_f64, 1.0, 2.0].map(f64::exp);
        let found = ComparedRatio::of_ratios(&steps).expect("three");
        assert!((found.scatter - 1.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn of_the_medians_of_sides() {
        let sides = ([2.0, 2.0, 2.0, 4.0], [1.0, 1.0, 2.0, 2.0]);
        let few = ComparedRatio::of_medians(&sides.0, &sides.1, 1).expect("four");
        assert_eq!((few.low, few.high, few.range_of), (1.0, 4.0, Some(4)));
        let values = [1.0, 1.02, 0.98, 1.01, 0.99, 1.03];
        let many = ComparedRatio::of_medians(&values, &values, 1).expect("six");
        assert_eq!((many.ratio, many.range_of, many.rounds), (1.0, None, 6));
        assert!(many.low < many.likely_low && many.likely_low <= 1.0, "{many:?}");
    }

    #[test]
    fn a_faster_side_multiplies_all_ends() {
        let values = [1.0, 1.02, 0.98, 1.01, 0.99, 1.03];
        let faster = values.map(|value| value * 2.0);
        let of_medians = |with| ComparedRatio::of_medians(with, &values, 1).expect("six");
        let of_ratios = |with| ComparedRatio::of_ratios(with).expect("six");
        for [one, two] in
            [[of_medians(&values), of_medians(&faster)], [of_ratios(&values), of_ratios(&faster)]]
        {
            assert_eq!(ComparedRatio { scatter: two.scatter, ..one.times(2.0) }, two);
            assert!((one.scatter - two.scatter).abs() < 1e-12);
        }
    }

    #[test]
    fn a_criterion_has_two_bounds() {
        let of = |ratio, likely_low, low| ComparedRatio {
            ratio,
            low,
            high: 1.1,
            range_of: None,
            likely_low,
            rounds: 10,
            scatter: 0.01,
        };
        for (compared, is_met, is_surely_met) in [
            (of(0.98, 0.975, 0.95), true, false),
            (of(0.99, 0.98, 0.95), true, true),
            (of(0.979, 0.975, 0.97), false, false),
            (of(1.05, 1.0, 0.949), false, false),
        ] {
            assert_eq!(NOT_SLOWER.is_met(&compared), is_met, "{compared:?}");
            assert_eq!(SURELY_NOT_SLOWER.is_met(&compared), is_surely_met, "{compared:?}");
        }
        let words = NOT_SLOWER.words(Some(3));
        assert_eq!(words, "not slower (ratio >= 0.98, lower end of its range of 3 >= 0.95)");
    }
}
