//! A counter of microjoules that wraps to 0, and checks that no wrap was missed.

use std::time::Duration;

/// Upper bound of a package's power in watts: twice the largest package on the market.
pub(super) const MAX_WATTS: u64 = 2_000;
/// Counters move in steps of about a millisecond's energy, so that a short time may look like a higher power.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// Counter of one zone's energy that wraps to 0.
#[derive(Debug, Clone)]
pub(super) struct WrappingCounter {
    range_uj: u64,
    last_uj: u64,
    last: Duration,
    total_uj: u64,
}

impl WrappingCounter {
    /// Starts at the reading `now_uj` at time `now`. `range_uj` is `max_energy_range_uj`.
    pub(super) fn new(range_uj: u64, now_uj: u64, now: Duration) -> Self {
        Self { range_uj, last_uj: now_uj, last: now, total_uj: 0 }
    }

    /// Returns the longest interval between readings: half of the time in which the range may pass, so that one reading
    /// may be late.
    pub(super) fn period(range_uj: u64) -> Duration {
        Duration::from_micros(range_uj / MAX_WATTS / 2)
    }

    /// Returns microjoules since the first reading.
    pub(super) fn total_uj(&self) -> u64 {
        self.total_uj
    }

    /// Adds a reading. Fails if the counter may have wrapped more than once since the last reading. Also fails if it
    /// moved faster than any processor can. The growth since then is not counted.
    pub(super) fn add(&mut self, now_uj: u64, now: Duration) -> Result<(), String> {
        let passed = now.saturating_sub(self.last);
        let last_uj = std::mem::replace(&mut self.last_uj, now_uj);
        self.last = now;
        // Microseconds times watts are microjoules.
        let most_uj = |time: Duration| time.as_micros().saturating_mul(u128::from(MAX_WATTS));
        if most_uj(passed) >= u128::from(self.range_uj) {
            return Err(format!(
                "a counter was not read for {:.1} s, in which it may have started again twice",
                passed.as_secs_f64()
            ));
        }
        let more_uj = if now_uj >= last_uj {
            now_uj - last_uj
        } else {
            // The range is its largest value.
            self.range_uj.saturating_sub(last_uj) + now_uj
        };
        if u128::from(more_uj) > most_uj(passed + UPDATE_INTERVAL) {
            return Err(format!(
                "a counter moved by {:.0} J in {:.3} s, which no processor takes",
                more_uj as f64 / 1e6,
                passed.as_secs_f64()
            ));
        }
        self.total_uj += more_uj;
        Ok(())
    }
}
