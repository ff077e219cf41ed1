//! Both clocks at one moment.

/// Both clocks of a host at one moment, a row of the table `clock_sample`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockSample {
    /// CLOCK_MONOTONIC, ns.
    pub monotonic_ns: i64,
    /// CLOCK_MONOTONIC_RAW, ns.
    pub raw_ns: i64,
    /// Correction of CLOCK_MONOTONIC's rate at that moment, parts per billion.
    pub rate_ppb: i64,
}

impl ClockSample {
    /// Returns the rate of the other clock less that of CLOCK_MONOTONIC.
    pub(super) fn excess(self) -> f64 {
        let rate = self.rate_ppb as f64 * 1e-9;
        -rate / (1.0 + rate)
    }

    /// Returns the sample with the clocks swapped.
    #[must_use]
    pub fn turned(self) -> Self {
        Self {
            monotonic_ns: self.raw_ns,
            raw_ns: self.monotonic_ns,
            rate_ppb: (self.excess() * 1e9).round() as i64,
        }
    }
}
