//! Maps keyed by small integers that no attacker chooses: they use a multiplying hash.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map with the fast hash.
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FibonacciHasher>>;

/// A set with the fast hash.
pub(crate) type FastSet<K> = HashSet<K, BuildHasherDefault<FibonacciHasher>>;

/// Fibonacci hashing, word by word.
#[derive(Default)]
pub(crate) struct FibonacciHasher(u64);

impl Hasher for FibonacciHasher {
    fn finish(&self) -> u64 {
        // The table takes its index from the low bits and its tag from the high ones.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
