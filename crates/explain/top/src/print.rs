//! Interval after interval as lines, for scripts and files.

use std::io::{self, Write as _, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{TopError, failed};
use crate::live::{Live, STEP};
use crate::{Interval, batch};

/// Prints an interval every `delay`, `count` of them or until `ended`, as text or as a line of JSON each. Whether it
/// printed as many as it was asked for.
///
/// # Errors
/// [`TopError`]: the recorder ended, or the output cannot be written.
pub fn print(
    mut live: Live,
    delay: Duration,
    count: Option<u64>,
    json: bool,
    ended: &AtomicBool,
) -> Result<bool, TopError> {
    live.warm_up(|| ended.load(Ordering::Relaxed))?;
    let mut due = Instant::now() + delay;
    let mut printed = 0;
    while count.is_none_or(|count| printed < count) {
        while Instant::now() < due {
            if ended.load(Ordering::Relaxed) {
                live.stop()?;
                return Ok(count.is_none());
            }
            std::thread::sleep(STEP.min(due.saturating_duration_since(Instant::now())));
            live.take_in()?;
        }
        due += delay;
        write(&live.look()?, json).map_err(failed("the output cannot be written"))?;
        printed += 1;
    }
    live.stop()?;
    Ok(true)
}

fn write(interval: &Interval, json: bool) -> io::Result<()> {
    let mut out = stdout().lock();
    if json {
        serde_json::to_writer(&mut out, interval)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", batch::Text(interval))?;
    }
    out.flush()
}
