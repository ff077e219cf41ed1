//! The page of a plan: targets, findings and tables, all computed from the raw data.

use std::collections::BTreeMap;

use luc_harness::report::{Page, Table, Target, number};

use super::ClaimsError;
use super::claims::{Claim, Claims, Column, Finding, Findings, OneOrMany, TableOf};
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
        ..Page::default()
    };
    for claim in &claims.claim {
        page.targets.extend(targets(&scope, claim)?);
    }
    for findings in &claims.findings {
        let (verdicts, table) = judge_findings(&scope, findings)?;
        let known = verdicts.iter().filter(|verdict| **verdict != Verdict::Unknown).count();
        let shown = format!("{known} of {}", verdicts.len());
        let all = known == verdicts.len();
        page.targets.push(Target::new(
            format!("{}: every finding has figures", findings.name),
            Some(all),
            shown,
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

fn targets(scope: &Scope<'_>, claim: &Claim) -> Result<Vec<Target>, ClaimsError> {
    let claims = scope.claims;
    let (sign, bound, is_least) = match (claim.at_least, claim.below) {
        (Some(bound), None) => (">=", bound, true),
        (None, Some(bound)) => ("<", bound, false),
        _ => return Err(claims.wrong(format!("'{}': write at-least or below", claim.text))),
    };
    let mut measured = Vec::new();
    for row in rows(scope, claim.rows.as_deref(), &claim.only)? {
        measured.push((row.number(&claim.figure)?, row));
    }
    if claim.worst {
        // A row without a figure is worse than any.
        measured.sort_by(|(a, _), (b, _)| match is_least {
            true => a.unwrap_or(f64::NEG_INFINITY).total_cmp(&b.unwrap_or(f64::NEG_INFINITY)),
            false => b.unwrap_or(f64::INFINITY).total_cmp(&a.unwrap_or(f64::INFINITY)),
        });
        measured.truncate(1);
    }
    let target = |(figure, row): (Option<f64>, Scope<'_>)| {
        let text = row.text(&claim.text)?;
        let Some(figure) = figure else {
            return Ok(Target::new(format!("{text} {sign} {bound}"), None, "no figure".to_owned()));
        };
        let met = if is_least { figure >= bound } else { figure < bound };
        let shown = match &claim.found {
            Some(found) => row.text(found)?,
            None if is_least => format!("{figure:.3}"),
            None => number(figure),
        };
        Ok(Target::new(format!("{text} {sign} {bound}"), Some(met), shown))
    };
    measured.into_iter().map(target).collect()
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
mod tests {
    use serde_json::json;

    use super::*;

    const CLAIMS: &str = r#"
        title = "T"
        about = "{count(all)} speeds of a"
        along = "mips"
        [figure]
        fsync_ms = "mean_us(fsync) / 1000"
        [define]
        all = "in(a, stock)"
        slow_stock = "at(stock, 1000)"
        slow_gate = "at(gate, 1000)"
        [setting]
        a = { workload = "a" }
        stock = { policy = "off" }
        gate = { policy = "auto" }
        [[rows.load]]
        name = "load {workload}"
        each = ["workload"]
        [[claim]]
        rows = "load"
        text = "{row}: gate over stock,"
        figure = "least(gate / stock)"
        at-least = 1.5
        found = "{least_place(gate / stock)} MIPS"
        [[claim]]
        text = "any load: fsync, ms,"
        rows = "load"
        worst = true
        figure = "greatest(fsync_ms(gate))"
        below = 3
        [[findings]]
        name = "sayings"
        title = "{agree} of {all} agree:"
        heads = ["says", "here", "verdict"]
        verdicts = ["yes", "partly", "no"]
        [[findings.finding]]
        says = ["gains everywhere"]
        rows = "load"
        agrees = "lowest(gate / stock) > 1.5"
        found = "{row} {range(gate / stock)}"
        [[findings.finding]]
        says = ["stock rises"]
        at = { workload = "a" }
        agrees = "rising(stock) == 1"
        found = "{fall_text(stock)}"
        [[findings.finding]]
        says = ["speeds of {row}"]
        rows = "load"
        each = true
        agrees = "count(stock) > 1"
        found = "{count(stock)}"
        [[findings.finding]]
        says = ["unknown"]
        at = { workload = "none" }
        agrees = "least(stock) > 0"
        found = "{least(stock)}"
        [[table]]
        title = "Rates:"
        rows = "load"
        head = "load"
        column = [{ head = "stock", cell = "{at(stock, 1000)}" }, { head = "best", cell = "{winner(list(slow_stock, slow_gate))}" }]
        [[table]]
        title = "{row}:"
        rows = "load"
        where = { workload = "a" }
        head = "MIPS"
        line = [{ head = "gate over stock", cell = "gate / stock" }]
    "#;

    fn data() -> Data {
        let point = |workload: &str, policy: &str, mips: &str, rates: [f64; 2]| {
            json!({ "point": [workload, policy, mips], "rounds": [0, 1],
                    "figures": { "value": rates, "fsync_ms": [1.0, 2.0] } })
        };
        let data = json!({
            "part": "t", "made_by": "a test", "machine": null, "kernel": [], "axes": ["workload", "policy", "mips"],
            "points": [
                point("a", "off", "1000", [10.0, 20.0]), point("a", "off", "2000", [20.0, 20.0]),
                point("a", "auto", "1000", [20.0, 40.0]), point("a", "auto", "2000", [30.0, 32.0]),
                point("b", "off", "1000", [1.0, 1.0]), point("b", "auto", "1000", [1.0, 1.0]),
            ],
        });
        serde_json::from_value(data).expect("data")
    }

    #[test]
    fn a_page_follows_from_claims_and_data() {
        let claims = Claims::parse("t", CLAIMS).expect("claims");
        let page = page(&claims, &data()).expect("a page").markdown("t", "");
        for line in [
            "2 speeds of a",
            "- target: load a: gate over stock, >= 1.5 -> met (1.550 at 2000 MIPS)",
            "- target: load b: gate over stock, >= 1.5 -> **not met** (1.000 at 1000 MIPS)",
            "- target: any load: fsync, ms, < 3 -> met (1.50)",
            "- target: sayings: every finding has figures -> **not met** (4 of 5)",
            "2 of 5 agree:",
            "| gains everywhere | load a 1.55 to 2.00; load b 1.00 to 1.00 | no |",
            "| stock rises | never falls | yes |",
            "| speeds of load a | 2 | yes |",
            "| speeds of load b | 1 | no |",
            "| unknown | - | not measured |",
            "| load a | 15.0 (10.0 to 20.0) | slow_gate |",
            "| MIPS | 1000 | 2000 |",
            "| gate over stock | 2.00 | 1.55 (1.50 to 1.60) |",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }

    #[test]
    fn processors_are_the_guest_s_in_a_row_and_else_the_machine_s() {
        let text = r#"
            title = "T"
            about = "made on {processors}"
            [setting]
            stock = { policy = "off" }
            [[rows.guest]]
            name = "guests of {processors}"
            each = ["processors"]
            [[claim]]
            rows = "guest"
            text = "{row}: more than one,"
            figure = "processors"
            at-least = 2
            found = "{processors}, {least(stock)}"
        "#;
        let point = |processors: &str, rate: f64| {
            let figures = json!({ "value": [rate] });
            json!({ "point": ["off", processors], "rounds": [0], "figures": figures })
        };
        let data = json!({
            "part": "t", "made_by": "a test", "machine": { "cpus": 64 }, "kernel": [], "axes": ["policy", "processors"],
            "points": [point("1", 5.0), point("4", 7.0)],
        });
        let data: Data = serde_json::from_value(data).expect("data");
        let claims = Claims::parse("t", text).expect("claims");
        let page = page(&claims, &data).expect("a page").markdown("t", "");
        for line in [
            "made on 64",
            "- target: guests of 1: more than one, >= 2 -> **not met** (1, 5)",
            "- target: guests of 4: more than one, >= 2 -> met (4, 7)",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (from, to, reason) in [
            ("least(gate / stock)", "lest(gate / stock)", "no function lest"),
            ("least(gate / stock)", "gate / stok", "what is 'stok'?"),
            ("rows = \"load\"", "rows = \"lod\"", "'lod' is no set of rows"),
            ("least(gate / stock)", "gate / stock", "take the least()"),
            ("each = [\"workload\"]", "each = []", "what is 'workload'?"),
            ("in(a, stock)", "count(stock)", "more than one point"),
            ("at-least = 1.5", "", "write at-least or below"),
        ] {
            let claims = Claims::parse("t", &CLAIMS.replacen(from, to, 1)).expect("claims");
            let error = page(&claims, &data()).expect_err(to).to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert!(Claims::parse("t", "title = 1").is_err());
    }
}
