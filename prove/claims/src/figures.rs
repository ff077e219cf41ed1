//! Figures of a repeat, computed from its counters.

use std::collections::BTreeMap;

use luc_sweep::{CounterValues, RepeatRecord};

use super::ClaimsError;
use super::claims::Claims;
use super::expression::{Expression, Operator};
use super::series::{Selection, VALUE};

/// Returns the values of each figure, in the order of `records`. Figures that no repeat has are left out.
pub(super) fn of_records(
    claims: &Claims,
    axes: &Selection,
    records: &[&RepeatRecord],
) -> Result<BTreeMap<String, Vec<Option<f64>>>, ClaimsError> {
    let own = axes.get("workload").and_then(|workload| claims.value.get(workload));
    let value = own.map_or(VALUE, String::as_str).to_owned();
    let all = std::iter::once((VALUE.to_owned(), value)).chain(claims.figure.clone());
    let mut figures = BTreeMap::new();
    for (name, text) in &all.collect::<Vec<_>>() {
        let expression = claims.expression(text)?;
        let of =
            |record: &&RepeatRecord| compute(&expression, record.value, &record.counters, axes);
        let values: Result<Vec<Option<f64>>, String> = records.iter().map(of).collect();
        let values = values.map_err(|reason| claims.wrong(format!("figure {name}: {reason}")))?;
        if values.iter().any(Option::is_some) {
            figures
                .insert(name.clone(), values.into_iter().map(|value| value.map(digits)).collect());
        }
    }
    Ok(figures)
}

/// Rounds to five significant digits: raw data are to be read, and kept.
fn digits(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// Returns a figure of a repeat; `None` if a counter is missing, or a divisor is 0. An error means that no repeat can
/// have it.
fn compute(
    expression: &Expression,
    value: f64,
    counters: &CounterValues,
    axes: &Selection,
) -> Result<Option<f64>, String> {
    let of = |expression: &Expression| compute(expression, value, counters, axes);
    Ok(match expression {
        Expression::Number(number) => Some(*number),
        Expression::Name(name) if name == VALUE => Some(value),
        Expression::Name(name) => match axes.get(name) {
            Some(axis) => axis.parse().ok(),
            None => counters.get(name).copied(),
        },
        Expression::Binary(operator, left, right) => {
            let (Some(left), Some(right)) = (of(left)?, of(right)?) else {
                return Ok(None);
            };
            match operator {
                Operator::Add => Some(left + right),
                Operator::Subtract => Some(left - right),
                Operator::Multiply => Some(left * right),
                Operator::Divide => (right != 0.0).then(|| left / right),
                other => return Err(format!("{other:?} is for claims, not for figures")),
            }
        }
        Expression::Call(function, arguments) => {
            let operations = arguments.iter().map(|argument| match argument {
                Expression::Name(name) => Ok(name.as_str()),
                _ => Err(format!("{function}() takes names of operations")),
            });
            let operations: Vec<&str> = operations.collect::<Result<_, _>>()?;
            match function.as_str() {
                "mean_us" => mean_us(counters, &operations),
                "p99_us" => operations
                    .iter()
                    .filter_map(|name| counters.get(&format!("operation.{name}.p99_us")).copied())
                    .reduce(f64::max),
                other => {
                    return Err(format!("no function {other}(); write mean_us() or p99_us()"));
                }
            }
        }
    })
}

/// Returns the mean latency of these operations, weighted by their counts; without names that of all.
fn mean_us(counters: &CounterValues, operations: &[&str]) -> Option<f64> {
    let counts = counters.iter().filter_map(|(name, count)| {
        let operation = name.strip_prefix("operation.")?.strip_suffix(".count")?;
        let is_wanted = operations.is_empty() || operations.contains(&operation);
        let mean_us = counters.get(&format!("operation.{operation}.mean_us"))?;
        is_wanted.then_some((*count, count * mean_us))
    });
    let (count, total_us) = counts
        .fold((0.0, 0.0), |(counts, totals), (count, total)| (counts + count, totals + total));
    (count > 0.0).then(|| total_us / count)
}

#[cfg(test)]
mod tests {
    use super::super::expression::parse;
    use super::*;

    #[test]
    fn figures_of_counters() {
        let counters: CounterValues = [
            ("luc.fsyncs", 10.0),
            ("luc.fsyncs_waited_two", 5.0),
            ("luc.commits", 0.0),
            ("operation.fsync2.count", 3.0),
            ("operation.fsync2.mean_us", 1000.0),
            ("operation.fsync3.count", 1.0),
            ("operation.fsync3.mean_us", 5000.0),
            ("operation.fsync3.p99_us", 9000.0),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let axes = Selection::from([("threads".to_owned(), "8".to_owned())]);
        let of = |text: &str| compute(&parse(text).expect("right"), 7.0, &counters, &axes);
        assert_eq!(of("1 + luc.fsyncs_waited_two / luc.fsyncs"), Ok(Some(1.5)));
        assert_eq!(of("luc.fsyncs / luc.commits"), Ok(None));
        assert_eq!(of("luc.copies * 2"), Ok(None));
        assert_eq!(of("mean_us(fsync2, fsync3) / 1000"), Ok(Some(2.0)));
        assert_eq!(of("threads / mean_us() * 1000000"), Ok(Some(4000.0)));
        assert_eq!(of("p99_us(fsync2, fsync3)"), Ok(Some(9000.0)));
        assert_eq!(of("mean_us(close)"), Ok(None));
        assert_eq!(of("value - 1"), Ok(Some(6.0)));
        assert!(of("least(value)").is_err() && of("value > 1").is_err());
    }
}
