//! Lists of an axis: no value twice, and at least one.

use std::collections::BTreeSet;

use super::super::error::SweepError;

/// Checks that the values of the axis `name` are distinct and at least one.
pub(super) fn check_unique(
    name: &str,
    values: impl Iterator<Item = String>,
) -> Result<(), SweepError> {
    let mut seen = BTreeSet::new();
    for value in values {
        if !seen.insert(value.clone()) {
            return Err(SweepError::Plan(format!("{name} '{value}' is there twice: keep one")));
        }
    }
    if seen.is_empty() {
        return Err(SweepError::Plan(format!("{name} has no value: write at least one")));
    }
    Ok(())
}
