//! The page of a part that is no sweep: text, targets and tables as data, filled from the raw data alone.
//!
//! `prove/parts/NAME.toml` is the page. Its texts are Jinja templates, and its figures are expressions of them. They
//! see the raw file's `runs`, `options` and `machine`, what `prelude` sets, and the functions of [`functions`].

mod functions;

use luc_harness::report::{Page, Table, Target, number};
use minijinja::{Environment, UndefinedBehavior};
use serde::Deserialize;
use serde_json::Value;

use super::ClaimsError;

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
    /// Statements before every template: `set`, `macro`.
    #[serde(default)]
    prelude: String,
    #[serde(default)]
    claim: Vec<PartClaim>,
    #[serde(default)]
    table: Vec<PartTable>,
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
    at_least: Option<f64>,
    at_most: Option<f64>,
    below: Option<f64>,
    /// Expression of a ratio with its interval.
    not_slower: Option<String>,
    met: Option<String>,
    /// Text beside the verdict; a template. Default: the figure.
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

/// Not slower: the least that the lower end of the interval, and the ratio itself, may be.
const NOT_SLOWER_LOW: f64 = 0.95;
const NOT_SLOWER_RATIO: f64 = 0.98;

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
            model.table.append(&mut page.table);
            page = Self {
                prelude: model.prelude + &page.prelude,
                claim: model.claim,
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
            ..Page::default()
        };
        for claim in &self.claim {
            page.targets.extend(maker.targets(claim)?);
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

    fn targets(&self, claim: &PartClaim) -> Result<Vec<Target>, ClaimsError> {
        let figure = claim.not_slower.as_ref().or(claim.figure.as_ref());
        let cells = [
            format!("{{{{ figure_of({}) }}}}", figure.map_or("none", String::as_str)),
            claim.text.clone(),
            format!("{{{{ ({}) }}}}", claim.met.as_deref().unwrap_or("none")),
            claim.found.clone().unwrap_or_default(),
        ];
        let rows = self.rows(&claim.text, claim.each.as_deref(), claim.when.as_deref(), &cells)?;
        rows.into_iter().map(|cells| self.target(claim, &cells)).collect()
    }

    fn target(&self, claim: &PartClaim, cells: &[String]) -> Result<Target, ClaimsError> {
        let [figure, text, met, found] = cells else {
            return Err(self.wrong(format!("{}: {cells:?}", claim.text)));
        };
        let figures: Vec<f64> = figure.split(' ').filter_map(|word| word.parse().ok()).collect();
        let value = figures.first().copied();
        let bounds = [
            claim.at_least.map(|bound| (">=", bound, value.map(|value| value >= bound))),
            claim.at_most.map(|bound| ("<=", bound, value.map(|value| value <= bound))),
            claim.below.map(|bound| ("<", bound, value.map(|value| value < bound))),
        ];
        let bound = bounds.into_iter().flatten().next();
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
            let is_met = match figures[..] {
                [ratio, low, _] => Some(low >= NOT_SLOWER_LOW && ratio >= NOT_SLOWER_RATIO),
                _ => None,
            };
            let text = format!(
                "{text}: not slower (ratio >= {NOT_SLOWER_RATIO}, lower end of its interval >= {NOT_SLOWER_LOW})"
            );
            return Ok(Target::new(text, is_met, shown));
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
mod tests {
    use serde_json::json;

    use super::*;

    const PAGE: &str = r#"
        title = "T"
        about = "{{ runs|length }} runs, {{ number(options.seconds) }} s"
        prelude = """
        {% set settings = runs|distinct("setting") %}
        {% set stock = runs|where("setting", "stock")|pick("luc.rate") %}
        {% macro rate(setting) %}{{ spread(runs|where("setting", setting)|pick("luc.rate")) }}{% endmacro %}
        """
        [[claim]]
        each = "settings"
        when = "row != 'stock'"
        text = "{{ row }} over stock"
        figure = "ratio(runs|where('setting', row)|pick('luc.rate'), stock)"
        at-least = 1.5
        [[claim]]
        text = "the gate"
        not-slower = "ratio(runs|where('setting', 'gate')|pick('luc.rate'), stock)"
        found = "{{ ratio_text(ratio(runs|where('setting', 'gate')|pick('luc.rate'), stock)) }}"
        [[claim]]
        text = "nobody lost"
        met = "runs|pick('lost')|sum == 0"
        found = "{{ runs|pick('lost')|sum }}"
        [[claim]]
        text = "unknown"
        figure = "median([])"
        below = 3
        [[table]]
        title = "Rates:"
        rows = "settings"
        column = [
            { head = "setting", cell = "{{ row }}" },
            { head = "per s", cell = "{{ rate(row) }}" },
            { each = "[0, 1]", head = "run {{ column }}", cell = "{{ number((runs|where('setting', row)|pick('luc.rate'))[column]) }}" },
        ]
    "#;

    fn data() -> Value {
        let run = |setting: &str, rate: f64, lost: u32| json!({ "setting": setting, "luc": { "rate": rate }, "lost": lost });
        json!({ "options": { "seconds": 2.0, "seed": 1 }, "machine": {},
                "runs": [run("stock", 10.0, 0), run("stock", 10.0, 0), run("gate", 20.0, 0), run("gate", 20.0, 1)] })
    }

    #[test]
    fn a_page_is_made_of_data() {
        let page =
            PartPage::parse("t", PAGE, None).and_then(|page| page.page(&data())).expect("a page");
        let text = page.markdown("t", "");
        for line in [
            "4 runs, 2.00 s",
            "- target: gate over stock >= 1.5 -> met (2.000)",
            "- target: the gate: not slower (ratio >= 0.98, lower end of its interval >= 0.95) -> met (2.00 (2.00 to 2.00))",
            "- target: nobody lost -> **not met** (1)",
            "- target: unknown < 3 -> not measured (no figure)",
            "| setting | per s | run 0 | run 1 |",
            "| gate | 20.0 (20.0 to 20.0) | 20.0 | 20.0 |",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert_eq!(text.matches("target: ").count(), 4, "{text}");
    }

    #[test]
    fn mistakes_are_named() {
        for (from, to, reason) in [
            ("luc.rate", "luc.rat", "has 'luc.rat'"),
            ("pick('lost')", "pick('lots')", "has 'lots'"),
            ("met = \"", "# met = \"", "write at-least"),
            ("options.seconds", "options.second", "undefined"),
            ("rows = \"settings\"", "rows = \"setings\"", "undefined"),
        ] {
            let page = PartPage::parse("t", &PAGE.replace(from, to), None).expect("TOML");
            let text = match page.page(&data()) {
                Ok(page) => page.markdown("t", ""),
                Err(error) => error.to_string(),
            };
            assert!(text.contains(reason), "{from}: {text}");
        }
        assert!(PartPage::parse("t", "title = 1", None).is_err());
    }
}
