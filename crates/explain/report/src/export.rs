//! Formats of a report. Each observes the analysis of the trace and writes its file at the end.

use std::fmt;
use std::io;
use std::ops::ControlFlow;

use luc_events::tables::{MountedFileSystem, OffCpuWait, ThreadInfo};
use luc_explain::{AnalysisObserver, ExplainedCall, ExplainedCommit, ExplainedSync, TraceReport};

/// A format of a report, which is made while the trace is analysed.
pub trait ReportExport: AnalysisObserver {
    /// Writes the rest of the file.
    ///
    /// # Errors
    /// The first error of the writer, also from before.
    fn finish(self: Box<Self>, report: &TraceReport) -> io::Result<()>;
}

/// Callback with the number of rows read and of all rows; `Break` ends the reading.
pub type ReadProgress<'a> = Box<dyn FnMut(u64, u64) -> ControlFlow<()> + 'a>;

/// Several formats made by one reading of a trace.
pub struct ReportExports<'a> {
    exports: Vec<Box<dyn ReportExport + 'a>>,
    progress: ReadProgress<'a>,
}

impl fmt::Debug for ReportExports<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exports").field("exports", &self.exports.len()).finish_non_exhaustive()
    }
}

impl<'a> ReportExports<'a> {
    pub fn new(progress: ReadProgress<'a>) -> Self {
        Self { exports: Vec::new(), progress }
    }

    pub fn add(&mut self, export: impl ReportExport + 'a) {
        self.exports.push(Box::new(export));
    }

    /// Finishes all formats.
    ///
    /// # Errors
    /// The first error of a writer.
    pub fn finish(self, report: &TraceReport) -> io::Result<()> {
        self.exports.into_iter().try_for_each(|export| export.finish(report))
    }
}

impl AnalysisObserver for ReportExports<'_> {
    fn sync(&mut self, sync: &ExplainedSync<'_>) {
        self.exports.iter_mut().for_each(|export| export.sync(sync));
    }

    fn commit(&mut self, commit: &ExplainedCommit<'_>) {
        let exports = self.exports.iter_mut();
        exports.for_each(|export| export.commit(commit));
    }

    fn call(&mut self, call: &ExplainedCall<'_>) {
        self.exports.iter_mut().for_each(|export| export.call(call));
    }

    fn wait(&mut self, row: &OffCpuWait) {
        self.exports.iter_mut().for_each(|export| export.wait(row));
    }

    fn task(&mut self, row: &ThreadInfo) {
        self.exports.iter_mut().for_each(|export| export.task(row));
    }

    fn file_system(&mut self, row: &MountedFileSystem) {
        let exports = self.exports.iter_mut();
        exports.for_each(|export| export.file_system(row));
    }

    fn progress(&mut self, read: u64, in_all: u64) -> ControlFlow<()> {
        (self.progress)(read, in_all)
    }
}
