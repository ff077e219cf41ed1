//! Times between two samples in which a rate changed: where it did, and how often, is not known.

use super::lines::Corner;
use super::sample::ClockSample;

/// Rates within so many ns of a change may have been there meanwhile.
const NEAR_NS: i64 = 2_000_000_000;
/// No more samples are looked at on either side: only those of damaged traces are as close.
const MOST_NEAR: usize = 200;
/// So much of the range of these rates more is taken for possible on each side: samples do not see all rates.
const MARGIN: f64 = 0.25;
/// The kernel rounds rates by less.
const ROUNDED: f64 = 1e-6;

/// A time between two samples in which a rate changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Change {
    first: ClockSample,
    last: ClockSample,
    /// How much faster than CLOCK_MONOTONIC the other clock may have been, at least and at most.
    least: f64,
    most: f64,
}

/// All of them, in order, and those in which the map's lines meet although nothing tells of a change. `error_ns` is how
/// far apart the readings of a sample may be.
pub(super) fn changes(samples: &[ClockSample], error_ns: f64, corners: &[Corner]) -> Vec<Change> {
    let chords: Vec<f64> = samples.windows(2).map(|pair| chord(pair[0], pair[1])).collect();
    let noise = |at: usize| {
        2.0 * error_ns / (samples[at + 1].monotonic_ns - samples[at].monotonic_ns) as f64 + ROUNDED
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
            return has_corner(at).then_some(Change {
                first,
                last,
                least: chords[at],
                most: chords[at],
            });
        }
        let near = |sample: &&ClockSample| is_near(**sample, first) && is_near(last, **sample);
        let from = samples[..at].iter().rev().take(MOST_NEAR);
        let from = at - from.take_while(near).count();
        let to = samples[at + 1..].iter().take(MOST_NEAR);
        let to = at + to.take_while(near).count();
        let rates = samples[from..=to].iter().map(|sample| sample.excess());
        let rates = rates.chain(chords[from..to].iter().copied());
        let (least, most) = rates
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), rate| {
                (rate.min(least), rate.max(most))
            });
        let margin = (most - least) * MARGIN + ROUNDED;
        Some(Change { first, last, least: least - margin, most: most + margin })
    };
    (0..chords.len()).filter_map(change).collect()
}

fn is_near(earlier: ClockSample, later: ClockSample) -> bool {
    later.monotonic_ns.saturating_sub(earlier.monotonic_ns) <= NEAR_NS
}

/// How much faster than CLOCK_MONOTONIC the other clock was between two samples, on average.
fn chord(first: ClockSample, last: ClockSample) -> f64 {
    gained(first, last) / (last.monotonic_ns - first.monotonic_ns) as f64
}

fn gained(first: ClockSample, last: ClockSample) -> f64 {
    let raw = i128::from(last.raw_ns) - i128::from(first.raw_ns);
    (raw - (i128::from(last.monotonic_ns) - i128::from(first.monotonic_ns))) as f64
}

/// By how much a map may be off at a time, ns, beyond what its samples are: `raw_ns` is what it says.
pub(super) fn error_ns(changes: &[Change], monotonic_ns: i64, raw_ns: i64) -> f64 {
    let next = changes.partition_point(|change| change.last.monotonic_ns <= monotonic_ns);
    let inside = changes.get(next);
    let inside = inside.filter(|change| change.first.monotonic_ns < monotonic_ns);
    inside.map_or(0.0, |change| change.error_ns(monotonic_ns, raw_ns))
}

impl Change {
    /// Between two samples a clock is in the parallelogram of the least and the greatest rate.
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
