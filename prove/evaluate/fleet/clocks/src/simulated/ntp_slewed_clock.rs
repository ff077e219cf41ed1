//! CLOCK_MONOTONIC of a simulated host: its crystal, whose rate NTP changes every few seconds.

use luc_fleet_clocks::{ClockError, ClockMap, ClockSample};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::clock::Clock;

/// Maximum change of a rate by NTP, ns/s: 50 ppm.
const CHANGE: f64 = 50_000.0;
/// Maximum distance of the readings of a sample, ns.
const READING_NS: i64 = 40;
const SAMPLE_NS: f64 = 1e8;

/// A host's CLOCK_MONOTONIC, and the map that its recorder's samples give.
pub(super) struct NtpSlewedClock<'c> {
    clock: &'c Clock,
    /// For each time from which a rate holds: the gain on the crystal in ns, and its increase in a second.
    rates: Vec<(f64, f64, f64)>,
    pub(super) map: ClockMap,
}

impl<'c> NtpSlewedClock<'c> {
    pub(super) fn new(
        clock: &'c Clock,
        random: &mut ChaCha8Rng,
        seconds: f64,
    ) -> Result<Self, ClockError> {
        let (mut at, mut gained, mut rates) = (0.0, 0.0, Vec::new());
        while at < seconds * 1e9 {
            let rate = random.random_range(-CHANGE..CHANGE);
            rates.push((at, gained, rate));
            let length = random.random_range(4.0..32.0) * 1e9;
            gained += rate * length * 1e-9;
            at += length;
        }
        let mut samples = Vec::new();
        let mut at = 0.0;
        while at < seconds * 1e9 {
            let place = rates.partition_point(|rate| rate.0 <= at);
            samples.push(ClockSample {
                monotonic_ns: read(clock, &rates, at),
                raw_ns: clock.read(at) + random.random_range(-READING_NS..=READING_NS),
                rate_ppb: rates[place.saturating_sub(1)].2 as i64,
            });
            at += SAMPLE_NS;
        }
        // Both readings are whole ns as well.
        let map = ClockMap::new(&samples, READING_NS as f64 + 1.0)?;
        Ok(Self { clock, rates, map })
    }

    /// Maps a reading at a true time to CLOCK_MONOTONIC_RAW, as a recorder does.
    pub(super) fn mapped(&self, true_ns: f64) -> i64 {
        self.map.raw_ns(read(self.clock, &self.rates, true_ns))
    }
}

fn read(clock: &Clock, rates: &[(f64, f64, f64)], true_ns: f64) -> i64 {
    let place = rates.partition_point(|rate| rate.0 <= true_ns);
    let (from, gained, rate) = rates[place.saturating_sub(1)];
    clock.read(true_ns) + (gained + rate * (true_ns - from) * 1e-9).floor() as i64
}
