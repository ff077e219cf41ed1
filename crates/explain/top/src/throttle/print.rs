//! Look after look as lines, for scripts and files.

use std::fmt;
use std::io::{self, Write as _, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use luc_throttle::watch::{Seen, Watch};

use super::columns::{DISKS, TASKS};
use super::view::about;
use crate::batch::table;
use crate::error::{TopError, failed};

/// How often the sums are looked at.
pub(super) const STEP: Duration = Duration::from_millis(100);

/// Shows what was seen as text, with [`fmt::Display`].
#[derive(Clone, Copy, Debug)]
pub struct Text<'a>(pub &'a Seen);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = self.0;
        writeln!(f, "luc throttle top: {}; {:.2} s\n", about(seen), seen.seconds)?;
        table(f, DISKS, seen.disks.iter())?;
        writeln!(f)?;
        table(f, TASKS, seen.tasks.iter())?;
        writeln!(f)
    }
}

/// Prints what was seen every `delay`, `count` times or until `ended`, as text or as a line of JSON each. Whether it
/// printed as many as it was asked for.
///
/// # Errors
/// [`TopError`]: nothing can be seen any more, or the output cannot be written.
pub fn print(
    mut watch: Watch,
    delay: Duration,
    count: Option<u64>,
    json: bool,
    ended: &AtomicBool,
) -> Result<bool, TopError> {
    let mut due = Instant::now() + delay;
    let mut printed = 0;
    while count.is_none_or(|count| printed < count) {
        while Instant::now() < due {
            if ended.load(Ordering::Relaxed) {
                return Ok(count.is_none());
            }
            std::thread::sleep(STEP.min(due.saturating_duration_since(Instant::now())));
            watch.step()?;
        }
        due += delay;
        write(&watch.seen(), json).map_err(failed("the output cannot be written"))?;
        printed += 1;
    }
    Ok(true)
}

fn write(seen: &Seen, json: bool) -> io::Result<()> {
    let mut out = stdout().lock();
    if json {
        serde_json::to_writer(&mut out, seen)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", Text(seen))?;
    }
    out.flush()
}
