//! Files that are not written to their end.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::planted;
use crate::refusals::write;
use crate::run_luc_fleet::names;

/// Writes a page to a file, and spans to a pipe: more than fits into it.
fn into_a_pipe(folder: &Path) -> Child {
    let traces = planted().map(|recorded| write(folder, &recorded.name, &recorded));
    Command::new(env!("CARGO_BIN_EXE_luc-fleet"))
        .current_dir(folder)
        .args(["report", "--html", "page.html", "--otlp", "-"])
        .args(traces)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("luc-fleet runs")
}

/// Exit status, after checks that it printed nothing and that only the traces are left.
fn status(folder: &Path, output: &Output) -> Option<i32> {
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(names(folder), ["client", "server"]);
    output.status.code()
}

#[test]
fn ctrl_c_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut child = into_a_pipe(folder.path());
    // The page is made once spans come, and they wait in the middle until they are read.
    let mut pipe = child.stdout.take().expect("a pipe");
    pipe.read_exact(&mut [0]).expect("a byte");
    assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 3);
    kill_process(Pid::from_child(&child), Signal::INT).expect("sent");
    pipe.read_to_end(&mut Vec::new()).expect("read");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(status(folder.path(), &output), Some(130));
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut child = into_a_pipe(folder.path());
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(status(folder.path(), &output), Some(0));
}
