//! `luc top`: a live view of file systems, commits, and who waits for whom.

use std::io::{IsTerminal as _, stdin, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, bail};
use luc_top::Live;
use luc_units::parse_duration_ns;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::INTERRUPTED;
use super::selection::{Selection, ring_bytes};

/// Show live where fsyncs wait, for which commits, and whose work that was (root)
///
/// The first table lists file systems with their commits. The second lists processes with the time they lost and the
/// time that others lost to them. Above them are disks for which tasks contend, with what that costs. Below are the
/// parts of the selected line's time, findings and remedies. F1 explains keys and columns. The options select what is
/// recorded, as in luc record; commits are recorded of all processes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  luc top
  luc top --device /srv/mail --delay 5s
  luc top --once
  luc top --batch --json --count 60 | jq '.file_systems[] | [.mount_point, .syncs_per_commit]'

Exit status: 0; 2 if nothing can be recorded here, or there is no terminal; 130 if --count was interrupted.")]
pub(crate) struct Args {
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

    #[command(flatten)]
    selection: Selection,

    /// Size of the buffer between kernel and recorder: a power of two from 64k to 2G
    #[arg(long, value_name = "SIZE", default_value = "32M")]
    buffer: String,
}

/// Runs the subcommand.
pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let batch = args.batch || args.once;
    let delay_ms = parse_duration_ns(&args.delay)? / 1_000_000;
    if !(250..=60_000).contains(&delay_ms) {
        bail!("--delay {}: give a time from 250ms to 60s", args.delay);
    }
    if args.json && !batch {
        bail!("--json needs --batch or --once");
    }
    if !(batch || stdout().is_terminal() && stdin().is_terminal()) {
        bail!("luc top needs a terminal: --batch prints lines");
    }
    let ring_bytes = ring_bytes(&args.buffer)?;
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
    let live = Live::start(args.selection.filter()?, ring_bytes)?;
    if !batch {
        luc_top::show(live, delay_ms, &ended)?;
        return Ok(ExitCode::SUCCESS);
    }
    for line in &live.missing {
        eprintln!("luc: {line}");
    }
    let count = if args.once { Some(1) } else { args.count };
    let delay = Duration::from_millis(delay_ms);
    Ok(if luc_top::print(live, delay, count, args.json, &ended)? {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(INTERRUPTED)
    })
}
