//! Claims about a plan's figures: a TOML file beside the plan.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::ClaimsError;
use super::expression::{self, Expression};
use super::series::Selection;

/// Claims, tables and words of a page.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claims {
    pub(super) title: String,
    /// Description of the measurement, in Markdown; a template.
    pub(super) about: String,
    /// Changes of subjects and thresholds, each with its day.
    #[serde(default)]
    pub(super) history: Vec<String>,
    /// Axis of series, as `mips`.
    pub(super) along: Option<String>,
    /// Head of each column of series; a template in which `along` is the value.
    #[serde(default = "along_head")]
    pub(super) along_head: String,
    /// Figures of workloads that differ from the plan's figure, by workload.
    #[serde(default)]
    pub(super) value: BTreeMap<String, String>,
    /// Expressions of a repeat's counters, by name.
    #[serde(default)]
    pub(super) figure: BTreeMap<String, String>,
    /// Values of axes, by the setting's name.
    #[serde(default)]
    pub(super) setting: BTreeMap<String, Selection>,
    /// Label of a setting in tables, where that is not its name.
    #[serde(default)]
    pub(super) label: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) define: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) rows: BTreeMap<String, Vec<Rows>>,
    #[serde(default)]
    pub(super) claim: Vec<Claim>,
    #[serde(default)]
    pub(super) fact: Vec<PlanFact>,
    #[serde(default)]
    pub(super) findings: Vec<Findings>,
    #[serde(default)]
    pub(super) table: Vec<TableOf>,
}

/// Rows: one for each combination of values of the axes `each` that a measured point has.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rows {
    /// Name of a row; a template, in which an axis is the row's value.
    pub(super) name: String,
    pub(super) each: Vec<String>,
    /// Values that a point must have to be in these rows.
    #[serde(default, rename = "where")]
    pub(super) only: BTreeMap<String, OneOrMany>,
    /// Expressions in these rows, by name.
    #[serde(default)]
    pub(super) define: BTreeMap<String, String>,
}

/// One value or several.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(super) fn has(&self, value: &str) -> bool {
        match self {
            Self::One(one) => one == value,
            Self::Many(many) => many.iter().any(|one| one == value),
        }
    }
}

/// A target. Of several rows there is a target for each, or with `worst` one for all.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Claim {
    /// Text of the claim; a template, in which `row` is the row's name.
    pub(super) text: String,
    pub(super) figure: Option<String>,
    pub(super) at_least: Option<f64>,
    pub(super) below: Option<f64>,
    /// Expression of a ratio, round by round, in place of `figure` and a bound.
    pub(super) not_slower: Option<String>,
    /// Text beside the verdict; a template. Default: the figure.
    pub(super) found: Option<String>,
    /// Name of a set of rows.
    pub(super) rows: Option<String>,
    /// Values that a row must have.
    #[serde(default, rename = "where")]
    pub(super) only: BTreeMap<String, OneOrMany>,
    /// Whether there is one target, for the row whose figure is furthest from the bound.
    #[serde(default)]
    pub(super) worst: bool,
}

/// A line below the targets that no figure can contradict. Of several rows there is a line for each.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanFact {
    /// Text of the line; a template, in which `row` is the row's name.
    pub(super) text: String,
    pub(super) figure: Option<String>,
    /// Shown in place of `figure`; a template.
    pub(super) found: Option<String>,
    /// Name of a set of rows.
    pub(super) rows: Option<String>,
    /// Values that a row must have.
    #[serde(default, rename = "where")]
    pub(super) only: BTreeMap<String, OneOrMany>,
}

/// A table of statements of others, each with the verdict of these figures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Findings {
    pub(super) name: String,
    /// Text above the table; a template, in which `agree`, `partly`, `not` and `all` are numbers of findings.
    pub(super) title: String,
    pub(super) heads: Vec<String>,
    /// Words for a finding that agrees, agrees in part, and does not agree.
    pub(super) verdicts: [String; 3],
    pub(super) finding: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Finding {
    pub(super) says: Vec<String>,
    /// Measured figures; a template. Of several rows each row's.
    pub(super) found: String,
    /// Condition. Of several rows: it agrees if it holds for all, in part if for some.
    pub(super) agrees: Option<String>,
    /// Condition of agreement in part.
    pub(super) partly: Option<String>,
    /// Likely cause for each verdict; may be left out for all findings of a table.
    pub(super) cause: Option<[String; 3]>,
    /// Name of a set of rows.
    pub(super) rows: Option<String>,
    /// Whether each row is a finding of its own; `says` are templates then.
    #[serde(default)]
    pub(super) each: bool,
    /// Values of axes for all its expressions.
    #[serde(default)]
    pub(super) at: Selection,
}

/// A table of `column`s has a line for each row. A table of `line`s is made for each row, and has a column for each
/// value of the page's axis.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct TableOf {
    /// Text above the table; a template.
    pub(super) title: String,
    pub(super) rows: Option<String>,
    /// Values that a row must have.
    #[serde(default, rename = "where")]
    pub(super) only: BTreeMap<String, OneOrMany>,
    /// Expression by which rows are sorted, the greatest first.
    pub(super) sort: Option<String>,
    /// Whether cells are words, not figures.
    #[serde(default)]
    pub(super) words: bool,
    /// Head of the rows' names.
    #[serde(default)]
    pub(super) head: String,
    #[serde(default)]
    pub(super) column: Vec<Column>,
    #[serde(default)]
    pub(super) line: Vec<Column>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Column {
    pub(super) head: String,
    /// Template of a column; expression of a line.
    pub(super) cell: String,
}

fn along_head() -> String {
    "{along}".to_owned()
}

impl Claims {
    /// Parses the text of a file of claims.
    pub fn parse(part: &str, text: &str) -> Result<Self, ClaimsError> {
        toml::from_str(text).map_err(|error| ClaimsError::Claims {
            part: part.to_owned(),
            reason: error.to_string(),
        })
    }

    /// Returns the error for these claims.
    pub(super) fn wrong(&self, reason: impl ToString) -> ClaimsError {
        ClaimsError::Claims { part: self.title.clone(), reason: reason.to_string() }
    }

    /// Parses an expression of these claims.
    pub(super) fn expression(&self, text: &str) -> Result<Expression, ClaimsError> {
        expression::parse(text).map_err(|error| self.wrong(error))
    }
}
