//! Experiments that measure how often intervals hold the true median. Their figures are skewed, and each is the mean
//! of an autocorrelated run, like the figures of storage.

use std::fmt;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{StoppingRule, StoppingVerdict, median, paired_ratios};
use crate::seeded_random;

/// Experiments of each case.
pub const TRIALS: u64 = 4000;
/// The median of this many runs stands for the true one.
const RUNS_OF_TRUTH: usize = 100_001;
/// True ratio of the two sides of a pair.
const FACTOR: f64 = 1.3;

/// Distribution of a run's intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureDistribution {
    /// e to the power of an autocorrelated normal.
    LogNormal,
    /// Gamma draws, each mixed with the one before it.
    Gamma,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimand {
    Median,
    /// The median ratio of two settings, each round's against each other.
    Ratio,
}

/// One kind of experiment.
#[derive(Debug, Clone, Copy)]
pub struct CoverageCase {
    pub figure: Estimand,
    pub kind: FigureDistribution,
    /// Standard deviation of the logarithms of runs, beside the part that their intervals add.
    pub spread: f64,
    /// Rule by which repeats end.
    pub goal: StoppingRule,
}

/// Share of experiments whose interval held the truth.
#[derive(Debug, Clone, Copy)]
pub struct MeasuredCoverage {
    /// The share whose interval holds the truth.
    pub share: f64,
    /// The mean number of repeats.
    pub repeats: f64,
}

/// Returns all cases: fixed numbers of repeats, repeats until the interval is narrow, and ratios.
pub fn cases() -> Vec<CoverageCase> {
    let fixed = |count| StoppingRule { relative_half_width: 0.0, min: count, max: count };
    let until = |relative_half_width, min| StoppingRule { relative_half_width, min, max: 100 };
    let mut cases = Vec::new();
    for kind in [FigureDistribution::LogNormal, FigureDistribution::Gamma] {
        let mut add = |figure, spread, goals: &[StoppingRule]| {
            cases.extend(goals.iter().map(|&goal| CoverageCase { figure, kind, spread, goal }));
        };
        add(Estimand::Median, 0.1, &[6, 7, 8, 10, 15, 30, 50].map(fixed));
        let narrow = [
            until(0.05, 6),
            until(0.1, 6),
            until(0.2, 6),
            until(0.05, 10),
            until(0.1, 10),
            until(0.2, 10),
            until(0.1, 15),
        ];
        add(Estimand::Median, 0.02, &narrow);
        add(Estimand::Median, 0.3, &narrow);
        let pairs =
            [fixed(6), fixed(10), fixed(25), until(0.1, 6), until(0.1, 10), until(0.05, 10)];
        add(Estimand::Ratio, 0.1, &pairs);
    }
    cases
}

impl CoverageCase {
    pub fn truth(&self) -> f64 {
        // Both settings have the same distribution but for the factor, so that the ratio's median is the factor.
        if self.figure == Estimand::Ratio {
            return FACTOR;
        }
        let mut random = seeded_random::stream(99, 7);
        let runs: Vec<f64> = (0..RUNS_OF_TRUTH).map(|_| self.run(&mut random)).collect();
        median(&runs).unwrap_or(f64::NAN)
    }

    pub fn simulate(&self, truth: f64) -> MeasuredCoverage {
        let (mut covered, mut made) = (0, 0);
        for trial in 0..TRIALS {
            let mut random = seeded_random::stream(trial, 3);
            let mut values = Vec::new();
            while let StoppingVerdict::More(count) = self.goal.verdict(&values) {
                values.resize_with(count, || self.draw(&mut random));
            }
            let interval = self.goal.interval(&values);
            let holds = interval.is_some_and(|found| (found.low..=found.high).contains(&truth));
            covered += u32::from(holds);
            made += values.len();
        }
        MeasuredCoverage {
            share: f64::from(covered) / TRIALS as f64,
            repeats: made as f64 / TRIALS as f64,
        }
    }

    /// Draws the value of one repeat.
    fn draw(&self, random: &mut ChaCha8Rng) -> f64 {
        match self.figure {
            Estimand::Median => self.run(random),
            Estimand::Ratio => {
                let (with, without) = (FACTOR * self.run(random), self.run(random));
                let ratios = paired_ratios(&[with], &[without]).unwrap_or_default();
                ratios.first().copied().unwrap_or(f64::NAN)
            }
        }
    }

    /// Draws a run: the mean of 20 autocorrelated intervals, times a factor of the run. The factor stands for the place
    /// of files and for other load.
    pub fn run(&self, random: &mut impl Rng) -> f64 {
        let intervals = 20;
        let mut state = seeded_random::normal(random);
        let mut last = seeded_random::gamma(random, 1.0, 1.5);
        let mut sum = 0.0;
        for _ in 0..intervals {
            sum += match self.kind {
                FigureDistribution::LogNormal => {
                    state = 0.7 * state + (1.0_f64 - 0.49).sqrt() * seeded_random::normal(random);
                    (0.5 * state).exp()
                }
                FigureDistribution::Gamma => {
                    last = 0.7 * last + 0.3 * seeded_random::gamma(random, 1.0, 1.5);
                    last
                }
            };
        }
        sum / f64::from(intervals) * (self.spread * seeded_random::normal(random)).exp()
    }
}

impl fmt::Display for CoverageCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StoppingRule { relative_half_width, min, max } = self.goal;
        let (figure, kind) = (self.figure, self.kind);
        write!(f, "{figure:?}, {kind:?}, spread {}, ", self.spread)?;
        if min == max {
            write!(f, "{min} repeats")
        } else {
            write!(f, "{min} repeats and more until within {relative_half_width}")
        }
    }
}
