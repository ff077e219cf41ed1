//! Times between two samples in which a rate changed; when it did, and how often, is not known.

use super::clock_sample::ClockSample;
use super::rate_stretches::RateCorner;

/// Maximum distance from a change of the rates that may have been there meanwhile, ns.
const MAX_NEAR_NS: i64 = 2_000_000_000;
/// Maximum number of samples that are used on either side: only those of damaged traces are as close.
const MAX_NEAR_SAMPLES: usize = 200;
/// Part of the range of these rates that is added on each side: samples do not see all rates.
const RATE_MARGIN: f64 = 0.25;
/// Maximum error of a rate by the kernel's rounding.
const RATE_ROUNDING: f64 = 1e-6;

/// A time between two samples in which a rate changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RateChange {
    first: ClockSample,
    last: ClockSample,
    /// Minimum by which the other clock may have been faster than CLOCK_MONOTONIC.
    least: f64,
    /// Maximum by which it may have been faster.
    most: f64,
}

/// Finds all changes, in order, and times in which the map's lines meet although no rate changed. `error_ns` is the
/// maximum distance of the readings of a sample.
pub(super) fn find_changes(
    samples: &[ClockSample],
    error_ns: f64,
    corners: &[RateCorner],
) -> Vec<RateChange> {
    let chords: Vec<f64> = samples.windows(2).map(|pair| chord(pair[0], pair[1])).collect();
    let noise = |at: usize| {
        2.0 * error_ns / (samples[at + 1].monotonic_ns - samples[at].monotonic_ns) as f64
            + RATE_ROUNDING
    };
    let is_changed = |at: usize| {
        let rates = [samples[at].excess(), samples[at + 1].excess()];
        rates[0] != rates[1] || (chords[at] - rates[0]).abs() > noise(at)
    };
    let has_corner = |at: usize| {
        let next =
            corners.partition_point(|corner| corner.monotonic_ns <= samples[at].monotonic_ns);
        let inside = corners.get(next);
        inside.is_some_and(|corner| corner.monotonic_ns < samples[at + 1].monotonic_ns)
    };
    let change = |at: usize| {
        let (first, last) = (samples[at], samples[at + 1]);
        if !is_changed(at) {
            return has_corner(at).then_some(RateChange {
                first,
                last,
                least: chords[at],
                most: chords[at],
            });
        }
        let near = |sample: &&ClockSample| is_near(**sample, first) && is_near(last, **sample);
        let from = samples[..at].iter().rev().take(MAX_NEAR_SAMPLES);
        let from = at - from.take_while(near).count();
        let to = samples[at + 1..].iter().take(MAX_NEAR_SAMPLES);
        let to = at + to.take_while(near).count();
        let rates = samples[from..=to].iter().map(|sample| sample.excess());
        let rates = rates.chain(chords[from..to].iter().copied());
        let (least, most) = rates
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), rate| {
                (rate.min(least), rate.max(most))
            });
        let margin = (most - least) * RATE_MARGIN + RATE_ROUNDING;
        Some(RateChange { first, last, least: least - margin, most: most + margin })
    };
    (0..chords.len()).filter_map(change).collect()
}

fn is_near(earlier: ClockSample, later: ClockSample) -> bool {
    later.monotonic_ns.saturating_sub(earlier.monotonic_ns) <= MAX_NEAR_NS
}

/// Returns by how much the other clock was faster than CLOCK_MONOTONIC between two samples, on average.
fn chord(first: ClockSample, last: ClockSample) -> f64 {
    gained(first, last) / (last.monotonic_ns - first.monotonic_ns) as f64
}

fn gained(first: ClockSample, last: ClockSample) -> f64 {
    let raw = i128::from(last.raw_ns) - i128::from(first.raw_ns);
    (raw - (i128::from(last.monotonic_ns) - i128::from(first.monotonic_ns))) as f64
}

/// Returns the error of a map at a time, ns, beyond that of its samples. `raw_ns` is the map's value.
pub(super) fn error_ns(changes: &[RateChange], monotonic_ns: i64, raw_ns: i64) -> f64 {
    let next = changes.partition_point(|change| change.last.monotonic_ns <= monotonic_ns);
    let inside = changes.get(next);
    let inside = inside.filter(|change| change.first.monotonic_ns < monotonic_ns);
    inside.map_or(0.0, |change| change.error_ns(monotonic_ns, raw_ns))
}

impl RateChange {
    /// Returns the error: between two samples a clock is in the parallelogram of the least and the greatest rate.
    fn error_ns(&self, monotonic_ns: i64, raw_ns: i64) -> f64 {
        let since = (monotonic_ns - self.first.monotonic_ns) as f64;
        let until = (self.last.monotonic_ns - monotonic_ns) as f64;
        let end = gained(self.first, self.last);
        let high = (self.most * since).min(end - self.least * until);
        let low = (self.least * since).max(end - self.most * until);
        let gained = i128::from(raw_ns) - i128::from(self.first.raw_ns);
        let said =
            (gained - (i128::from(monotonic_ns) - i128::from(self.first.monotonic_ns))) as f64;
        (high - said).max(said - low).max(0.0)
    }
}
