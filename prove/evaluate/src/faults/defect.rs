//! The gate before a defect was fixed, built from its commit in a temporary worktree.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::error::EvaluateError;
use crate::harness::{Harness, line};

/// Last commit whose early write swallowed unknown errors.
const COMMIT: &str = "02e2902";
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Returns the report of `luc faults` on the gate of that commit, or the reason why there is none.
pub(super) fn report(harness: &Harness) -> Result<Result<Value, String>, EvaluateError> {
    let tree = harness.path("defect");
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(REPOSITORY).args(words);
        command
    };
    let path = tree.to_string_lossy().into_owned();
    // A source tree without history has no such commit.
    let added = harness.execute(&mut git(&["worktree", "add", "--detach", &path, COMMIT]), &[0]);
    if let Err(error) = added {
        return match error {
            EvaluateError::Interrupted => Err(error),
            error => Ok(Err(error.to_string())),
        };
    }
    let report = build_and_try(harness, &tree);
    harness.finish(&mut git(&["worktree", "remove", "--force", &path]), &[0], false)?;
    report.map(Ok)
}

fn build_and_try(harness: &Harness, tree: &Path) -> Result<Value, EvaluateError> {
    let target = tree.join("target");
    let mut build = Command::new(tree.join("scripts/cargo.sh"));
    build
        .current_dir(tree)
        .args(["build", "--release", "--locked", "-p", "luc", "-p", "luc-gate-preload"])
        .env("CARGO_TARGET_DIR", &target);
    harness.execute(&mut build, &[0])?;
    let runner = target.join("release/luc");
    let runner = runner.to_string_lossy();
    let words = ["faults", "--json", "--runner", &runner];
    let report = harness.json(&words)?;
    harness.keep(json!({ "commit": COMMIT, "command": line(&harness.luc(&words)) }));
    Ok(report)
}
