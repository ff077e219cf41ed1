//! Some of many requests, spread evenly over all.

use super::request_sum::RequestSum;

/// Maximum number of kept requests.
const MAX_KEPT: usize = 64;

/// A sample of requests whose size is bounded: every first, then every second, fourth and so on.
#[derive(Clone, Debug, Default)]
pub(super) struct BoundedSample {
    seen: u64,
    /// One of 2 to this power requests is kept.
    sparseness: u32,
    kept: Vec<SampledRequest>,
}

/// Request in a [`BoundedSample`].
#[derive(Clone, Copy, Debug)]
pub(super) struct SampledRequest {
    pub(super) bytes: u64,
    /// Device time of the request.
    pub(super) ns: u64,
}

impl BoundedSample {
    pub(super) fn add(&mut self, bytes: u64, ns: u64) {
        let place = self.seen;
        self.seen += 1;
        if !self.is_kept(place) {
            return;
        }
        if self.kept.len() == MAX_KEPT {
            let mut is_dropped = true;
            self.kept.retain(|_| {
                is_dropped = !is_dropped;
                !is_dropped
            });
            self.sparseness += 1;
            if !self.is_kept(place) {
                return;
            }
        }
        self.kept.push(SampledRequest { bytes, ns });
    }

    fn is_kept(&self, place: u64) -> bool {
        place.trailing_zeros() >= self.sparseness || place == 0
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(super) fn times_ns(&self) -> impl Iterator<Item = u64> {
        self.kept.iter().map(|sample| sample.ns)
    }

    /// Returns the time that one in `part` of them does not exceed; `None` if there are fewer.
    pub(super) fn fastest(&self, part: usize) -> Option<u64> {
        if self.kept.len() < part {
            return None;
        }
        let mut times: Vec<u64> = self.times_ns().collect();
        let (_, &mut found, _) = times.select_nth_unstable(self.kept.len() / part);
        Some(found)
    }

    /// Sums those that took less than `limit_ns`.
    pub(super) fn below(&self, limit_ns: u64) -> RequestSum {
        let mut sum = RequestSum::default();
        for sample in self.kept.iter().filter(|sample| sample.ns < limit_ns) {
            sum.record(sample.bytes, sample.ns);
        }
        sum
    }
}
