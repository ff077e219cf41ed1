//! What tests of many crates need, and no program.
//!
//! A test that cannot run here says so by [`skipped!`] and returns. `make test` counts and prints what was skipped;
//! with `LUC_NO_SKIPS` set, as in CI, a skipped test fails.

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

/// The file that skipped tests are written to, a line each.
const LIST: &str = "LUC_SKIPPED";
/// Set where every test must run.
const FORBIDDEN: &str = "LUC_NO_SKIPS";

/// Says that a test cannot run here, and why: the words of a `format!`.
///
/// # Panics
/// Where `LUC_NO_SKIPS` is set.
#[macro_export]
macro_rules! skipped {
    ($($reason:tt)*) => {
        $crate::note_skipped(&format!($($reason)*))
    };
}

/// See [`skipped!`].
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

/// What was found; `None` after saying why a test is skipped, where `is_missing` says that this machine lacks it.
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
