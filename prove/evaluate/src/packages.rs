//! Part `packages`: installs the packages of `dist` in a fresh root. It checks what they leave behind and how long
//! the first minutes take. Runs in the root of the sources, by `scripts/packages-test.sh`.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::error::EvaluateError;
use crate::harness::{Harness, array, parse};

const SCRIPT: &str = "scripts/packages-test.sh";
/// Number of times that the first minutes are timed.
const RUNS: usize = 5;

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let runs = harness.options.repeats.unwrap_or(RUNS);
    let dist = env::var_os("PACKAGES").map_or_else(|| PathBuf::from("dist"), PathBuf::from);
    let file = harness.path("figures.json");
    fs::write(&file, "").map_err(EvaluateError::file("write", &file))?;
    let mut command = Command::new(SCRIPT);
    command.arg(&dist).arg(&file);
    command.env("FIRST_RUNS", runs.to_string());
    // Status 1 says that something is not as it should be: the targets say what.
    harness.execute(&mut command, &[0, 1])?;
    let text = fs::read_to_string(&file).map_err(EvaluateError::file("read", &file))?;
    let figures: Value = parse(&text, SCRIPT)?;
    harness.keep(figures.clone());
    array(&figures["first"], "figures of the first minutes").map(drop)
}
