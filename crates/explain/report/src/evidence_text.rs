//! Text of the figures that a finding rests on.

use luc_explain::{FigureUnit, FindingFigure};
use luc_units::number_formats::{FormattedShare, FormattedSize, FormattedTime, three_digits};

/// Formats a figure with its unit.
pub(crate) fn evidence(evidence: &FindingFigure) -> String {
    let value = evidence.value;
    match evidence.unit {
        FigureUnit::Ns => FormattedTime(value).to_string(),
        FigureUnit::Share => FormattedShare(value).to_string(),
        FigureUnit::Count => three_digits(value),
        FigureUnit::PerSecond => format!("{}/s", three_digits(value)),
        FigureUnit::Bytes => FormattedSize(value).to_string(),
    }
}
