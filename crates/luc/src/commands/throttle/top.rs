//! `luc throttle top`: who shares a disk with whom, live.

use std::process::ExitCode;

use luc_throttle::activity_watch::ActivityWatch;
use luc_top::throttle::{print, show};

use crate::commands::live_view::{self, ViewForm};

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
    live: live_view::LiveViewOptions,
}

pub(super) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let shown = args.live.shown("luc throttle top")?;
    let ended = live_view::ended_by_a_signal()?;
    let watch = ActivityWatch::open()?;
    match shown {
        ViewForm::Screen { delay_ms } => {
            show(watch, delay_ms, &ended)?;
            Ok(ExitCode::SUCCESS)
        }
        ViewForm::Lines { delay, count } => {
            let is_whole = print(watch, delay, count, args.live.json, &ended)?;
            Ok(live_view::status(is_whole))
        }
    }
}
