//! A ratio of two settings with its bootstrap interval, or of few runs with its range.

use rand::RngExt;
use serde::Serialize;

use super::order_statistics::{median, median_of_scratch};
use crate::seeded_random;

/// Resamples of each side.
const RESAMPLES: usize = 4000;

/// Minimum number of runs of each side that give an interval. Fewer give a range.
pub const MIN_RUNS_OF_INTERVAL: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BootstrapInterval {
    /// Median with the change over median without it.
    pub ratio: f64,
    /// 2.5th percentile of the resampled ratios.
    pub low: f64,
    /// 97.5th percentile of the resampled ratios.
    pub high: f64,
}

/// A ratio of medians between two ends: its 95 % interval, or the range of few runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RatioEnds {
    /// Median with the change over median without it.
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    /// Runs of the smaller side, if the ends are a range. A range has no confidence.
    pub range_of: Option<usize>,
}

/// Ratios of medians of resampled runs, from which intervals of any confidence are read.
#[derive(Debug, Clone, PartialEq)]
pub struct Resampled {
    /// Median with the change over median without it.
    pub ratio: f64,
    /// Ratios of the resamples, the least first.
    sorted: Vec<f64>,
    /// Runs of the smaller side.
    runs: usize,
    /// The least run over the greatest one, and the greatest over the least.
    range: (f64, f64),
}

/// Why there is no interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StatsError {
    #[error("{runs} runs of one side give no interval; make at least 2, better 10")]
    TooFew {
        /// Runs of the smaller side.
        runs: usize,
    },
    /// A figure without a positive value has no ratio.
    #[error("a figure is zero, negative or not a number; repeat the run that gave it")]
    NotPositive,
}

/// Computes the ratio of the medians of interleaved runs, `with` a change over `without` it, and its 95 %
/// interval: percentile bootstrap, the two sides resampled on their own (Efron and Tibshirani, *An
/// Introduction to the Bootstrap*, 13.3). Medians, because one disturbed run must not decide;
/// percentile and not BCa, because the jackknife that BCa needs fails for medians. The same `seed`
/// gives the same interval.
///
/// # Errors
/// [`StatsError`] if a side has fewer than 2 runs, or a figure that is not positive and finite.
pub fn ratio_interval(
    with: &[f64],
    without: &[f64],
    seed: u64,
) -> Result<BootstrapInterval, StatsError> {
    resample(with, without, seed, RESAMPLES).map(|resampled| resampled.interval())
}

/// Resamples as [`ratio_interval`] does, and keeps the ratios.
///
/// # Errors
/// Those of [`ratio_interval`].
pub fn resampled_ratios(with: &[f64], without: &[f64], seed: u64) -> Result<Resampled, StatsError> {
    resample(with, without, seed, RESAMPLES)
}

/// Computes the ratio of the medians and its 95 % interval. With fewer than [`MIN_RUNS_OF_INTERVAL`] runs the ends are
/// a range: the least run over the greatest one, and the greatest over the least.
///
/// # Errors
/// Those of [`ratio_interval`].
pub fn ratio_ends(with: &[f64], without: &[f64], seed: u64) -> Result<RatioEnds, StatsError> {
    resampled_ratios(with, without, seed).map(|resampled| resampled.ends())
}

impl Resampled {
    /// Returns the ratio with its interval, or with the range of few runs, as [`ratio_ends`] does.
    #[must_use]
    pub fn ends(&self) -> RatioEnds {
        let BootstrapInterval { ratio, low, high } = self.interval();
        if self.runs >= MIN_RUNS_OF_INTERVAL {
            return RatioEnds { ratio, low, high, range_of: None };
        }
        let (low, high) = self.range;
        RatioEnds { ratio, low, high, range_of: Some(self.runs) }
    }

    /// Returns the lower end of the interval of `confidence` (0.95 for 95 %).
    pub fn low(&self, confidence: f64) -> f64 {
        self.sorted[self.tail(confidence)]
    }

    /// Returns the upper end of the interval of `confidence`.
    pub fn high(&self, confidence: f64) -> f64 {
        self.sorted[self.sorted.len() - 1 - self.tail(confidence)]
    }

    /// Returns the number of ratios below the lower end.
    fn tail(&self, confidence: f64) -> usize {
        let tail = self.sorted.len() as f64 * (1.0 - confidence) / 2.0;
        (tail.round() as usize).min((self.sorted.len() - 1) / 2)
    }

    fn interval(&self) -> BootstrapInterval {
        BootstrapInterval { ratio: self.ratio, low: self.low(0.95), high: self.high(0.95) }
    }
}

fn resample(
    with: &[f64],
    without: &[f64],
    seed: u64,
    resamples: usize,
) -> Result<Resampled, StatsError> {
    let runs = with.len().min(without.len());
    if runs < 2 {
        return Err(StatsError::TooFew { runs });
    }
    if with.iter().chain(without).any(|value| !value.is_finite() || *value <= 0.0) {
        return Err(StatsError::NotPositive);
    }
    let ratio_of = |with: Option<f64>, without: Option<f64>| match (with, without) {
        (Some(with), Some(without)) => Ok(with / without),
        _ => Err(StatsError::TooFew { runs }),
    };
    let ratio = ratio_of(median(with), median(without))?;
    let mut random = seeded_random::stream(seed, 0);
    let mut scratch = Vec::with_capacity(with.len().max(without.len()));
    let mut resampled_median = |values: &[f64]| {
        scratch.clear();
        scratch.extend((0..values.len()).map(|_| values[random.random_range(0..values.len())]));
        median_of_scratch(&mut scratch)
    };
    let mut sorted = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        sorted.push(ratio_of(resampled_median(with), resampled_median(without))?);
    }
    sorted.sort_by(f64::total_cmp);
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let range = (least(with) / most(without), most(with) / least(without));
    Ok(Resampled { ratio, sorted, runs, range })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns log-normal throughputs: skewed to the right as disturbed runs are.
    fn runs(seed: u64, stream: u64, count: usize, median: f64) -> Vec<f64> {
        let mut random = seeded_random::stream(seed, stream);
        (0..count).map(|_| median * (0.3 * seeded_random::normal(&mut random)).exp()).collect()
    }

    /// Returns the share of experiments whose interval holds the true ratio.
    fn coverage(count: usize, trials: u64) -> f64 {
        let covered = (0..trials).filter(|&trial| {
            let with = runs(trial, 1, count, 1200.0);
            let without = runs(trial, 2, count, 1000.0);
            let interval = resample(&with, &without, trial, 400).expect("runs").interval();
            (interval.low..=interval.high).contains(&1.2)
        });
        covered.count() as f64 / trials as f64
    }

    #[test]
    fn the_interval_covers_the_truth_as_often_as_it_says() {
        for count in [10, 25] {
            let coverage = coverage(count, 200);
            assert!((0.91..=0.99).contains(&coverage), "{count} runs: {coverage}");
        }
    }

    #[test]
    fn few_runs_that_give_an_interval_are_enough_for_95_percent() {
        for count in MIN_RUNS_OF_INTERVAL..=10 {
            let coverage = coverage(count, 1000);
            assert!((0.94..=0.99).contains(&coverage), "{count} runs: {coverage}");
        }
        // Why fewer have a range: of three the interval would be one of 90 %.
        let coverage = coverage(3, 1000);
        assert!((0.86..0.93).contains(&coverage), "{coverage}");
    }

    #[test]
    fn fewer_runs_have_a_range() {
        let ends = ratio_ends(&[3.0, 2.0, 4.0, 2.5], &[1.0, 2.0, 1.0, 1.25], 1).expect("ends");
        let expected = RatioEnds { ratio: 2.75 / 1.125, low: 1.0, high: 4.0, range_of: Some(4) };
        assert_eq!(ends, expected);
        let (with, without) = (runs(1, 1, 5, 2.0), runs(1, 2, 5, 1.0));
        let BootstrapInterval { ratio, low, high } =
            ratio_interval(&with, &without, 1).expect("interval");
        let expected = RatioEnds { ratio, low, high, range_of: None };
        assert_eq!(ratio_ends(&with, &without, 1), Ok(expected));
    }

    #[test]
    fn an_interval_of_less_confidence_is_within() {
        let found = resampled_ratios(&runs(1, 1, 9, 2.0), &runs(1, 2, 9, 1.0), 1).expect("ratios");
        let ends =
            [found.low(0.95), found.low(0.6), found.ratio, found.high(0.6), found.high(0.95)];
        assert!(ends.is_sorted(), "{ends:?}");
        assert!(found.low(0.0) <= found.high(0.0) && found.low(1.0) < found.low(0.95));
    }

    #[test]
    fn what_gives_no_interval() {
        assert_eq!(ratio_interval(&[1.0], &[1.0, 2.0], 1), Err(StatsError::TooFew { runs: 1 }));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let sides = ([1.0, bad], [1.0, 2.0]);
            assert_eq!(ratio_interval(&sides.0, &sides.1, 1), Err(StatsError::NotPositive));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn seeded_ordered_and_scale_free(
            with in prop::collection::vec(1.0_f64..1e6, 2..30),
            without in prop::collection::vec(1.0_f64..1e6, 2..30),
            seed: u64,
        ) {
            let interval = ratio_interval(&with, &without, seed).expect("interval");
            prop_assert_eq!(ratio_interval(&with, &without, seed), Ok(interval));
            prop_assert!(interval.low <= interval.high);
            let double: Vec<f64> = with.iter().map(|value| value * 2.0).collect();
            let doubled = ratio_interval(&double, &without, seed).expect("interval");
            prop_assert!((doubled.ratio / interval.ratio - 2.0).abs() < 1e-9);
            prop_assert!((doubled.low / interval.low - 2.0).abs() < 1e-9);
        }

        #[test]
        fn equal_runs_leave_no_doubt(value in 1.0_f64..1e6, count in 2_usize..20) {
            let interval = ratio_interval(&vec![value; count], &vec![value; count], 1);
            prop_assert_eq!(interval, Ok(BootstrapInterval { ratio: 1.0, low: 1.0, high: 1.0 }));
        }
    }
}
