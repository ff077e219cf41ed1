//! `luc explain`: from a trace to findings.

use std::io::{BufWriter, IsTerminal as _, Write as _, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use luc_events::store::Reader;
use luc_report::Text;

/// Says where the time of a trace's fsyncs and writes went, who caused it, and what would help
///
/// Reads what `luc record` wrote, also while it is still recording or after it was killed. Needs no privileges.
/// Of a trace that was recorded with --summary it says what sums can tell.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc record --out mail.trace -- ./import-mail.sh
  luc explain mail.trace
  luc explain mail.trace --json | jq '.findings[0]'

Exit status: 0; 2 if the trace cannot be read.")]
pub(crate) struct Args {
    /// The trace: the directory that luc record made
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let reader = Reader::open(&args.trace)?;
    let report = luc_explain::explain(&reader)?;
    let terminal = stdout().is_terminal();
    // Else each line would be a write of its own.
    let mut out = BufWriter::new(stdout().lock());
    if args.json {
        serde_json::to_writer_pretty(&mut out, &report)
            .map_err(std::io::Error::from)
            .context("the report cannot be written")?;
        writeln!(out)?;
    } else {
        let colours = terminal && std::env::var_os("NO_COLOR").is_none();
        let report = &report;
        write!(out, "{}", Text { report, colours })?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
