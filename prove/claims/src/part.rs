//! The page of a part that is no sweep: text, targets and tables as data, filled from the raw data alone.
//!
//! `prove/parts/NAME.toml` is the page. Its texts are Jinja templates, and its figures are expressions of them. They
//! see the raw file's `runs`, `options` and `machine`, what `prelude` sets, and the functions of [`functions`].

mod functions;

use luc_harness::report::{Fact, Page, Table, Target, number};
use minijinja::{Environment, UndefinedBehavior};
use serde::Deserialize;
use serde_json::Value;

use super::ClaimsError;
use super::criterion::power::{self, Judgement};
use super::criterion::{ComparedRatio, NOT_SLOWER};

/// Separators of what a template yields, which no text has.
const OF_ROWS: char = '\u{1e}';
const OF_CELLS: char = '\u{1f}';

/// A page as data.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PartPage {
    title: String,
    /// Description of the measurement, in Markdown; a template.
    about: String,
    /// Changes of subjects and thresholds, each with its day.
    #[serde(default)]
    history: Vec<String>,
    /// Statements before every template: `set`, `macro`.
    #[serde(default)]
    prelude: String,
    #[serde(default)]
    claim: Vec<PartClaim>,
    #[serde(default)]
    fact: Vec<PartFact>,
    #[serde(default)]
    table: Vec<PartTable>,
    /// Section for `luc_harness::runner`, which measures what the page shows.
    #[serde(default, rename = "run")]
    _run: Option<toml::Value>,
}

/// A target. It has `at-least`, `at-most`, `below` or `not-slower`, or says itself whether it is `met`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PartClaim {
    /// Expression of a list. There is a target for each element, which is `row`.
    each: Option<String>,
    /// Condition without which there is no target.
    when: Option<String>,
    /// Text of the claim; a template.
    text: String,
    /// Expression of the figure.
    figure: Option<String>,
    at_least: Option<Bound>,
    at_most: Option<Bound>,
    below: Option<Bound>,
    /// Expression of a ratio with its interval.
    not_slower: Option<String>,
    met: Option<String>,
    /// Text beside the verdict; a template. Default: the figure.
    found: Option<String>,
}

/// Bound of a figure: a number, or an expression of one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Bound {
    Number(f64),
    Expression(String),
}

/// A line below the targets that no figure can contradict.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PartFact {
    /// Expression of a list. There is a line for each element, which is `row`.
    each: Option<String>,
    /// Condition without which there is no line.
    when: Option<String>,
    /// Text of the line; a template.
    text: String,
    /// Expression of the figure.
    figure: Option<String>,
    /// Shown in place of `figure`; a template.
    found: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PartTable {
    /// Expression of a list. There is a table for each element, which is `table`.
    each: Option<String>,
    /// Condition without which there is no table.
    when: Option<String>,
    /// Text above the table; a template.
    title: String,
    /// Expression of a list. The table has a line for each element, which is `row`.
    rows: String,
    /// Condition without which a row is left out.
    only: Option<String>,
    /// Whether cells are words, not figures.
    #[serde(default)]
    words: bool,
    column: Vec<PartColumn>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartColumn {
    /// Expression of a list. There is a column for each element, which is `column`.
    each: Option<String>,
    /// Template of the column's head.
    head: String,
    /// Template of the column's cell in each row.
    cell: String,
}

impl PartPage {
    /// Parses a part's page. With `like` the prelude, claims and tables of that page come before its own.
    ///
    /// # Errors
    /// [`ClaimsError`] says what is wrong with it.
    pub fn parse(part: &str, text: &str, like: Option<&str>) -> Result<Self, ClaimsError> {
        let parse = |text: &str| -> Result<Self, ClaimsError> {
            toml::from_str(text).map_err(|error| ClaimsError::Claims {
                part: part.to_owned(),
                reason: error.to_string(),
            })
        };
        let mut page = parse(text)?;
        if let Some(like) = like {
            let mut model = parse(like)?;
            model.claim.append(&mut page.claim);
            model.fact.append(&mut page.fact);
            model.table.append(&mut page.table);
            page = Self {
                prelude: model.prelude + &page.prelude,
                claim: model.claim,
                fact: model.fact,
                table: model.table,
                ..page
            };
        }
        Ok(page)
    }

    /// Makes the page of raw data.
    ///
    /// # Errors
    /// [`ClaimsError`] names the template that is wrong, or asks for what the data do not have.
    pub fn page(&self, data: &Value) -> Result<Page, ClaimsError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_keep_trailing_newline(true);
        functions::add_to(&mut environment, data["options"]["seed"].as_u64().unwrap_or(1));
        let maker = Maker { page: self, environment, data };
        let mut page = Page {
            title: self.title.clone(),
            about: maker.fill("about", self.about.trim())?,
            history: self.history.clone(),
            ..Page::default()
        };
        let mut judgements = Vec::new();
        for claim in &self.claim {
            page.targets.extend(maker.targets(claim, &mut judgements)?);
        }
        page.facts.extend(power::fact(&judgements, &NOT_SLOWER));
        for fact in &self.fact {
            page.facts.extend(maker.facts(fact)?);
        }
        for table in &self.table {
            page.tables.extend(maker.tables(table)?);
        }
        Ok(page)
    }
}

/// Templates, and the data that fill them.
struct Maker<'a> {
    page: &'a PartPage,
    environment: Environment<'a>,
    data: &'a Value,
}

impl Maker<'_> {
    /// Fills a template; `name` tells it in errors.
    fn fill(&self, name: &str, template: &str) -> Result<String, ClaimsError> {
        let prelude = self.page.prelude.trim();
        let whole = format!("{prelude}{OF_ROWS}{template}");
        let filled = self.environment.render_named_str(name, &whole, self.data);
        let filled = filled.map_err(|error| ClaimsError::Claims {
            part: self.page.title.clone(),
            reason: format!("{error:#}"),
        })?;
        // What the prelude's statements leave between them.
        Ok(filled.split_once(OF_ROWS).map(|(_, text)| text.to_owned()).unwrap_or_default())
    }

    /// Makes the targets of a claim. Ratios that are to be not slower are added to `judgements`.
    fn targets(
        &self,
        claim: &PartClaim,
        judgements: &mut Vec<Judgement>,
    ) -> Result<Vec<Target>, ClaimsError> {
        let figure = claim.not_slower.as_ref().or(claim.figure.as_ref());
        let bound = [&claim.at_least, &claim.at_most, &claim.below].into_iter().flatten().next();
        let bound = match bound {
            None => "none".to_owned(),
            Some(Bound::Number(number)) => number.to_string(),
            Some(Bound::Expression(expression)) => expression.clone(),
        };
        let cells = [
            format!("{{{{ figure_of({}) }}}}", figure.map_or("none", String::as_str)),
            claim.text.clone(),
            format!("{{{{ ({}) }}}}", claim.met.as_deref().unwrap_or("none")),
            claim.found.clone().unwrap_or_default(),
            format!("{{{{ {bound} }}}}"),
        ];
        let rows = self.rows(&claim.text, claim.each.as_deref(), claim.when.as_deref(), &cells)?;
        rows.into_iter().map(|cells| self.target(claim, &cells, judgements)).collect()
    }

    fn target(
        &self,
        claim: &PartClaim,
        cells: &[String],
        judgements: &mut Vec<Judgement>,
    ) -> Result<Target, ClaimsError> {
        let [figure, text, met, found, bound] = cells else {
            return Err(self.wrong(format!("{}: {cells:?}", claim.text)));
        };
        let compared: Option<ComparedRatio> = serde_json::from_str(figure).ok();
        let value = compared.map(|compared| compared.ratio).or(figure.parse().ok());
        let sign = match claim {
            PartClaim { at_least: Some(_), .. } => Some(">="),
            PartClaim { at_most: Some(_), .. } => Some("<="),
            PartClaim { below: Some(_), .. } => Some("<"),
            _ => None,
        };
        let bound = match (sign, bound.parse::<f64>()) {
            (None, _) => None,
            (Some(_), Err(_)) => return Err(self.wrong(format!("'{text}': a bound is no number"))),
            (Some(sign), Ok(bound)) => {
                let holds = |value| match sign {
                    ">=" => value >= bound,
                    "<=" => value <= bound,
                    _ => value < bound,
                };
                Some((sign, bound, value.map(holds)))
            }
        };
        let shown = match (claim.found.is_some(), value, &bound) {
            (true, ..) => found.clone(),
            (_, None, _) => "no figure".to_owned(),
            (_, Some(value), Some((">=", ..))) => format!("{value:.3}"),
            (_, Some(value), _) => number(value),
        };
        if let Some((sign, bound, met)) = bound {
            return Ok(Target::new(format!("{text} {sign} {bound}"), met, shown));
        }
        if claim.not_slower.is_some() {
            if let Some(compared) = compared {
                judgements.push(Judgement { name: text.clone(), compared });
            }
            let is_met = compared.map(|compared| NOT_SLOWER.is_met(&compared));
            let words = NOT_SLOWER.words(compared.and_then(|compared| compared.range_of));
            return Ok(Target::new(format!("{text}: {words}"), is_met, shown));
        }
        match met.to_lowercase().as_str() {
            "true" => Ok(Target::new(text.clone(), Some(true), shown)),
            "false" => Ok(Target::new(text.clone(), Some(false), shown)),
            "none" if claim.met.is_some() => Ok(Target::new(text.clone(), None, shown)),
            _ => {
                Err(self
                    .wrong(format!("'{text}': write at-least, at-most, below, not-slower or met")))
            }
        }
    }

    fn facts(&self, fact: &PartFact) -> Result<Vec<Fact>, ClaimsError> {
        let figure = fact.figure.as_deref().unwrap_or("none");
        let found = fact.found.clone();
        let cells = [
            fact.text.clone(),
            found.unwrap_or_else(|| format!("{{{{ figure_text({figure}) }}}}")),
        ];
        let rows = self.rows(&fact.text, fact.each.as_deref(), fact.when.as_deref(), &cells)?;
        let line = |cells: Vec<String>| match <[String; 2]>::try_from(cells) {
            Ok([text, found]) => Ok(Fact::new(text, found)),
            Err(cells) => Err(self.wrong(format!("{}: {cells:?}", fact.text))),
        };
        rows.into_iter().map(line).collect()
    }

    fn tables(&self, table: &PartTable) -> Result<Vec<(String, Table)>, ClaimsError> {
        let columns = |of: fn(&PartColumn) -> &str| -> String {
            let cell = |column: &PartColumn| match &column.each {
                None => format!("{}{OF_CELLS}", of(column)),
                Some(list) => {
                    format!("{{% for column in {list} %}}{}{OF_CELLS}{{% endfor %}}", of(column))
                }
            };
            table.column.iter().map(cell).collect()
        };
        let only = table.only.as_deref().map_or_else(String::new, |only| format!(" if {only}"));
        // The title, the heads, and a line for each row, of each table.
        let cells = format!(
            "{}{OF_ROWS}{}{OF_ROWS}{{% for row in {}{only} %}}{}{OF_ROWS}{{% endfor %}}",
            table.title,
            columns(|column| &column.head),
            table.rows,
            columns(|column| &column.cell),
        );
        let when = table.when.as_deref().unwrap_or("true");
        let each = table.each.as_deref().unwrap_or("[0]");
        let template = format!("{{% for table in {each} if {when} %}}{cells}\u{1d}{{% endfor %}}");
        let filled = self.fill(&table.title, &template)?;
        let made = filled.split_terminator('\u{1d}').map(|text| {
            let mut lines = text.split_terminator(OF_ROWS);
            let title = lines.next().unwrap_or_default().to_owned();
            let mut rows = lines.map(|line| line.split_terminator(OF_CELLS));
            let heads: Vec<&str> = rows.next().into_iter().flatten().collect();
            let mut made = if table.words { Table::of_words(&heads) } else { Table::new(&heads) };
            rows.for_each(|row| made.row(row.map(str::to_owned).collect()));
            (title, made)
        });
        Ok(made.filter(|(_, table)| !table.is_empty()).collect())
    }

    /// Fills cells for each element of a list.
    fn rows(
        &self,
        name: &str,
        each: Option<&str>,
        when: Option<&str>,
        cells: &[String],
    ) -> Result<Vec<Vec<String>>, ClaimsError> {
        let cells = cells.join(&OF_CELLS.to_string());
        let template = format!(
            "{{% for row in {} if {} %}}{cells}{OF_ROWS}{{% endfor %}}",
            each.unwrap_or("[0]"),
            when.unwrap_or("true"),
        );
        let filled = self.fill(name, &template)?;
        let rows = filled.split_terminator(OF_ROWS);
        Ok(rows.map(|row| row.split(OF_CELLS).map(str::to_owned).collect()).collect())
    }

    fn wrong(&self, reason: String) -> ClaimsError {
        ClaimsError::Claims { part: self.page.title.clone(), reason }
    }
}

#[cfg(test)]
mod tests;
