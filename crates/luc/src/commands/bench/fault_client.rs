//! `luc bench fault-client`: the program under trial of `luc faults`, run by it as a process of its own.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use luc_powercut::faults::client::{self, FaultClient};

/// The program under trial of `luc faults`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory on the disk under trial
    #[arg(long)]
    dir: PathBuf,
    /// Threads that synchronize beside the trials
    #[arg(long)]
    beside: usize,
}

/// Runs the client until its standard input ends.
pub(super) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let directory = args.dir.clone();
    client::run(&FaultClient { directory: args.dir, beside: args.beside })
        .with_context(|| format!("{}: the trials cannot be made", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}
