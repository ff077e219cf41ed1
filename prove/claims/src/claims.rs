//! What is claimed of a plan's figures: a TOML file beside it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::ClaimsError;
use super::expression::{self, Expression};
use super::series::Selection;

/// The claims, the tables and the words of a page.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claims {
    pub(super) title: String,
    /// What was done, in Markdown; a template.
    pub(super) about: String,
    /// The axis of series, as `mips`.
    pub(super) along: Option<String>,
    /// Heads of the columns of series; a template in which `along` is the value.
    #[serde(default = "along_head")]
    pub(super) along_head: String,
    /// A workload's figure, in place of the plan's.
    #[serde(default)]
    pub(super) value: BTreeMap<String, String>,
    /// Names for what a repeat's counters come to.
    #[serde(default)]
    pub(super) figure: BTreeMap<String, String>,
    /// Names for values of axes.
    #[serde(default)]
    pub(super) setting: BTreeMap<String, Selection>,
    /// What a setting is called in tables, where that is not its name.
    #[serde(default)]
    pub(super) label: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) define: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) rows: BTreeMap<String, Vec<Rows>>,
    #[serde(default)]
    pub(super) claim: Vec<Claim>,
    #[serde(default)]
    pub(super) findings: Vec<Findings>,
    #[serde(default)]
    pub(super) table: Vec<TableOf>,
}

/// Rows: one for each combination of values of the axes `each` that a measured point has.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rows {
    /// What a row is called; a template, in which an axis is the row's value.
    pub(super) name: String,
    pub(super) each: Vec<String>,
    /// Only points with these values.
    #[serde(default, rename = "where")]
    pub(super) only: BTreeMap<String, OneOrMany>,
    /// Names for expressions in these rows.
    #[serde(default)]
    pub(super) define: BTreeMap<String, String>,
}

/// A value or several.
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

/// What is to be reached. Of several rows there is a target for each, or with `worst` one for all.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Claim {
    /// What it says; a template, in which `row` is the row's name.
    pub(super) text: String,
    pub(super) figure: String,
    pub(super) at_least: Option<f64>,
    pub(super) below: Option<f64>,
    /// What is shown beside the verdict; a template. Without it the figure.
    pub(super) found: Option<String>,
    /// A set of rows.
    pub(super) rows: Option<String>,
    /// Only rows with these values.
    #[serde(default, rename = "where")]
    pub(super) only: BTreeMap<String, OneOrMany>,
    /// One target, of the row whose figure is furthest from what is wanted.
    #[serde(default)]
    pub(super) worst: bool,
}

/// A table of what somebody else says, and whether it is so here.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Findings {
    /// What its target is called.
    pub(super) name: String,
    /// Above the table; a template, in which `agree`, `partly`, `not` and `all` are numbers of findings.
    pub(super) title: String,
    pub(super) heads: Vec<String>,
    /// What it is called if it agrees, agrees in part, and does not.
    pub(super) verdicts: [String; 3],
    pub(super) finding: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Finding {
    pub(super) says: Vec<String>,
    /// What was found; a template. Of several rows each row's.
    pub(super) found: String,
    /// A condition. Of several rows: it agrees if it holds for all, in part if for some.
    pub(super) agrees: Option<String>,
    /// A condition: it agrees in part.
    pub(super) partly: Option<String>,
    /// A likely cause for each verdict; may be left out for all findings of a table.
    pub(super) cause: Option<[String; 3]>,
    /// The name of a set of rows.
    pub(super) rows: Option<String>,
    /// Whether each row is a finding of its own; `says` are templates then.
    #[serde(default)]
    pub(super) each: bool,
    /// Values of axes for all its expressions.
    #[serde(default)]
    pub(super) at: Selection,
}

/// A table: of `column`s with a line for each row, or of `line`s with a column for each value of the page's axis; those
/// are made for each row.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct TableOf {
    /// Above the table; a template.
    pub(super) title: String,
    pub(super) rows: Option<String>,
    /// Only rows with these values.
    #[serde(default, rename = "where")]
    pub(super) only: BTreeMap<String, OneOrMany>,
    /// An expression: the row with the greatest is the first.
    pub(super) sort: Option<String>,
    /// Whether cells are words, not figures.
    #[serde(default)]
    pub(super) words: bool,
    /// The head of the rows' names.
    #[serde(default)]
    pub(super) head: String,
    #[serde(default)]
    pub(super) column: Vec<Column>,
    #[serde(default)]
    pub(super) line: Vec<Column>,
}

/// A column or a line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Column {
    pub(super) head: String,
    /// A template of a column, an expression of a line.
    pub(super) cell: String,
}

fn along_head() -> String {
    "{along}".to_owned()
}

impl Claims {
    /// Those of a text.
    pub fn parse(part: &str, text: &str) -> Result<Self, ClaimsError> {
        toml::from_str(text).map_err(|error| ClaimsError::Claims {
            part: part.to_owned(),
            reason: error.to_string(),
        })
    }

    /// Something in them is wrong.
    pub(super) fn wrong(&self, reason: impl ToString) -> ClaimsError {
        ClaimsError::Claims { part: self.title.clone(), reason: reason.to_string() }
    }

    /// An expression in them.
    pub(super) fn expression(&self, text: &str) -> Result<Expression, ClaimsError> {
        expression::parse(text).map_err(|error| self.wrong(error))
    }
}
