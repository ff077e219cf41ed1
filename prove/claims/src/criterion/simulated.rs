//! Rounds of a known ratio, and how often they pass a criterion.

use luc_stats::seeded_random::{self, Stream};
use luc_stats::{median, paired_ratios};

use super::ComparedRatio;

/// Draws that stand for a noise's true medians.
const DRAWS_OF_TRUTH: usize = 20_001;

/// Minimum number of measured rounds from which others are drawn.
const MIN_MEASURED_ROUNDS: usize = 4;

/// Way in which a page makes one ratio of its rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimator {
    /// The median of the rounds' ratios, with its interval from order statistics.
    MedianOfRatios,
    /// The ratio of the sides' medians, with its bootstrap interval.
    RatioOfMedians,
}

/// Figures of both sides, round by round.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedRounds {
    with: Vec<f64>,
    without: Vec<f64>,
}

/// Noise of rounds whose sides are equally fast.
#[derive(Debug, Clone)]
pub enum RoundNoise {
    /// Ratios whose logarithms are normal with this standard deviation. Each side has half of the variance.
    LogNormal { scatter: f64 },
    /// Measured rounds, smoothed and drawn again.
    Measured(Residuals),
}

/// Deviations of measured rounds from their mean, as logarithms.
#[derive(Debug, Clone)]
pub struct Residuals {
    /// Deviations of a round's ratio.
    ratios: Smoothed,
    /// Deviations of a round's level, which both sides share.
    levels: Smoothed,
    /// Logarithm of the median ratio of many draws, and of the ratio of their medians.
    median_of_ratios: f64,
    ratio_of_medians: f64,
}

/// Measured deviations that are drawn with a normal kernel about each. Draws have the variance of the sample (B. W.
/// Silverman, G. A. Young: *The bootstrap: to smooth or not to smooth?* Biometrika 74, 1987).
#[derive(Debug, Clone)]
struct Smoothed {
    deviations: Vec<f64>,
    width: f64,
    factor: f64,
    scatter: f64,
}

/// Many pages that measure the same.
#[derive(Debug, Clone, Copy)]
pub struct Simulation<'a> {
    pub noise: &'a RoundNoise,
    pub estimator: Estimator,
    pub rounds: usize,
    pub trials: u64,
    pub seed: u64,
}

/// Returns the share of pages that meet each criterion, for each true ratio.
pub fn passes<C: Fn(&ComparedRatio) -> bool>(
    simulation: &Simulation<'_>,
    true_ratios: &[f64],
    criteria: &[C],
) -> Vec<Vec<f64>> {
    let Simulation { noise, estimator, rounds, trials, seed } = *simulation;
    let mut passed = vec![vec![0_u64; criteria.len()]; true_ratios.len()];
    for trial in 0..trials {
        let made = noise.draw(estimator, rounds, &mut seeded_random::stream(seed, trial));
        let Some(compared) = made.compare(estimator, trial) else {
            continue;
        };
        for (true_ratio, passed) in true_ratios.iter().zip(&mut passed) {
            let compared = compared.times(*true_ratio);
            for (criterion, passed) in criteria.iter().zip(passed) {
                *passed += u64::from(criterion(&compared));
            }
        }
    }
    let share = |passed: u64| passed as f64 / trials as f64;
    passed.into_iter().map(|row| row.into_iter().map(share).collect()).collect()
}

impl SimulatedRounds {
    /// Compares the sides by the functions that pages call.
    fn compare(&self, estimator: Estimator, seed: u64) -> Option<ComparedRatio> {
        match estimator {
            Estimator::MedianOfRatios => {
                ComparedRatio::of_ratios(&paired_ratios(&self.with, &self.without).ok()?)
            }
            Estimator::RatioOfMedians => ComparedRatio::of_medians(&self.with, &self.without, seed),
        }
    }
}

impl RoundNoise {
    pub fn log_normal(scatter: f64) -> Self {
        Self::LogNormal { scatter }
    }

    /// Takes the noise of measured rounds: figures with a change and without it. `None` for too few, or for a figure
    /// that has no logarithm.
    pub fn measured(rounds: &[(f64, f64)], seed: u64) -> Option<Self> {
        if rounds.len() < MIN_MEASURED_ROUNDS {
            return None;
        }
        let log_ratios = rounds.iter().map(|(with, without)| (with / without).ln());
        let log_levels = rounds.iter().map(|(with, without)| (with * without).ln() / 2.0);
        let mut residuals = Residuals {
            ratios: Smoothed::of(log_ratios.collect())?,
            levels: Smoothed::of(log_levels.collect())?,
            median_of_ratios: 0.0,
            ratio_of_medians: 0.0,
        };
        let mut random = seeded_random::stream(seed, u64::MAX);
        let many = residuals.draw(DRAWS_OF_TRUTH, 0.0, &mut random);
        let ratios = paired_ratios(&many.with, &many.without).ok()?;
        residuals.median_of_ratios = median(&ratios)?.ln();
        residuals.ratio_of_medians = (median(&many.with)? / median(&many.without)?).ln();
        Some(Self::Measured(residuals))
    }

    /// Returns the standard deviation of the logarithm of a round's ratio.
    pub fn scatter(&self) -> f64 {
        match self {
            Self::LogNormal { scatter } => *scatter,
            Self::Measured(residuals) => residuals.ratios.scatter,
        }
    }

    /// Draws rounds whose true ratio is 1, by this estimator.
    fn draw(&self, estimator: Estimator, rounds: usize, random: &mut Stream) -> SimulatedRounds {
        match self {
            Self::LogNormal { scatter } => {
                let scatter = scatter * std::f64::consts::FRAC_1_SQRT_2;
                let mut side = || {
                    (0..rounds).map(|_| (scatter * seeded_random::normal(random)).exp()).collect()
                };
                SimulatedRounds { with: side(), without: side() }
            }
            Self::Measured(residuals) => {
                let truth = match estimator {
                    Estimator::MedianOfRatios => residuals.median_of_ratios,
                    Estimator::RatioOfMedians => residuals.ratio_of_medians,
                };
                residuals.draw(rounds, truth, random)
            }
        }
    }
}

impl Residuals {
    /// Draws rounds whose ratios are lower by the logarithm `truth`. A round's ratio and level are drawn together.
    fn draw(&self, rounds: usize, truth: f64, random: &mut Stream) -> SimulatedRounds {
        let mut made = SimulatedRounds { with: Vec::new(), without: Vec::new() };
        for _ in 0..rounds {
            let at = seeded_random::index(random, self.ratios.deviations.len());
            let half = self.ratios.about(at, random) / 2.0;
            let level = self.levels.about(at, random);
            made.with.push((level + half - truth).exp());
            made.without.push((level - half).exp());
        }
        made
    }
}

impl Smoothed {
    /// Takes the deviations of a sample. `None` for values that are not finite.
    fn of(sample: Vec<f64>) -> Option<Self> {
        if sample.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let count = sample.len() as f64;
        let mean = sample.iter().sum::<f64>() / count;
        let deviations: Vec<f64> = sample.iter().map(|value| value - mean).collect();
        let squares: f64 = deviations.iter().map(|deviation| deviation.powi(2)).sum();
        let scatter = (squares / (count - 1.0)).sqrt();
        // Silverman's rule. Draws have the variance of the deviations and of the kernel.
        let width = 0.9 * scatter * count.powf(-0.2);
        let drawn = (squares / count + width.powi(2)).sqrt();
        let factor = if drawn > 0.0 { scatter / drawn } else { 1.0 };
        Some(Self { deviations, width, factor, scatter })
    }

    /// Draws about a deviation.
    fn about(&self, at: usize, random: &mut Stream) -> f64 {
        self.factor * (self.deviations[at] + self.width * seeded_random::normal(random))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NOT_SLOWER, SURELY_NOT_SLOWER};
    use super::*;

    const ROUNDS: [(f64, f64); 6] =
        [(9.9, 10.1), (10.4, 10.0), (9.0, 9.3), (11.0, 10.6), (10.1, 10.2), (9.8, 9.4)];

    fn simulation(noise: &RoundNoise, rounds: usize) -> Simulation<'_> {
        Simulation { noise, estimator: Estimator::MedianOfRatios, rounds, trials: 2000, seed: 1 }
    }

    #[test]
    fn passes_are_those_of_the_normal_distribution() {
        // The error of the median is 0.05 sqrt(pi / 2 / 200) = 0.00443, far below both bounds' distances.
        let noise = RoundNoise::log_normal(0.05);
        let criteria: [fn(&ComparedRatio) -> bool; 3] = [
            |compared| NOT_SLOWER.is_met(compared),
            |compared| SURELY_NOT_SLOWER.is_met(compared),
            |compared| compared.high >= 0.98,
        ];
        let found = passes(&simulation(&noise, 200), &[0.95, 0.98, 1.0], &criteria);
        let [at_5, at_2, at_0] = &found[..] else { panic!("{found:?}") };
        assert_eq!(at_5[..2], [0.0, 0.0]);
        // A true ratio on the bound passes half of the time, or a fifth of it.
        assert!((0.46..0.54).contains(&at_2[0]) && (0.17..0.23).contains(&at_2[1]), "{at_2:?}");
        assert!((0.96..1.0).contains(&at_2[2]), "{at_2:?}");
        assert_eq!(at_0[..], [1.0, 1.0, 1.0]);
    }

    #[test]
    fn the_same_seed_passes_as_often() {
        let noise = RoundNoise::measured(&ROUNDS, 1).expect("six rounds");
        let criteria = [|compared: &ComparedRatio| NOT_SLOWER.is_met(compared)];
        let found = |seed| {
            let simulation = Simulation { seed, ..simulation(&noise, 10) };
            passes(&simulation, &[0.98], &criteria)[0][0]
        };
        assert!((found(1) - found(1)).abs() < f64::EPSILON);
        assert!((found(1) - found(2)).abs() > 0.0);
    }

    #[test]
    fn measured_noise_scatters_as_measured_about_1() {
        let noise = RoundNoise::measured(&ROUNDS, 1).expect("six rounds");
        let measured = ComparedRatio::of_ratios(&ROUNDS.map(|(a, b)| a / b)).expect("six rounds");
        assert!((noise.scatter() - measured.scatter).abs() < 1e-12);
        for estimator in [Estimator::MedianOfRatios, Estimator::RatioOfMedians] {
            let many = noise.draw(estimator, 20_000, &mut seeded_random::stream(2, 0));
            let ratios = paired_ratios(&many.with, &many.without).expect("positive");
            let drawn = ComparedRatio::of_ratios(&ratios).expect("many");
            assert!((drawn.scatter / noise.scatter() - 1.0).abs() < 0.03, "{drawn:?}");
            let ratio = match estimator {
                Estimator::MedianOfRatios => drawn.ratio,
                Estimator::RatioOfMedians => {
                    median(&many.with).expect("many") / median(&many.without).expect("many")
                }
            };
            assert!((ratio - 1.0).abs() < 0.002, "{estimator:?}: {ratio}");
        }
        assert!(RoundNoise::measured(&ROUNDS[..3], 1).is_none());
        assert!(RoundNoise::measured(&[(0.0, 1.0); 5], 1).is_none());
    }
}
