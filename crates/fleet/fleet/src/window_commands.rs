//! Runs `luc-fleet pull`, `freeze` and `window`, which take windows of rings as files.

use std::io::{self, IsTerminal as _, Write as _};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use luc_fleet::{Endpoint, FleetError, JoinedTraces, TablesToRead, TraceArgument, called};
use luc_fleet_rings::{self as rings, PullError, ReceivedAmount, time_window};
use luc_host::interrupt_flag;
use luc_units::number_formats::FormattedSize;

use crate::Failure;
use crate::arguments::{FreezeArgs, PullArgs, WindowStreamArgs};
use crate::report_files::EXIT_INTERRUPTED;

/// Interval of progress messages during a long pull.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) fn pull(args: &PullArgs) -> Result<ExitCode, Failure> {
    interrupt_flag::install()?;
    let mut due = Instant::now() + PROGRESS_INTERVAL;
    let look = |index: usize, bytes: u64| {
        if Instant::now() >= due {
            due = Instant::now() + PROGRESS_INTERVAL;
            let source = luc_units::plain(&args.sources[index].to_string());
            let (number, all) = (index + 1, args.sources.len());
            let size = FormattedSize(bytes as f64);
            eprintln!("luc-fleet: {number} of {all}: {source}: {size} so far");
        }
        if interrupt_flag::interrupted() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    match rings::pull(&args.sources, args.span.window_or_all(), &args.out, look) {
        Ok(pulled) => {
            for one in pulled {
                if !one.said.is_empty() {
                    eprintln!("luc-fleet: {} says: {}", one.name, one.said);
                }
                let path = args.out.join(&one.name);
                say(&path.display().to_string(), one.received);
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error @ PullError::Interrupted) => {
            eprintln!("luc-fleet: {error}");
            Ok(ExitCode::from(EXIT_INTERRUPTED))
        }
        Err(error) => Err(error.into()),
    }
}

/// Keeps a window, and prints whom services asked.
pub(crate) fn freeze(args: &FreezeArgs) -> Result<(), Failure> {
    let part = &args.part;
    let window = part.span.window_or_all();
    match rings::freeze(&part.directory, window) {
        Ok((path, received)) => say(&path.display().to_string(), received),
        // Another caller may have kept the same window already.
        Err(error @ PullError::Exists(_)) if !args.called_by.is_empty() => {
            eprintln!("luc-fleet: {}", luc_units::plain(&error.to_string()));
        }
        Err(error) => return Err(error.into()),
    }
    if args.called_by.is_empty() {
        return Ok(());
    }
    let source = TraceArgument { name: None, directory: part.directory.clone() };
    let joined = JoinedTraces::read(&[source], TablesToRead::All, Some(window))?;
    let ports: Vec<Endpoint> = args.called_by.iter().copied().map(Endpoint::Port).collect();
    let mut out = io::stdout().lock();
    for address in called(&joined, &ports) {
        writeln!(out, "{address}")?;
    }
    Ok(())
}

pub(crate) fn send(args: &WindowStreamArgs) -> Result<(), Failure> {
    let out = io::stdout();
    if out.is_terminal() {
        return Err(Failure::Terminal);
    }
    let part = &args.part;
    let segments = time_window::segments(&part.directory, part.span.window_or_all())
        .map_err(FleetError::from)?;
    let sent = rings::send(&segments, out.lock())?;
    say_gone(sent);
    Ok(())
}

/// Reports what was written.
pub(crate) fn say(path: &str, received: ReceivedAmount) {
    eprintln!(
        "luc-fleet: {}: {} segments, {}",
        luc_units::plain(path),
        received.segments,
        FormattedSize(received.bytes as f64)
    );
    say_gone(received);
}

/// Reports segments that are missing at the begin.
fn say_gone(received: ReceivedAmount) {
    if received.gone > 0 {
        eprintln!(
            "luc-fleet: without the oldest {}, which the recorder removed meanwhile",
            received.gone
        );
    }
}
