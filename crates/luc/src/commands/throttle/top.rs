//! `luc throttle top`: who shares a disk with whom, live.

use std::io::{IsTerminal as _, stdin, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, bail};
use luc_throttle::watch::Watch;
use luc_top::throttle::{print, show};
use luc_units::parse_duration_ns;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::commands::INTERRUPTED;

/// Show live which tasks share a disk, what it costs them, and who is frozen (root)
///
/// Of the daemon, if one runs; else of all cgroups, and nobody is frozen. q ends it, F1 explains keys and columns.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc throttle top
  luc throttle top --once
  luc throttle top --batch --json --count 60 | jq '.disks[] | [.name, .efficiency]'

Exit status: 0; 2 if nothing can be seen here, or there is no terminal; 130 if --count was interrupted.")]
pub(super) struct Args {
    /// Time between two refreshes, from 250ms to 60s
    #[arg(long, short, value_name = "TIME", default_value = "2s")]
    delay: String,

    /// Print lines for scripts, without a screen, until Ctrl-C or --count
    #[arg(long, short)]
    batch: bool,

    /// Print lines once; short for --batch --count 1
    #[arg(long, conflicts_with = "count")]
    once: bool,

    /// With --batch: stop after NUMBER refreshes
    #[arg(long, short = 'n', value_name = "NUMBER", requires = "batch")]
    count: Option<u64>,

    /// With --batch or --once: print one line of JSON per refresh
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub(super) fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let batch = args.batch || args.once;
    let delay_ms = parse_duration_ns(&args.delay)? / 1_000_000;
    if !(250..=60_000).contains(&delay_ms) {
        bail!("--delay {}: give a time from 250ms to 60s", args.delay);
    }
    if args.json && !batch {
        bail!("--json needs --batch or --once");
    }
    if !(batch || stdout().is_terminal() && stdin().is_terminal()) {
        bail!("luc throttle top needs a terminal: --batch prints lines");
    }
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // A second signal ends the process whatever it is doing.
        signal_hook::flag::register_conditional_shutdown(
            signal,
            INTERRUPTED.into(),
            Arc::clone(&ended),
        )
        .context("signals cannot be handled")?;
        signal_hook::flag::register(signal, Arc::clone(&ended))
            .context("signals cannot be handled")?;
    }
    let watch = Watch::open()?;
    if !batch {
        show(watch, delay_ms, &ended)?;
        return Ok(ExitCode::SUCCESS);
    }
    let count = if args.once { Some(1) } else { args.count };
    let delay = Duration::from_millis(delay_ms);
    Ok(if print(watch, delay, count, args.json, &ended)? {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(INTERRUPTED)
    })
}
