//! Pauses of a client between the rounds of its loop.

use luc_stats::seeded_random;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::Exp1;
use serde::Serialize;

use super::{WorkloadClient, now_ns};
use crate::error::BenchError;

/// First random stream of pauses, apart from the streams of a client's contents and offsets.
const FIRST_STREAM: u64 = 1 << 32;

/// Distribution of the pauses of a workload's clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkDistribution {
    /// Each pause lasts the mean.
    #[default]
    Constant,
    /// Exponential: the next call comes as if by chance, as in a Poisson process.
    Exponential,
}

/// Pauses of a workload's clients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThinkTime {
    /// Mean pause of a client after each round of its loop, ns.
    pub mean_ns: u64,
    pub distribution: ThinkDistribution,
    /// Number of slow clients: the first ones.
    pub slow_clients: usize,
    /// Factor of a slow client's time for each round, pause included.
    pub slow_factor: f64,
}

impl Default for ThinkTime {
    /// No pauses, no slow client.
    fn default() -> Self {
        Self {
            mean_ns: 0,
            distribution: ThinkDistribution::Constant,
            slow_clients: 0,
            slow_factor: 1.0,
        }
    }
}

impl ThinkTime {
    /// Checks that there are enough clients for the slow ones, and that the slow factor is valid.
    ///
    /// # Errors
    /// [`BenchError::Input`].
    pub fn check(&self, clients: usize) -> Result<(), BenchError> {
        if self.slow_clients > clients {
            return Err(BenchError::Input {
                option: format!("--slow-clients {}", self.slow_clients),
                reason: "more than there are clients",
                advice: "use at most the number of clients",
            });
        }
        if !(1.0..=1e6).contains(&self.slow_factor) {
            return Err(BenchError::Input {
                option: format!("--slow-factor {}", self.slow_factor),
                reason: "out of range",
                advice: "use 1 to 1000000, as in 10",
            });
        }
        Ok(())
    }
}

/// Pauses of one client, drawn one after the other.
pub(crate) struct ThinkPauses {
    mean_ns: f64,
    distribution: ThinkDistribution,
    factor: f64,
    random: ChaCha8Rng,
    /// End of the last pause, ns.
    woke_ns: u64,
}

impl ThinkPauses {
    /// Returns the pauses of `client`, whose first round starts now.
    pub(crate) fn new(think: &ThinkTime, seed: u64, client: &WorkloadClient<'_>) -> Self {
        Self::of(think, seed, client.index)
    }

    fn of(think: &ThinkTime, seed: u64, index: usize) -> Self {
        let is_slow = index < think.slow_clients;
        Self {
            mean_ns: think.mean_ns as f64,
            distribution: think.distribution,
            factor: if is_slow { think.slow_factor } else { 1.0 },
            random: seeded_random::stream(seed, FIRST_STREAM + index as u64),
            woke_ns: now_ns(),
        }
    }

    /// Pauses after a round, at most until the end of the run.
    pub(crate) fn pause(&mut self, client: &WorkloadClient<'_>) {
        if self.mean_ns == 0.0 && self.factor <= 1.0 {
            return;
        }
        let round_ns = now_ns().saturating_sub(self.woke_ns);
        client.think(self.length_ns(round_ns));
        self.woke_ns = now_ns();
    }

    /// Returns the length of the pause after a round that took `round_ns`.
    fn length_ns(&mut self, round_ns: u64) -> u64 {
        let pause_ns = match self.distribution {
            ThinkDistribution::Constant => self.mean_ns,
            ThinkDistribution::Exponential => self.mean_ns * self.random.sample::<f64, _>(Exp1),
        };
        (self.factor * pause_ns + (self.factor - 1.0) * round_ns as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_pauses_have_their_mean_and_repeat() {
        let think = ThinkTime {
            mean_ns: 1_000_000,
            distribution: ThinkDistribution::Exponential,
            ..ThinkTime::default()
        };
        let draws = |seed| {
            let mut pauses = ThinkPauses::of(&think, seed, 3);
            (0..20_000).map(|_| pauses.length_ns(5)).collect::<Vec<u64>>()
        };
        let first = draws(1);
        let count = first.len() as f64;
        let mean = first.iter().sum::<u64>() as f64 / count;
        assert!((mean / 1e6 - 1.0).abs() < 0.03, "{mean}");
        let longer = first.iter().filter(|&&ns| ns > 1_000_000).count() as f64;
        assert!((longer / count - (-1.0_f64).exp()).abs() < 0.02);
        assert_eq!(first, draws(1));
        assert_ne!(first, draws(2));
    }

    #[test]
    fn a_slow_client_s_rounds_take_the_factor_times_as_long() {
        let think =
            ThinkTime { mean_ns: 1000, slow_clients: 1, slow_factor: 10.0, ..ThinkTime::default() };
        // Round and pause take 1200 ns; ten times that without the round's 200 ns.
        assert_eq!(ThinkPauses::of(&think, 1, 0).length_ns(200), 11_800);
        assert_eq!(ThinkPauses::of(&think, 1, 1).length_ns(200), 1000);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let slow = |slow_clients, slow_factor| {
            ThinkTime { slow_clients, slow_factor, ..ThinkTime::default() }.check(4)
        };
        assert!(slow(4, 1.0).is_ok());
        for (clients, factor, word) in [
            (5, 2.0, "--slow-clients 5"),
            (1, 0.5, "--slow-factor 0.5"),
            (1, f64::NAN, "--slow-factor NaN"),
        ] {
            let error = slow(clients, factor).expect_err(word);
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
