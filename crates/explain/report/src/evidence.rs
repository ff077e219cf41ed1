//! Text of the figures that a finding rests on.

use luc_explain::{Evidence, Unit};
use luc_units::figures::{Share, Size, Time, three_digits};

/// Formats a figure with its unit.
pub(crate) fn evidence(evidence: &Evidence) -> String {
    let value = evidence.value;
    match evidence.unit {
        Unit::Ns => Time(value).to_string(),
        Unit::Share => Share(value).to_string(),
        Unit::Count => three_digits(value),
        Unit::PerSecond => format!("{}/s", three_digits(value)),
        Unit::Bytes => Size(value).to_string(),
    }
}
