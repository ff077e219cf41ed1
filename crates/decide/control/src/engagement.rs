//! Measures whether batching pays, by comparing gated with ungated samples in pairs.
//!
//! The gate engages only after its own gain has been measured. From time to time it checks the gain against an ungated
//! sample, and disengages when the gain is gone. Trials that did not pay are repeated ever more rarely.

// Logarithms come from the libm crate. Those of the standard library need the C library's libm, which every program
// with the gate would have to load.

/// Smallest gain worth engaging for (ratio of rates).
const MIN_GAIN: f64 = 1.02;
/// Gain of a first pair that engages at once.
pub(crate) const OBVIOUS_GAIN: f64 = 1.25;
/// Gain of a first gated sample that is followed by another one, unless it is obvious. Many callers take longer than
/// the settling time to fall in step, and an ungated sample would undo that.
const HOPEFUL_GAIN: f64 = 1.1;
/// Gain of a first pair that ends the trial at once.
pub(crate) const HOPELESS_GAIN: f64 = 0.9;
/// Smallest assumed spread of a pair's log ratio, however well the pairs agree.
const SPREAD_FLOOR: f64 = 0.05;
/// Number of pairs after which an unconvincing trial is given up.
const MAX_PAIRS: u32 = 12;

/// Paired log ratios of gated to ungated rates (Welford's method). All zeros is empty.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RatePairs {
    count: u32,
    /// Whether the first gated sample was hopeful and not counted: 1, or 0.
    has_second_look: u32,
    mean: f64,
    squares: f64,
}

/// Verdict on the pairs so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngagementVerdict {
    /// Unclear: measure another pair.
    More,
    /// The gate does pay.
    Pays,
    /// The gate does not pay.
    DoesNotPay,
}

impl RatePairs {
    /// Whether the first gated sample of a trial must be repeated before it counts. True at most once.
    pub fn takes_second_look(&mut self, gated: f64, ungated: f64) -> bool {
        let is_first = self.count == 0 && self.has_second_look == 0;
        let takes = is_first && (HOPEFUL_GAIN..OBVIOUS_GAIN).contains(&(gated / ungated));
        self.has_second_look |= u32::from(takes);
        takes
    }

    /// Adds a pair of rates (calls served per time) and returns the verdict. A rate that is not positive and finite
    /// counts as no gain.
    pub fn add(&mut self, gated: f64, ungated: f64) -> EngagementVerdict {
        let ratio = gated / ungated;
        let log = if ratio.is_finite() && ratio > 0.0 { libm::log(ratio) } else { 0.0 };
        if !(self.mean.is_finite() && self.squares.is_finite()) {
            *self = Self::default();
        }
        self.count = self.count.saturating_add(1);
        let difference = log - self.mean;
        self.mean += difference / f64::from(self.count);
        self.squares += difference * (log - self.mean);
        self.verdict()
    }

    /// Whether a check lets an engaged gate go on. The bar is lower than for engaging, so that the gate does not flap.
    pub fn pays_still(&self) -> bool {
        self.gain() >= MIN_GAIN
    }

    /// Number of pairs measured.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Geometric mean of the ratios gated / ungated; 1 if nothing was measured.
    pub fn gain(&self) -> f64 {
        libm::exp(self.mean)
    }

    fn verdict(&self) -> EngagementVerdict {
        let n = f64::from(self.count.max(1));
        if self.count <= 1 {
            return match self.gain() {
                gain if gain >= OBVIOUS_GAIN => EngagementVerdict::Pays,
                gain if gain <= HOPELESS_GAIN => EngagementVerdict::DoesNotPay,
                _ => EngagementVerdict::More,
            };
        }
        let spread = libm::sqrt(self.squares.max(0.0) / (n - 1.0)).max(SPREAD_FLOOR);
        let error = spread / libm::sqrt(n);
        if self.mean - 2.0 * error > libm::log(MIN_GAIN) {
            EngagementVerdict::Pays
        } else if self.mean + error < libm::log(MIN_GAIN) || self.count >= MAX_PAIRS {
            EngagementVerdict::DoesNotPay
        } else {
            EngagementVerdict::More
        }
    }
}

/// Time between checks, which grows while nothing changes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckBackoff {
    interval_ns: u64,
}

impl CheckBackoff {
    /// The first interval after a change, ns.
    pub const FIRST_NS: u64 = 2_000_000_000;
    /// The longest interval, ns.
    pub const LONGEST_NS: u64 = 60_000_000_000;

    /// Returns the next interval, `factor` times the last one.
    pub fn lengthen(&mut self, factor: u64) -> u64 {
        self.interval_ns = if self.interval_ns == 0 {
            Self::FIRST_NS
        } else {
            self.interval_ns.saturating_mul(factor).clamp(Self::FIRST_NS, Self::LONGEST_NS)
        };
        self.interval_ns
    }

    /// Whether it is beyond its first interval: what it follows has failed repeatedly.
    pub fn has_grown(&self) -> bool {
        self.interval_ns > Self::FIRST_NS
    }

    /// Starts over after a change.
    pub fn reset(&mut self) {
        self.interval_ns = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_obvious_gain_needs_one_pair() {
        assert_eq!(RatePairs::default().add(2_000.0, 1_000.0), EngagementVerdict::Pays);
    }

    #[test]
    fn a_hopeful_first_sample_is_measured_once_more() {
        let mut pairs = RatePairs::default();
        assert!(pairs.takes_second_look(1_150.0, 1_000.0));
        assert!(!pairs.takes_second_look(1_150.0, 1_000.0), "only once");
        assert_eq!(pairs.add(1_400.0, 1_000.0), EngagementVerdict::Pays);
        for decided in [850.0, 1_000.0, 1_300.0, f64::NAN] {
            assert!(!RatePairs::default().takes_second_look(decided, 1_000.0));
        }
        let mut begun = RatePairs::default();
        begun.add(1_150.0, 1_000.0);
        assert!(!begun.takes_second_look(1_150.0, 1_000.0));
    }

    #[test]
    fn harm_ends_the_trial_at_once() {
        assert_eq!(RatePairs::default().add(850.0, 1_000.0), EngagementVerdict::DoesNotPay);
    }

    #[test]
    fn a_small_steady_gain_takes_several_pairs() {
        let mut pairs = RatePairs::default();
        let verdicts: Vec<EngagementVerdict> =
            (0..6).map(|_| pairs.add(1_100.0, 1_000.0)).collect();
        assert_eq!(verdicts[0], EngagementVerdict::More);
        assert!(verdicts.contains(&EngagementVerdict::Pays));
    }

    #[test]
    fn noise_around_one_is_given_up_and_never_engages() {
        let mut pairs = RatePairs::default();
        let noise = [1.1, 0.92, 1.05, 0.95, 1.12, 0.9, 1.0, 1.08, 0.93, 1.02, 1.0, 1.0];
        let last = noise.iter().map(|r| pairs.add(*r, 1.0)).find(|v| *v != EngagementVerdict::More);
        assert_eq!(last, Some(EngagementVerdict::DoesNotPay));
    }

    #[test]
    fn useless_rates_count_as_no_gain() {
        let mut pairs = RatePairs::default();
        assert_eq!(pairs.add(0.0, 0.0), EngagementVerdict::More);
        assert_eq!(pairs.gain(), 1.0);
    }

    #[test]
    fn backoff_grows_and_resets() {
        let mut backoff = CheckBackoff::default();
        assert_eq!(backoff.lengthen(4), CheckBackoff::FIRST_NS);
        assert_eq!(backoff.lengthen(4), 4 * CheckBackoff::FIRST_NS);
        for _ in 0..10 {
            backoff.lengthen(4);
        }
        assert_eq!(backoff.lengthen(4), CheckBackoff::LONGEST_NS);
        backoff.reset();
        assert_eq!(backoff.lengthen(2), CheckBackoff::FIRST_NS);
    }
}
