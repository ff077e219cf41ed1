//! Functions that claims may call.

use luc_harness::report::number;
use luc_stats::median;
use luc_stats::selection::{MeasuredCandidate, SelectionTerms, select};

use super::choice::{JudgedChoice, chosen_then_judged};
use super::series::{Fall, Repeat, Series};
use super::value::{Value, to_number};

pub(super) fn call(function: &str, arguments: Vec<Value>) -> Result<Value, String> {
    if let [Value::Series(series)] = arguments.as_slice()
        && let Some(value) = call_of_series(function, series)
    {
        return Ok(value);
    }
    match (function, arguments.as_slice()) {
        ("at", [Value::Series(series), place]) => {
            let place = to_number(place)?.unwrap_or_default();
            Ok(Value::Series(series.only(place as u64)))
        }
        ("share_below", [Value::Series(series), Value::Series(other)]) => {
            Ok(share_below(series, other))
        }
        ("best", [Value::List(list)]) => {
            let all: Vec<&Series> = list.iter().map(|(_, series)| series).collect();
            Ok(Value::Series(Series::best(&all)))
        }
        ("length", [Value::List(list)]) => Ok(Value::Number(list.len() as f64)),
        ("not_worse", [Value::List(list)]) => Ok(Value::List(not_worse(list))),
        ("overlap", [Value::List(list), Value::List(other)]) => {
            let is_in =
                |(name, _): &&(String, Series)| other.iter().any(|(known, _)| known == name);
            Ok(Value::Number(list.iter().filter(is_in).count() as f64))
        }
        ("range_over", [Value::Series(series), Value::List(list)]) => {
            let ratios = ratios_over(series, list);
            Ok(Value::Text(match (ratios.first(), ratios.last()) {
                (Some(least), Some(most)) => format!("{} to {}", number(*least), number(*most)),
                _ => "-".to_owned(),
            }))
        }
        ("most_over", [Value::Series(series), Value::List(list)]) => {
            Ok(ratios_over(series, list).last().map_or(Value::Missing, |most| Value::Number(*most)))
        }
        ("chosen_then_judged", [Value::List(ours), Value::List(theirs), seed]) => {
            let choices = choices(ours, theirs, seed)?.into_iter();
            Ok(Value::Series(Series(choices.map(|(at, choice)| (at, choice.ratios)).collect())))
        }
        ("chosen_names", [Value::List(ours), Value::List(theirs), seed]) => {
            Ok(Value::Text(chosen_names(ours, theirs, seed)?))
        }
        ("not", [Value::Bool(holds)]) => Ok(Value::Bool(!holds)),
        ("winner", [Value::List(list)]) => Ok(rank(list)
            .first()
            .map_or(Value::Missing, |(name, _)| Value::Text((*name).to_owned()))),
        ("min" | "max" | "falling" | "rising" | "share_holding", numbers) => {
            call_of_numbers(function, numbers)
        }
        (_, arguments) => {
            let kinds: Vec<String> = arguments.iter().map(|value| format!("{value:?}")).collect();
            Err(format!("no function {function}({})", kinds.join(", ")))
        }
    }
}

/// Chooses and judges at each value of the axis.
fn choices(
    ours: &[(String, Series)],
    theirs: &[(String, Series)],
    seed: &Value,
) -> Result<Vec<(u64, JudgedChoice)>, String> {
    let seed = to_number(seed)?.ok_or("a seed is a number")? as u64;
    let mut places: Vec<u64> =
        ours.iter().flat_map(|(_, series)| series.0.iter().map(|(at, _)| *at)).collect();
    places.sort_unstable();
    places.dedup();
    let choice = |place: u64| {
        let (ours, theirs) = (repeats_at(ours, place), repeats_at(theirs, place));
        Some((place, chosen_then_judged(&ours, &theirs, seed)?))
    };
    Ok(places.into_iter().filter_map(choice).collect())
}

/// Returns the repeats of each setting at a value of the axis; none of a setting that lacks it.
fn repeats_at(list: &[(String, Series)], place: u64) -> Vec<&[Repeat]> {
    list.iter().map(|(_, series)| series.at(place).unwrap_or_default()).collect()
}

/// Names the settings that are chosen at any value of the axis, each pair once.
fn chosen_names(
    ours: &[(String, Series)],
    theirs: &[(String, Series)],
    seed: &Value,
) -> Result<String, String> {
    let mut names: Vec<String> = Vec::new();
    for (_, choice) in choices(ours, theirs, seed)? {
        let name = format!("{} over {}", ours[choice.ours].0, theirs[choice.theirs].0);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(if names.is_empty() { "-".to_owned() } else { names.join("; ") })
}

/// Returns the ratios of a series to each other one of a list, the least first.
fn ratios_over(series: &Series, list: &[(String, Series)]) -> Vec<f64> {
    let others = list.iter().filter(|(_, other)| other != series);
    let ratio =
        |(_, other): &(String, Series)| median(&series.combine(other, |a, b| a / b).values());
    let mut ratios: Vec<f64> = others.filter_map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

/// Returns the settings that are the best or not shown to be worse, by simultaneous intervals of all ratios.
fn not_worse(list: &[(String, Series)]) -> Vec<(String, Series)> {
    let candidate = |(name, series): &(String, Series)| MeasuredCandidate {
        file_system: name.clone(),
        options: String::new(),
        is_default: false,
        danger: None,
        rates: series.values(),
        per_joule: Vec::new(),
    };
    let candidates: Vec<MeasuredCandidate> = list.iter().map(candidate).collect();
    let Ok(selection) = select(&candidates, SelectionTerms::default()) else {
        return Vec::new();
    };
    let is_good = |at: &usize| selection.rate.is_among_the_best(*at);
    (0..list.len()).filter(is_good).map(|at| list[at].clone()).collect()
}

/// Sorts settings by their medians, the greatest first.
fn rank(list: &[(String, Series)]) -> Vec<(&str, f64)> {
    let mut ranked: Vec<(&str, f64)> = list
        .iter()
        .filter_map(|(name, series)| {
            Some((name.as_str(), to_number(&Value::Series(series.clone())).ok()??))
        })
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked
}

fn call_of_series(function: &str, series: &Series) -> Option<Value> {
    let number_or_missing = |value: Option<f64>| value.map_or(Value::Missing, Value::Number);
    let medians = series.medians();
    let figure = |value: Option<&(u64, f64)>| number_or_missing(value.map(|(_, median)| *median));
    Some(match function {
        "least" => number_or_missing(series.range().map(|(least, _)| least.1)),
        "greatest" => number_or_missing(series.range().map(|(_, most)| most.1)),
        "lowest" => number_or_missing(series.values().into_iter().reduce(f64::min)),
        "highest" => number_or_missing(series.values().into_iter().reduce(f64::max)),
        "first" => figure(medians.first()),
        "last" => figure(medians.last()),
        "mean" => number_or_missing(mean(&medians)),
        "count" => Value::Number(medians.len() as f64),
        "repeats" => Value::Number(series.values().len() as f64),
        "low" => number_or_missing(series.interval().map(|interval| interval.low)),
        "high" => number_or_missing(series.interval().map(|interval| interval.high)),
        "first_place" => number_or_missing(series.0.first().map(|(place, _)| *place as f64)),
        "last_place" => number_or_missing(series.0.last().map(|(place, _)| *place as f64)),
        "sure_drop" => number_or_missing(sure_drop(series)),
        "over_first" => Value::Series(series.over_first()),
        "medians" => {
            let one = |(place, median): (u64, f64)| (place, vec![(0, median)]);
            Value::Series(Series(medians.into_iter().map(one).collect()))
        }
        "last_only" => {
            Value::Series(series.0.last().map_or_else(Series::default, |(at, _)| series.only(*at)))
        }
        "together" => {
            Value::Series(Series(vec![(0, series.values().into_iter().enumerate().collect())]))
        }
        "fall" => number_or_missing(series.greatest_fall(false).map(|fall| fall.share)),
        "step_fall" => {
            number_or_missing(series.greatest_fall(true).map(|fall| fall.share.max(0.0)))
        }
        "sure_fall" => {
            number_or_missing(series.greatest_fall(false).map(|fall| match fall.is_sure {
                true => fall.share,
                false => 0.0,
            }))
        }
        "fall_text" => Value::Text(series.greatest_fall(false).map_or("-".to_owned(), fall_text)),
        "step_fall_text" => {
            Value::Text(series.greatest_fall(true).map_or("-".to_owned(), fall_text))
        }
        "range" => Value::Text(series.range().map_or("-".to_owned(), |(least, most)| {
            format!("{} to {}", number(least.1), number(most.1))
        })),
        "places" => Value::Text(series.range().map_or("-".to_owned(), |(least, most)| {
            format!("{} at {} to {} at {}", number(least.1), least.0, number(most.1), most.0)
        })),
        "least_place" => Value::Text(
            series
                .range()
                .map_or("-".to_owned(), |(least, _)| format!("{:.3} at {}", least.1, least.0)),
        ),
        _ => return None,
    })
}

/// Returns how far the last value of the axis is below the first, if that holds in every round.
fn sure_drop(series: &Series) -> Option<f64> {
    let over_first = series.over_first();
    let (_, last) = over_first.0.last()?;
    let is_sure = last.iter().all(|(_, ratio)| *ratio < 1.0);
    let (_, median) = over_first.medians().pop()?;
    Some(if is_sure { 1.0 - median } else { 0.0 })
}

/// Returns the share of the axis' common values at which the first series' median is the lower one.
fn share_below(series: &Series, other: &Series) -> Value {
    let others = other.medians();
    let pair = |(place, median): (u64, f64)| {
        let (_, other) = others.iter().find(|(at, _)| *at == place)?;
        Some(median < *other)
    };
    let pairs: Vec<bool> = series.medians().into_iter().filter_map(pair).collect();
    share(pairs.iter().filter(|is_below| **is_below).count(), pairs.len())
}

fn mean(medians: &[(u64, f64)]) -> Option<f64> {
    let sum: f64 = medians.iter().map(|(_, median)| median).sum();
    (!medians.is_empty()).then(|| sum / medians.len() as f64)
}

/// Evaluates a function of numbers; of a series each median counts. A share leaves out values that were not measured.
fn call_of_numbers(function: &str, values: &[Value]) -> Result<Value, String> {
    if function == "share_holding" {
        let known: Vec<bool> = values
            .iter()
            .filter_map(|value| match value {
                Value::Bool(holds) => Some(*holds),
                _ => None,
            })
            .collect();
        return Ok(share(known.iter().filter(|holds| **holds).count(), known.len()));
    }
    let mut numbers = Vec::new();
    for value in values {
        match value {
            Value::Series(series) => {
                numbers.extend(series.medians().into_iter().map(|(_, median)| median))
            }
            other => numbers.extend(to_number(other)?),
        }
    }
    let steps = |holds: fn(f64, f64) -> bool| {
        let pairs = numbers.windows(2).filter(|pair| holds(pair[0], pair[1]));
        share(pairs.count(), numbers.len().saturating_sub(1))
    };
    Ok(match function {
        "min" => numbers.iter().copied().reduce(f64::min).map_or(Value::Missing, Value::Number),
        "max" => numbers.iter().copied().reduce(f64::max).map_or(Value::Missing, Value::Number),
        "falling" => steps(|before, after| before > 1.01 * after),
        _ => steps(|before, after| after > before),
    })
}

fn share(holding: usize, of: usize) -> Value {
    match of {
        0 => Value::Missing,
        of => Value::Number(holding as f64 / of as f64),
    }
}

fn fall_text(fall: Fall) -> String {
    if fall.share <= 0.0 {
        return "never falls".to_owned();
    }
    let sure = if fall.is_sure { "" } else { ", within its range" };
    format!("falls by {:.1} % from {} to {}{sure}", fall.share * 100.0, fall.from, fall.to)
}
