//! The best against another, round by round.

use serde::Serialize;

use super::MIN_ROUNDS;
use crate::interpolated_median::{interpolated_interval, leaves_some_out};
use crate::log_ratio_mean::geometric_interval;
use crate::paired_ratios::paired_ratios;

/// The best over another candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CandidateComparison {
    /// The other's place among the candidates.
    pub against: usize,
    /// Rounds that both have.
    pub rounds: usize,
    /// Figure of the best over the other's.
    pub ratio: f64,
    /// Lower bound, adjusted so that all comparisons hold together.
    pub low: f64,
    pub high: f64,
    pub method: ComparisonMethod,
    /// Conclusion: better or worse if the interval leaves 1 out.
    pub best_is: ComparisonVerdict,
}

/// Method by which a ratio and its bounds were computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonMethod {
    /// Median of the ratios, bounds from order statistics: nothing is assumed of the distribution.
    OrderStatistics,
    /// Geometric mean, bounds from Student's t on logarithms, which are assumed to be about normal. Used for few
    /// rounds, where order statistics would give no interval of this confidence, or the whole range.
    LogT,
}

/// Standing of the best against another candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    Better,
    /// Significantly worse: only an unsafe candidate or an odd distribution does that to the one with the highest
    /// median.
    Worse,
    NotDistinguishable,
}

/// Compares `best` with `other` by round, with an interval of `confidence`; `None` of too few common rounds. Figures
/// are positive.
pub(super) fn compare(
    best: &[Option<f64>],
    against: usize,
    other: &[Option<f64>],
    confidence: f64,
) -> Option<CandidateComparison> {
    let (with, without): (Vec<f64>, Vec<f64>) =
        best.iter().zip(other).filter_map(|(best, other)| Some(((*best)?, (*other)?))).unzip();
    let ratios = paired_ratios(&with, &without).ok()?;
    let rounds = ratios.len();
    if rounds < MIN_ROUNDS {
        return None;
    }
    let by_order = leaves_some_out(rounds, confidence)
        .then(|| interpolated_interval(&ratios, confidence))
        .flatten();
    let (ratio, low, high, method) = match by_order {
        Some(found) => (found.median, found.low, found.high, ComparisonMethod::OrderStatistics),
        None => {
            let found = geometric_interval(&ratios, confidence)?;
            (found.mean, found.low, found.high, ComparisonMethod::LogT)
        }
    };
    Some(CandidateComparison {
        against,
        rounds,
        ratio,
        low,
        high,
        method,
        best_is: if low > 1.0 {
            ComparisonVerdict::Better
        } else if high < 1.0 {
            ComparisonVerdict::Worse
        } else {
            ComparisonVerdict::NotDistinguishable
        },
    })
}
