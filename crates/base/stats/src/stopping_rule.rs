//! Stopping rule for repeats.

use serde::{Deserialize, Serialize};

use super::interpolated_median::interpolated_interval;
use super::order_statistics::MedianInterval;

/// Fewest repeats that give a 95 % interval of a median.
pub const MIN_REPEATS: usize = 6;

/// The nominal confidence of an interval that covers 95 % although the repeats ended when it was narrow.
const SEQUENTIAL_CONFIDENCE: f64 = 0.965;

/// Stopping rule: ends once the interval is narrow, between a minimum and a maximum number of repeats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StoppingRule {
    /// Half the interval over the median that is narrow enough; 0 never is.
    pub relative_half_width: f64,
    /// Repeats before the first look.
    pub min: usize,
    /// Repeats after which it ends in any case.
    pub max: usize,
}

/// Conclusion from the repeats so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppingVerdict {
    /// Make repeats up to this number, then look again.
    More(usize),
    /// The interval is narrow enough.
    Converged,
    /// `max` repeats are made, and the interval is wider than the goal.
    NotConverged,
    /// Shown to be worse than the best, and given up.
    Worse,
    /// The point could not be measured.
    Failed,
}

impl StoppingRule {
    /// Computes the 95 % interval of repeats that ended by this goal.
    ///
    /// A rule that stops at a narrow interval prefers samples that happen to be narrow. Their intervals cover less
    /// than their confidence. Two measures correct for that. There are few looks (see [`StoppingRule::verdict`]). With
    /// more than one look the nominal confidence is 96.5 %, which then covers about 95 %; the tests measure it. A
    /// single look (`min` = `max`) needs neither.
    #[must_use]
    pub fn interval(&self, values: &[f64]) -> Option<MedianInterval> {
        let confidence = if self.min < self.max { SEQUENTIAL_CONFIDENCE } else { 0.95 };
        interpolated_interval(values, confidence)
    }

    /// Decides what follows after `values`.
    ///
    /// Looks at `min` values, then at twice the number each time, up to `max`. In between it asks for repeats up to the
    /// next look.
    #[must_use]
    pub fn verdict(&self, values: &[f64]) -> StoppingVerdict {
        let mut look = self.min.max(1);
        loop {
            if values.len() < look {
                return StoppingVerdict::More(look);
            }
            if self.is_narrow(&values[..look]) {
                return StoppingVerdict::Converged;
            }
            if look >= self.max {
                return StoppingVerdict::NotConverged;
            }
            look = (look * 2).min(self.max);
        }
    }

    fn is_narrow(&self, values: &[f64]) -> bool {
        self.interval(values)
            .and_then(|interval| relative_half_width(&interval))
            .is_some_and(|half| half <= self.relative_half_width)
    }
}

/// Returns half the interval over its median; `None` about zero.
#[must_use]
pub fn relative_half_width(interval: &MedianInterval) -> Option<f64> {
    let half = (interval.high - interval.low) / 2.0 / interval.median.abs();
    half.is_finite().then_some(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOAL: StoppingRule = StoppingRule { relative_half_width: 0.05, min: 6, max: 20 };

    #[test]
    fn looks_at_growing_counts() {
        let wild: Vec<f64> = (0..20).map(|at| f64::from(1 + at % 2 * 9)).collect();
        for (made, verdict) in [
            (0, StoppingVerdict::More(6)),
            (5, StoppingVerdict::More(6)),
            (6, StoppingVerdict::More(12)),
            (11, StoppingVerdict::More(12)),
            (12, StoppingVerdict::More(20)),
            (20, StoppingVerdict::NotConverged),
        ] {
            assert_eq!(GOAL.verdict(&wild[..made]), verdict, "{made}");
        }
    }

    #[test]
    fn equal_values_need_the_fewest() {
        assert_eq!(GOAL.verdict(&[7.0; 6]), StoppingVerdict::Converged);
        assert_eq!(GOAL.verdict(&[0.0; 20]), StoppingVerdict::NotConverged);
    }
}
