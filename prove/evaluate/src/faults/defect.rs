//! The gate as it was before it was mended: built from its commit in a worktree that goes away again.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::error::EvaluateError;
use crate::harness::{Harness, line};

/// The last commit whose early write swallowed errors that it did not know.
const COMMIT: &str = "02e2902";
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The report of `luc faults` on the gate of that commit; why it cannot be had, if it cannot.
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
    let report = tried(harness, &tree);
    harness.finish(&mut git(&["worktree", "remove", "--force", &path]), &[0], false)?;
    report.map(Ok)
}

fn tried(harness: &Harness, tree: &Path) -> Result<Value, EvaluateError> {
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
