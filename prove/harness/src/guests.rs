//! Guests that a signal ends.

use std::thread;
use std::time::Duration;

use luc_host::interrupt::interrupted;
use luc_vm::{Outcome, Vm};

use crate::error::EvaluateError;

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs a machine; a signal ends it.
pub fn run(vm: &Vm<'_>) -> Result<Outcome, EvaluateError> {
    let mut guest = vm.start()?;
    while guest.is_running()? {
        if interrupted() {
            return Err(EvaluateError::Interrupted);
        }
        thread::sleep(POLL_INTERVAL);
    }
    if interrupted() {
        return Err(EvaluateError::Interrupted);
    }
    Ok(guest.wait()?)
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
