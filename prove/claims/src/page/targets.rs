//! Targets of claims, and facts, each for the rows that it is about.

use luc_harness::report::{self, Fact, Target, number};

use super::super::ClaimsError;
use super::super::claims::{Claim, PlanFact};
use super::super::criterion::power::Judgement;
use super::super::criterion::{ComparedRatio, NOT_SLOWER};
use super::super::scope::Scope;
use super::super::value::Value;
use super::rows;

/// A row's figure, and how well it meets the claim.
struct Measured<'a> {
    row: Scope<'a>,
    figure: Option<f64>,
    /// Ratio of a claim that it is not slower.
    compared: Option<ComparedRatio>,
    /// Distance from the bound; greater is better. `None` without a figure.
    margin: Option<f64>,
}

/// Bound of a claim.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    AtLeast(f64),
    Below(f64),
    NotSlower,
}

/// Makes the targets of a claim. Ratios that are to be not slower are added to `judgements`.
pub(super) fn targets(
    scope: &Scope<'_>,
    claim: &Claim,
    judgements: &mut Vec<Judgement>,
) -> Result<Vec<Target>, ClaimsError> {
    let wrong = || {
        let words = "write figure with at-least or below, or not-slower";
        scope.claims.wrong(format!("'{}': {words}", claim.text))
    };
    let (bound, expression) = match (claim.at_least, claim.below, &claim.not_slower, &claim.figure)
    {
        (Some(bound), None, None, Some(figure)) => (Bound::AtLeast(bound), figure),
        (None, Some(bound), None, Some(figure)) => (Bound::Below(bound), figure),
        (None, None, Some(ratio), None) => (Bound::NotSlower, ratio),
        _ => return Err(wrong()),
    };
    let mut measured = Vec::new();
    for row in rows(scope, claim.rows.as_deref(), &claim.only)? {
        measured.push(measure(row, bound, expression)?);
    }
    for one in &measured {
        if let Some(compared) = one.compared {
            judgements.push(Judgement { name: one.row.text(&claim.text)?, compared });
        }
    }
    if claim.worst {
        // A row without a figure is worse than any.
        let margin = |one: &Measured<'_>| one.margin.unwrap_or(f64::NEG_INFINITY);
        measured.sort_by(|a, b| margin(a).total_cmp(&margin(b)));
        measured.truncate(1);
    }
    measured.iter().map(|one| target(one, bound, claim)).collect()
}

fn measure<'a>(
    row: Scope<'a>,
    bound: Bound,
    expression: &str,
) -> Result<Measured<'a>, ClaimsError> {
    if bound != Bound::NotSlower {
        let figure = row.number(expression)?;
        let margin =
            figure.map(|figure| if matches!(bound, Bound::Below(_)) { -figure } else { figure });
        return Ok(Measured { row, figure, compared: None, margin });
    }
    let Value::Series(series) = row.value(expression)? else {
        return Err(row
            .claims
            .wrong(format!("'{expression}': not-slower is of two settings' ratio")));
    };
    if series.0.len() > 1 {
        let reason = "a ratio at each value of the axis: take at() or together()";
        return Err(row.claims.wrong(format!("'{expression}': {reason}")));
    }
    let compared = ComparedRatio::of_ratios(&series.values());
    let margin = compared.map(|compared| NOT_SLOWER.margin(&compared));
    Ok(Measured { row, figure: compared.map(|compared| compared.ratio), compared, margin })
}

fn target(one: &Measured<'_>, bound: Bound, claim: &Claim) -> Result<Target, ClaimsError> {
    let text = one.row.text(&claim.text)?;
    let what = match bound {
        Bound::AtLeast(bound) => format!("{text} >= {bound}"),
        Bound::Below(bound) => format!("{text} < {bound}"),
        Bound::NotSlower => {
            let range_of = one.compared.and_then(|compared| compared.range_of);
            format!("{text}: {}", NOT_SLOWER.words(range_of))
        }
    };
    let Some(figure) = one.figure else {
        return Ok(Target::new(what, None, "no figure".to_owned()));
    };
    let met = match bound {
        Bound::AtLeast(bound) => figure >= bound,
        Bound::Below(bound) => figure < bound,
        Bound::NotSlower => one.margin.is_some_and(|margin| margin >= 0.0),
    };
    let shown = match (&claim.found, bound, one.compared) {
        (Some(found), ..) => one.row.text(found)?,
        (None, _, Some(compared)) => report::ratio(Some(&compared.ends()), 3),
        (None, Bound::AtLeast(_), _) => format!("{figure:.3}"),
        (None, ..) => number(figure),
    };
    Ok(Target::new(what, Some(met), shown))
}

/// Makes the lines of a fact.
pub(super) fn facts(scope: &Scope<'_>, fact: &PlanFact) -> Result<Vec<Fact>, ClaimsError> {
    let found = match (&fact.figure, &fact.found) {
        (_, Some(found)) => found.clone(),
        (Some(figure), None) => format!("{{{figure}}}"),
        (None, None) => {
            return Err(scope.claims.wrong(format!("'{}': write figure or found", fact.text)));
        }
    };
    let rows = rows(scope, fact.rows.as_deref(), &fact.only)?;
    rows.iter().map(|row| Ok(Fact::new(row.text(&fact.text)?, row.text(&found)?))).collect()
}
