//! `luc-fleet pull`, `freeze` and `window`: what rings have of a time, as files.

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use luc_fleet::pull::{self, PullError, Received};
use luc_fleet::{Window, window};
use luc_units::format_size;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::Failure;
use crate::arguments::{Freeze, Pull, Send};
use crate::files::INTERRUPTED;

/// What takes longer says how far it is.
const LONG: Duration = Duration::from_secs(2);

/// Collects a window.
pub(crate) fn pull(args: &Pull) -> Result<ExitCode, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let window = args.span.window().unwrap_or(Window::ALL);
    let began = Instant::now();
    let mut number = 0;
    let pulled = pull::pull(&args.sources, window, &args.out, &interrupted, |source| {
        number += 1;
        if began.elapsed() >= LONG {
            let source = luc_units::plain(&source.to_string());
            eprintln!("luc-fleet: {number} of {}: {source}", args.sources.len());
        }
    });
    match pulled {
        Ok(pulled) => {
            for one in pulled {
                let path = args.out.join(&one.name);
                say(&path.display().to_string(), one.received);
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error @ PullError::Interrupted) => {
            eprintln!("luc-fleet: {error}");
            Ok(ExitCode::from(INTERRUPTED))
        }
        Err(error) => Err(error.into()),
    }
}

/// Keeps a window.
pub(crate) fn freeze(args: &Freeze) -> Result<(), Failure> {
    let window = args.span.window().unwrap_or(Window::ALL);
    let (path, received) = pull::freeze(&args.directory, window)?;
    say(&path.display().to_string(), received);
    Ok(())
}

/// Sends a window.
pub(crate) fn send(args: &Send) -> Result<(), Failure> {
    let out = io::stdout();
    if out.is_terminal() {
        return Err(Failure::Terminal);
    }
    let window = args.span.window().unwrap_or(Window::ALL);
    let segments = window::segments(&args.directory, window)?;
    pull::send(&segments, out.lock())?;
    Ok(())
}

/// Says what was made.
pub(crate) fn say(path: &str, received: Received) {
    eprintln!(
        "luc-fleet: {}: {} segments, {}",
        luc_units::plain(path),
        received.segments,
        format_size(received.bytes)
    );
}
