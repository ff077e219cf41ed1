//! A row that perf printed, in any form.

use crate::counter_recording::CounterReading;

/// An event in a reading.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PerfRow {
    /// End of the reading, ns after the recording began; `None` without `-I`.
    pub(super) end_ns: Option<u64>,
    pub(super) event: String,
    pub(super) unit: String,
    pub(super) counted: RowCount,
}

/// Count of a row's event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RowCount {
    NotSupported,
    /// The event was wanted, but never had a counter.
    Never,
    /// The event had a counter for a share that perf rounds to 0.00 %.
    Scarcely {
        /// Scaled by that share.
        value: f64,
        running_ns: u64,
    },
    Reading(CounterReading),
}

/// Makes a count of perf's value, time and percentage. An event that was wanted for no time has 100 %.
pub(super) fn reading(value: f64, running_ns: u64, percent: f64) -> RowCount {
    match (running_ns > 0, percent > 0.0) {
        (true, true) => {}
        (true, false) => return RowCount::Scarcely { value, running_ns },
        (false, true) => return RowCount::Reading(CounterReading::default()),
        (false, false) => return RowCount::Never,
    }
    let share = (percent / 100.0).min(1.0);
    let enabled_ns = (running_ns as f64 / share).round() as u64;
    RowCount::Reading(CounterReading {
        value: value * share,
        enabled_ns: enabled_ns.max(running_ns),
        running_ns,
    })
}

/// Counts of an event whose share perf rounds to nothing. `wanted_ns` is the time that was wanted.
pub(super) fn scarce_reading(value: f64, running_ns: u64, wanted_ns: u64) -> CounterReading {
    // Where nobody tells, half of what is rounded up.
    let enabled_ns = wanted_ns.max(running_ns.saturating_mul(40_000));
    CounterReading { value: value * running_ns as f64 / enabled_ns as f64, enabled_ns, running_ns }
}

/// Seconds as perf prints them, in ns.
pub(super) fn nanoseconds(seconds: f64) -> Option<u64> {
    let ns = seconds * 1e9;
    // A century is more than any recording.
    (0.0..3.2e18).contains(&ns).then(|| ns.round() as u64)
}
