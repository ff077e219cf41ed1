//! A whole trace in a bounded number of steps. Their width doubles when the trace outgrows them.

/// Maximum number of steps.
pub(super) const MAX_BINS: usize = 240;
const MIN_STEP_NS: u64 = 10_000_000;

/// Calls and commits of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimelineBin {
    /// Number of fsyncs that ended in the step.
    pub(super) syncs: u64,
    pub(super) sync_ns: u64,
    /// Part of `sync_ns` that was spent waiting for an earlier commit.
    pub(super) predecessor_ns: u64,
    pub(super) longest_ns: u64,
    /// Number of commits that ended in the step.
    pub(super) commits: u64,
    /// Time during which a commit ran.
    pub(super) committing_ns: u64,
}

impl TimelineBin {
    fn add(&mut self, other: &Self) {
        self.syncs += other.syncs;
        self.sync_ns = self.sync_ns.saturating_add(other.sync_ns);
        self.predecessor_ns = self.predecessor_ns.saturating_add(other.predecessor_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.commits += other.commits;
        self.committing_ns = self.committing_ns.saturating_add(other.committing_ns);
    }
}

/// Steps from the beginning of the trace.
#[derive(Clone, Debug)]
pub(super) struct TimelineBins {
    origin_ns: u64,
    pub(super) width_ns: u64,
    /// Steps up to the last event.
    pub(super) bins: Vec<TimelineBin>,
}

impl TimelineBins {
    pub(super) fn new(origin_ns: u64) -> Self {
        Self { origin_ns, width_ns: MIN_STEP_NS, bins: Vec::new() }
    }

    /// Returns the step of a time. The first step takes all times before the beginning.
    pub(super) fn at(&mut self, at_ns: u64) -> &mut TimelineBin {
        let since_ns = at_ns.saturating_sub(self.origin_ns);
        while since_ns / self.width_ns >= MAX_BINS as u64 {
            self.width_ns = self.width_ns.saturating_mul(2);
            self.bins = self
                .bins
                .chunks(2)
                .map(|pair| {
                    let mut sum = TimelineBin::default();
                    pair.iter().for_each(|bin| sum.add(bin));
                    sum
                })
                .collect();
        }
        let index = (since_ns / self.width_ns) as usize;
        if index >= self.bins.len() {
            self.bins.resize(index + 1, TimelineBin::default());
        }
        &mut self.bins[index]
    }

    /// Counts a commit in the step in which it ended, and its time in all steps in which it ran.
    pub(super) fn commit(&mut self, start_ns: u64, end_ns: u64) {
        self.at(end_ns).commits += 1;
        let mut from_ns = start_ns.max(self.origin_ns).min(end_ns);
        while from_ns < end_ns {
            let since_ns = from_ns.saturating_sub(self.origin_ns);
            let next_ns = (since_ns / self.width_ns + 1).saturating_mul(self.width_ns);
            let until_ns = self.origin_ns.saturating_add(next_ns).min(end_ns);
            let bin = self.at(from_ns);
            bin.committing_ns = bin.committing_ns.saturating_add(until_ns - from_ns);
            from_ns = until_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_lost_whatever_the_length(
            commits in prop::collection::vec((0u64..1 << 60, 0u64..1 << 40), 1..50),
            origin_ns in 0u64..1 << 40,
        ) {
            let mut bins = TimelineBins::new(origin_ns);
            let mut expected_ns = 0_u64;
            for &(start_ns, length_ns) in &commits {
                let end_ns = start_ns + length_ns;
                bins.commit(start_ns, end_ns);
                expected_ns += end_ns - start_ns.max(origin_ns).min(end_ns);
            }
            prop_assert!(bins.bins.len() <= MAX_BINS);
            let (mut count, mut sum_ns) = (0, 0);
            for bin in &bins.bins {
                count += bin.commits;
                sum_ns += bin.committing_ns;
            }
            prop_assert_eq!(count, commits.len() as u64);
            prop_assert_eq!(sum_ns, expected_ns);
        }
    }
}
