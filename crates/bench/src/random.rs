//! Seeded random numbers: one stream per client, and bytes that do not compress.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The stream number `stream` of `seed`: streams of one seed are independent.
pub(crate) fn stream(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(stream);
    random
}

/// `length` random bytes.
pub(crate) fn bytes(random: &mut impl Rng, length: usize) -> Vec<u8> {
    let mut data = vec![0; length];
    random.fill_bytes(&mut data);
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_and_repeat() {
        assert_eq!(bytes(&mut stream(7, 1), 64), bytes(&mut stream(7, 1), 64));
        assert_ne!(bytes(&mut stream(7, 1), 64), bytes(&mut stream(7, 2), 64));
        assert_ne!(bytes(&mut stream(7, 1), 64), bytes(&mut stream(8, 1), 64));
    }
}
