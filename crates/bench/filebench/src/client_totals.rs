//! Totals of clients: per client for its process to see, per flowop for the report.

use std::ops::{AddAssign, Range};
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of operations, of transfers and of bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct OperationCounts {
    pub(super) operations: u64,
    /// Number of operations that are reads or writes.
    pub(super) transfers: u64,
    pub(super) bytes: u64,
}

impl AddAssign for OperationCounts {
    fn add_assign(&mut self, other: Self) {
        self.operations += other.operations;
        self.transfers += other.transfers;
        self.bytes += other.bytes;
    }
}

/// A client's totals; only that client changes them. On cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct SharedOperationCounts {
    operations: AtomicU64,
    transfers: AtomicU64,
    bytes: AtomicU64,
}

impl SharedOperationCounts {
    /// Adds to the totals. Plain loads and stores: the client is the only writer.
    pub(super) fn add(&self, done: OperationCounts) {
        for (total, more) in [
            (&self.operations, done.operations),
            (&self.transfers, done.transfers),
            (&self.bytes, done.bytes),
        ] {
            total.store(total.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        }
    }

    pub(super) fn sum(totals: &[Self], process: &Range<usize>) -> OperationCounts {
        let mut sum = OperationCounts::default();
        for total in &totals[process.clone()] {
            sum += OperationCounts {
                operations: total.operations.load(Ordering::Relaxed),
                transfers: total.transfers.load(Ordering::Relaxed),
                bytes: total.bytes.load(Ordering::Relaxed),
            };
        }
        sum
    }
}

/// Running count, mean and spread of drawn values.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct DrawStatistics {
    pub(super) count: u64,
    mean: f64,
    /// Sum of the squared differences from the mean.
    spread: f64,
}

impl DrawStatistics {
    /// Adds a draw (Welford's algorithm).
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.spread += before * (value - self.mean);
    }

    /// Adds another thread's draws (Chan's formula).
    pub(super) fn merge(&mut self, other: Self) {
        let count = self.count + other.count;
        if other.count == 0 {
            return;
        }
        let apart = other.mean - self.mean;
        let weight = other.count as f64 / count as f64;
        self.mean += apart * weight;
        self.spread += other.spread + apart * apart * weight * self.count as f64;
        self.count = count;
    }

    /// Returns the mean and standard deviation.
    pub(super) fn figures(&self) -> (f64, f64) {
        let freedom = self.count.saturating_sub(1).max(1) as f64;
        (self.mean, (self.spread / freedom).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_of_two_threads_are_as_those_of_one() {
        let (mut one, mut two, mut all) =
            (DrawStatistics::default(), DrawStatistics::default(), DrawStatistics::default());
        for value in 0..100_u32 {
            let value = f64::from(value * value);
            all.add(value);
            if value < 500.0 { &mut one } else { &mut two }.add(value);
        }
        one.merge(two);
        let ((mean, deviation), (wanted, spread)) = (one.figures(), all.figures());
        assert!((mean - wanted).abs() < 1e-6 && (deviation - spread).abs() < 1e-6);
        assert!((wanted - 3283.5).abs() < 1e-9);
    }

    #[test]
    fn a_process_is_the_sum_of_its_clients() {
        let totals: Vec<SharedOperationCounts> =
            (0..3).map(|_| SharedOperationCounts::default()).collect();
        for (client, total) in totals.iter().enumerate() {
            total.add(OperationCounts { operations: 1, transfers: 1, bytes: 10 << client });
        }
        assert_eq!(SharedOperationCounts::sum(&totals, &(1..3)).bytes, 60);
    }
}
