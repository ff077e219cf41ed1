//! Latency distributions: 16 buckets per factor of two.

use serde::Serialize;

use crate::saturating_grow::SaturatingGrow as _;

/// Buckets per factor of two, as a power of two.
const SUB_BITS: u32 = 4;
const SUB: u64 = 1 << SUB_BITS;

/// Latencies counted in 16 buckets per factor of two.
#[derive(Clone, Debug, Default)]
pub(crate) struct LatencyHistogram {
    buckets: Vec<u64>,
    count: u64,
    total_ns: u64,
    max_ns: u64,
}

/// A latency distribution. Quantiles are upper edges of buckets, at most 1/16 too high.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LatencyDistribution {
    pub count: u64,
    /// Their sum, in nanoseconds.
    pub total_ns: u64,
    /// Their mean, in nanoseconds; 0 when there are none.
    pub mean_ns: u64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub max_ns: u64,
    /// Upper edge of each bucket that is not empty, in nanoseconds, and its count.
    pub buckets: Vec<(u64, u64)>,
}

impl LatencyHistogram {
    pub(crate) fn record(&mut self, ns: u64) {
        let index = bucket(ns);
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, 0);
        }
        self.buckets[index] += 1;
        self.count += 1;
        self.total_ns.grow(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn mean_ns(&self) -> u64 {
        self.total_ns.checked_div(self.count).unwrap_or(0)
    }

    pub(crate) fn summary(&self) -> LatencyDistribution {
        LatencyDistribution {
            count: self.count,
            total_ns: self.total_ns,
            mean_ns: self.mean_ns(),
            p50_ns: self.quantile_ns(0.5),
            p90_ns: self.quantile_ns(0.9),
            p99_ns: self.quantile_ns(0.99),
            p999_ns: self.quantile_ns(0.999),
            max_ns: self.max_ns,
            buckets: self
                .buckets
                .iter()
                .enumerate()
                .filter(|&(_, &count)| count > 0)
                .map(|(index, &count)| (upper_edge_ns(index), count))
                .collect(),
        }
    }

    fn quantile_ns(&self, quantile: f64) -> u64 {
        let rank = ((quantile * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_edge_ns(index).min(self.max_ns);
            }
        }
        self.max_ns
    }
}

fn bucket(value: u64) -> usize {
    if value < SUB {
        return value as usize;
    }
    let shift = value.ilog2() - SUB_BITS;
    (u64::from(shift + 1) * SUB + ((value >> shift) - SUB)) as usize
}

fn upper_edge_ns(index: usize) -> u64 {
    let index = index as u64;
    if index < SUB {
        return index;
    }
    let shift = index / SUB - 1;
    let edge = (u128::from(SUB + index % SUB + 1) << shift) - 1;
    u64::try_from(edge).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_a_known_distribution() {
        let mut histogram = LatencyHistogram::default();
        for latency_us in 1..=1_000 {
            histogram.record(latency_us * 1_000);
        }
        let summary = histogram.summary();
        assert!((500_000..=540_000).contains(&summary.p50_ns), "{summary:?}");
        assert!((990_000..=1_060_000).contains(&summary.p99_ns), "{summary:?}");
        assert_eq!((summary.max_ns, summary.mean_ns), (1_000_000, 500_500));
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_value_within_a_sixteenth(value in any::<u64>()) {
            let edge = upper_edge_ns(bucket(value));
            prop_assert!(edge >= value);
            prop_assert!(edge - value <= value / 16 + 1);
        }
    }
}
