//! A report as JSON: the structure of [`luc_explain::Report`], with its version.

use std::io::{self, Write};

use luc_explain::{Observer, Report};

use crate::Export;

/// Writes a report as JSON, with a line's end.
///
/// # Errors
/// The writer's.
pub fn write(report: &Report, mut out: impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut out, report)?;
    writeln!(out)
}

/// Writer of a report's JSON.
#[derive(Debug)]
pub struct Json<W>(pub W);

impl<W> Observer for Json<W> {}

impl<W: Write> Export for Json<W> {
    fn finish(mut self: Box<Self>, report: &Report) -> io::Result<()> {
        write(report, &mut self.0)?;
        self.0.flush()
    }
}
