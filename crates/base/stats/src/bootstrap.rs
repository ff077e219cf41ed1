//! A ratio of two settings with its bootstrap interval.

use rand::RngExt;
use serde::Serialize;

use super::order::{median, median_of_scratch};
use crate::random;

/// Resamples of each side.
const RESAMPLES: usize = 4000;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Median with the change over median without it.
    pub ratio: f64,
    /// 2.5th percentile of the resampled ratios.
    pub low: f64,
    /// 97.5th percentile of the resampled ratios.
    pub high: f64,
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
pub fn ratio_interval(with: &[f64], without: &[f64], seed: u64) -> Result<Interval, StatsError> {
    resample_interval(with, without, seed, RESAMPLES)
}

fn resample_interval(
    with: &[f64],
    without: &[f64],
    seed: u64,
    resamples: usize,
) -> Result<Interval, StatsError> {
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
    let mut random = random::stream(seed, 0);
    let mut scratch = Vec::with_capacity(with.len().max(without.len()));
    let mut resampled_median = |values: &[f64]| {
        scratch.clear();
        scratch.extend((0..values.len()).map(|_| values[random.random_range(0..values.len())]));
        median_of_scratch(&mut scratch)
    };
    let mut ratios = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        ratios.push(ratio_of(resampled_median(with), resampled_median(without))?);
    }
    ratios.sort_by(f64::total_cmp);
    let tail = resamples / 40;
    Ok(Interval { ratio, low: ratios[tail], high: ratios[resamples - 1 - tail] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns log-normal throughputs: skewed to the right as disturbed runs are.
    fn runs(seed: u64, stream: u64, count: usize, median: f64) -> Vec<f64> {
        let mut random = random::stream(seed, stream);
        (0..count).map(|_| median * (0.3 * random::normal(&mut random)).exp()).collect()
    }

    #[test]
    fn the_interval_covers_the_truth_as_often_as_it_says() {
        for count in [10, 25] {
            let trials = 200;
            let covered = (0..trials)
                .filter(|&trial| {
                    let with = runs(trial, 1, count, 1200.0);
                    let without = runs(trial, 2, count, 1000.0);
                    let interval =
                        resample_interval(&with, &without, trial, 400).expect("interval");
                    (interval.low..=interval.high).contains(&1.2)
                })
                .count();
            let coverage = covered as f64 / trials as f64;
            assert!((0.91..=0.99).contains(&coverage), "{count} runs: {coverage}");
        }
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
            prop_assert_eq!(interval, Ok(Interval { ratio: 1.0, low: 1.0, high: 1.0 }));
        }
    }
}
