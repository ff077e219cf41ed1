//! Latencies of operations: recorded in shared memory, summed up as an HDR histogram.
//!
//! Each client records into its own counters in shared memory. So threads and forked processes are measured alike,
//! and the figures of a killed client are not lost. The counters are logarithmic with 1024 steps per octave, which is
//! a resolution of 0.1 %.

use std::borrow::Cow;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::shared_memory::SharedSlice;

const STEP_BITS: u32 = 10;
const STEPS: usize = 1 << STEP_BITS;
/// Longer latencies (36 minutes) count as this long.
const MAX_NS: u64 = (1 << 41) - 1;
const BUCKETS: usize = 32 * STEPS;

/// Sum, maximum, count and the octaves in use (a bit each), per client and operation.
const TOTALS: usize = 4;

/// The counters of all clients.
#[derive(Debug)]
pub struct LatencyRecorders {
    operations: usize,
    counts: SharedSlice<AtomicU32>,
    totals: SharedSlice<AtomicU64>,
}

/// Counters of one client; only that client may record.
#[derive(Debug, Clone, Copy)]
pub struct ClientLatencyRecorder<'a> {
    counts: &'a [AtomicU32],
    totals: &'a [AtomicU64],
}

impl LatencyRecorders {
    /// Makes counters for `clients` clients of `operations` operations each.
    pub fn new(clients: usize, operations: usize) -> io::Result<Self> {
        Ok(Self {
            operations,
            counts: SharedSlice::new(clients * operations * BUCKETS)?,
            totals: SharedSlice::new(clients * operations * TOTALS)?,
        })
    }

    pub fn of(&self, client: usize) -> ClientLatencyRecorder<'_> {
        let counts = self.operations * BUCKETS;
        let totals = self.operations * TOTALS;
        ClientLatencyRecorder {
            counts: &self.counts[client * counts..][..counts],
            totals: &self.totals[client * totals..][..totals],
        }
    }

    /// Sums up the latencies of `operation` over all clients.
    pub fn summary(&self, clients: usize, operation: usize) -> OperationLatency {
        let mut latency = OperationLatency::empty();
        for client in 0..clients {
            self.of(client).add_to(operation, &mut latency);
        }
        latency
    }
}

impl ClientLatencyRecorder<'_> {
    /// Counts one latency of `ns` nanoseconds.
    #[inline]
    pub fn record(&self, operation: usize, ns: u64) {
        // Plain loads and stores: the client is the only writer.
        let bucket = bucket(ns);
        let count = &self.counts[operation * BUCKETS + bucket];
        count.store(count.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
        let totals = &self.totals[operation * TOTALS..][..TOTALS];
        totals[0].store(totals[0].load(Ordering::Relaxed) + ns, Ordering::Relaxed);
        if ns > totals[1].load(Ordering::Relaxed) {
            totals[1].store(ns, Ordering::Relaxed);
        }
        totals[2].store(totals[2].load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let octave = 1 << (bucket / STEPS);
        totals[3].store(totals[3].load(Ordering::Relaxed) | octave, Ordering::Relaxed);
    }

    /// Returns the sum in nanoseconds and count of one operation.
    pub fn totals(&self, operation: usize) -> (u64, u64) {
        let totals = &self.totals[operation * TOTALS..][..TOTALS];
        (totals[0].load(Ordering::Relaxed), totals[2].load(Ordering::Relaxed))
    }

    fn add_to(&self, operation: usize, latency: &mut OperationLatency) {
        let (sum_ns, count) = self.totals(operation);
        if count == 0 {
            return;
        }
        latency.sum_ns += sum_ns;
        latency.max_ns =
            latency.max_ns.max(self.totals[operation * TOTALS + 1].load(Ordering::Relaxed));
        // Reading the counters of an unused octave would take memory for them.
        let octaves = self.totals[operation * TOTALS + 3].load(Ordering::Relaxed);
        for octave in (0..BUCKETS / STEPS).filter(|octave| octaves >> octave & 1 == 1) {
            let first = octave * STEPS;
            let counts = &self.counts[operation * BUCKETS + first..][..STEPS];
            for (step, count) in counts.iter().enumerate() {
                let count = u64::from(count.load(Ordering::Relaxed));
                if count > 0 {
                    let value = middle(first + step);
                    latency.histogram.saturating_record_n(value, count);
                }
            }
        }
    }
}

/// The latencies of one operation over all clients.
#[derive(Debug, Clone)]
pub struct OperationLatency {
    histogram: Histogram<u64>,
    sum_ns: u64,
    max_ns: u64,
}

impl OperationLatency {
    pub(crate) fn empty() -> Self {
        let histogram = Histogram::new_with_bounds(1, MAX_NS, 3)
            .expect("constant bounds, within what the histogram takes");
        Self { histogram, sum_ns: 0, max_ns: 0 }
    }

    pub(crate) fn add(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the total time in nanoseconds.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Returns the figures to print, under the name `operation`.
    #[must_use]
    pub fn figures(&self, operation: impl Into<Cow<'static, str>>) -> LatencyFigures {
        let count = self.count();
        let at = |quantile| {
            let ns = self.histogram.value_at_quantile(quantile).min(self.max_ns);
            if count == 0 { 0.0 } else { ns as f64 / 1e3 }
        };
        LatencyFigures {
            operation: operation.into(),
            count,
            mean_us: if count == 0 { 0.0 } else { self.sum_ns as f64 / count as f64 / 1e3 },
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: self.max_ns as f64 / 1e3,
        }
    }
}

/// Latency of one operation: mean, percentiles and maximum in microseconds. Percentiles are good to
/// 0.2 %, mean and maximum exact.
#[derive(Debug, Clone, Serialize)]
pub struct LatencyFigures {
    pub operation: Cow<'static, str>,
    pub count: u64,
    pub mean_us: f64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
}

#[inline]
fn bucket(ns: u64) -> usize {
    let ns = ns.min(MAX_NS);
    let octave = (u64::BITS - ns.leading_zeros()).saturating_sub(STEP_BITS + 1);
    octave as usize * STEPS + (ns >> octave) as usize
}

/// Returns the value in the middle of a bucket, ns.
fn middle(bucket: usize) -> u64 {
    let octave = (bucket / STEPS).saturating_sub(1);
    let low = ((bucket - octave * STEPS) as u64) << octave;
    low + ((1_u64 << octave) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_is_within_a_thousandth(ns in 0_u64..=MAX_NS) {
            let index = bucket(ns);
            prop_assert!(index < BUCKETS);
            prop_assert!(middle(index).abs_diff(ns) as f64 <= ns as f64 / 1024.0);
        }

        #[test]
        fn buckets_keep_the_order(low in 0_u64..=MAX_NS, high in 0_u64..=MAX_NS) {
            prop_assert_eq!(bucket(low) <= bucket(high), low <= high || bucket(low) == bucket(high));
        }
    }

    #[test]
    fn figures_of_two_clients_together() {
        let recorders = LatencyRecorders::new(2, 2).expect("memory");
        for step in 1..=500 {
            recorders.of(0).record(1, step * 1000);
            recorders.of(1).record(1, (500 + step) * 1000);
        }
        let figures = recorders.summary(2, 1).figures("fsync");
        assert_eq!(figures.count, 1000);
        assert!((figures.mean_us - 500.5).abs() < 1e-9);
        assert!((figures.p50_us / 500.0 - 1.0).abs() < 0.002, "{figures:?}");
        assert!((figures.p99_us / 990.0 - 1.0).abs() < 0.002, "{figures:?}");
        assert!((figures.max_us - 1000.0).abs() < f64::EPSILON);
        assert_eq!(recorders.summary(2, 0).figures("open").count, 0);
    }

    #[test]
    fn what_is_longer_than_the_longest_is_kept() {
        let recorders = LatencyRecorders::new(1, 1).expect("memory");
        recorders.of(0).record(0, u64::from(u32::MAX) * 10_000);
        assert_eq!(recorders.summary(1, 0).count(), 1);
    }
}
