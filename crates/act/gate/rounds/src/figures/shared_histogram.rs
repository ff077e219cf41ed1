//! A latency histogram that many processes fill at once: 16 buckets per factor of two.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Buckets per factor of two, as a power of two.
const SUB_BITS: u32 = 4;
const SUB: u64 = 1 << SUB_BITS;
/// Covers up to about 137 s; longer latencies count in the last bucket.
const BUCKETS: usize = 544;

/// Counts by latency. A value read back is at most 1/16 above what was recorded.
#[repr(C)]
#[derive(Debug)]
pub struct SharedHistogram {
    buckets: [AtomicU32; BUCKETS],
}

impl SharedHistogram {
    pub const fn new() -> Self {
        Self { buckets: [const { AtomicU32::new(0) }; BUCKETS] }
    }

    pub fn record(&self, latency_ns: u64) {
        self.buckets[bucket(latency_ns)].fetch_add(1, Relaxed);
    }

    /// Takes over what `other` has counted, which begins anew.
    pub(super) fn take_over(&self, other: &Self) {
        for (ours, theirs) in self.buckets.iter().zip(&other.buckets) {
            ours.fetch_add(theirs.swap(0, Relaxed), Relaxed);
        }
    }

    /// The latency that the fraction `quantile` of all recorded ones does not exceed (upper edge of its
    /// bucket), in nanoseconds; `None` when nothing was recorded.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let total: u64 = self.buckets.iter().map(|b| u64::from(b.load(Relaxed))).sum();
        if total == 0 {
            return None;
        }
        let rank = libm::ceil(quantile.clamp(0.0, 1.0) * total as f64).max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += u64::from(count.load(Relaxed));
            if seen >= rank {
                return Some(upper_edge_ns(index));
            }
        }
        Some(upper_edge_ns(BUCKETS - 1))
    }
}

impl Default for SharedHistogram {
    fn default() -> Self {
        Self::new()
    }
}

fn bucket(value: u64) -> usize {
    if value < SUB {
        return value as usize;
    }
    let shift = value.ilog2() - SUB_BITS;
    let index = u64::from(shift + 1) * SUB + ((value >> shift) - SUB);
    (index as usize).min(BUCKETS - 1)
}

fn upper_edge_ns(index: usize) -> u64 {
    let index = index as u64;
    if index < SUB {
        return index;
    }
    let shift = index / SUB - 1;
    ((SUB + index % SUB + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_a_known_distribution() {
        let histogram = SharedHistogram::new();
        for latency_us in 1..=1_000 {
            histogram.record(latency_us * 1_000);
        }
        let median = histogram.quantile_ns(0.5).unwrap();
        assert!((500_000..=540_000).contains(&median), "{median}");
        let p99 = histogram.quantile_ns(0.99).unwrap();
        assert!((990_000..=1_060_000).contains(&p99), "{p99}");
    }

    #[test]
    fn an_empty_histogram_has_no_quantile() {
        assert_eq!(SharedHistogram::new().quantile_ns(0.5), None);
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_value_within_a_sixteenth(value in 0u64..100_000_000_000) {
            let edge = upper_edge_ns(bucket(value));
            prop_assert!(edge >= value);
            prop_assert!(edge - value <= value / 16 + 1);
        }

        #[test]
        fn no_value_is_out_of_range(value in any::<u64>()) {
            prop_assert!(bucket(value) < BUCKETS);
        }
    }
}
