//! A table for people.

use std::fmt::Write as _;
use std::io::Write;

use datafusion::arrow::array::Array as _;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::SqlError;

/// So many rows say how wide columns are; the rest is written as it comes.
const ROWS_MEASURED: usize = 1_000;

/// A table as it is written.
#[derive(Debug)]
pub(super) struct Text<W: Write> {
    to: W,
    names: Vec<String>,
    is_number: Vec<bool>,
    /// Rows before the first one is written.
    waiting: Vec<Vec<String>>,
    /// Once the first row is written.
    widths: Option<Vec<usize>>,
    rows: u64,
}

impl<W: Write> Text<W> {
    pub(super) fn new(to: W, schema: &SchemaRef) -> Self {
        let fields = schema.fields();
        let is_number = |kind: &DataType| kind.is_numeric();
        Self {
            to,
            names: fields.iter().map(|field| luc_units::plain(field.name())).collect(),
            is_number: fields.iter().map(|field| is_number(field.data_type())).collect(),
            waiting: Vec::new(),
            widths: None,
            rows: 0,
        }
    }

    pub(super) fn add(&mut self, rows: &RecordBatch) -> Result<(), SqlError> {
        let options = FormatOptions::default();
        let columns = rows.columns().iter();
        let columns: Vec<ArrayFormatter<'_>> = columns
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
            .collect::<Result<_, _>>()
            .map_err(super::failed)?;
        for row in 0..rows.num_rows() {
            let mut cells = Vec::with_capacity(columns.len());
            for (column, array) in columns.iter().zip(rows.columns()) {
                let mut cell = String::new();
                if array.is_valid(row) {
                    column.value(row).write(&mut cell).map_err(super::failed)?;
                }
                cells.push(luc_units::plain(&cell));
            }
            self.rows += 1;
            if self.widths.is_some() {
                self.line(&cells)?;
                continue;
            }
            self.waiting.push(cells);
            if self.waiting.len() == ROWS_MEASURED {
                self.begin()?;
            }
        }
        Ok(())
    }

    /// Writes the names and the rows that wait.
    fn begin(&mut self) -> Result<(), SqlError> {
        let width = |column: usize| {
            let cells = self.waiting.iter().map(|cells| &cells[column]);
            let cells = cells.chain([&self.names[column]]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        self.widths = Some((0..self.names.len()).map(width).collect());
        let names = std::mem::take(&mut self.names);
        self.line(&names)?;
        for cells in std::mem::take(&mut self.waiting) {
            self.line(&cells)?;
        }
        Ok(())
    }

    fn line(&mut self, cells: &[String]) -> Result<(), SqlError> {
        let widths = self.widths.as_deref().unwrap_or_default();
        let mut line = String::new();
        for (column, (cell, &width)) in cells.iter().zip(widths).enumerate() {
            let space = if column == 0 { "" } else { "  " };
            // Writing to a string does not fail.
            let _ = if self.is_number[column] {
                write!(line, "{space}{cell:>width$}")
            } else {
                write!(line, "{space}{cell:<width$}")
            };
        }
        Ok(writeln!(self.to, "{}", line.trim_end())?)
    }

    pub(super) fn finish(mut self) -> Result<W, SqlError> {
        if self.widths.is_none() {
            self.begin()?;
        }
        let word = if self.rows == 1 { "row" } else { "rows" };
        writeln!(self.to, "{} {word}", self.rows)?;
        Ok(self.to)
    }
}
