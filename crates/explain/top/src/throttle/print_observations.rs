//! Prints observation after observation as lines, for scripts and files.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use luc_throttle::activity_watch::{ActivityWatch, SystemActivity};

use super::columns::{DISKS, TASKS};
use super::throttle_view::about;
use crate::error::TopError;
use crate::interval_text::table;
use crate::print_intervals::{PrintPace, repeat, write};

/// Time between two reads of the sums.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Shows an observation as text, with [`fmt::Display`].
#[derive(Clone, Copy, Debug)]
pub struct ObservationText<'a>(pub &'a SystemActivity);

impl fmt::Display for ObservationText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = self.0;
        writeln!(f, "luc throttle top: {}; {:.2} s\n", about(seen), seen.seconds)?;
        table(f, DISKS, seen.disks.iter())?;
        writeln!(f)?;
        table(f, TASKS, seen.tasks.iter())?;
        writeln!(f)
    }
}

/// Prints an observation every `delay`, as text or as one line of JSON. Ends after `count` observations, or when
/// `ended` is set. Returns whether it printed all that were asked for.
///
/// # Errors
/// [`TopError`]: nothing can be seen any more, or the output cannot be written.
pub fn print(
    mut watch: ActivityWatch,
    delay: Duration,
    count: Option<u64>,
    json: bool,
    ended: &AtomicBool,
) -> Result<bool, TopError> {
    let pace = PrintPace { delay, step: POLL_INTERVAL, count };
    repeat(
        &mut watch,
        &pace,
        ended,
        |watch| Ok(watch.step()?),
        |watch| {
            let seen = watch.seen();
            write(&seen, ObservationText(&seen), json)
        },
    )
}
