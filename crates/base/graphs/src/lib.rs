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
    pub title: String,
    pub kind: String,
    /// Short facts below the title.
    pub facts: Vec<String>,
    /// Reasons to doubt the figures, and dangers.
    pub warnings: Vec<String>,
    pub sections: Vec<Section>,
    /// Notes on reading the page.
    pub footer: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Section {
    pub title: String,
    /// Paragraphs before the graphs.
    pub text: Vec<String>,
    pub graphs: Vec<Graph>,
}

#[derive(Clone, Debug)]
pub enum Graph {
    /// Figures along an axis.
    Lines(Lines),
    /// Figures side by side.
    Bars(Bars),
    /// Figures of two axes.
    Matrix(Matrix),
    Spans(Spans),
    /// Wholes divided into parts.
    Stacks(Stacks),
    /// Boxes and the connections between them.
    Network(Network),
    Table(Table),
}

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    /// Lower and upper bound, if known.
    pub interval: Option<(f64, f64)>,
}

#[derive(Clone, Debug, Default)]
pub struct Lines {
    pub title: String,
    /// Label of the horizontal axis.
    pub across: String,
    /// Label of the vertical axis.
    pub up: String,
    /// Places along the horizontal axis.
    pub places: Vec<AxisPlace>,
    /// A value that the others are compared with.
    pub reference: Option<f64>,
    /// At most [`MOST_SERIES`] lines, each with its own colour and mark.
    pub series: Vec<Series>,
}

/// Maximum number of lines that readers can distinguish.
pub const MOST_SERIES: usize = 8;

#[derive(Clone, Debug, PartialEq)]
pub struct AxisPlace {
    pub name: String,
    /// The number that it is, if it is one. Numbers far apart are drawn on a logarithmic axis.
    pub number: Option<f64>,
}

#[derive(Clone, Debug)]
pub struct Series {
    pub name: String,
    /// Figure at each place; `None` if there is none.
    pub figures: Vec<Option<Estimate>>,
}

#[derive(Clone, Debug, Default)]
pub struct Bars {
    pub title: String,
    /// Heading of the column of names.
    pub row: String,
    pub unit: String,
    pub bars: Vec<Bar>,
}

#[derive(Clone, Debug)]
pub struct Bar {
    pub name: String,
    /// Figure of the bar; `None` if there is none.
    pub figure: Option<Estimate>,
    /// Remark on the bar, as `not converged`.
    pub remark: String,
    /// Whether the scale ignores it: it is cut off if it is longer than all bars on the scale.
    pub is_aside: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Matrix {
    pub title: String,
    /// Heading of the column of names.
    pub row: String,
    /// Names of the columns, with the units of their figures.
    pub columns: Vec<String>,
    /// Names of the rows and their cells, one per column.
    pub rows: Vec<(String, Vec<Option<Cell>>)>,
}

#[derive(Clone, Debug)]
pub struct Cell {
    pub figure: Estimate,
    /// Share of the best in the column, from 0 to 1.
    pub share: f64,
    /// Note below the figure, as `1.24 of ext4`.
    pub note: String,
    /// Whether it is the best of the column.
    pub is_best: bool,
}

/// Spans of time in lanes, below one axis.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    pub title: String,
    /// Heading of the column of lanes.
    pub lane: String,
    /// Names of the figures that each lane has beside its drawing.
    pub columns: Vec<String>,
    pub length_ns: u64,
    /// Names of the classes of spans, one colour each: at most [`MOST_SERIES`].
    pub classes: Vec<String>,
    pub lanes: Vec<Lane>,
}

#[derive(Clone, Debug, Default)]
pub struct Lane {
    pub name: String,
    pub note: String,
    /// Indentation: the number of lanes that it belongs to.
    pub depth: usize,
    /// Figures as text, one per column.
    pub cells: Vec<String>,
    /// Spans in the order of drawing. Parts beyond the axis are cut off.
    pub spans: Vec<Span>,
}

#[derive(Clone, Debug, Default)]
pub struct Span {
    /// Begin in ns after the begin of the axis.
    pub begin_ns: i64,
    pub end_ns: i64,
    /// Uncertainty of the begin, in ns, drawn as an error bar.
    pub error_ns: Option<u64>,
    /// Class of the span, an index into [`Spans::classes`].
    pub class: usize,
    /// Whether it is drawn inside of the one before.
    pub is_inner: bool,
    pub title: String,
}

/// Bars that are divided by parts.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    pub title: String,
    /// Heading of the column of names.
    pub row: String,
    /// Heading of the column of notes.
    pub unit: String,
    /// The names of the parts: at most [`MOST_SERIES`].
    pub classes: Vec<String>,
    /// Whether the length of a bar is the sum of its parts; otherwise all bars have one length.
    pub is_of_one_scale: bool,
    pub rows: Vec<Stack>,
}

#[derive(Clone, Debug, Default)]
pub struct Stack {
    pub name: String,
    /// Size of the whole, in words.
    pub note: String,
    /// Sizes of the parts, one per class.
    pub parts: Vec<f64>,
}

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
    pub title: String,
    /// Boxes of one class have one colour.
    pub class: usize,
}

#[derive(Clone, Debug)]
pub struct Link {
    /// Index of the box where the arrow starts.
    pub from: usize,
    pub to: usize,
    /// Weight of the connection: the larger, the wider the arrow.
    pub weight: f64,
    pub label: String,
    pub title: String,
}

#[derive(Clone, Debug, Default)]
pub struct Table {
    pub title: String,
    /// Column names, and whether the columns hold numbers.
    pub columns: Vec<(String, bool)>,
    /// Rows, with an entry for each column. The first names the row.
    pub rows: Vec<Vec<Entry>>,
    /// Number of further rows that are not shown.
    pub more: usize,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    pub text: String,
    /// Value between -1 and 1 that colours the entry.
    pub heat: Option<f64>,
}

/// Writes the names of classes, with their colours.
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
    /// Returns `1234 (1200 to 1260)`.
    fn words(&self) -> String {
        match self.interval {
            Some((low, high)) => {
                format!("{} ({} to {})", digits(self.value), digits(low), digits(high))
            }
            None => digits(self.value),
        }
    }

    /// Returns the lower and upper bound, or the value twice.
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
