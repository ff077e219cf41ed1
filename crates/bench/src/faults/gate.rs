//! How a program comes under the gate.

use std::fmt;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;
use serde_json::Value;

use super::error::FaultsError;

/// A policy under trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Policy {
    /// As in `luc run --policy`.
    Named(String),
    /// Policy `auto`, once others have worked for so long that it is engaged.
    Engaged,
}

/// How programs come under the gate.
#[derive(Debug, Clone)]
pub enum Gate {
    /// By `luc run`.
    Run,
    /// By a library that is preloaded as it is.
    Library {
        /// The library.
        path: PathBuf,
        /// The variable that names the directory for its shared files.
        directory_variable: &'static str,
        /// The variable that names the policy.
        policy_variable: &'static str,
        /// What else it wants in its environment.
        variables: Vec<(&'static str, String)>,
    },
}

/// What the gate did in a run, as far as it says so.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Held {
    /// Calls that went through rounds.
    pub(super) calls: u64,
    /// Whether policy `auto` was engaged at the end.
    pub(super) is_engaged: bool,
}

impl Policy {
    /// As `luc run --policy` takes it.
    pub(super) fn word(&self) -> &str {
        match self {
            Self::Named(policy) => policy,
            Self::Engaged => "auto",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Named(policy) => policy,
            Self::Engaged => "engaged",
        })
    }
}

impl Gate {
    /// The command that runs `words` under `policy`. `work` is a directory for what it needs, where nothing fails.
    pub(super) fn command(
        &self,
        luc: &Path,
        policy: &Policy,
        work: &Path,
        words: &[std::ffi::OsString],
    ) -> Result<Command, FaultsError> {
        match self {
            Self::Run => {
                let mut command = Command::new(luc);
                command.args(["run", "--quiet", "--policy", policy.word(), "--json"]);
                command.arg(report_path(work)).arg("--").args(words);
                Ok(command)
            }
            Self::Library {
                path,
                directory_variable,
                policy_variable,
                variables,
            } => {
                let directory = work.join("gate");
                // Of the run before.
                let _ = fs::remove_dir_all(&directory);
                fs::DirBuilder::new()
                    .mode(0o700)
                    .create(&directory)
                    .map_err(FaultsError::io(
                        "making a directory for the gate",
                        &directory,
                    ))?;
                let mut command = Command::new(&words[0]);
                command
                    .args(&words[1..])
                    .env("LD_PRELOAD", path)
                    .env(directory_variable, directory)
                    .env(policy_variable, policy.word());
                for (name, value) in variables {
                    command.env(name, value);
                }
                Ok(command)
            }
        }
    }

    /// What the gate did on the file system mounted on `dir` in the run that has ended; `None` if it does not say.
    pub(super) fn held(&self, work: &Path, dir: &Path) -> Option<Held> {
        if !matches!(self, Self::Run) {
            return None;
        }
        let report: Value = serde_json::from_slice(&fs::read(report_path(work)).ok()?).ok()?;
        let place = dir.to_str()?;
        let found = find(&report, place)?;
        Some(Held {
            calls: found["gate"]["gated"].as_u64().unwrap_or(0),
            is_engaged: found["gate"]["decision"]["state"] == "engaged",
        })
    }
}

/// The entry of the file system mounted on `place`, wherever in the report the list of them is.
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
        assert_eq!(
            find(&report, "/mnt/x").map(|found| &found["gate"]["gated"]),
            Some(&json!(7))
        );
        assert_eq!(find(&report, "/nowhere"), None);
    }
}
