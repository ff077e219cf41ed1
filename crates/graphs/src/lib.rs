//! Graphs of figures with their intervals, on one page for a browser: no other file, no script.
//!
//! Types here know nothing of where figures come from. All that is drawn is there as text or a table as well.

mod bars;
pub mod escape;
mod lines;
mod matrix;
mod page;
mod scale;
mod table;
#[cfg(test)]
mod tests;

use luc_units::figures::digits;

pub use page::{STYLE, page};

/// A page.
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
    /// In order.
    pub sections: Vec<Section>,
    /// How to read it.
    pub footer: Vec<String>,
}

/// A part of a page.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// Paragraphs before the graphs.
    pub text: Vec<String>,
    /// In order.
    pub graphs: Vec<Graph>,
}

/// One graph.
#[derive(Clone, Debug)]
pub enum Graph {
    /// How a figure changes along an axis.
    Lines(Lines),
    /// Figures side by side.
    Bars(Bars),
    /// Figures of two axes.
    Matrix(Matrix),
    /// Anything.
    Table(Table),
}

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Its lower and upper bound, if they are known.
    pub interval: Option<(f64, f64)>,
}

/// Lines with bands.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// What is shown.
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
    /// Its name.
    pub name: String,
    /// The number that it is, if it is one. Numbers far apart are drawn on a logarithmic axis.
    pub number: Option<f64>,
}

/// A line.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its figure at each place; `None` where there is none.
    pub figures: Vec<Option<Estimate>>,
}

/// Bars with intervals.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// What is shown.
    pub title: String,
    /// What a row is.
    pub row: String,
    /// What the figures are counted in.
    pub unit: String,
    /// In order.
    pub bars: Vec<Bar>,
}

/// A bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Its name.
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
    /// What is shown.
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
    /// The figure.
    pub figure: Estimate,
    /// Its share of the best of the column, from 0 to 1.
    pub share: f64,
    /// What is said below it, as `1.24 of ext4`.
    pub note: String,
    /// Whether it is the best of the column.
    pub is_best: bool,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What is shown.
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
    /// What it says.
    pub text: String,
    /// Where between -1 and 1 it is; it has a colour then.
    pub heat: Option<f64>,
}

impl Estimate {
    /// `1234 (1200 to 1260)`.
    fn words(&self) -> String {
        match self.interval {
            Some((low, high)) => {
                format!(
                    "{} ({} to {})",
                    digits(self.value),
                    digits(low),
                    digits(high)
                )
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
