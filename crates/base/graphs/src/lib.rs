//! Graphs of figures with their intervals, on one page for a browser: no other file, no script.
//!
//! Types here know nothing of where figures come from. All that is drawn is there as text or a table as well.

mod axis_scale;
mod bar_graph;
mod graph_table;
pub mod html_escape;
mod html_page;
mod line_graph;
mod matrix_graph;
mod network_graph;
mod span_graph;
mod stacked_bars;
#[cfg(test)]
mod tests;

use std::fmt::{self, Write as _};

use luc_units::number_formats::digits;

pub use html_page::{STYLE, page};

/// A page: facts, warnings and sections with graphs.
#[derive(Clone, Debug, Default)]
pub struct GraphPage {
    pub title: String,
    pub kind: String,
    /// Short facts below the title.
    pub facts: Vec<String>,
    /// Reasons to doubt the figures, and dangers.
    pub warnings: Vec<String>,
    pub sections: Vec<PageSection>,
    /// Notes on reading the page.
    pub footer: Vec<String>,
}

/// A section of a page.
#[derive(Clone, Debug, Default)]
pub struct PageSection {
    pub title: String,
    /// Paragraphs before the graphs.
    pub text: Vec<String>,
    pub graphs: Vec<Graph>,
}

#[derive(Clone, Debug)]
pub enum Graph {
    /// Figures along an axis.
    Lines(LineGraph),
    /// Figures side by side.
    Bars(BarGraph),
    /// Figures of two axes.
    Matrix(MatrixGraph),
    Spans(SpanGraph),
    /// Wholes divided into parts.
    Stacks(StackedBars),
    /// Boxes and the connections between them.
    Network(NetworkGraph),
    Table(GraphTable),
}

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimatedValue {
    pub value: f64,
    /// Lower and upper bound, if known.
    pub interval: Option<(f64, f64)>,
}

/// Lines over common positions on an axis.
#[derive(Clone, Debug, Default)]
pub struct LineGraph {
    pub title: String,
    /// Label of the horizontal axis.
    pub across: String,
    /// Label of the vertical axis.
    pub up: String,
    /// Places along the horizontal axis.
    pub places: Vec<AxisTick>,
    /// A value that the others are compared with.
    pub reference: Option<f64>,
    /// At most [`MOST_SERIES`] lines, each with its own colour and mark.
    pub series: Vec<LineSeries>,
}

/// Maximum number of lines that readers can distinguish.
pub const MOST_SERIES: usize = 8;

/// A labelled position on the horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisTick {
    pub name: String,
    /// The number that it is, if it is one. Numbers far apart are drawn on a logarithmic axis.
    pub number: Option<f64>,
}

/// A line's values, one for each position of the axis.
#[derive(Clone, Debug)]
pub struct LineSeries {
    pub name: String,
    /// Figure at each place; `None` if there is none.
    pub figures: Vec<Option<EstimatedValue>>,
}

/// Bars with intervals, one below another.
#[derive(Clone, Debug, Default)]
pub struct BarGraph {
    pub title: String,
    /// Heading of the column of names.
    pub row: String,
    pub unit: String,
    pub bars: Vec<GraphBar>,
}

/// A bar with its value and remark.
#[derive(Clone, Debug)]
pub struct GraphBar {
    pub name: String,
    /// Figure of the bar; `None` if there is none.
    pub figure: Option<EstimatedValue>,
    /// Remark on the bar, as `not converged`.
    pub remark: String,
    /// Whether the scale ignores it: it is cut off if it is longer than all bars on the scale.
    pub is_aside: bool,
}

/// Values by row and column, coloured by how good they are.
#[derive(Clone, Debug, Default)]
pub struct MatrixGraph {
    pub title: String,
    /// Heading of the column of names.
    pub row: String,
    /// Names of the columns, with the units of their figures.
    pub columns: Vec<String>,
    /// Names of the rows and their cells, one per column.
    pub rows: Vec<(String, Vec<Option<MatrixCell>>)>,
}

/// A cell of a matrix.
#[derive(Clone, Debug)]
pub struct MatrixCell {
    pub figure: EstimatedValue,
    /// Share of the best in the column, from 0 to 1.
    pub share: f64,
    /// Note below the figure, as `1.24 of ext4`.
    pub note: String,
    /// Whether it is the best of the column.
    pub is_best: bool,
}

/// Spans of time in lanes, below one axis.
#[derive(Clone, Debug, Default)]
pub struct SpanGraph {
    pub title: String,
    /// Heading of the column of lanes.
    pub lane: String,
    /// Names of the figures that each lane has beside its drawing.
    pub columns: Vec<String>,
    pub length_ns: u64,
    /// Names of the classes of spans, one colour each: at most [`MOST_SERIES`].
    pub classes: Vec<String>,
    pub lanes: Vec<SpanLane>,
}

/// A lane with spans of time.
#[derive(Clone, Debug, Default)]
pub struct SpanLane {
    pub name: String,
    pub note: String,
    /// Indentation: the number of lanes that it belongs to.
    pub depth: usize,
    /// Figures as text, one per column.
    pub cells: Vec<String>,
    /// Spans in the order of drawing. Parts beyond the axis are cut off.
    pub spans: Vec<LaneSpan>,
}

/// A span of time in a lane.
#[derive(Clone, Debug, Default)]
pub struct LaneSpan {
    /// Begin in ns after the begin of the axis.
    pub begin_ns: i64,
    pub end_ns: i64,
    /// Uncertainty of the begin, in ns, drawn as an error bar.
    pub error_ns: Option<u64>,
    /// Class of the span, an index into [`SpanGraph::classes`].
    pub class: usize,
    /// Whether it is drawn inside of the one before.
    pub is_inner: bool,
    pub title: String,
}

/// Bars that are divided by parts.
#[derive(Clone, Debug, Default)]
pub struct StackedBars {
    pub title: String,
    /// Heading of the column of names.
    pub row: String,
    /// Heading of the column of notes.
    pub unit: String,
    /// The names of the parts: at most [`MOST_SERIES`].
    pub classes: Vec<String>,
    /// Whether the length of a bar is the sum of its parts; otherwise all bars have one length.
    pub is_of_one_scale: bool,
    pub rows: Vec<StackedBar>,
}

/// A bar that is divided by parts.
#[derive(Clone, Debug, Default)]
pub struct StackedBar {
    pub name: String,
    /// Size of the whole, in words.
    pub note: String,
    /// Sizes of the parts, one per class.
    pub parts: Vec<f64>,
}

/// Boxes with arrows between them.
#[derive(Clone, Debug, Default)]
pub struct NetworkGraph {
    pub title: String,
    /// The boxes; of those in a column the first one is at the top.
    pub nodes: Vec<NetworkNode>,
    pub links: Vec<NetworkLink>,
}

/// A box of a network.
#[derive(Clone, Debug, Default)]
pub struct NetworkNode {
    /// Up to three lines in it.
    pub lines: Vec<String>,
    pub title: String,
    /// Boxes of one class have one colour.
    pub class: usize,
}

/// An arrow between two boxes.
#[derive(Clone, Debug)]
pub struct NetworkLink {
    /// Index of the box where the arrow starts.
    pub from: usize,
    pub to: usize,
    /// Weight of the connection: the larger, the wider the arrow.
    pub weight: f64,
    pub label: String,
    pub title: String,
}

/// A table whose entries may be coloured.
#[derive(Clone, Debug, Default)]
pub struct GraphTable {
    pub title: String,
    /// Column names, and whether the columns hold numbers.
    pub columns: Vec<(String, bool)>,
    /// Rows, with an entry for each column. The first names the row.
    pub rows: Vec<Vec<TableEntry>>,
    /// Number of further rows that are not shown.
    pub more: usize,
}

/// An entry of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableEntry {
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
            html_escape::EscapedText(class)
        )?;
    }
    writeln!(out, "</p>")
}

impl EstimatedValue {
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

impl From<String> for TableEntry {
    fn from(text: String) -> Self {
        Self { text, heat: None }
    }
}

impl From<&str> for TableEntry {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}
