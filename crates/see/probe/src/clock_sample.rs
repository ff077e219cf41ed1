//! Samples of the host's clocks, by which the clocks of hosts are compared.

use std::time::{Duration, Instant};

use luc_events::tables::ClockSample;
use luc_host::kernel_clocks::{ClockId, read_ns};

/// Time between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// Number of readings. The best is kept, since some are interrupted.
const MAX_ATTEMPTS: u32 = 5;

/// Samples the clocks at regular times.
#[derive(Debug, Default)]
pub(crate) struct ClockSampler {
    last: Option<Instant>,
}

impl ClockSampler {
    /// Returns a sample if the last one is old enough. Call it more often than samples are wanted.
    pub(crate) fn sample_if_due(&mut self) -> Option<ClockSample> {
        let now = Instant::now();
        let due = self.last.is_none_or(|last| now - last >= SAMPLE_INTERVAL);
        if !due {
            return None;
        }
        // In step with the clock and not with the caller, who comes a little late each time.
        self.last = Some(match self.last {
            Some(last) if now - last < 2 * SAMPLE_INTERVAL => last + SAMPLE_INTERVAL,
            _ => now,
        });
        Some(read())
    }
}

/// Adjustment of a clock by `adjtimex`: its rate in parts per billion above the nominal rate, and the remaining slew,
/// ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Adjustment {
    rate_ppb: i64,
    slew_ns: i64,
}

pub(crate) fn read() -> ClockSample {
    let mut before = adjustment();
    let attempts = (0..MAX_ATTEMPTS).map(|_| {
        let sample = read_once();
        let after = adjustment();
        let is_steady = before.rate_ppb == after.rate_ppb;
        before = after;
        let sample = ClockSample { rate_ppb: after.rate_ppb, slew_ns: after.slew_ns, ..sample };
        (is_steady, sample)
    });
    best(attempts)
}

/// Returns the narrowest reading during which the rate did not change; the narrowest of all if it always did. A reader
/// may be interrupted between the clocks and the rate, and the rate would then be of another time.
fn best(attempts: impl Iterator<Item = (bool, ClockSample)>) -> ClockSample {
    let best = attempts.min_by_key(|(is_steady, sample)| (!is_steady, sample.width_ns));
    best.map(|(_, sample)| sample).unwrap_or_default()
}

fn read_once() -> ClockSample {
    // Clocks of other hosts are known no better than CLOCK_MONOTONIC_RAW is: nothing else is between the two readings.
    let at_ns = read_ns(ClockId::Monotonic);
    let raw_ns = read_ns(ClockId::MonotonicRaw);
    let width_ns = read_ns(ClockId::Monotonic).saturating_sub(at_ns);
    ClockSample {
        at_ns,
        width_ns,
        raw_ns,
        boottime_ns: read_ns(ClockId::Boottime),
        realtime_ns: read_ns(ClockId::Realtime),
        rate_ppb: 0,
        slew_ns: 0,
    }
}

fn adjustment() -> Adjustment {
    // SAFETY: all zeros is a value of this structure of integers; without modes the call only reads.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives until the call returns.
    if unsafe { libc::adjtimex(&raw mut state) } < 0 {
        return Adjustment { rate_ppb: 0, slew_ns: 0 };
    }
    let in_ns = state.status & libc::STA_NANO != 0;
    let slew_ns = if in_ns { state.offset } else { state.offset.saturating_mul(1000) };
    Adjustment { rate_ppb: rate_ppb(state.freq, state.tick), slew_ns }
}

/// Computes the clock's rate, in parts per billion. `freq` is in 2^-16 parts per million, `tick` in microseconds per
/// hundredth of a second.
fn rate_ppb(freq: i64, tick: i64) -> i64 {
    const NOMINAL_TICK_US: i64 = 10_000;
    (freq.saturating_mul(1000) >> 16) + (tick - NOMINAL_TICK_US) * 100_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_frequency_and_tick() {
        assert_eq!(rate_ppb(0, 10_000), 0);
        // 1 ppm, and 100 ppm less.
        assert_eq!(rate_ppb(1 << 16, 10_000), 1000);
        assert_eq!(rate_ppb(-(100 << 16), 10_001), 0);
    }

    #[test]
    fn a_reading_during_which_the_rate_changed_is_the_last_choice() {
        let of = |is_steady, width_ns, rate_ppb| {
            let sample = ClockSample { width_ns, rate_ppb, ..ClockSample::default() };
            (is_steady, sample)
        };
        let attempts = [of(true, 90, 1), of(false, 20, 2), of(true, 50, 2)];
        let found = best(attempts.into_iter());
        assert_eq!((found.width_ns, found.rate_ppb), (50, 2));
        assert_eq!(best([of(false, 70, 1), of(false, 60, 2)].into_iter()).width_ns, 60);
    }

    #[test]
    fn a_sample_lies_between_two_readings() {
        let before = read_ns(ClockId::MonotonicRaw);
        let sample = read();
        assert!(sample.raw_ns >= before);
        assert!(sample.raw_ns <= read_ns(ClockId::MonotonicRaw));
        assert!(sample.at_ns + sample.width_ns <= read_ns(ClockId::Monotonic));
        assert!(sample.boottime_ns >= sample.at_ns);
    }
}
