//! Answers as text, JSON and CSV, row by row as they come.

mod text;

use std::io::Write;

use datafusion::arrow::csv;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json;
use datafusion::arrow::record_batch::RecordBatch;

use crate::error::SqlError;
use text::Text;

/// A form of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table for people.
    Text,
    /// An array of objects.
    Json,
    /// Comma-separated values with a line of names.
    Csv,
}

/// What writes an answer.
#[derive(Debug)]
pub struct Output<W: Write>(Kind<W>);

#[derive(Debug)]
enum Kind<W: Write> {
    Text(Text<W>),
    /// And whether no row was written yet.
    Json(W, bool),
    Csv(W),
}

impl<W: Write> Output<W> {
    /// Of an answer with these columns.
    ///
    /// # Errors
    /// [`SqlError::Output`].
    pub fn new(mut to: W, schema: &SchemaRef, format: Format) -> Result<Self, SqlError> {
        Ok(Self(match format {
            Format::Text => Kind::Text(Text::new(to, schema)),
            Format::Json => {
                write!(to, "[")?;
                Kind::Json(to, true)
            }
            Format::Csv => {
                // The engine's writer has no line of names where there is no row.
                let names = schema.fields().iter().map(|field| quoted(field.name()));
                let names: Vec<String> = names.collect();
                writeln!(to, "{}", names.join(","))?;
                Kind::Csv(to)
            }
        }))
    }

    /// Adds rows.
    ///
    /// # Errors
    /// [`SqlError::Output`], [`SqlError::Engine`].
    pub fn add(&mut self, rows: &RecordBatch) -> Result<(), SqlError> {
        // The engine's writers hide why a pipe is broken, so they write to memory.
        match &mut self.0 {
            Kind::Text(text) => text.add(rows)?,
            Kind::Json(to, is_first) => {
                for row in objects(rows).map_err(failed)?.lines() {
                    let before = if *is_first { "\n" } else { ",\n" };
                    write!(to, "{before}{row}")?;
                    *is_first = false;
                }
            }
            Kind::Csv(to) => {
                let mut lines = csv::WriterBuilder::new().with_header(false).build(Vec::new());
                lines.write(rows).map_err(failed)?;
                to.write_all(&lines.into_inner())?;
            }
        }
        Ok(())
    }

    /// Ends the answer, and gives back what it went to.
    ///
    /// # Errors
    /// [`SqlError::Output`].
    pub fn finish(self) -> Result<W, SqlError> {
        match self.0 {
            Kind::Text(text) => text.finish(),
            Kind::Json(mut to, is_first) => {
                writeln!(to, "{}", if is_first { "]" } else { "\n]" })?;
                Ok(to)
            }
            Kind::Csv(to) => Ok(to),
        }
    }
}

/// Each row as an object on a line of its own.
fn objects(rows: &RecordBatch) -> Result<String, ArrowError> {
    let builder = json::WriterBuilder::new().with_explicit_nulls(true);
    let mut lines = builder.build::<_, json::writer::LineDelimited>(Vec::new());
    lines.write(rows)?;
    lines.finish()?;
    String::from_utf8(lines.into_inner()).map_err(|error| ArrowError::JsonError(error.to_string()))
}

/// A name as a field of CSV (RFC 4180).
fn quoted(name: &str) -> String {
    if name.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}

fn failed(error: ArrowError) -> SqlError {
    SqlError::of_engine(error.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("host", DataType::Utf8, true),
            Field::new("sum(a,b)", DataType::Int64, true),
        ]))
    }

    fn rows(hosts: &[Option<&str>], sums: &[Option<i64>]) -> RecordBatch {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(hosts.to_vec())),
            Arc::new(Int64Array::from(sums.to_vec())),
        ];
        RecordBatch::try_new(schema(), columns).expect("rows")
    }

    fn written(format: Format, batches: &[RecordBatch]) -> String {
        let mut output = Output::new(Vec::new(), &schema(), format).expect("begun");
        for batch in batches {
            output.add(batch).expect("added");
        }
        String::from_utf8(output.finish().expect("ended")).expect("text")
    }

    fn answer() -> [RecordBatch; 2] {
        [
            rows(&[Some("web"), None], &[Some(1_234), Some(-5)]),
            rows(&[Some("a \"b\",\u{1b}[31m")], &[None]),
        ]
    }

    #[test]
    fn text_has_columns_and_steers_no_terminal() {
        let text = written(Format::Text, &answer());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].trim_end(), "host        sum(a,b)");
        assert_eq!(lines[1].trim_end(), "web             1234");
        assert_eq!(lines[2].trim_end(), "                  -5");
        assert!(lines[3].starts_with("a \"b\",") && !text.contains('\u{1b}'));
        assert_eq!(lines[4], "3 rows");
    }

    #[test]
    fn json_is_an_array_also_without_rows() {
        let rows: serde_json::Value =
            serde_json::from_str(&written(Format::Json, &answer())).expect("JSON");
        assert_eq!(rows[0]["sum(a,b)"], 1_234);
        assert!(rows[1]["host"].is_null() && rows[2]["sum(a,b)"].is_null());
        assert_eq!(rows.as_array().map(Vec::len), Some(3));
        assert_eq!(written(Format::Json, &[]).trim(), "[]");
    }

    #[test]
    fn csv_has_a_line_of_names_also_without_rows() {
        let csv = written(Format::Csv, &answer());
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines[0], "host,\"sum(a,b)\"");
        assert_eq!(lines[1], "web,1234");
        assert_eq!(lines[2], ",-5");
        assert_eq!(lines[3], "\"a \"\"b\"\",\u{1b}[31m\",");
        assert_eq!(written(Format::Csv, &[]), "host,\"sum(a,b)\"\n");
    }
}
