//! A quick hash for numbers that no attacker chooses.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by the numbers of threads or processes.
pub(crate) type NumberMap<T> = HashMap<u32, T, BuildHasherDefault<NumberHasher>>;

/// Hash of one number, by Fibonacci's multiplication.
#[derive(Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        // The table takes its index from the low bits and its tag from the high ones.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0.rotate_left(5) ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
