//! Prints interval after interval as lines, for scripts and files.

use std::fmt;
use std::io::{self, Write as _, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::{TopError, failed};
use crate::interval_text;
use crate::live_analysis::{LiveAnalysis, POLL_INTERVAL};

/// Prints an interval every `delay`, as text or as one line of JSON. Ends after `count` intervals, or when `ended` is
/// set. Returns whether it printed all that were asked for.
///
/// # Errors
/// [`TopError`]: the recorder ended, or the output cannot be written.
pub fn print(
    mut live: LiveAnalysis,
    delay: Duration,
    count: Option<u64>,
    json: bool,
    ended: &AtomicBool,
) -> Result<bool, TopError> {
    live.warm_up(|| ended.load(Ordering::Relaxed))?;
    let pace = PrintPace { delay, step: POLL_INTERVAL, count };
    let is_complete = repeat(&mut live, &pace, ended, LiveAnalysis::take_in, |live| {
        let interval = live.look()?;
        write(&interval, interval_text::IntervalText(&interval), json)
    })?;
    live.stop()?;
    Ok(is_complete)
}

/// Times of a repeated print.
pub(crate) struct PrintPace {
    /// Time from print to print.
    pub(crate) delay: Duration,
    /// Time between two steps while waiting for the next print.
    pub(crate) step: Duration,
    /// Number of prints; `None` for no end.
    pub(crate) count: Option<u64>,
}

/// Prints at a pace until `ended` is set, and does a step again and again in between. Returns whether it printed all
/// that were asked for.
pub(crate) fn repeat<S>(
    source: &mut S,
    pace: &PrintPace,
    ended: &AtomicBool,
    step: impl Fn(&mut S) -> Result<(), TopError>,
    print: impl Fn(&mut S) -> Result<(), TopError>,
) -> Result<bool, TopError> {
    let mut due = Instant::now() + pace.delay;
    let mut printed = 0;
    while pace.count.is_none_or(|count| printed < count) {
        while Instant::now() < due {
            if ended.load(Ordering::Relaxed) {
                return Ok(pace.count.is_none());
            }
            std::thread::sleep(pace.step.min(due.saturating_duration_since(Instant::now())));
            step(source)?;
        }
        due += pace.delay;
        print(source)?;
        printed += 1;
    }
    Ok(true)
}

/// Writes a value as a line of JSON or as text.
pub(crate) fn write(
    value: &impl Serialize,
    text: impl fmt::Display,
    json: bool,
) -> Result<(), TopError> {
    let write = || -> io::Result<()> {
        let mut out = stdout().lock();
        if json {
            serde_json::to_writer(&mut out, value)?;
            writeln!(out)?;
        } else {
            write!(out, "{text}")?;
        }
        out.flush()
    };
    write().map_err(failed("the output cannot be written"))
}
