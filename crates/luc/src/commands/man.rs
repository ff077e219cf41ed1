//! `luc man`: the manual pages, made from the same definition as the command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::CommandFactory as _;

/// Print luc's manual page, or write one page per subcommand
///
/// The pages have the text of --help.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  luc man | man -l -                          # read the first page
  luc man --dir ~/.local/share/man/man1       # then: man luc-run")]
pub(crate) struct Args {
    /// Write luc.1, luc-run.1 and so on into this directory; make it if missing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    luc_cli::write_pages(crate::Cli::command(), args.dir.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
