//! `luc throttle top`: who shares a disk with whom, live.

use std::process::ExitCode;

use luc_throttle::watch::Watch;
use luc_top::throttle::{print, show};

use crate::commands::live::{self, Shown};

/// Show live which tasks share a disk, what it costs them, and who is frozen (root)
///
/// It shows the tasks of the daemon, if one runs; else those of all cgroups, and nobody is frozen. q ends it, F1
/// explains keys and columns.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc throttle top
  luc throttle top --once
  luc throttle top --batch --json --count 60 | jq '.disks[] | [.name, .efficiency]'

Exit status: 0; 2 if nothing can be seen here, or there is no terminal; 130 if --count was interrupted.")]
pub(super) struct Args {
    #[command(flatten)]
    live: live::Live,
}

pub(super) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let shown = args.live.shown("luc throttle top")?;
    let ended = live::ended_by_a_signal()?;
    let watch = Watch::open()?;
    match shown {
        Shown::Screen { delay_ms } => {
            show(watch, delay_ms, &ended)?;
            Ok(ExitCode::SUCCESS)
        }
        Shown::Lines { delay, count } => {
            let is_whole = print(watch, delay, count, args.live.json, &ended)?;
            Ok(live::status(is_whole))
        }
    }
}
