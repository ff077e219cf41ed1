//! Guests that a signal ends.

use std::thread;
use std::time::Duration;

use luc_vm::{Outcome, Vm};

use crate::error::EvaluateError;
use crate::harness::{missing, stop_if_interrupted};

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs a machine; a signal ends it.
pub fn run(vm: &Vm<'_>) -> Result<Outcome, EvaluateError> {
    let mut guest = vm.start()?;
    while guest.is_running()? {
        stop_if_interrupted()?;
        thread::sleep(POLL_INTERVAL);
    }
    stop_if_interrupted()?;
    Ok(guest.wait()?)
}

/// Returns a file that a guest has written, as text.
///
/// # Errors
/// [`EvaluateError::Missing`].
pub fn file(outcome: &Outcome, name: &str) -> Result<String, EvaluateError> {
    outcome.file(name).ok_or_else(|| missing(name))
}

/// Runs a machine as [`run`] does. A script that ends with another status than 0 is an error.
pub fn succeed(vm: &Vm<'_>, what: &str) -> Result<Outcome, EvaluateError> {
    let outcome = run(vm)?;
    if outcome.status == 0 {
        return Ok(outcome);
    }
    let text = outcome.text();
    let lines: Vec<&str> = text.lines().collect();
    Err(EvaluateError::Command {
        command: what.to_owned(),
        how: format!("exit status {} in the guest", outcome.status),
        said: lines[lines.len().saturating_sub(8)..].join("; "),
    })
}
