//! `luc fleet`: hands over to `luc-fleet`, which reads the traces of several hosts.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::bail;
use luc_host::installed_programs::{ExecFailure, become_program};

/// The program beside `luc` or on the PATH.
const PROGRAM: &str = "luc-fleet";

/// Put the traces of several hosts together: clocks, messages, requests (luc-fleet)
///
/// luc-fleet is a program of its own; this command runs the one beside luc, else the one on the PATH, with the same
/// words. `luc fleet explain --help` is its help.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  luc record --fleet --duration 30s --out web.trace    # on each host, at the same time (root)
  luc fleet fit web.trace db.trace                     # how their clocks relate, with bounds
  luc fleet explain web.trace db.trace                 # messages, requests, the path of the slowest
  luc fleet why 4711@web --at 2.5s web.trace db.trace  # why a thread does not run, and because of whom
  luc fleet counters web.csv                           # where the cycles go, by a file of perf stat
  luc fleet report --html fleet.html web.trace db.trace  # a page; also a Perfetto trace, and OpenTelemetry spans
  luc fleet pull web:/var/lib/luc/ring db:/var/lib/luc/ring --around 2026-01-31T23:59:59.5Z --out slow  # from rings
  luc fleet export --out tables web.trace db.trace     # Parquet and views for DuckDB, Spark and other engines

Exit status: that of luc-fleet; 2 if it is not installed.")]
pub(crate) struct Args {
    /// The words of luc-fleet: fit, explain, why, counters, report, pull, freeze, watch or export, and what follows
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "WORDS"
    )]
    words: Vec<OsString>,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    match become_program(PROGRAM, args.words) {
        ExecFailure::Lost(error) => bail!("cannot find the luc binary: {error}; reinstall it"),
        ExecFailure::Missing(luc) => bail!(
            "{PROGRAM} is neither beside {} nor on the PATH; `make product install` in luc's sources builds and installs \
             it",
            luc.display()
        ),
        ExecFailure::Refused(program, error) => {
            bail!("{}: {error}; reinstall it", program.display())
        }
    }
}
