//! `luc explain`: from a trace to findings.

use std::io::{BufWriter, IsTerminal as _, Write as _, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use luc_events::ring;
use luc_explain::{AnalysisObserver, CommitDetail};
use luc_report::ReportText;

/// Show where the time of a trace's fsyncs and writes went, who caused it, and what would help
///
/// The trace may still be growing, or its recorder may have been killed. A trace made with --summary has sums only,
/// so it answers less. Needs no privileges.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc record --out mail.trace -- ./import-mail.sh
  luc explain mail.trace
  luc explain mail.trace --json | jq '.findings[0]'
  luc explain mail.trace --commits | jq -c 'select(.served > 9) | .by[0]'
  luc report mail.trace                       # the same as a page, with timelines

Exit status: 0; 2 if the trace cannot be read.")]
pub(crate) struct Args {
    /// Directory of the trace, as made by luc record; of a ring its last run is shown
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Print everything as JSON
    #[arg(long)]
    json: bool,

    /// Print one line of JSON per commit
    ///
    /// It has the commit's time and length, who asked for it and how many fsyncs it served. It also says whose
    /// handles, blocks and data the commit had.
    #[arg(long, conflicts_with = "json")]
    commits: bool,
}

/// Prints each commit after the calls that waited for it, when it is fully known.
struct Commits<W> {
    out: W,
    /// The first error; nothing is written after it.
    failed: Option<std::io::Error>,
}

impl<W: std::io::Write> AnalysisObserver for Commits<W> {
    fn wants_settled(&self) -> bool {
        true
    }

    fn settled(&mut self, commit: &CommitDetail) {
        if self.failed.is_none() {
            self.failed = (serde_json::to_writer(&mut self.out, commit).map_err(Into::into))
                .and_then(|()| writeln!(self.out))
                .err();
        }
    }
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let reader = ring::open(&args.trace)?;
    if args.commits {
        let out = BufWriter::new(stdout().lock());
        let mut commits = Commits { out, failed: None };
        luc_explain::explain_with(&reader, &mut commits)?;
        let ended = commits.failed.map_or_else(|| commits.out.flush(), Err);
        ended.context("the commits cannot be written")?;
        return Ok(ExitCode::SUCCESS);
    }
    let report = luc_explain::explain(&reader)?;
    let terminal = stdout().is_terminal();
    // Else each line would be a write of its own.
    let mut out = BufWriter::new(stdout().lock());
    if args.json {
        luc_report::json::write(&report, &mut out)?;
    } else {
        let colours = terminal && std::env::var_os("NO_COLOR").is_none();
        let report = &report;
        write!(out, "{}", ReportText { report, colours })?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
