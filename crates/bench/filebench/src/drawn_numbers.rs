//! Numbers of a workload: fixed, or drawn from a distribution at each use.

use luc_stats::seeded_random::{gamma, normal};
use rand::{Rng, RngExt};
use rand_distr::{Exp1, Triangular};

/// Number of a workload: fixed, or drawn at each use.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum WorkloadNumber {
    Fixed(u64),
    /// Drawn at each use.
    Drawn(Box<RandomVariable>),
}

/// Source of a variable with its own random stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RandomSource {
    /// A seed (`seed`), whatever the run's.
    Seeded(u64),
    /// The system's randomness (`randsrc=urandom`).
    System,
}

/// A distribution, with bounds and rounding of its draws.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RandomVariable {
    pub(super) shape: VariableDistribution,
    /// Lower draws become this.
    pub(super) least: f64,
    /// Higher draws become this.
    pub(super) most: f64,
    /// Draws become a multiple of this; 0 leaves them.
    pub(super) round: u64,
    /// Index of the plan's source that it draws from; `None`: the client's own stream.
    pub(super) source: Option<usize>,
}

/// Distribution of a random variable.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum VariableDistribution {
    Uniform {
        low: f64,
        high: f64,
    },
    /// `least` plus a gamma variable of this mean and shape.
    Gamma {
        least: f64,
        mean: f64,
        shape: f64,
    },
    /// Rows of percent, low and high; a draw in a row is multiplied by `scale` after `shift` is taken off,
    /// and `least` is added.
    Table {
        rows: Vec<[u64; 3]>,
        shift: f64,
        scale: f64,
        least: f64,
        /// Mean of the unscaled rows.
        own: f64,
    },
    /// Mean and standard deviation.
    Normal {
        mean: f64,
        sigma: f64,
    },
    Exponential {
        mean: f64,
    },
    /// The exponential of a normal variable of mean `scale` and deviation `shape`.
    LogNormal {
        shape: f64,
        scale: f64,
    },
    Weibull {
        shape: f64,
        scale: f64,
    },
    /// Most often near its mode.
    Triangular(Triangular<f64>),
}

impl WorkloadNumber {
    /// Returns the number, drawn anew if it is random.
    pub(super) fn next(&self, random: &mut impl Rng) -> u64 {
        match self {
            Self::Fixed(number) => *number,
            Self::Drawn(drawn) => drawn.next(random),
        }
    }

    /// Returns a draw before it becomes a whole number.
    pub(super) fn real(&self, random: &mut impl Rng) -> f64 {
        match self {
            Self::Fixed(number) => *number as f64,
            Self::Drawn(drawn) => drawn.real(random),
        }
    }

    /// Returns the same with another mean.
    pub(super) fn with_mean(&self, mean: f64) -> Self {
        let Self::Drawn(drawn) = self else {
            return self.clone();
        };
        let mut drawn = drawn.clone();
        drawn.shape = drawn.shape.with_mean(mean);
        Self::Drawn(drawn)
    }

    /// Returns the index of the plan's source that it draws from.
    pub(super) fn source(&self) -> Option<usize> {
        match self {
            Self::Fixed(_) => None,
            Self::Drawn(drawn) => drawn.source,
        }
    }

    /// Returns whether it is always `number`.
    pub(super) fn is(&self, number: u64) -> bool {
        *self == Self::Fixed(number)
    }
}

impl RandomVariable {
    fn real(&self, random: &mut impl Rng) -> f64 {
        self.shape.next(random).max(self.least).min(self.most)
    }

    fn next(&self, random: &mut impl Rng) -> u64 {
        let value = self.real(random) as u64;
        match self.round {
            0 | 1 => value,
            round => value.saturating_add(round / 2) / round * round,
        }
    }
}

impl VariableDistribution {
    /// Returns the same with another mean. Variables of type `cvar` keep theirs, which follows from several parameters.
    fn with_mean(&self, wanted: f64) -> Self {
        let mut changed = self.clone();
        match &mut changed {
            Self::Uniform { low, high } => *high = (2.0 * wanted - *low).max(*low),
            Self::Gamma { least, mean, .. } => *mean = (wanted - *least).max(0.0),
            Self::Table { shift, scale, least, own, .. } if *own > *shift => {
                *scale = (wanted - *least).max(0.0) / (*own - *shift)
            }
            _ => {}
        }
        changed
    }

    fn next(&self, random: &mut impl Rng) -> f64 {
        match self {
            Self::Uniform { low, high } => low + (high - low) * random.random::<f64>(),
            Self::Gamma { least, mean, shape } => least + gamma(random, *mean, *shape),
            Self::Table { rows, shift, scale, least, .. } => {
                let mut left = 100.0 * random.random::<f64>();
                let chosen = rows.iter().find(|row| {
                    left -= row[0] as f64;
                    left < 0.0
                });
                let [_, low, high] = chosen.or(rows.last()).copied().unwrap_or([100, 0, 0]);
                let drawn = low as f64 + (high as f64 - low as f64) * random.random::<f64>();
                least + (drawn - shift) * scale
            }
            Self::Normal { mean, sigma } => mean + sigma * normal(random),
            Self::Exponential { mean } => mean * random.sample::<f64, _>(Exp1),
            Self::LogNormal { shape, scale } => (scale + shape * normal(random)).exp(),
            Self::Weibull { shape, scale } => {
                scale * random.sample::<f64, _>(Exp1).powf(1.0 / shape)
            }
            Self::Triangular(triangular) => random.sample(triangular),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_stats::seeded_random::stream;

    #[test]
    fn every_distribution_has_its_mean() {
        use VariableDistribution::{
            Exponential, Gamma, LogNormal, Normal, Table, Triangular, Uniform, Weibull,
        };
        let rows = vec![[25, 0, 1000], [75, 1000, 3000]];
        for (shape, mean) in [
            (Uniform { low: 500.0, high: 1500.0 }, 1000.0),
            (Gamma { least: 100.0, mean: 900.0, shape: 1.5 }, 1000.0),
            (Gamma { least: 0.0, mean: 1000.0, shape: 0.5 }, 1000.0),
            (Table { rows, shift: 0.0, scale: 1.0, least: 0.0, own: 1625.0 }, 1625.0),
            (Normal { mean: 1000.0, sigma: 100.0 }, 1000.0),
            (Exponential { mean: 1000.0 }, 1000.0),
            (LogNormal { shape: 0.5, scale: 6.0 }, 6.125_f64.exp()),
            (Weibull { shape: 1.0, scale: 1000.0 }, 1000.0),
            (
                Triangular(rand_distr::Triangular::new(0.0, 2000.0, 1000.0).expect("in order")),
                1000.0,
            ),
        ] {
            let mut random = stream(1, 0);
            let number = WorkloadNumber::Drawn(Box::new(RandomVariable {
                shape,
                least: 0.0,
                most: f64::INFINITY,
                round: 0,
                source: None,
            }));
            let sum: u64 = (0..100_000).map(|_| number.next(&mut random)).sum();
            let found = sum as f64 / 1e5;
            assert!((found / mean - 1.0).abs() < 0.02, "{number:?}: {found}");
        }
    }

    #[test]
    fn draws_are_bounded_and_rounded() {
        let shape = VariableDistribution::Normal { mean: 1000.0, sigma: 500.0 };
        let drawn = RandomVariable { shape, least: 512.0, most: 1536.0, round: 512, source: None };
        let mut random = stream(2, 0);
        let draws: Vec<u64> = (0..1000).map(|_| drawn.next(&mut random)).collect();
        for wanted in [512, 1024, 1536] {
            assert!(draws.contains(&wanted));
        }
        assert!(draws.iter().all(|draw| draw % 512 == 0 && (512..=1536).contains(draw)));
    }
}
