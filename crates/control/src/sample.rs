//! A sample of commits over which a rate is measured.

use crate::epoch::Epoch;

/// Ends of commits that a sample leaves out after a switch: callers regroup.
const SETTLE_EPOCHS: u32 = 2;
/// Ends of commits that a sample measures at least.
const MIN_EPOCHS: u32 = 8;
/// A check of an engaged gate is shorter, for it costs what the gate gains; and so is any sample in
/// which all is seen exactly.
const SHORT_EPOCHS: u32 = 4;
/// A sample measures at least this long, in nanoseconds, and each participant half as often as it has
/// epochs.
const MIN_NS: u64 = 10_000_000;
/// A sample this long ends with what it has, in nanoseconds.
const LONGEST_NS: u64 = 1_000_000_000;

/// State of the current sample. All zeros is its beginning.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    epochs: u32,
    start_ns: u64,
    completions: u64,
}

impl Sample {
    /// Adds the epoch to the sample. Returns the rate served per second once the sample is complete.
    pub(crate) fn observe(&mut self, epoch: &Epoch<'_>, is_check: bool) -> Option<f64> {
        self.epochs = self.epochs.saturating_add(1);
        if self.epochs <= SETTLE_EPOCHS {
            self.start_ns = epoch.end_ns;
            self.completions = epoch.completions;
            return None;
        }
        let elapsed_ns = epoch.end_ns.saturating_sub(self.start_ns);
        let served = epoch.completions.saturating_sub(self.completions);
        let epochs = if is_check || epoch.exact {
            SHORT_EPOCHS
        } else {
            MIN_EPOCHS
        };
        let enough = self.epochs >= SETTLE_EPOCHS + epochs
            && elapsed_ns >= MIN_NS
            && served >= u64::from(epochs) / 2 * u64::from(epoch.participants);
        let overdue = elapsed_ns >= LONGEST_NS && self.epochs >= SETTLE_EPOCHS + 3;
        (enough || overdue).then(|| served as f64 * 1e9 / elapsed_ns.max(1) as f64)
    }

    /// The rate served per second so far, once two commits have been measured. None where all is seen exactly: that
    /// sample is short enough.
    pub(crate) fn so_far(&self, epoch: &Epoch<'_>) -> Option<f64> {
        let elapsed_ns = epoch.end_ns.saturating_sub(self.start_ns);
        let served = epoch.completions.saturating_sub(self.completions);
        let is_measured = self.has_settled(1) && elapsed_ns >= MIN_NS && !epoch.exact;
        is_measured.then(|| served as f64 * 1e9 / elapsed_ns as f64)
    }

    /// Whether callers have regrouped after the switch, and `more` commits have ended since.
    pub(crate) fn has_settled(&self, more: u32) -> bool {
        self.epochs > SETTLE_EPOCHS + more
    }

    /// Starts the next sample of the same kind: nothing to settle.
    pub(crate) fn go_on(&mut self) {
        self.epochs = SETTLE_EPOCHS - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commits that four callers share, 10 ms each: how many until the sample is complete.
    fn epochs_until_complete(exact: bool, is_check: bool) -> u64 {
        let mut sample = Sample::default();
        let mut epoch = 0;
        loop {
            epoch += 1;
            let observed = sample.observe(
                &Epoch {
                    end_ns: epoch * 10_000_000,
                    completions: epoch * 4,
                    participants: 4,
                    commit_ns: 10_000_000,
                    released: 0,
                    exact,
                    arrivals_ns: &[],
                },
                is_check,
            );
            if let Some(rate) = observed {
                assert!((rate - 400.0).abs() < 1e-6, "{rate}");
                return epoch;
            }
        }
    }

    #[test]
    fn what_is_seen_exactly_takes_no_longer_than_a_check() {
        assert_eq!(
            epochs_until_complete(true, false),
            epochs_until_complete(false, true)
        );
        assert!(epochs_until_complete(true, false) < epochs_until_complete(false, false));
    }
}
