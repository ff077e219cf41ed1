//! Estimates totals of events whose counters were there for only part of the time.
//!
//! **The model.** The load is fixed; the times at which an event's group had the counters are random. The readings are
//! cut into *rotations*, as short as possible while every event of interest has its turn in each. Between two turns an
//! event is assumed to have gone on as in the turns before and after (`filled_gaps`). So a change of the load costs no
//! more than half of the time between.
//!
//! **The variance** is estimated from neighbouring rotations: half the mean square of their differences, times the
//! share of the time without a counter. That is the estimator v2 for systematic samples. Wolter describes it in *An
//! Investigation of Some Estimators of Variance for Systematic Sampling*, JASA 79, 1984. It is right for noise from
//! turn to turn. Where the load itself changes between rotations it is too large, never too small. A step of the load
//! counts 1.3 to 5 times its true share, by the turn's place in the rotation. It counts for more if readings are
//! longer than a rotation.
//!
//! Events of a figure that have their turns at different times may vary together. Their errors then add up, even
//! where the true variations cancel out. The variations of the sources of all cycles do. Two bounds of the variance
//! hold for any common variation of the events; the smaller one is taken. The first is half the mean square without
//! the factor: the counts vary by the truth and, independently of it, by the error. The second is the square of the
//! sum of the events' standard errors; for a single event it is the variance above.
//!
//! **Limits of the model.** Each turn may meet a periodic load in the same state. That is so if its period is a
//! rotation or a divisor of it. The estimate is then wrong, and the interval does not show it. Few and brief moments
//! are met by chance alone: then there is a value, but no interval.

mod counter_rotation;
mod filled_gaps;

use std::ops::Range;

use counter_rotation::cut;
use luc_stats::student;
use serde::Serialize;

use super::counter_recording::{CounterReading, CounterRecording};

/// Minimum share of the time with a counter: below it a value is withheld.
pub const MIN_RUNNING_SHARE: f64 = 0.1;
/// Confidence of all intervals.
pub const CONFIDENCE: f64 = 0.95;
/// Minimum number of rotations for an interval.
const MIN_ROTATIONS: usize = 4;
/// Minimum number of turns with an event for an interval, if all had seen as much. With fewer the count of the turns is
/// about Poisson, and a symmetric interval covers less than its confidence.
const MIN_TURNS: f64 = 16.0;
/// Minimum part of a figure for which an event's few turns take the interval away.
const MIN_PART: f64 = 0.01;
/// Maximum degrees of freedom: Student's t hardly changes beyond.
const MAX_FREEDOM: f64 = 500.0;

/// The reason why there is no interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoInterval {
    /// The recording has fewer than 4 rotations.
    FewRotations,
    /// The events happened in few turns.
    FewTurns,
}

/// A figure of counters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CountEstimate {
    /// The figure for all of the time in which its events were wanted.
    pub value: f64,
    /// Half the width of the 95 % interval around the value; 0 if counted all the time; `None` for the reason in
    /// `no_interval`.
    pub half_width: Option<f64>,
    /// The reason why there is no interval.
    pub no_interval: Option<NoInterval>,
    /// Smallest share of the time in which one of its events had a counter.
    pub running_share: f64,
    /// Number of rotations into which the readings were cut.
    pub rotations: usize,
}

impl CountEstimate {
    /// Returns whether a truth is within the interval; `None` without one.
    #[must_use]
    pub fn covers(&self, truth: f64) -> Option<bool> {
        let rounding = 1e-9 * self.value.abs().max(truth.abs());
        let half_width = self.half_width?;
        Some((self.value - truth).abs() <= half_width + rounding)
    }
}

/// The reason why there is no figure.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WithheldReason {
    /// An event is not in the recording.
    #[error("{0} was not counted")]
    NotCounted(String),
    /// An event never had a counter.
    #[error("{0} never had a counter")]
    NeverRan(String),
    /// An event had a counter for too little of the time.
    #[error("{name} had a counter for {share:.1} % of the time, too little; count fewer events at a time", share = .share * 100.0)]
    RanTooLittle {
        /// Name of the event.
        name: String,
        /// Share of the time with a counter.
        share: f64,
    },
    /// The figure has no finite value or no finite interval.
    #[error("it is not a finite number: it divides by zero, or a count is too large")]
    Undefined,
}

impl Serialize for WithheldReason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Estimates the total count of an event.
///
/// # Errors
/// See [`WithheldReason`].
pub fn total(recording: &CounterRecording, event: usize) -> Result<CountEstimate, WithheldReason> {
    figure(recording, &[event], |totals| (totals[0], vec![1.0]))
}

/// Estimates a figure of several events' totals. `of_totals` returns the figure and its slopes by each total.
///
/// The interval is by linearization: the slopes make one series of all events, rotation by rotation. So it contains the
/// events' common variation.
///
/// # Errors
/// See [`WithheldReason`].
pub(super) fn figure(
    recording: &CounterRecording,
    events: &[usize],
    of_totals: impl FnOnce(&[f64]) -> (f64, Vec<f64>),
) -> Result<CountEstimate, WithheldReason> {
    let mut running_share: f64 = 1.0;
    let mut shares = Vec::with_capacity(events.len());
    for &event in events {
        let share = share(recording, event)?;
        running_share = running_share.min(share);
        shares.push(share);
    }
    let ranges = cut(recording, events, &shares);
    let rotations = Rotations::of(recording, events, &ranges);
    let total = |(at, &event): (usize, &usize)| {
        filled_gaps::total(recording.readings(event)).unwrap_or_else(|| rotations.total(at))
    };
    let totals: Vec<f64> = events.iter().enumerate().map(total).collect();
    let (value, slopes) = of_totals(&totals);
    if !value.is_finite() || slopes.iter().any(|slope| !slope.is_finite()) {
        return Err(WithheldReason::Undefined);
    }
    let interval =
        if running_share < 1.0 { rotations.half_width(&totals, &slopes, &shares) } else { Ok(0.0) };
    if interval.is_ok_and(|half_width| !half_width.is_finite()) {
        return Err(WithheldReason::Undefined);
    }
    Ok(CountEstimate {
        value,
        half_width: interval.ok(),
        no_interval: interval.err(),
        running_share,
        rotations: rotations.lengths_ns.len(),
    })
}

/// Returns the share of the time in which an event had a counter.
fn share(recording: &CounterRecording, event: usize) -> Result<f64, WithheldReason> {
    let Some(known) = recording.events().get(event) else {
        return Err(WithheldReason::NotCounted(format!("event {event}")));
    };
    let readings = recording.readings(event).iter();
    let all = readings.fold(CounterReading::default(), |all, one| all.and(*one));
    let name = || known.to_string();
    match all.running_share() {
        None | Some(0.0) => Err(WithheldReason::NeverRan(name())),
        Some(share) if share < MIN_RUNNING_SHARE => {
            Err(WithheldReason::RanTooLittle { name: name(), share })
        }
        Some(share) => Ok(share),
    }
}

/// Readings of some events, rotation by rotation.
struct Rotations {
    /// Time in which events were wanted in each rotation, ns.
    lengths_ns: Vec<f64>,
    /// Scaled counts by event, then by rotation.
    scaled: Vec<Vec<f64>>,
}

impl Rotations {
    /// Sums the readings of each range.
    fn of(recording: &CounterRecording, events: &[usize], ranges: &[Range<usize>]) -> Self {
        let mut lengths_ns = vec![0.0_f64; ranges.len()];
        let scaled = events.iter().map(|&event| {
            let of_ranges = ranges.iter().zip(&mut lengths_ns).map(|(range, length)| {
                let readings = recording.readings(event)[range.clone()].iter();
                let sum = readings.fold(CounterReading::default(), |all, one| all.and(*one));
                *length = length.max(sum.enabled_ns as f64);
                sum.value * sum.enabled_ns as f64 / sum.running_ns.max(1) as f64
            });
            of_ranges.collect()
        });
        let scaled = scaled.collect();
        Self { lengths_ns, scaled }
    }

    fn total(&self, event: usize) -> f64 {
        self.scaled[event].iter().sum()
    }

    /// Returns half the width of a figure's interval. The figure has these slopes by its events.
    fn half_width(
        &self,
        totals: &[f64],
        slopes: &[f64],
        shares: &[f64],
    ) -> Result<f64, NoInterval> {
        let count = self.lengths_ns.len();
        if count < MIN_ROTATIONS {
            return Err(NoInterval::FewRotations);
        }
        let parts: Vec<f64> =
            totals.iter().zip(slopes).map(|(total, slope)| (total * slope).abs()).collect();
        let least = MIN_PART * parts.iter().sum::<f64>();
        for (scaled, part) in self.scaled.iter().zip(parts) {
            if part >= least && turns(scaled) < MIN_TURNS.min(count as f64 / 2.0) {
                return Err(NoInterval::FewTurns);
            }
        }
        let events = || self.scaled.iter().zip(slopes);
        let together = self.mean_squares(|at| {
            let parts = events().map(|(scaled, slope)| scaled[at] * slope);
            parts.sum()
        });
        let each = events().zip(shares).map(|((scaled, slope), share)| {
            let of_one = self.mean_squares(|at| scaled[at] * slope);
            ((1.0 - share) * of_one).sqrt()
        });
        let variance = together.min(each.sum::<f64>().powi(2));
        let n = count as f64;
        // Of the mean square of successive differences (von Neumann and others, 1941).
        let freedom = 2.0 * (n - 1.0).powi(2) / (3.0 * n - 4.0);
        let errors = student(freedom.min(MAX_FREEDOM) as u32, CONFIDENCE).unwrap_or(f64::INFINITY);
        Ok(errors * variance.sqrt())
    }

    /// Returns half the mean square of the differences of neighbouring rotations, times the number of rotations.
    fn mean_squares(&self, scaled: impl Fn(usize) -> f64) -> f64 {
        let lengths = &self.lengths_ns;
        let rates: Vec<f64> = (0..lengths.len()).map(|at| scaled(at) / lengths[at]).collect();
        let pairs = rates.windows(2).zip(lengths.windows(2));
        let squares = pairs.map(|(rates, lengths)| {
            let length = (lengths[0].powi(2) + lengths[1].powi(2)) / 2.0;
            length * (rates[1] - rates[0]).powi(2) / 2.0
        });
        let n = lengths.len() as f64;
        squares.sum::<f64>() * n / (n - 1.0)
    }
}

/// Returns the number of turns that would have seen the sum, if each had seen as much.
fn turns(scaled: &[f64]) -> f64 {
    let sum: f64 = scaled.iter().sum();
    let squares: f64 = scaled.iter().map(|one| one * one).sum();
    if squares > 0.0 { sum * sum / squares } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware_event::{CountMode, HardwareEvent};

    /// Makes a recording of an event that has a counter in one of `every` readings of 1 ms.
    fn rotated(count: u64, every: u64, value: impl Fn(u64) -> f64) -> CounterRecording {
        let mut recording =
            CounterRecording::new(vec![HardwareEvent::new("cycles", CountMode::Total)]);
        for at in 0..count {
            let has = at % every == 0;
            let reading = CounterReading {
                value: if has { value(at) } else { 0.0 },
                enabled_ns: 1_000_000,
                running_ns: if has { 1_000_000 } else { 0 },
            };
            recording.add((at + 1) * 1_000_000, &[reading]);
        }
        recording
    }

    #[test]
    fn a_steady_rate_is_scaled_and_sure() {
        let found = total(&rotated(700, 7, |_| 5.0), 0).expect("an estimate");
        assert!((found.value - 3500.0).abs() < 1e-6, "{found:?}");
        assert!(found.half_width.expect("an interval") < 1e-6, "{found:?}");
        assert!((found.running_share - 1.0 / 7.0).abs() < 1e-9);
        assert_eq!(found.rotations, 100);
    }

    #[test]
    fn what_is_counted_all_the_time_has_no_error() {
        let found = total(&rotated(9, 1, |at| at as f64), 0).expect("an estimate");
        assert_eq!((found.value, found.half_width), (36.0, Some(0.0)));
        assert_eq!(found.covers(36.0), Some(true));
        assert_eq!(found.covers(37.0), Some(false));
    }

    #[test]
    fn below_a_tenth_of_the_time_a_value_is_withheld() {
        let refused = total(&rotated(330, 11, |_| 1.0), 0).expect_err("withheld");
        assert!(matches!(refused, WithheldReason::RanTooLittle { share, .. } if share < 0.1));
        assert!(total(&rotated(330, 10, |_| 1.0), 0).is_ok());
        let never = rotated(0, 1, |_| 1.0);
        assert_eq!(total(&never, 1), Err(WithheldReason::NotCounted("event 1".to_owned())));
        assert_eq!(total(&never, 0), Err(WithheldReason::NeverRan("cycles".to_owned())));
    }

    #[test]
    fn the_variance_of_noise_is_that_of_a_sample() {
        // Turns see 0 and 2 in turn: the mean square of successive differences is 4, a variance of 2 by turn.
        let found = total(&rotated(4000, 4, |at| (at / 4 % 2 * 2) as f64), 0).expect("an estimate");
        let deviation = (0.75 * 1000.0 * 2.0_f64).sqrt() * 4.0;
        let half_width = found.half_width.expect("an interval");
        assert!((half_width / (1.96 * deviation) - 1.0).abs() < 0.01, "{half_width} {deviation}");
    }

    #[test]
    fn few_rotations_and_few_turns_have_no_interval() {
        let few = total(&rotated(12, 4, |_| 1.0), 0).expect("an estimate");
        assert_eq!((few.half_width, few.no_interval), (None, Some(NoInterval::FewRotations)));
        let rare = |at| if at % 1000 == 0 { 1.0 } else { 0.0 };
        let rare = total(&rotated(10_000, 4, rare), 0).expect("an estimate");
        assert_eq!((rare.half_width, rare.no_interval), (None, Some(NoInterval::FewTurns)));
    }

    #[test]
    fn times_in_which_nothing_is_wanted_change_nothing() {
        let mut recording =
            CounterRecording::new(vec![HardwareEvent::new("cycles", CountMode::Total)]);
        for at in 0..100_u64 {
            let wanted = at % 2 == 0;
            let reading = CounterReading {
                value: if at % 4 == 0 { 3.0 } else { 0.0 },
                enabled_ns: if wanted { 10 } else { 0 },
                running_ns: if at % 4 == 0 { 10 } else { 0 },
            };
            recording.add(at * 10, &[reading]);
        }
        let found = total(&recording, 0).expect("an estimate");
        assert!((found.value - 150.0).abs() < 1e-9, "{found:?}");
    }
}
