//! Samples split into stretches of one rate, each a line.

use super::clock_sample::ClockSample;

/// Both clocks at a moment that is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RateCorner {
    pub(super) monotonic_ns: i64,
    pub(super) raw_ns: i64,
}

/// A line through samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct RateStretch {
    /// CLOCK_MONOTONIC of its first sample.
    pub(super) first_ns: i64,
    /// CLOCK_MONOTONIC of its last sample.
    pub(super) last_ns: i64,
    origin: ClockSample,
    /// Rate of the other clock less that of CLOCK_MONOTONIC: 0 if they are equal.
    excess: f64,
    /// Height of the line at the origin, ns.
    height: f64,
}

/// Splits samples greedily: a stretch goes on while some line is within the reading error of all of its samples
/// (O'Rourke, *An On-Line Algorithm for Fitting Straight Lines between Data Ranges*, 1981, by its slopes alone). The
/// line of a single sample goes through its neighbours as well.
pub(super) fn find_stretches(samples: &[ClockSample], error_ns: f64) -> Vec<RateStretch> {
    let mut stretches = Vec::new();
    let mut begin = 0;
    while begin < samples.len() {
        let length = count_on_line(&samples[begin..], error_ns);
        stretches.push(RateStretch::through(samples, begin, begin + length));
        begin += length;
    }
    stretches
}

/// Returns the number of samples from the first on that are on one line through the first.
fn count_on_line(samples: &[ClockSample], error_ns: f64) -> usize {
    let (mut flattest, mut steepest) = (f64::NEG_INFINITY, f64::INFINITY);
    for (count, &sample) in samples.iter().enumerate().skip(1) {
        let (x, y) = relative_to(samples[0], sample);
        // The first is off by as much as this one may be.
        flattest = flattest.max((y - 2.0 * error_ns) / x);
        steepest = steepest.min((y + 2.0 * error_ns) / x);
        if flattest > steepest {
            return count;
        }
    }
    samples.len()
}

/// Returns a sample relative to another: the time of CLOCK_MONOTONIC since, and the time that the other clock gained,
/// ns.
fn relative_to(origin: ClockSample, sample: ClockSample) -> (f64, f64) {
    let monotonic = sample.monotonic_ns - origin.monotonic_ns;
    let raw = sample.raw_ns - origin.raw_ns;
    (monotonic as f64, (i128::from(raw) - i128::from(monotonic)) as f64)
}

impl RateStretch {
    /// Returns the line of least squares through samples from `begin` to before `end`.
    fn through(samples: &[ClockSample], begin: usize, end: usize) -> Self {
        let own = &samples[begin..end];
        let origin = own[0];
        let used = if own.len() > 1 {
            own
        } else {
            &samples[begin.saturating_sub(1)..(end + 1).min(samples.len())]
        };
        let places: Vec<(f64, f64)> =
            used.iter().map(|&sample| relative_to(origin, sample)).collect();
        let count = places.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| places.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|place| place.0), mean(|place| place.1));
        let (mut product, mut square) = (0.0, 0.0);
        for place in &places {
            product += (place.0 - x) * (place.1 - y);
            square += (place.0 - x).powi(2);
        }
        let excess = product / square;
        Self {
            first_ns: origin.monotonic_ns,
            last_ns: own[own.len() - 1].monotonic_ns,
            origin,
            excess,
            height: y - excess * x,
        }
    }

    /// Returns the line at a time.
    pub(super) fn at(&self, monotonic_ns: i64) -> RateCorner {
        let since = monotonic_ns.saturating_sub(self.origin.monotonic_ns);
        let gained = (self.height + self.excess * since as f64).round() as i64;
        RateCorner {
            monotonic_ns,
            raw_ns: self.origin.raw_ns.saturating_add(since).saturating_add(gained),
        }
    }

    /// Returns the time at which this line and the next one meet, if that is between them.
    pub(super) fn meets(&self, next: &Self) -> Option<i64> {
        let apart = |at_ns: i64| {
            let (ours, theirs) = (self.at(at_ns).raw_ns, next.at(at_ns).raw_ns);
            (i128::from(theirs) - i128::from(ours)) as f64
        };
        let (before, after) = (apart(self.last_ns), apart(next.first_ns));
        let share = before / (before - after);
        let length = (next.first_ns - self.last_ns) as f64;
        (0.0..=1.0).contains(&share).then(|| self.last_ns + (share * length).round() as i64)
    }
}
