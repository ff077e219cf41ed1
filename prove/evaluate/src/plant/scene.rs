//! Several programs at the same time, as children of one process, so that one recording has them all.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::super::error::EvaluateError;
use super::super::harness::{missing, wait};

/// Separator between the words of two programs.
pub(in super::super) const AND: &str = "+";

/// Starts `luc-evaluate plant` for each list of words and waits for all. Returns each one's process id and rounds, in
/// order.
///
/// # Errors
/// [`EvaluateError`]: one could not be started or failed; the others are waited for.
pub fn play(words: &[String]) -> Result<Value, EvaluateError> {
    let myself = std::env::current_exe().map_err(EvaluateError::file("find", "luc-evaluate"))?;
    let mut children = Vec::new();
    let mut failed = None;
    for words in words.split(|word| word == AND) {
        let mut command = Command::new(&myself);
        command.arg("plant").args(words).stdout(Stdio::piped());
        match command.spawn() {
            Ok(child) => children.push(child),
            Err(reason) => failed = Some(EvaluateError::file("run", &myself)(reason)),
        }
    }
    let mut played = Vec::new();
    for mut child in children {
        let process = child.id();
        let outcome = wait(&mut child, true).and_then(|_| child.wait_with_output());
        match outcome {
            Ok(output) if output.status.success() => {
                let said = String::from_utf8_lossy(&output.stdout);
                let rounds =
                    said.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
                played.push(json!({ "process": process, "rounds": rounds }));
            }
            Ok(_) => failed = failed.or(Some(missing("the rounds of a program"))),
            Err(reason) => {
                failed = failed.or(Some(EvaluateError::file("wait for", &myself)(reason)))
            }
        }
    }
    failed.map_or(Ok(Value::Array(played)), Err)
}
