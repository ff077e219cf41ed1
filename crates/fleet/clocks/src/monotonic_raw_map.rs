//! Map from CLOCK_MONOTONIC, whose rate NTP changes at once, to CLOCK_MONOTONIC_RAW, which only the crystal drives.

mod clock_sample;
mod rate_changes;
mod rate_stretches;

pub use clock_sample::ClockSample;

use crate::error::ClockError;
use crate::offset_points::MAX_TIME_NS;
use rate_changes::RateChange;
use rate_stretches::{RateCorner, RateStretch};

/// A piecewise linear map from CLOCK_MONOTONIC to CLOCK_MONOTONIC_RAW.
///
/// NTP changes the rate at a time between two samples. If it changed once, that is where the lines through the samples
/// before and after it meet. [`ClockMap::change_error_ns`] is the error if it changed more than once.
#[derive(Debug, Clone, PartialEq)]
pub struct ClockMap {
    /// Ascending in both clocks; the first and the last only give the slopes outside.
    corners: Vec<RateCorner>,
    changes: Vec<RateChange>,
    error_ns: f64,
}

impl ClockMap {
    /// Returns the map through samples that are in order. `reading_error_ns` is the maximum distance of the two
    /// readings of a sample, since nobody reads two clocks at once. Samples that are off a line by more begin a new
    /// one.
    ///
    /// # Errors
    /// [`ClockError::FewSamples`], [`ClockError::SamplesNotAscending`], [`ClockError::TimeOutOfRange`],
    /// [`ClockError::Setting`].
    pub fn new(samples: &[ClockSample], reading_error_ns: f64) -> Result<Self, ClockError> {
        if !(reading_error_ns.is_finite() && reading_error_ns >= 0.0) {
            return Err(ClockError::Setting { name: "reading_error_ns", value: reading_error_ns });
        }
        if samples.len() < 2 {
            return Err(ClockError::FewSamples(samples.len()));
        }
        for sample in samples {
            for time_ns in [sample.monotonic_ns, sample.raw_ns] {
                if !(-MAX_TIME_NS..=MAX_TIME_NS).contains(&time_ns) {
                    return Err(ClockError::TimeOutOfRange(time_ns));
                }
            }
        }
        let is_ascending = |pair: &[ClockSample]| {
            pair[0].monotonic_ns < pair[1].monotonic_ns && pair[0].raw_ns < pair[1].raw_ns
        };
        if let Some(at) = samples.windows(2).position(|pair| !is_ascending(pair)) {
            return Err(ClockError::SamplesNotAscending(at));
        }
        let corners =
            find_corners(samples, &rate_stretches::find_stretches(samples, reading_error_ns));
        let mut map = Self {
            changes: rate_changes::find_changes(samples, reading_error_ns, &corners),
            corners,
            error_ns: 0.0,
        };
        let residual =
            |sample: &ClockSample| map.raw_ns(sample.monotonic_ns).abs_diff(sample.raw_ns);
        let worst = samples.iter().map(residual).max().unwrap_or(0);
        map.error_ns = worst as f64 + reading_error_ns;
        Ok(map)
    }

    /// Returns CLOCK_MONOTONIC_RAW at a time of CLOCK_MONOTONIC. Before the first and after the last sample the rates
    /// there are assumed to last.
    #[must_use]
    pub fn raw_ns(&self, monotonic_ns: i64) -> i64 {
        let next = self
            .corners
            .partition_point(|corner| corner.monotonic_ns < monotonic_ns)
            .clamp(1, self.corners.len() - 1);
        let (a, b) = (self.corners[next - 1], self.corners[next]);
        let length = i128::from(b.monotonic_ns) - i128::from(a.monotonic_ns);
        let rise = i128::from(b.raw_ns) - i128::from(a.raw_ns);
        let since = i128::from(monotonic_ns) - i128::from(a.monotonic_ns);
        // Whole numbers, as a float has no room for months in ns; the product of two differences fits into 128 bits.
        let raw = i128::from(a.raw_ns) + (since * rise).div_euclid(length.max(1));
        raw.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// Returns the error of the map where rates do not change, ns: the worst residual of a sample, and the reading
    /// error. The errors of both hosts, added, belong into [`FitOptions::timestamp_error_ns`](crate::FitOptions).
    #[must_use]
    pub fn error_ns(&self) -> f64 {
        self.error_ns
    }

    /// Returns the additional error at a time of CLOCK_MONOTONIC, ns: between two samples a rate may have changed more
    /// than once. It holds if no rate was beyond those seen within 2 s by more than a quarter of their range.
    #[must_use]
    pub fn change_error_ns(&self, monotonic_ns: i64) -> i64 {
        let error_ns =
            rate_changes::error_ns(&self.changes, monotonic_ns, self.raw_ns(monotonic_ns));
        error_ns.ceil() as i64
    }
}

/// Finds the points where successive lines meet, with the ends of the first and the last: at least two.
fn find_corners(samples: &[ClockSample], stretches: &[RateStretch]) -> Vec<RateCorner> {
    let mut corners: Vec<RateCorner> = Vec::with_capacity(2 * stretches.len() + 2);
    corners.extend(stretches.first().map(|first| first.at(first.first_ns)));
    for pair in stretches.windows(2) {
        match pair[0].meets(&pair[1]) {
            Some(monotonic_ns) => corners.push(pair[0].at(monotonic_ns)),
            None => corners.extend([pair[0].at(pair[0].last_ns), pair[1].at(pair[1].first_ns)]),
        }
    }
    corners.extend(stretches.last().map(|last| last.at(last.last_ns)));
    // One corner of a moment is enough, and a clock never goes back.
    corners
        .dedup_by(|next, last| next.monotonic_ns <= last.monotonic_ns || next.raw_ns < last.raw_ns);
    if corners.len() < 2 {
        // Lines that are too long for a float to tell that they rise.
        let ends = samples.first().into_iter().chain(samples.last());
        corners = ends
            .map(|end| RateCorner { monotonic_ns: end.monotonic_ns, raw_ns: end.raw_ns })
            .collect();
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TENTH_NS: i64 = 100_000_000;

    /// Samples each 0.1 s; the rate changes by `ppm` at `change_ns`.
    fn samples(
        count: i64,
        change_ns: i64,
        ppm: i64,
        noise: impl Fn(i64) -> i64,
    ) -> Vec<ClockSample> {
        let raw = |monotonic: i64| monotonic + (monotonic - change_ns).max(0) * ppm / 1_000_000;
        (0..count)
            .map(|at| ClockSample {
                monotonic_ns: at * TENTH_NS,
                raw_ns: raw(at * TENTH_NS) + noise(at) + 77,
                rate_ppb: if at * TENTH_NS < change_ns { 0 } else { -1000 * ppm },
            })
            .collect()
    }

    #[test]
    fn a_change_of_rate_is_where_the_lines_meet() {
        let change = 2_037_000_000;
        let map = ClockMap::new(&samples(50, change, 100, |_| 0), 20.0).expect("a map");
        for at in (0..4_900_000_000_i64).step_by(7_777_777) {
            let truth = at + 77 + (at - change).max(0) * 100 / 1_000_000;
            assert!((map.raw_ns(at) - truth).abs() <= 3, "{at}: {} {truth}", map.raw_ns(at));
        }
        assert!(map.error_ns() <= 25.0, "{}", map.error_ns());
    }

    #[test]
    fn outside_the_rates_last() {
        let map = ClockMap::new(&samples(50, 2_000_000_000, 100, |_| 0), 20.0).expect("a map");
        assert_eq!(map.raw_ns(-1_000_000_000), -1_000_000_000 + 77);
        let late = map.raw_ns(10_000_000_000) - (10_000_000_000 + 77 + 800_000);
        assert!(late.abs() < 10, "{late}");
    }

    #[test]
    fn what_is_no_clock_is_refused() {
        let sample = |monotonic_ns, raw_ns| ClockSample { monotonic_ns, raw_ns, rate_ppb: 0 };
        assert_eq!(ClockMap::new(&[], 1.0), Err(ClockError::FewSamples(0)));
        let still = [sample(0, 0), sample(1, 5), sample(1, 6)];
        assert_eq!(ClockMap::new(&still, 1.0), Err(ClockError::SamplesNotAscending(1)));
        let far = [sample(0, 0), sample(i64::MAX, 5)];
        assert_eq!(ClockMap::new(&far, 1.0), Err(ClockError::TimeOutOfRange(i64::MAX)));
        assert!(ClockMap::new(&still, f64::NAN).is_err());
        let wide = [sample(-MAX_TIME_NS, -MAX_TIME_NS), sample(MAX_TIME_NS, MAX_TIME_NS)];
        let map = ClockMap::new(&wide, 1.0).expect("a map");
        assert_eq!((map.raw_ns(i64::MIN), map.raw_ns(i64::MAX)), (i64::MIN, i64::MAX));
        // The line through two samples of a year passes another one by more than 63 bits.
        let far_off = [
            (-1_714_738_291_681_920_911, -2_152_951_546_478_288_220),
            (-1_710_947_067_336_359_524, -1_923_821_125_506_301_066),
            (-130_939_118_752_230_537, -411_601_873_787_575_596),
            (767_384_383_957_690_088, -1),
            (769_137_037_041_479_594, 0),
        ]
        .map(|(monotonic_ns, raw_ns)| sample(monotonic_ns, raw_ns));
        assert!(ClockMap::new(&far_off, 50.0).is_ok());
        // A line that rises by less than a float can tell at its length.
        for rise in 1..40 {
            let flat =
                [sample(-MAX_TIME_NS + 77 * rise, 0), sample(MAX_TIME_NS - 1_001 * rise, rise)];
            let map = ClockMap::new(&flat, 1.0).expect("a map");
            let _ = (map.raw_ns(0), map.change_error_ns(0));
        }
    }

    /// Duration of a rate of `bent`, ns.
    const RATE_NS: i64 = 47_000_000;

    /// Returns CLOCK_MONOTONIC_RAW at a time of CLOCK_MONOTONIC, if it is faster by one after the other of `ppm`.
    fn bent(at: i64, ppm: &[i64]) -> i64 {
        let gained = ppm.iter().enumerate().map(|(place, ppm)| {
            let since = (at - place as i64 * RATE_NS).clamp(0, RATE_NS);
            since * ppm
        });
        at + gained.sum::<i64>() / 1_000_000
    }

    #[test]
    fn lines_that_meet_where_no_rate_changed_are_within_the_error() {
        // Recorded in a guest: CLOCK_MONOTONIC, its rate, and how much faster the other clock was since the sample
        // before.
        let recorded: [(i64, i64, f64); 6] = [
            (902_980_384, 50_822, -36_852.0),
            (1_021_512_918, 427_037, -83_572.0),
            (1_139_920_391, 340_577, -191_145.0),
            (1_257_337_582, -143_040, -149_850.0),
            (1_311_068_930, -143_040, 142_877.0),
            (1_420_437_976, -147_798, 198_557.0),
        ];
        let (mut raw_ns, mut last_ns) = (0, recorded[0].0);
        let samples = recorded.map(|(monotonic_ns, rate_ppb, faster_ppb)| {
            let passed_ns = monotonic_ns - last_ns;
            raw_ns += passed_ns + (passed_ns as f64 * faster_ppb * 1e-9) as i64;
            last_ns = monotonic_ns;
            ClockSample { monotonic_ns, raw_ns, rate_ppb }
        });
        let map = ClockMap::new(&samples, 135.0).expect("a map");
        let (from, to) = (samples[3], samples[4]);
        for at in (from.monotonic_ns..to.monotonic_ns).step_by(1_000_000) {
            let gained =
                (to.raw_ns - from.raw_ns) as f64 / (to.monotonic_ns - from.monotonic_ns) as f64;
            let truth = from.raw_ns as f64 + (at - from.monotonic_ns) as f64 * gained;
            let off = (map.raw_ns(at) as f64 - truth).abs();
            let said = map.error_ns() + map.change_error_ns(at) as f64;
            assert!(off <= said, "{at}: {off} {said}");
        }
    }

    proptest! {
        #[test]
        fn several_changes_between_two_samples_are_within_the_error(
            ppm in prop::collection::vec(prop::sample::select(vec![-400_i64, 30, 500]), 110),
        ) {
            let sample = |at: i64| ClockSample {
                monotonic_ns: at * TENTH_NS,
                raw_ns: bent(at * TENTH_NS, &ppm),
                rate_ppb: -1000 * ppm[(at * TENTH_NS / RATE_NS) as usize],
            };
            let samples: Vec<ClockSample> = (0..50).map(sample).collect();
            // The bound assumes that samples nearby have seen the least and the greatest rate.
            let has_both = |near: &[ClockSample]| {
                [400_000, -500_000].iter().all(|ppb: &i64| {
                    near.iter().any(|sample| sample.rate_ppb.abs_diff(*ppb) < 10_000)
                })
            };
            prop_assume!(samples.windows(20).all(has_both));
            let turned: Vec<ClockSample> = samples.iter().map(|sample| sample.turned()).collect();
            let (map, back) = (ClockMap::new(&samples, 30.0).expect("a map"), ClockMap::new(&turned, 30.0).expect("a map"));
            for at in (0..4_900_000_000_i64).step_by(7_777_777) {
                let truth = bent(at, &ppm);
                let off = (map.raw_ns(at) - truth).abs() as f64;
                prop_assert!(off <= map.error_ns() + map.change_error_ns(at) as f64 + 3.0, "{at}: {off}");
                let off = (back.raw_ns(truth) - at).abs() as f64;
                prop_assert!(off <= back.error_ns() + back.change_error_ns(truth) as f64 + 3.0, "{at}: {off}");
            }
        }

        #[test]
        fn the_truth_is_within_the_error(change in 500_000_000_i64..4_500_000_000, ppm in -400_i64..400,
                                         noise in prop::collection::vec(-30_i64..30, 50)) {
            let map = ClockMap::new(&samples(50, change, ppm, |at| noise[at as usize]), 30.0).expect("a map");
            for at in (0..4_900_000_000_i64).step_by(49_999_999) {
                let truth = at + 77 + (at - change).max(0) * ppm / 1_000_000;
                let wrong = (map.raw_ns(at) - truth).abs() as f64;
                prop_assert!(wrong <= map.error_ns() + 2.0, "{wrong} {}", map.error_ns());
            }
        }

        #[test]
        fn nothing_panics(samples in prop::collection::vec((any::<i64>(), any::<i64>()), 0..20), at in any::<i64>()) {
            let mut samples: Vec<ClockSample> = samples
                .into_iter()
                .map(|(monotonic_ns, raw_ns)| ClockSample { monotonic_ns: monotonic_ns / 4, raw_ns: raw_ns / 4, rate_ppb: raw_ns })
                .collect();
            samples.sort_by_key(|sample| sample.monotonic_ns);
            let mut raws: Vec<i64> = samples.iter().map(|sample| sample.raw_ns).collect();
            raws.sort_unstable();
            for (sample, raw_ns) in samples.iter_mut().zip(raws) {
                sample.raw_ns = raw_ns;
            }
            if let Ok(map) = ClockMap::new(&samples, 50.0) {
                let _ = (map.raw_ns(at), map.change_error_ns(at));
            }
        }
    }
}
