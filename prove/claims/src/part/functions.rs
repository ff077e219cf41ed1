//! Functions and filters of a part's templates.
//!
//! - Filters of lists: `where(path, value)`, `pick(path)`, `if_kept(path)`, `distinct(path)`, `group(path)`, `flatten`,
//!   `times(factor)`. `pick` is wrong if no element has the path, `if_kept` is then empty.
//! - Figures: `median`, `mean`, `quantile(list, share)`, `share_interval(hits, all)`,
//!   `together(alone, spans, own_starts)`.
//! - Ratios with ends: `ratio(with, without)` of medians, `median_interval(list)` of a list of ratios; and
//!   `rounds_needed(ratio)`.
//! - `chosen_then_judged(ours, theirs, seed)` of settings `{name, runs}`: `{ours, theirs, ratio, ratios}`. One half of
//!   the rounds chooses the greatest medians, the other half gives the ratio.
//! - Text: `number`, `decimals(x, n)`, `change`, `percent(share, n)`, `spread`, `ratio_text(ratio, n)`, `dash`.
//!
//! A figure that is missing is `none`, and `-` in a text.

use luc_harness::report;
use luc_stats::TaskTimes;
use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind};

use crate::choice::chosen_then_judged;
use crate::criterion::power::rounds_needed;
use crate::criterion::{ComparedRatio, NOT_SLOWER};
use crate::series::Repeat;

pub(super) fn add_to(environment: &mut Environment<'_>, seed: u64) {
    environment.add_global("notation", report::NOTATION);
    environment.add_filter("where", keep);
    environment.add_filter("pick", pick_strictly);
    environment.add_filter("if_kept", pick);
    environment.add_filter("distinct", distinct);
    environment.add_filter("group", group);
    environment.add_filter("flatten", flatten);
    environment.add_filter("times", |list: Vec<Value>, factor: f64| -> Vec<f64> {
        numbers(&list).into_iter().map(|value| value * factor).collect()
    });
    environment.add_function("median", |list: Vec<Value>| luc_stats::median(&numbers(&list)));
    environment.add_function("mean", |list: Vec<Value>| {
        let all = numbers(&list);
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    });
    environment.add_function("quantile", |list: Vec<Value>, share: f64| {
        let mut sorted = numbers(&list);
        sorted.sort_by(f64::total_cmp);
        luc_stats::quantile(&sorted, share)
    });
    environment.add_function("ratio", move |with: Vec<Value>, without: Vec<Value>| {
        let compared = ComparedRatio::of_medians(&numbers(&with), &numbers(&without), seed);
        compared.map(Value::from_serialize)
    });
    environment.add_function("share_interval", |hits: u64, all: u64| {
        luc_stats::share_interval(hits, all).map(|(low, high)| vec![low, high])
    });
    environment.add_function("number", |value: Value| shown(&value, report::number));
    environment.add_function("change", |value: Value| shown(&value, report::change));
    environment.add_function("decimals", |value: Value, digits: usize| {
        shown(&value, |value| format!("{value:.digits$}"))
    });
    environment.add_function("percent", |value: Value, digits: Option<usize>| {
        let digits = digits.unwrap_or(1);
        shown(&value, |value| format!("{:.digits$} %", value * 100.0))
    });
    environment.add_function("dash", |value: Value| match value.is_none() {
        true => "-".to_owned(),
        false => value.to_string(),
    });
    environment.add_function("spread", |list: Vec<Value>, digits: Option<usize>| match digits {
        None => report::spread(&numbers(&list)),
        Some(digits) => report::spread_as(&numbers(&list), |value| format!("{value:.digits$}")),
    });
    environment.add_function("median_interval", |list: Vec<Value>| {
        ComparedRatio::of_ratios(&numbers(&list)).map(Value::from_serialize)
    });
    environment.add_function("together", together);
    environment.add_function("chosen_then_judged", judge_choice);
    environment.add_function("ratio_text", ratio_text);
    environment.add_function("rounds_needed", |value: Value| -> Result<Option<usize>, Error> {
        let compared = compared_of(&value)?;
        Ok(compared.and_then(|compared| rounds_needed(compared.scatter, &NOT_SLOWER)))
    });
    environment.add_function("figure_of", figure_of);
    environment.add_function("figure_text", |value: Value| match value.kind() {
        ValueKind::Map => ratio_text(value, None),
        _ => shown(&value, |value| match value.fract() == 0.0 {
            true => value.to_string(),
            false => report::number(value),
        }),
    });
}

/// Reads what `ratio` or `median_interval` returned; `None` of `none`.
fn compared_of(value: &Value) -> Result<Option<ComparedRatio>, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let wrong = |error: serde_json::Error| {
        Error::new(ErrorKind::InvalidOperation, format!("{value} is no ratio: {error}"))
    };
    let json = serde_json::to_value(value).map_err(wrong)?;
    if json.is_null() { Ok(None) } else { serde_json::from_value(json).map(Some).map_err(wrong) }
}

fn ratio_text(value: Value, digits: Option<usize>) -> Result<String, Error> {
    let ends = compared_of(&value)?.map(|compared| compared.ends());
    Ok(report::ratio(ends.as_ref(), digits.unwrap_or(2)))
}

/// Returns the numbers of a list; anything else is left out.
fn numbers(list: &[Value]) -> Vec<f64> {
    let numbers = list.iter().filter(|value| value.kind() == ValueKind::Number);
    numbers.filter_map(|value| f64::try_from(value.clone()).ok()).collect()
}

fn shown(value: &Value, write: impl Fn(f64) -> String) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let figure = (value.kind() == ValueKind::Number).then(|| f64::try_from(value.clone()).ok());
    let figure = figure.flatten().filter(|value| value.is_finite());
    Ok(figure.map_or_else(|| "-".to_owned(), write))
}

/// Summarizes tasks that ran together: their times alone, and when each began and ended. Unless `own_starts`, all
/// count as begun at 0.
fn together(alone: Vec<f64>, spans: Vec<Vec<f64>>, own_starts: bool) -> Value {
    let task = |(alone, span): (&f64, &Vec<f64>)| {
        let [start, finish] = span[..] else {
            return None;
        };
        Some(TaskTimes { alone: *alone, start: if own_starts { start } else { 0.0 }, finish })
    };
    let tasks: Option<Vec<TaskTimes>> = alone.iter().zip(&spans).map(task).collect();
    Value::from_serialize(tasks.and_then(|tasks| luc_stats::together(&tasks).ok()))
}

/// Settings of one side: names, and figures round by round. A round without a figure has `none`.
struct Contenders {
    names: Vec<String>,
    runs: Vec<Vec<Repeat>>,
}

impl Contenders {
    fn of(list: Vec<Value>) -> Result<Self, Error> {
        let (mut names, mut runs) = (Vec::new(), Vec::new());
        for setting in list {
            names.push(setting.get_attr("name")?.to_string());
            let figures = setting.get_attr("runs")?.try_iter()?.enumerate();
            let number = |(round, value)| Some((round, f64::try_from(value).ok()?));
            runs.push(figures.filter_map(number).collect());
        }
        Ok(Self { names, runs })
    }

    fn runs(&self) -> Vec<&[Repeat]> {
        self.runs.iter().map(Vec::as_slice).collect()
    }
}

/// Chooses the best setting of each side on one half of the rounds, and divides them on the other; `none` for too few.
fn judge_choice(ours: Vec<Value>, theirs: Vec<Value>, seed: u64) -> Result<Value, Error> {
    let (ours, theirs) = (Contenders::of(ours)?, Contenders::of(theirs)?);
    let Some(choice) = chosen_then_judged(&ours.runs(), &theirs.runs(), seed) else {
        return Ok(Value::from(()));
    };
    let ratios: Vec<f64> = choice.ratios.iter().map(|(_, ratio)| *ratio).collect();
    Ok(Value::from_iter([
        ("ours", Value::from(ours.names[choice.ours].clone())),
        ("theirs", Value::from(theirs.names[choice.theirs].clone())),
        ("ratio", Value::from_serialize(ComparedRatio::of_ratios(&ratios))),
        ("ratios", Value::from(ratios)),
    ]))
}

/// Looks up a path of names and numbers, as `luc.gate.0`; `None` if it is not there.
fn at(value: &Value, path: &str) -> Option<Value> {
    let mut found = value.clone();
    for name in path.split('.') {
        found = match name.parse::<usize>() {
            Ok(index) => found.get_item_by_index(index).ok()?,
            Err(_) => found.get_attr(name).ok()?,
        };
        if found.is_undefined() || found.is_none() {
            return None;
        }
    }
    Some(found)
}

fn keep(list: Vec<Value>, path: &str, wanted: Value) -> Vec<Value> {
    let has = |value: &Value| at(value, path).unwrap_or_default() == wanted;
    let is_absent = |value: &Value| wanted.is_none() && at(value, path).is_none();
    list.into_iter().filter(|value| has(value) || is_absent(value)).collect()
}

fn pick(list: Vec<Value>, path: &str) -> Vec<Value> {
    list.iter().filter_map(|value| at(value, path)).collect()
}

/// Picks values, of which there must be one unless the list is empty. Else a name that is wrong, or a figure that was
/// not kept, would count as nothing lost.
fn pick_strictly(list: Vec<Value>, path: &str) -> Result<Vec<Value>, Error> {
    // A value of `null` is there, though it is not picked.
    let is_there = |value: &Value| {
        let (folder, name) = path.rsplit_once('.').map_or((None, path), |(a, b)| (Some(a), b));
        let parent = folder.map_or_else(|| Some(value.clone()), |folder| at(value, folder));
        parent
            .and_then(|parent| parent.get_attr(name).ok())
            .is_some_and(|value| !value.is_undefined())
    };
    if !list.is_empty() && !list.iter().any(|value| is_there(value) || at(value, path).is_some()) {
        let reason = format!("none of {} elements has '{path}'", list.len());
        return Err(Error::new(ErrorKind::UndefinedError, reason));
    }
    Ok(pick(list, path))
}

fn distinct(list: Vec<Value>, path: Option<&str>) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for value in path.map_or(list.clone(), |path| pick(list, path)) {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// Groups a list by what is at a path, in the order of its first elements: `{key, rows}`.
fn group(list: Vec<Value>, path: &str) -> Vec<Value> {
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for value in list {
        let key = at(&value, path).unwrap_or_else(|| Value::from(()));
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, rows)) => rows.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    let pair = |(key, rows): (Value, Vec<Value>)| {
        Value::from_iter([("key", key), ("rows", Value::from(rows))])
    };
    groups.into_iter().map(pair).collect()
}

fn flatten(list: Vec<Value>) -> Result<Vec<Value>, Error> {
    let mut all = Vec::new();
    for value in &list {
        all.extend(value.try_iter()?);
    }
    Ok(all)
}

/// Formats a claim's figure for its judge: a number, or a ratio with its ends as JSON; nothing for `none`.
fn figure_of(value: Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::None => Ok(String::new()),
        ValueKind::Number => {
            Ok(f64::try_from(value).map_or_else(|_| String::new(), |value| value.to_string()))
        }
        ValueKind::Map => {
            let text = compared_of(&value)?.map(|compared| serde_json::json!(compared).to_string());
            Ok(text.unwrap_or_default())
        }
        kind => Err(Error::new(ErrorKind::InvalidOperation, format!("a figure is no {kind}"))),
    }
}
