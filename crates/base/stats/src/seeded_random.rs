//! Seeded random numbers: one stream per client, gamma sizes, and bytes that do not compress.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Gamma, StandardNormal};

/// A stream of random numbers, the same on every machine.
pub type Stream = ChaCha8Rng;

/// Returns the stream number `stream` of `seed`: streams of one seed are independent.
pub fn stream(seed: u64, stream: u64) -> Stream {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(stream);
    random
}

pub fn bytes(random: &mut impl Rng, length: usize) -> Vec<u8> {
    let mut data = vec![0; length];
    random.fill_bytes(&mut data);
    data
}

/// Draws from a gamma distribution with this mean and shape. Returns the mean itself if mean or shape is not above 0.
pub fn gamma(random: &mut impl Rng, mean: f64, shape: f64) -> f64 {
    Gamma::new(shape, mean / shape).map_or(mean, |gamma| random.sample(gamma))
}

/// Returns the numbers below `count` in random order (Fisher and Yates).
pub fn shuffled(count: usize, random: &mut impl Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, random.random_range(0..=last));
    }
    order
}

/// Draws a number below `count`, which is not 0.
pub fn index(random: &mut impl Rng, count: usize) -> usize {
    random.random_range(0..count)
}

/// Draws from the standard normal distribution.
pub fn normal(random: &mut impl Rng) -> f64 {
    random.sample(StandardNormal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_has_its_mean_and_variance() {
        let mut random = stream(1, 0);
        let draws: Vec<f64> = (0..100_000).map(|_| gamma(&mut random, 16_384.0, 1.5)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance =
            draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!((mean / 16_384.0 - 1.0).abs() < 0.01, "{mean}");
        assert!((variance / (16_384.0_f64.powi(2) / 1.5) - 1.0).abs() < 0.05, "{variance}");
    }

    #[test]
    fn streams_differ_and_repeat() {
        assert_eq!(bytes(&mut stream(7, 1), 64), bytes(&mut stream(7, 1), 64));
        assert_ne!(bytes(&mut stream(7, 1), 64), bytes(&mut stream(7, 2), 64));
        assert_ne!(bytes(&mut stream(7, 1), 64), bytes(&mut stream(8, 1), 64));
    }
}
