//! A selection in words.

use std::fmt;

use super::{
    BoundsKind, CandidateComparison, CandidateName, CandidateRanking, CandidateSelection,
    ComparisonMethod, ComparisonVerdict, SelectionVerdict,
};
use luc_units::number_formats::FourDigits;

#[derive(Debug)]
pub struct SelectionText<'a> {
    selection: &'a CandidateSelection,
    unit: &'a str,
}

impl CandidateSelection {
    /// Shows the selection; rates are in `unit`, as `operations/s`.
    #[must_use]
    pub fn text<'a>(&'a self, unit: &'a str) -> SelectionText<'a> {
        SelectionText { selection: self, unit }
    }

    /// States the conclusion of `ranking`, one of this selection's, as a sentence without its full stop.
    #[must_use]
    pub fn verdict(&self, ranking: &CandidateRanking) -> String {
        let name = |at: usize| self.candidates[at].name();
        let best = name(ranking.best);
        let others = || {
            let names: Vec<String> = ranking.as_good.iter().map(|&at| name(at)).collect();
            names.join(", ")
        };
        match ranking.verdict {
            SelectionVerdict::Best => format!("best: {best}, better than every other"),
            SelectionVerdict::OneOfSeveral => {
                format!("best: {best}, with no significant difference to {}", others())
            }
            SelectionVerdict::NoSignificantDifference if ranking.as_good.is_empty() => {
                format!("only {best} was measured enough")
            }
            SelectionVerdict::NoSignificantDifference => format!(
                "no significant difference: {best} has the highest median, and is not shown to be better than {}",
                others()
            ),
        }
    }
}

impl fmt::Display for SelectionText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ranking(f, self.unit, &self.selection.rate)?;
        if let Some(per_joule) = &self.selection.per_joule {
            let unit = format!("{}/J", self.unit.trim_end_matches("/s"));
            self.ranking(f, &unit, per_joule)?;
        }
        Ok(())
    }
}

impl SelectionText<'_> {
    fn ranking(
        &self,
        f: &mut fmt::Formatter<'_>,
        unit: &str,
        ranking: &CandidateRanking,
    ) -> fmt::Result {
        let selection = self.selection;
        writeln!(f, "{unit}: {}", selection.verdict(ranking))?;
        let names: Vec<String> = selection.candidates.iter().map(CandidateName::name).collect();
        let width = names.iter().map(String::len).max().unwrap_or_default();
        let percent = selection.terms.confidence * 100.0;
        let figures: Vec<String> = ranking.figures.iter().map(figure).collect();
        let head = format!("median ({percent} %)");
        let column = figures.iter().map(String::len).max().unwrap_or_default();
        let column = column.max(head.len());
        writeln!(f, "  {:width$}  {head:column$}  the best over this one", "")?;
        for at in order(ranking) {
            let beside = match ranking.against(at) {
                _ if at == ranking.best => "best".to_owned(),
                Some(found) => against(found),
                None => "too few rounds to compare".to_owned(),
            };
            write!(f, "  {:width$}  {:column$}  {beside}", names[at], figures[at])?;
            let CandidateName { is_default, danger, .. } = &selection.candidates[at];
            if *is_default {
                write!(f, "; default")?;
            }
            if let Some(danger) = danger {
                write!(f, "; UNSAFE: {danger}")?;
            }
            writeln!(f)?;
        }
        self.notes(f, ranking)
    }

    /// Explains the bounds and their assumptions.
    fn notes(&self, f: &mut fmt::Formatter<'_>, ranking: &CandidateRanking) -> fmt::Result {
        let CandidateSelection { terms, pairs, .. } = self.selection;
        let percent = terms.confidence * 100.0;
        let plural = if *pairs == 1 { "" } else { "s" };
        write!(
            f,
            "  ratios are of the same round; all their intervals hold together with {percent} % (Bonferroni, {pairs} \
             pair{plural}"
        )?;
        match terms.looks {
            0 | 1 => writeln!(f, ")")?,
            looks => writeln!(f, ", {looks} looks)")?,
        }
        let is_by =
            |method: ComparisonMethod| move |found: &&CandidateComparison| found.method == method;
        let by_t = ranking.comparisons.iter().filter(is_by(ComparisonMethod::LogT)).count();
        if by_t > 0 {
            let count = ranking.comparisons.len();
            writeln!(
                f,
                "  {by_t} of {count} ratios have too few rounds for order statistics: geometric mean, Student's t on \
                 logarithms, which assumes that these are about normal"
            )?;
        }
        let is_range = |bounds: BoundsKind| bounds == BoundsKind::Range;
        if ranking.figures.iter().flatten().any(|found| is_range(found.bounds)) {
            writeln!(f, "  [lowest to highest]: too few rounds for an interval of a median")?;
        }
        Ok(())
    }
}

/// Orders candidates: the best first, then by median, those without a median last.
fn order(ranking: &CandidateRanking) -> Vec<usize> {
    let mut places: Vec<usize> = (0..ranking.figures.len()).collect();
    let median = |at: usize| ranking.figures[at].map_or(f64::NEG_INFINITY, |found| found.median);
    places.sort_by(|&a, &b| median(b).total_cmp(&median(a)));
    places.sort_by_key(|&at| at != ranking.best);
    places
}

fn figure(found: &Option<super::CandidateFigure>) -> String {
    let Some(found) = found else {
        return "-".to_owned();
    };
    let (median, low, high) =
        (FourDigits(found.median), FourDigits(found.low), FourDigits(found.high));
    match found.bounds {
        BoundsKind::Interval => format!("{median} ({low} to {high})"),
        BoundsKind::Range => format!("{median} [{low} to {high}]"),
    }
}

fn against(found: &CandidateComparison) -> String {
    let CandidateComparison { ratio, low, high, .. } = found;
    let ratio = format!("{ratio:.3} ({low:.3} to {high:.3})");
    match found.best_is {
        ComparisonVerdict::Better => ratio,
        ComparisonVerdict::Worse => format!("{ratio}, faster than the best"),
        ComparisonVerdict::NotDistinguishable => format!("{ratio}, no significant difference"),
    }
}
