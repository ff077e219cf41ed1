//! A page for a browser that needs no other file and no network.
//!
//! It can be read without scripts and on paper; a script only draws the detailed timelines. The page's size is bounded
//! for any trace. Lists are cut (and say so), and names are clipped. Time is summed into at most 240 steps. Details are
//! those of some periods of at most 6,000 pieces.

use std::io::{self, Write};

use luc_events::tables::{ThreadInfo, TraceDescription};
use luc_explain::{AnalysisObserver, ExplainedCall, ExplainedCommit, ExplainedSync, TraceReport};

use crate::ReportExport;

mod charts;
mod disk_sharing;
mod file_system;
mod findings;
mod name_meanings;
mod page_frame;
mod script_data;
mod table_markup;
mod timeline;
mod timeline_bins;
mod wait_tables;

use timeline::HtmlTimelines;

/// Writer of a report's HTML page.
#[derive(Debug)]
pub struct HtmlWriter<W> {
    out: W,
    timeline: HtmlTimelines,
}

impl<W: Write> HtmlWriter<W> {
    /// Begins the page of a trace.
    pub fn new(trace: &TraceDescription, out: W) -> Self {
        Self { out, timeline: HtmlTimelines::new(trace.start_ns) }
    }
}

impl<W: Write> AnalysisObserver for HtmlWriter<W> {
    fn sync(&mut self, sync: &ExplainedSync<'_>) {
        self.timeline.sync(sync);
    }

    fn commit(&mut self, commit: &ExplainedCommit<'_>) {
        self.timeline.commit(commit.row);
    }

    fn call(&mut self, call: &ExplainedCall<'_>) {
        self.timeline.call(call);
    }

    fn task(&mut self, row: &ThreadInfo) {
        self.timeline.task(row);
    }
}

impl<W: Write> ReportExport for HtmlWriter<W> {
    fn finish(mut self: Box<Self>, report: &TraceReport) -> io::Result<()> {
        self.timeline.finish();
        let page = page_frame::page(report, &self.timeline);
        self.out.write_all(page.as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
