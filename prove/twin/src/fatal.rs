//! Threads whose failure ends the process.
//!
//! Others wait for messages of a failed thread, on a connection that other threads keep open. They would wait forever;
//! when the process ends, all of them notice.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::exit;
use std::thread::Builder;

use crate::error::TwinError;

/// Exit status for bad input, or a machine that cannot do it.
const STATUS_UNABLE: i32 = 2;
/// Exit status of Rust's own after a panic in the first thread.
const STATUS_PANIC: i32 = 101;

/// Runs `body`. If it fails, prints the error and ends the process.
pub(crate) fn or_end<T>(body: impl FnOnce() -> Result<T, TwinError>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => {
            eprintln!("luc-twin: {error}");
            exit(STATUS_UNABLE)
        }
        // The panic has printed itself.
        Err(_) => exit(STATUS_PANIC),
    }
}

/// Runs `body` in a thread of this name, which nobody joins.
pub(crate) fn spawn(
    name: &str,
    body: impl FnOnce() -> Result<(), TwinError> + Send + 'static,
) -> Result<(), TwinError> {
    Builder::new()
        .name(name.to_owned())
        .spawn(move || or_end(body))
        .map_err(TwinError::system("starting a thread"))?;
    Ok(())
}
