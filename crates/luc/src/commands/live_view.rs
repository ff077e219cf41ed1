//! The common part of live views: their interval, lines for scripts, and signals that end them.

use std::io::{IsTerminal as _, stdin, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, bail};
use luc_units::parse_duration_ns;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::INTERRUPTED;

/// Options of a live view.
#[derive(Debug, clap::Args)]
pub(super) struct LiveViewOptions {
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
    pub(super) json: bool,
}

/// Form of a view.
pub(super) enum ViewForm {
    Screen {
        delay_ms: u64,
    },
    /// Lines: `count` times, or until a signal ends it.
    Lines {
        delay: Duration,
        count: Option<u64>,
    },
}

impl LiveViewOptions {
    /// The form of the view of `command`.
    ///
    /// # Errors
    /// The options do not go together, or there is no terminal.
    pub(super) fn shown(&self, command: &str) -> anyhow::Result<ViewForm> {
        let batch = self.batch || self.once;
        let delay_ms = parse_duration_ns(&self.delay)? / 1_000_000;
        if !(250..=60_000).contains(&delay_ms) {
            bail!("--delay {}: give a time from 250ms to 60s", self.delay);
        }
        if self.json && !batch {
            bail!("--json needs --batch or --once");
        }
        if batch {
            return Ok(ViewForm::Lines {
                delay: Duration::from_millis(delay_ms),
                count: if self.once { Some(1) } else { self.count },
            });
        }
        if !(stdout().is_terminal() && stdin().is_terminal()) {
            bail!("{command} needs a terminal: --batch prints lines");
        }
        Ok(ViewForm::Screen { delay_ms })
    }
}

/// A flag that is set by a signal that ends the view.
pub(super) fn ended_by_a_signal() -> anyhow::Result<Arc<AtomicBool>> {
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
    Ok(ended)
}

/// The exit status of a view that printed all its lines, or was interrupted.
pub(super) fn status(is_whole: bool) -> ExitCode {
    if is_whole { ExitCode::SUCCESS } else { ExitCode::from(INTERRUPTED) }
}
