//! Programs of the system that the twin calls.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::error::TwinError;

/// Runs one with this text as its standard input, and waits for its end.
pub(crate) fn feed(name: &str, arguments: &[&str], text: &str) -> Result<(), TwinError> {
    let failed = || TwinError::system(format!("running {name}"));
    let mut child = Command::new(name)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed())?;
    let written = match child.stdin.take() {
        Some(mut input) => input.write_all(text.as_bytes()),
        None => Ok(()),
    };
    let output = child.wait_with_output().map_err(failed())?;
    if output.status.success() {
        return written.map_err(failed());
    }
    Err(TwinError::Unable {
        what: format!("{name} {} {}", arguments.join(" "), text.trim()),
        why: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

/// Runs one without input, and waits for its end.
pub(crate) fn run(name: &str, arguments: &[&str]) -> Result<(), TwinError> {
    feed(name, arguments, "")
}
