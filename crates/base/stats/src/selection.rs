//! The selection matrix: the best of several file systems with their options, by how much, and how sure that is.
//!
//! The best candidate is chosen by the same figures that then say by how much it is better. The more candidates there
//! are, the luckier the chosen one was. Two measures correct for that.
//!
//! Comparisons are of pairs of repeats of the same round. Their intervals hold *all together* with the stated
//! confidence (Bonferroni over every pair of candidates and every look). Whichever two candidates are picked by their
//! figures, the interval of their ratio is among them.
//!
//! Candidates that are not shown to be worse are named beside the best. Another day's measurement might choose one of
//! them.

mod candidate_comparison;
mod selection_text;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::interpolated_median::interpolated_interval;
use crate::order_statistics::median;

pub use candidate_comparison::{CandidateComparison, ComparisonMethod, ComparisonVerdict};

/// Fewest rounds that two candidates must share to be compared.
pub const MIN_ROUNDS: usize = 3;

/// A file system with options, and its measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredCandidate {
    /// Name for mkfs and mount.
    pub file_system: String,
    /// Label of its options, as `inode 1K`; `default` without options.
    pub options: String,
    pub is_default: bool,
    /// Data loss that a power cut may cause beyond the program's own risk; `None` if there is none.
    pub danger: Option<String>,
    /// Operations per second, by round: item i of all candidates was measured in round i. A candidate that was given
    /// up has fewer.
    pub rates: Vec<f64>,
    /// Operations per joule by round; empty, or `None` for a round, where that was not measured.
    pub per_joule: Vec<Option<f64>>,
}

/// Confidence of a selection, and the number of looks that it is shared by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SelectionTerms {
    /// Probability that all comparisons hold, as 0.95.
    pub confidence: f64,
    /// Number of looks at the figures to decide whether to go on. Each look is one more chance to be wrong.
    pub looks: usize,
}

/// Result of a selection: the candidates and their rankings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CandidateSelection {
    pub terms: SelectionTerms,
    /// Pairs of candidates, over which the comparisons are adjusted.
    pub pairs: usize,
    pub candidates: Vec<CandidateName>,
    /// Ranking by operations per second.
    pub rate: CandidateRanking,
    /// Ranking by operations per joule; `None` if fewer than two candidates were measured enough.
    pub per_joule: Option<CandidateRanking>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CandidateName {
    /// Name for mkfs and mount.
    pub file_system: String,
    pub options: String,
    pub is_default: bool,
    /// Data loss that a power cut may cause.
    pub danger: Option<String>,
}

/// The candidates by one figure. Candidates are given by their places in [`CandidateSelection::candidates`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CandidateRanking {
    /// The safe candidate with the highest median. Its median is flattered by the choice; the comparisons are not.
    pub best: usize,
    pub verdict: SelectionVerdict,
    /// Safe candidates that are not shown to be worse than it: the truly best is it or one of these.
    pub as_good: Vec<usize>,
    /// The default with the highest median among these and the best: with it, nothing speaks for a change.
    pub keep: Option<usize>,
    /// Candidates with too few rounds to be compared.
    pub unjudged: Vec<usize>,
    /// Figures of each candidate; `None` without rounds.
    pub figures: Vec<Option<CandidateFigure>>,
    /// The best against each other candidate that was judged, safe or not, in their order.
    pub comparisons: Vec<CandidateComparison>,
}

/// Conclusion on the best candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionVerdict {
    /// Better than every other safe candidate.
    Best,
    /// Better than some, and not shown to be better than others.
    OneOfSeveral,
    /// Not shown to be better than any other.
    NoSignificantDifference,
}

/// A candidate's median over rounds, with bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CandidateFigure {
    pub rounds: usize,
    pub median: f64,
    pub low: f64,
    pub high: f64,
    pub bounds: BoundsKind,
}

/// Kind of a figure's bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundsKind {
    /// The interval of this median alone, from order statistics.
    Interval,
    /// Lowest and highest of too few rounds for an interval.
    Range,
}

/// Why nothing can be selected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// A figure is not positive, so it has no ratio.
    #[error("{0}: a figure is zero, negative or not a number; repeat the run that gave it")]
    NotPositive(String),
    #[error(
        "no candidate that keeps data has {MIN_ROUNDS} rounds; measure longer, or add a candidate"
    )]
    TooFew,
}

impl Default for SelectionTerms {
    fn default() -> Self {
        Self { confidence: 0.95, looks: 1 }
    }
}

impl SelectionTerms {
    /// Returns the confidence that each of `pairs` comparisons needs for all of them to hold.
    fn of_each(&self, pairs: usize) -> f64 {
        1.0 - (1.0 - self.confidence) / (pairs.max(1) * self.looks.max(1)) as f64
    }
}

impl MeasuredCandidate {
    /// Returns its name for a sentence.
    #[must_use]
    pub fn name(&self) -> String {
        label(&self.file_system, &self.options)
    }
}

impl CandidateName {
    /// Returns its name for a sentence.
    #[must_use]
    pub fn name(&self) -> String {
        label(&self.file_system, &self.options)
    }
}

fn label(file_system: &str, options: &str) -> String {
    format!("{file_system} {options}")
}

impl CandidateFigure {
    fn of(values: &[f64], confidence: f64) -> Option<Self> {
        let median = median(values)?;
        let rounds = values.len();
        Some(match interpolated_interval(values, confidence) {
            Some(interval) => Self {
                rounds,
                median,
                low: interval.low,
                high: interval.high,
                bounds: BoundsKind::Interval,
            },
            None => Self {
                rounds,
                median,
                low: values.iter().copied().fold(f64::INFINITY, f64::min),
                high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                bounds: BoundsKind::Range,
            },
        })
    }
}

impl CandidateRanking {
    /// Returns the comparison of the best with candidate `at`, if there is one.
    #[must_use]
    pub fn against(&self, at: usize) -> Option<&CandidateComparison> {
        self.comparisons.iter().find(|comparison| comparison.against == at)
    }

    /// Returns whether candidate `at` is the best or as good.
    #[must_use]
    pub fn is_among_the_best(&self, at: usize) -> bool {
        self.best == at || self.as_good.contains(&at)
    }
}

/// Selects the best of `candidates`.
///
/// # Errors
/// [`SelectionError`]: a figure is not positive, or there are too few rounds.
pub fn select(
    candidates: &[MeasuredCandidate],
    terms: SelectionTerms,
) -> Result<CandidateSelection, SelectionError> {
    let is_wrong = |value: &f64| !(value.is_finite() && *value > 0.0);
    for candidate in candidates {
        let mut figures = candidate.rates.iter().chain(candidate.per_joule.iter().flatten());
        if figures.any(is_wrong) {
            return Err(SelectionError::NotPositive(candidate.name()));
        }
    }
    let rates: Vec<Vec<Option<f64>>> = candidates
        .iter()
        .map(|candidate| candidate.rates.iter().copied().map(Some).collect())
        .collect();
    let per_joule: Vec<Vec<Option<f64>>> =
        candidates.iter().map(|candidate| candidate.per_joule.clone()).collect();
    let ranking = |samples: &[Vec<Option<f64>>]| rank(candidates, samples, terms);
    Ok(CandidateSelection {
        terms,
        pairs: pairs(candidates.len()),
        candidates: candidates
            .iter()
            .map(|candidate| CandidateName {
                file_system: candidate.file_system.clone(),
                options: candidate.options.clone(),
                is_default: candidate.is_default,
                danger: candidate.danger.clone(),
            })
            .collect(),
        rate: ranking(&rates).ok_or(SelectionError::TooFew)?,
        per_joule: ranking(&per_joule).filter(|ranking| !ranking.comparisons.is_empty()),
    })
}

/// Returns the number of pairs among `count`.
fn pairs(count: usize) -> usize {
    count * count.saturating_sub(1) / 2
}

/// Ranks the candidates by one figure; `samples` are those of each candidate by round.
fn rank(
    candidates: &[MeasuredCandidate],
    samples: &[Vec<Option<f64>>],
    terms: SelectionTerms,
) -> Option<CandidateRanking> {
    let figures: Vec<Option<CandidateFigure>> = samples
        .iter()
        .map(|rounds| {
            let values: Vec<f64> = rounds.iter().copied().flatten().collect();
            CandidateFigure::of(&values, terms.confidence)
        })
        .collect();
    let median_of = |at: usize| figures[at].map_or(f64::NEG_INFINITY, |figure| figure.median);
    let highest = |places: &mut dyn Iterator<Item = usize>| {
        // The first of equals: the order is the caller's.
        places.fold(None, |best: Option<usize>, at| match best {
            Some(best) if median_of(best) >= median_of(at) => Some(best),
            _ => Some(at),
        })
    };
    let is_safe = |at: &usize| candidates[*at].danger.is_none();
    let is_judged = |at: &usize| figures[*at].is_some_and(|figure| figure.rounds >= MIN_ROUNDS);
    let best = highest(&mut (0..candidates.len()).filter(is_safe).filter(is_judged))?;
    let confidence = terms.of_each(pairs(candidates.len()));
    let comparisons: Vec<CandidateComparison> = (0..candidates.len())
        .filter(|&at| at != best)
        .filter_map(|at| {
            candidate_comparison::compare(&samples[best], at, &samples[at], confidence)
        })
        .collect();
    let is_compared = |at: usize| comparisons.iter().any(|found| found.against == at);
    let unjudged = (0..candidates.len()).filter(|&at| at != best && !is_compared(at)).collect();
    let safe = |found: &&CandidateComparison| is_safe(&found.against);
    let as_good: Vec<usize> = comparisons
        .iter()
        .filter(safe)
        .filter(|found| found.best_is != ComparisonVerdict::Better)
        .map(|found| found.against)
        .collect();
    let beaten = comparisons.iter().filter(safe).count() - as_good.len();
    let is_default = |at: &usize| candidates[*at].is_default;
    let keep = highest(&mut as_good.iter().copied().chain([best]).filter(is_default));
    Some(CandidateRanking {
        verdict: match (as_good.is_empty(), beaten) {
            (true, 1..) => SelectionVerdict::Best,
            (false, 1..) => SelectionVerdict::OneOfSeveral,
            (_, 0) => SelectionVerdict::NoSignificantDifference,
        },
        best,
        as_good,
        keep,
        unjudged,
        figures,
        comparisons,
    })
}
