//! Values of the expressions in claims, and their conversions.

use luc_stats::median;

use super::series::Series;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Bool(bool),
    Text(String),
    Series(Series),
    /// Settings and their series.
    List(Vec<(String, Series)>),
    /// A figure that was not measured.
    Missing,
}

/// Returns a number; `None` if it was not measured.
pub(super) fn to_number(value: &Value) -> Result<Option<f64>, String> {
    match value {
        Value::Number(number) => Ok(Some(*number)),
        Value::Missing => Ok(None),
        Value::Series(series) if series.0.len() > 1 => {
            Err("a number at each value of the axis: take the least() or another one of them"
                .to_owned())
        }
        Value::Series(series) => Ok(median(&series.values())),
        other => Err(format!("{other:?} is no number")),
    }
}
