//! Helpers for the tests of many crates. No program uses them.
//!
//! A test that cannot run here says so by [`skipped!`] and returns. `make test` counts and prints skipped tests. With
//! `LUC_NO_SKIPS` set, as in CI, a skipped test fails.

#[cfg(feature = "command-line")]
pub mod command_line;
#[cfg(feature = "events")]
pub mod events;
#[cfg(feature = "fleet")]
pub mod fleet;
#[cfg(feature = "json")]
pub mod json;
mod meanwhile;
pub mod page;
pub mod perfetto;
#[cfg(feature = "counters")]
pub mod pmu;
pub mod talk;
#[cfg(feature = "vm")]
pub mod vm;

pub use meanwhile::Meanwhile;

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::thread;

/// Variable with the file that skipped tests are appended to, a line each.
const LIST: &str = "LUC_SKIPPED";
/// Variable that is set where every test must run.
const FORBIDDEN: &str = "LUC_NO_SKIPS";

/// Marks a test as skipped, with the reason as in `format!`.
///
/// # Panics
/// Where `LUC_NO_SKIPS` is set.
#[macro_export]
macro_rules! skipped {
    ($($reason:tt)*) => {
        $crate::note_skipped(&format!($($reason)*))
    };
}

/// Marks a test as skipped. See [`skipped!`].
///
/// # Panics
/// Where `LUC_NO_SKIPS` is set, or the list cannot be written.
pub fn note_skipped(reason: &str) {
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    assert!(
        std::env::var_os(FORBIDDEN).is_none(),
        "{test} is skipped where {FORBIDDEN} is set: {reason}"
    );
    println!("skipped: {reason}");
    if let Some(list) = std::env::var_os(LIST) {
        let line = format!("{test}: {reason}\n");
        let list = OpenOptions::new().create(true).append(true).open(list);
        list.and_then(|mut list| list.write_all(line.as_bytes()))
            .expect("the list of skipped tests is written");
    }
}

/// Returns the value that was found. If `is_missing` says that this machine lacks it, marks the test as skipped and
/// returns `None`.
///
/// # Panics
/// At any other error, and as [`skipped!`].
pub fn unless_missing<T, E: Display>(
    found: Result<T, E>,
    is_missing: impl FnOnce(&E) -> bool,
) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(error) if is_missing(&error) => {
            skipped!("{error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}
