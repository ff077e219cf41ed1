//! The page of a plan: targets, findings and tables, all computed from the raw data.

mod targets;

use std::collections::BTreeMap;

use luc_harness::report::{Fact, Page, Table};

use super::ClaimsError;
use super::claims::{Claims, Column, Finding, Findings, OneOrMany, TableOf};
use super::criterion::{NOT_SLOWER, power};
use super::data::Data;
use super::scope::Scope;
use super::series::{Selection, Series};
use super::value::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Agrees,
    Partly,
    Not,
    Unknown,
}

pub fn page(claims: &Claims, data: &Data) -> Result<Page, ClaimsError> {
    let scope = Scope::new(data, claims);
    let mut page = Page {
        title: claims.title.clone(),
        about: scope.text(claims.about.trim())?,
        history: claims.history.clone(),
        ..Page::default()
    };
    let mut judgements = Vec::new();
    for claim in &claims.claim {
        page.targets.extend(targets::targets(&scope, claim, &mut judgements)?);
    }
    page.facts.extend(power::fact(&judgements, &NOT_SLOWER));
    for fact in &claims.fact {
        page.facts.extend(targets::facts(&scope, fact)?);
    }
    for findings in &claims.findings {
        let (verdicts, table) = judge_findings(&scope, findings)?;
        let known = verdicts.iter().filter(|verdict| **verdict != Verdict::Unknown).count();
        page.facts.push(Fact::new(
            format!("{}: findings that have figures", findings.name),
            format!("{known} of {}", verdicts.len()),
        ));
        page.tables.push(table);
    }
    for table in &claims.table {
        page.tables.extend(tables(&scope, table)?);
    }
    page.tables.retain(|(_, table)| !table.is_empty());
    Ok(page)
}

/// Returns the rows of a set that the data have, in the order of the plan; without a name one empty row.
fn rows<'a>(
    scope: &Scope<'a>,
    name: Option<&str>,
    only: &BTreeMap<String, OneOrMany>,
) -> Result<Vec<Scope<'a>>, ClaimsError> {
    let Some(name) = name else {
        return Ok(vec![scope.clone()]);
    };
    let (claims, data) = (scope.claims, scope.data);
    let sets = claims.rows.get(name);
    let sets = sets.ok_or_else(|| claims.wrong(format!("'{name}' is no set of rows")))?;
    let mut found: Vec<Scope<'a>> = Vec::new();
    for set in sets {
        for point in &data.points {
            let axes: Selection = data
                .axes_of(point)
                .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
                .collect();
            let is_in = |only: &BTreeMap<String, OneOrMany>| {
                only.iter()
                    .all(|(axis, values)| axes.get(axis).is_some_and(|value| values.has(value)))
            };
            if !is_in(&set.only) || !is_in(only) {
                continue;
            }
            let is_fixed = |axis: &String| {
                set.each.contains(axis) || matches!(set.only.get(axis), Some(OneOrMany::One(_)))
            };
            let row: Selection =
                axes.clone().into_iter().filter(|(axis, _)| is_fixed(axis)).collect();
            if found.iter().any(|known| known.row == row) {
                continue;
            }
            let mut row = scope.with_row(&row);
            for (name, text) in &set.define {
                let value = row.value(text)?;
                row = row.with(name, value);
            }
            let name = row.text(&set.name)?;
            found.push(row.with("row", Value::Text(name)));
        }
    }
    Ok(found)
}

/// Returns the verdicts, and the table with its title.
fn judge_findings(
    scope: &Scope<'_>,
    findings: &Findings,
) -> Result<(Vec<Verdict>, (String, Table)), ClaimsError> {
    let heads: Vec<&str> = findings.heads.iter().map(String::as_str).collect();
    let mut table = Table::of_words(&heads);
    let mut verdicts = Vec::new();
    let mut judged = Vec::new();
    for finding in &findings.finding {
        let scope = scope.with_row(&finding.at);
        if !finding.each {
            judged.push((finding, finding.says.clone(), judge(&scope, finding)?));
            continue;
        }
        for row in rows(&scope, finding.rows.as_deref(), &BTreeMap::new())? {
            let says = finding.says.iter().map(|says| row.text(says));
            let says = says.collect::<Result<_, _>>()?;
            judged.push((finding, says, judge_one(&row, finding)?));
        }
    }
    for (finding, mut cells, (verdict, text)) in judged {
        verdicts.push(verdict);
        cells.push(text);
        let at = match verdict {
            Verdict::Agrees => Some(0),
            Verdict::Partly => Some(1),
            Verdict::Not => Some(2),
            Verdict::Unknown => None,
        };
        cells.push(at.map_or("not measured".to_owned(), |at| findings.verdicts[at].clone()));
        if let Some(cause) = &finding.cause {
            cells.push(at.map_or("-".to_owned(), |at| cause[at].clone()));
        }
        table.row(cells);
    }
    let count = |wanted: Verdict| {
        Value::Number(verdicts.iter().filter(|verdict| **verdict == wanted).count() as f64)
    };
    let title = scope
        .with("agree", count(Verdict::Agrees))
        .with("partly", count(Verdict::Partly))
        .with("not", count(Verdict::Not))
        .with("all", Value::Number(verdicts.len() as f64))
        .text(&findings.title)?;
    Ok((verdicts, (title, table)))
}

fn holds(row: &Scope<'_>, condition: Option<&String>) -> Result<Option<bool>, ClaimsError> {
    match condition {
        Some(condition) => row.holds(condition),
        None => Ok(None),
    }
}

/// Judges a finding in one row.
fn judge_one(scope: &Scope<'_>, finding: &Finding) -> Result<(Verdict, String), ClaimsError> {
    let agrees = holds(scope, finding.agrees.as_ref())?;
    let verdict = match (agrees, holds(scope, finding.partly.as_ref())?) {
        (Some(true), _) => Verdict::Agrees,
        (_, Some(true)) => Verdict::Partly,
        (Some(false), _) => Verdict::Not,
        (None, _) => Verdict::Unknown,
    };
    Ok((verdict, scope.text(&finding.found)?))
}

/// Judges a finding in all of its rows.
fn judge(scope: &Scope<'_>, finding: &Finding) -> Result<(Verdict, String), ClaimsError> {
    if finding.rows.is_none() {
        return judge_one(scope, finding);
    }
    let (mut all, mut some, mut texts) = (true, false, Vec::new());
    for row in rows(scope, finding.rows.as_deref(), &BTreeMap::new())? {
        let Some(agrees) = holds(&row, finding.agrees.as_ref())? else {
            continue;
        };
        all &= agrees;
        some |= agrees || holds(&row, finding.partly.as_ref())?.unwrap_or(false);
        texts.push(row.text(&finding.found)?);
    }
    let verdict = match (texts.is_empty(), all, some) {
        (true, ..) => Verdict::Unknown,
        (_, true, _) => Verdict::Agrees,
        (_, _, true) => Verdict::Partly,
        _ => Verdict::Not,
    };
    Ok((verdict, texts.join("; ")))
}

fn tables<'a>(scope: &Scope<'a>, table: &'a TableOf) -> Result<Vec<(String, Table)>, ClaimsError> {
    let mut rows = rows(scope, table.rows.as_deref(), &table.only)?;
    if let Some(sort) = &table.sort {
        let figure = |row: Scope<'a>| Ok((row.number(sort)?.unwrap_or(f64::NEG_INFINITY), row));
        let mut sorted: Vec<(f64, Scope<'a>)> =
            rows.into_iter().map(figure).collect::<Result<_, ClaimsError>>()?;
        sorted.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        rows = sorted.into_iter().map(|(_, row)| row).collect();
    }
    if table.line.is_empty() {
        let heads = table.column.iter().map(|column| column.head.as_str());
        let heads: Vec<&str> = std::iter::once(table.head.as_str()).chain(heads).collect();
        let mut made = if table.words { Table::of_words(&heads) } else { Table::new(&heads) };
        for row in rows {
            let cells = table.column.iter().map(|column| row.text(&column.cell));
            let cells: Vec<String> = cells.collect::<Result<_, _>>()?;
            if cells.iter().any(|cell| cell != "-") {
                made.row(std::iter::once(row.text("{row}")?).chain(cells).collect());
            }
        }
        return Ok(vec![(scope.text(&table.title)?, made)]);
    }
    let along = |row: &Scope<'_>| Ok((row.text(&table.title)?, lines(row, table)?));
    rows.iter().map(along).collect()
}

/// Makes a table with a line for each series. It has a column for each value of the page's axis that any series has.
fn lines(row: &Scope<'_>, table: &TableOf) -> Result<Table, ClaimsError> {
    let series = |line: &Column| match row.value(&line.cell)? {
        Value::Series(series) => Ok(series),
        other => Err(row.claims.wrong(format!("'{}': {other:?} is no series", line.cell))),
    };
    let all: Vec<Series> = table.line.iter().map(series).collect::<Result<_, _>>()?;
    let mut places: Vec<u64> =
        all.iter().flat_map(|series| series.0.iter().map(|(at, _)| *at)).collect();
    places.sort_unstable();
    places.dedup();
    let head = |place: &u64| {
        let scope = row.with("along", Value::Number(*place as f64));
        scope.text(&row.claims.along_head)
    };
    let heads: Vec<String> = places.iter().map(head).collect::<Result<_, _>>()?;
    let heads: Vec<&str> =
        std::iter::once(table.head.as_str()).chain(heads.iter().map(String::as_str)).collect();
    let mut made = Table::new(&heads);
    for (line, series) in table.line.iter().zip(&all) {
        if series.0.is_empty() {
            continue;
        }
        let cells = places.iter().map(|place| series.only(*place).text());
        made.row(std::iter::once(row.text(&line.head)?).chain(cells).collect());
    }
    Ok(made)
}

#[cfg(test)]
mod tests;
