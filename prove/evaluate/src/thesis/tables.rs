//! Tables of lines by speed.

use super::super::report::Table;
use super::data::{Curve, Data, Line, Repeat};

/// The thesis' slowest processor, GHz.
const SLOWEST_GHZ: f64 = 1.6;

/// Rows of curves by speed.
#[derive(Debug)]
pub(super) struct BySpeed<'a> {
    data: &'a Data,
    table: Table,
}

impl<'a> BySpeed<'a> {
    pub(super) fn new(data: &'a Data) -> Self {
        let slowest = data.speeds.first().copied().unwrap_or(1) as f64;
        let head = |mips: &u64| format!("{mips} ({:.1})", SLOWEST_GHZ * *mips as f64 / slowest);
        let heads: Vec<String> = std::iter::once("MIPS (GHz of the thesis)".to_owned())
            .chain(data.speeds.iter().map(head))
            .collect();
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        Self {
            data,
            table: Table::new(&heads),
        }
    }

    /// A row, if there is anything in it.
    pub(super) fn row(mut self, name: &str, curve: &Curve) -> Self {
        if curve.is_empty() {
            return self;
        }
        let cell = |mips: &u64| {
            let found = curve.iter().find(|(speed, _)| speed == mips);
            found.map_or("-".to_owned(), |(_, spread)| spread.text())
        };
        let cells = std::iter::once(name.to_owned()).chain(self.data.speeds.iter().map(cell));
        self.table.row(cells.collect());
        self
    }

    /// The thesis' normalized speedup.
    pub(super) fn normalized(self, line: Line) -> Self {
        let curve = self.data.normalized(line);
        self.row(&format!("{}, over the slowest", line.name()), &curve)
    }

    /// A line over another.
    pub(super) fn over(self, line: Line, to: Line) -> Self {
        let curve = self.data.over(line, to);
        self.row(&format!("{} / {}", line.name(), to.name()), &curve)
    }

    /// A figure of a line.
    pub(super) fn figure(
        self,
        line: Line,
        what: &str,
        of: impl Fn(&Repeat) -> Option<f64>,
    ) -> Self {
        let curve = self.data.curve(line, of);
        self.row(&format!("{}: {what}", line.name()), &curve)
    }

    /// The rate itself.
    pub(super) fn rate(self, line: Line, unit: &str) -> Self {
        let curve = self.data.rates(line);
        self.row(&format!("{}, {unit}", line.name()), &curve)
    }

    pub(super) fn end(self) -> Table {
        self.table
    }
}
