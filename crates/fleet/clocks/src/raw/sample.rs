//! Both clocks at one moment.

/// Both clocks of a host at one moment, a row of the table `clock_sample`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockSample {
    /// CLOCK_MONOTONIC, ns.
    pub monotonic_ns: i64,
    /// CLOCK_MONOTONIC_RAW, ns.
    pub raw_ns: i64,
}
