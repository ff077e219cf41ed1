//! A report as JSON: the structure of [`luc_explain::TraceReport`], with its version.

use std::io::{self, Write};

use luc_explain::{AnalysisObserver, TraceReport};

use crate::ReportExport;

/// Writes a report as JSON, with a line's end.
///
/// # Errors
/// The writer's.
pub fn write(report: &TraceReport, mut out: impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut out, report)?;
    writeln!(out)
}

/// Writer of a report's JSON.
#[derive(Debug)]
pub struct JsonWriter<W>(pub W);

impl<W> AnalysisObserver for JsonWriter<W> {}

impl<W: Write> ReportExport for JsonWriter<W> {
    fn finish(mut self: Box<Self>, report: &TraceReport) -> io::Result<()> {
        write(report, &mut self.0)?;
        self.0.flush()
    }
}
