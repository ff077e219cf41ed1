//! A page for a browser that needs no other file and no network.
//!
//! It can be read without scripts and on paper; a script only draws the detailed timelines. The page's size is bounded
//! for any trace. Lists are cut (and say so), and names are clipped. Time is summed into at most 240 steps. Details are
//! those of some periods of at most 6,000 pieces.

use std::io::{self, Write};

use luc_events::tables::{Task, Trace};
use luc_explain::{ExplainedCall, ExplainedCommit, ExplainedSync, Observer, Report};

use crate::Export;

mod bins;
mod charts;
mod file_system;
mod findings;
mod island;
mod meaning;
mod page;
mod sharing;
mod table;
mod tables;
mod timeline;

use timeline::Timeline;

/// Writer of a report's HTML page.
#[derive(Debug)]
pub struct Html<W> {
    out: W,
    timeline: Timeline,
}

impl<W: Write> Html<W> {
    /// Begins the page of a trace.
    pub fn new(trace: &Trace, out: W) -> Self {
        Self { out, timeline: Timeline::new(trace.start_ns) }
    }
}

impl<W: Write> Observer for Html<W> {
    fn sync(&mut self, sync: &ExplainedSync<'_>) {
        self.timeline.sync(sync);
    }

    fn commit(&mut self, commit: &ExplainedCommit<'_>) {
        self.timeline.commit(commit.row);
    }

    fn call(&mut self, call: &ExplainedCall<'_>) {
        self.timeline.call(call);
    }

    fn task(&mut self, row: &Task) {
        self.timeline.task(row);
    }
}

impl<W: Write> Export for Html<W> {
    fn finish(mut self: Box<Self>, report: &Report) -> io::Result<()> {
        self.timeline.finish();
        let page = page::page(report, &self.timeline);
        self.out.write_all(page.as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
