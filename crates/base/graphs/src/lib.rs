//! Graphs of figures with their intervals, on one page for a browser: no other file, no script.
//!
//! Types here know nothing of where figures come from. All that is drawn is there as text or a table as well.

mod bars;
pub mod escape;
mod lines;
mod matrix;
mod network;
mod page;
mod scale;
mod spans;
mod stacks;
mod table;
#[cfg(test)]
mod tests;

use std::fmt::{self, Write as _};

use luc_units::figures::digits;

pub use page::{STYLE, page};

#[derive(Clone, Debug, Default)]
pub struct Page {
    /// What it is of.
    pub title: String,
    /// What kind of page it is.
    pub kind: String,
    /// Short facts below the title.
    pub facts: Vec<String>,
    /// What makes its figures doubtful, or what is dangerous.
    pub warnings: Vec<String>,
    pub sections: Vec<Section>,
    /// How to read it.
    pub footer: Vec<String>,
}

/// A part of a page.
#[derive(Clone, Debug, Default)]
pub struct Section {
    pub title: String,
    /// Paragraphs before the graphs.
    pub text: Vec<String>,
    pub graphs: Vec<Graph>,
}

#[derive(Clone, Debug)]
pub enum Graph {
    /// How a figure changes along an axis.
    Lines(Lines),
    /// Figures side by side.
    Bars(Bars),
    /// Figures of two axes.
    Matrix(Matrix),
    Spans(Spans),
    /// What wholes are made of.
    Stacks(Stacks),
    /// Who is connected with whom.
    Network(Network),
    Table(Table),
}

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    /// Its lower and upper bound, if they are known.
    pub interval: Option<(f64, f64)>,
}

#[derive(Clone, Debug, Default)]
pub struct Lines {
    pub title: String,
    /// What is along the horizontal axis.
    pub across: String,
    /// What is along the vertical axis.
    pub up: String,
    /// Places along the horizontal axis.
    pub places: Vec<Place>,
    /// A value that the others are compared with.
    pub reference: Option<f64>,
    /// At most [`MOST_SERIES`], with a colour and a mark of its own each.
    pub series: Vec<Series>,
}

/// Lines that can be told from each other.
pub const MOST_SERIES: usize = 8;

/// A place along a horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub name: String,
    /// The number that it is, if it is one. Numbers far apart are drawn on a logarithmic axis.
    pub number: Option<f64>,
}

#[derive(Clone, Debug)]
pub struct Series {
    pub name: String,
    /// Its figure at each place; `None` where there is none.
    pub figures: Vec<Option<Estimate>>,
}

#[derive(Clone, Debug, Default)]
pub struct Bars {
    pub title: String,
    /// What a row is.
    pub row: String,
    /// What the figures are counted in.
    pub unit: String,
    pub bars: Vec<Bar>,
}

#[derive(Clone, Debug)]
pub struct Bar {
    pub name: String,
    /// Its figure; `None` where there is none.
    pub figure: Option<Estimate>,
    /// What is to be said of it, as `not converged`.
    pub remark: String,
    /// Whether others have the scale to themselves: it is cut off where it is longer than all of those.
    pub is_aside: bool,
}

/// Figures of two axes.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    pub title: String,
    /// What a row is.
    pub row: String,
    /// Names of the columns, with what their figures are counted in.
    pub columns: Vec<String>,
    /// Names of the rows and their cells, one per column.
    pub rows: Vec<(String, Vec<Option<Cell>>)>,
}

/// A figure in a matrix.
#[derive(Clone, Debug)]
pub struct Cell {
    pub figure: Estimate,
    /// Its share of the best of the column, from 0 to 1.
    pub share: f64,
    /// What is said below it, as `1.24 of ext4`.
    pub note: String,
    /// Whether it is the best of the column.
    pub is_best: bool,
}

/// Spans of time in lanes, below one axis.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    pub title: String,
    /// What a lane is.
    pub lane: String,
    /// Names of the figures that each lane has beside its drawing.
    pub columns: Vec<String>,
    /// How long the axis is, ns.
    pub length_ns: u64,
    /// What spans can be, with a colour each: at most [`MOST_SERIES`].
    pub classes: Vec<String>,
    pub lanes: Vec<Lane>,
}

/// A lane of spans.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    pub name: String,
    /// What is said below it.
    pub note: String,
    /// How far it is indented: how many lanes it belongs to.
    pub depth: usize,
    /// Its figures, as text, one per column.
    pub cells: Vec<String>,
    /// In the order in which they are drawn. What is beyond the axis is cut.
    pub spans: Vec<Span>,
}

/// A span of time.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// When it begins, ns after the axis does.
    pub begin_ns: i64,
    pub end_ns: i64,
    /// By how much its begin may be off, ns: it has an error bar there.
    pub error_ns: Option<u64>,
    /// What it is: a place in [`Spans::classes`].
    pub class: usize,
    /// Whether it is drawn inside of the one before.
    pub is_inner: bool,
    /// What it says when pointed at.
    pub title: String,
}

/// Bars that are divided by parts.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    pub title: String,
    /// What a row is.
    pub row: String,
    /// What the rows' notes are.
    pub unit: String,
    /// The names of the parts: at most [`MOST_SERIES`].
    pub classes: Vec<String>,
    /// Whether a bar is as long as its parts are; else all are of one length.
    pub is_of_one_scale: bool,
    pub rows: Vec<Stack>,
}

/// A bar that is divided by parts.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    pub name: String,
    /// How much the whole is, in words.
    pub note: String,
    /// How much each part is, one per class.
    pub parts: Vec<f64>,
}

/// Boxes with arrows between them.
#[derive(Clone, Debug, Default)]
pub struct Network {
    pub title: String,
    /// The boxes; of those in a column the first one is at the top.
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
}

#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Up to three lines in it.
    pub lines: Vec<String>,
    /// What it says when pointed at.
    pub title: String,
    /// Boxes of one class have one colour.
    pub class: usize,
}

#[derive(Clone, Debug)]
pub struct Link {
    /// From which box: its place.
    pub from: usize,
    pub to: usize,
    /// How much there is of it: what has more is drawn wider.
    pub weight: f64,
    /// What stands on it.
    pub label: String,
    /// What it says when pointed at.
    pub title: String,
}

#[derive(Clone, Debug, Default)]
pub struct Table {
    pub title: String,
    /// Its columns, and whether they hold numbers.
    pub columns: Vec<(String, bool)>,
    /// Rows, with an entry for each column. The first names the row.
    pub rows: Vec<Vec<Entry>>,
    /// How many more rows there are that are not shown.
    pub more: usize,
}

/// An entry of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    pub text: String,
    /// Where between -1 and 1 it is; it has a colour then.
    pub heat: Option<f64>,
}

/// Names of classes, with their colours.
fn legend(out: &mut String, classes: &[String]) -> fmt::Result {
    if classes.is_empty() {
        return Ok(());
    }
    write!(out, "<p class=\"legend\">")?;
    for (number, class) in classes.iter().enumerate() {
        write!(
            out,
            "<span><i class=\"key fill c{}\"></i>{}</span>",
            number % MOST_SERIES,
            escape::Text(class)
        )?;
    }
    writeln!(out, "</p>")
}

impl Estimate {
    /// `1234 (1200 to 1260)`.
    fn words(&self) -> String {
        match self.interval {
            Some((low, high)) => {
                format!("{} ({} to {})", digits(self.value), digits(low), digits(high))
            }
            None => digits(self.value),
        }
    }

    /// The lowest and highest of it.
    fn bounds(&self) -> (f64, f64) {
        self.interval.unwrap_or((self.value, self.value))
    }
}

impl From<String> for Entry {
    fn from(text: String) -> Self {
        Self { text, heat: None }
    }
}

impl From<&str> for Entry {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}
