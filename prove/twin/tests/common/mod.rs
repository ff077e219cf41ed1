//! Runs of the twin for tests.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod scene;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use luc_twin::truth::Folder;
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_luc-twin");

/// Whether this test may make namespaces. Marks it as skipped if not.
pub(crate) fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("read");
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    if !is_root {
        luc_testkit::skipped!("network namespaces need root");
    }
    is_root
}

/// Makes a folder on a disk: /tmp may be in memory.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

pub(crate) fn command(truth: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg(truth).args(arguments);
    command.stdin(Stdio::null());
    command
}

pub(crate) fn output(truth: &Path, arguments: &[&str]) -> Output {
    command(truth, arguments).output().expect("it runs")
}

/// Waits until a run says that all of its processes are there.
pub(crate) fn wait_for_processes(run: &mut Child) {
    let mut line = String::new();
    BufReader::new(run.stdout.take().expect("its output"))
        .read_line(&mut line)
        .expect("it says something");
    assert_eq!(line, "all processes are there\n");
}

/// Makes a run with these arguments and reads its truth.
pub(crate) fn run(arguments: &[&str]) -> Folder {
    let folder = folder();
    let truth: PathBuf = folder.path().join("truth");
    let output = output(&truth, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Folder::read(&truth).expect("read")
}
