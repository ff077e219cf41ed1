//! Runs programs under the gate.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;
use serde_json::Value;

/// A policy under trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialPolicy {
    /// A policy named as in `luc run --policy`.
    Named(String),
    /// Policy `auto`, once others have worked long enough for it to be engaged.
    Engaged,
}

/// The `luc` whose `run` brings programs under the gate: this build or another.
#[derive(Debug, Clone)]
pub struct GateCommand {
    pub luc: PathBuf,
    /// Further options of `luc run`.
    pub options: Vec<String>,
}

/// Calls that were held in a run.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct GateHeldCalls {
    /// Calls that went through rounds of the gate, or commits that the module held.
    pub(super) calls: u64,
    /// Whether policy `auto` was engaged at the end.
    pub(super) is_engaged: bool,
}

impl TrialPolicy {
    /// Returns its name for `luc run --policy`.
    pub(super) fn word(&self) -> &str {
        match self {
            Self::Named(policy) => policy,
            Self::Engaged => "auto",
        }
    }
}

impl fmt::Display for TrialPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Named(policy) => policy,
            Self::Engaged => "engaged",
        })
    }
}

impl GateCommand {
    /// Builds the command that runs `words` under `policy`. `work` is a directory for its files, where nothing fails.
    pub(super) fn command(&self, policy: &TrialPolicy, work: &Path, words: &[OsString]) -> Command {
        let mut command = Command::new(&self.luc);
        command.args(["run", "--quiet", "--policy", policy.word(), "--json"]);
        command.arg(report_path(work));
        command.args(&self.options).arg("--").args(words);
        command
    }

    /// Returns the gate's figures on the file system mounted on `dir` in the run that has ended; `None` if it gives
    /// none.
    pub(super) fn held(work: &Path, dir: &Path) -> Option<GateHeldCalls> {
        let report: Value = serde_json::from_slice(&fs::read(report_path(work)).ok()?).ok()?;
        let place = dir.to_str()?;
        let found = find(&report, place)?;
        let gate = &found["gate"];
        Some(GateHeldCalls {
            calls: gate["gated"].as_u64().unwrap_or(0),
            is_engaged: ["decision", "flush_decision"]
                .iter()
                .any(|decision| gate[decision]["state"] == "engaged"),
        })
    }
}

/// Returns the entry of the file system mounted on `place`, wherever in the report the list of them is.
fn find<'v>(report: &'v Value, place: &str) -> Option<&'v Value> {
    match report {
        Value::Object(fields) if fields.get("mount_point").is_some_and(|at| at == place) => {
            Some(report)
        }
        Value::Object(fields) => fields.values().find_map(|value| find(value, place)),
        Value::Array(values) => values.iter().find_map(|value| find(value, place)),
        _ => None,
    }
}

fn report_path(work: &Path) -> PathBuf {
    work.join("run.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_entry_of_a_mount_is_found() {
        let report = json!({ "gate": { "file_systems": [
            { "mount_point": "/", "gate": null },
            { "mount_point": "/mnt/x", "gate": { "gated": 7 } },
        ] } });
        assert_eq!(find(&report, "/mnt/x").map(|found| &found["gate"]["gated"]), Some(&json!(7)));
        assert_eq!(find(&report, "/nowhere"), None);
    }
}
