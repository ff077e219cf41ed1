//! `luc top`: a live view of file systems, commits, and who waits for whom.

use std::process::ExitCode;

use luc_top::LiveAnalysis;

use super::live_view::{self, ViewForm};
use super::recording_selection::{RecordingSelection, ring_bytes};

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
    #[command(flatten)]
    live: live_view::LiveViewOptions,

    #[command(flatten)]
    selection: RecordingSelection,

    /// Size of the buffer between kernel and recorder: a power of two from 64k to 2G
    #[arg(long, value_name = "SIZE", default_value = "32M")]
    buffer: String,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let shown = args.live.shown("luc top")?;
    let ring_bytes = ring_bytes(&args.buffer)?;
    let ended = live_view::ended_by_a_signal()?;
    let live = LiveAnalysis::start(args.selection.filter()?, ring_bytes)?;
    match shown {
        ViewForm::Screen { delay_ms } => {
            luc_top::show(live, delay_ms, &ended)?;
            Ok(ExitCode::SUCCESS)
        }
        ViewForm::Lines { delay, count } => {
            for line in &live.missing {
                eprintln!("luc: {line}");
            }
            let is_whole = luc_top::print(live, delay, count, args.live.json, &ended)?;
            Ok(live_view::status(is_whole))
        }
    }
}
