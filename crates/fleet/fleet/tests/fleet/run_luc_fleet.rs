//! Runs `luc-fleet`, and lists what it leaves.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

pub(crate) fn fleet(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_luc-fleet")).args(words).output().expect("luc-fleet runs")
}

/// Standard output of a run that must succeed.
pub(crate) fn text_of(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// JSON from a run that must succeed.
pub(crate) fn json_of(output: Output) -> Value {
    serde_json::from_str(&text_of(output)).expect("JSON")
}

/// Runs `luc-fleet`, which must refuse in one line, and returns that line.
pub(crate) fn refusal(words: &[&str]) -> String {
    refusal_of(fleet(words))
}

/// Line of a run that must be refused.
pub(crate) fn refusal_of(output: Output) -> String {
    let line = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.starts_with("luc-fleet: ") && output.stdout.is_empty(), "{line}");
    line
}

/// Sorted names in a directory.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("listed");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("plain")
}
