//! `luc demo` from end to end: needs root, FUSE, mkfs.ext4 and 512 MiB of memory, says so if they are missing.

use crate::common;
use crate::common::leftover_check;

use std::fs;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::common::{EmulatedTestDisk, LUC, refusal, stderr, stdout, until, without_mkfs};
use leftover_check::LeftoverCheck;
use serde_json::Value;

/// Each demo wants the processors for itself: they take turns.
static TURN: Mutex<()> = Mutex::new(());

fn place() -> Option<(LeftoverCheck, MutexGuard<'static, ()>)> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    Some((LeftoverCheck::new("demo")?, turn))
}

/// A demo whose clients work on its disk.
fn at_work(place: &LeftoverCheck) -> Child {
    let child =
        place.luc(&[]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("luc starts");
    until("clients on the disk", || !children("metarates", "run/demo/").is_empty());
    child
}

/// The processes whose command line has both words.
fn children(first: &str, second: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("read").flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process: &u32| {
            let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(first) && line.contains(second)
        })
        .collect()
}

fn send(signal: &str, process: u32) {
    let sent = Command::new("kill").args(["-s", signal, &process.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
}

/// Nothing of the place is left, and no process of the demo.
fn until_clean(place: &LeftoverCheck) {
    until("nothing left", || {
        place.left().is_empty() && children("metarates", "run/demo/").is_empty()
    });
}

#[test]
fn a_demo_shows_its_figures_and_leaves_nothing() {
    let Some((place, _turn)) = place() else {
        return;
    };
    let report = place.report(&[], 0);
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["disk"]["flush_ns"], 6_000_000, "{report}");
    let calls = &report["comparison"]["calls_per_s"];
    for side in ["with", "without"] {
        let runs = report["comparison"][side].as_array().expect("runs");
        assert_eq!(runs.len(), 3, "{side}");
        assert!(calls[side].as_f64().expect("a rate") > 0.0, "{calls}");
    }
    assert_eq!(report["powercut"]["rounds"], 3);
    assert_eq!(report["powercut"]["lost"], 0, "{report}");
    assert!(report["powercut"]["acknowledged"].as_u64().expect("count") > 0);
}

#[test]
fn a_signal_leaves_nothing() {
    let Some((place, _turn)) = place() else {
        return;
    };
    for signal in ["INT", "TERM"] {
        let mut child = at_work(&place);
        send(signal, child.id());
        let status = child.wait().expect("luc ends");
        assert_eq!(status.code(), Some(130), "{signal}");
        let left = place.left();
        assert!(left.is_empty(), "{signal}: {left:?}");
    }
}

#[test]
fn a_killed_demo_leaves_nothing() {
    let Some((place, _turn)) = place() else {
        return;
    };
    let mut child = at_work(&place);
    child.kill().expect("killed");
    child.wait().expect("waited for");
    until_clean(&place);
}

#[test]
fn the_next_command_clears_what_a_demo_killed_with_its_guardian_has_left() {
    let Some((place, _turn)) = place() else {
        return;
    };
    let mut child = at_work(&place);
    let guardians = children("--clear-up-after", &child.id().to_string());
    assert_eq!(guardians.len(), 1, "{guardians:?}");
    send("KILL", guardians[0]);
    child.kill().expect("killed");
    child.wait().expect("waited for");
    assert!(!place.left().is_empty());
    let mut said = String::new();
    until("nothing left", || {
        let listed = place.other(&["disk", "list"]).output();
        said += &stderr(&listed.expect("luc starts"));
        place.left().is_empty()
    });
    assert!(said.contains("after 1 killed demo: restored"), "{said}");
    until_clean(&place);
}

#[test]
fn a_program_that_sees_the_disk_elsewhere_is_named_soon() {
    let Some((place, _turn)) = place() else {
        return;
    };
    let child = at_work(&place);
    let mut other = Command::new("unshare")
        .args(["--mount", "sh", "-c", "echo ready; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare runs");
    let mut ready = [0; 6];
    let output = other.stdout.as_mut().expect("piped");
    output.read_exact(&mut ready).expect("it is there");
    let begun = Instant::now();
    send("INT", child.id());
    let said = stderr(&child.wait_with_output().expect("luc ends"));
    // It was more than 40 s.
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    let holder = format!("process {} (cat) has it mounted on", other.id());
    assert_eq!(said.matches(&holder).count(), 1, "{said}");
    drop(other.stdin.take());
    other.wait().expect("it ends");
    until("nothing left", || {
        let listed = place.other(&["disk", "list"]).output();
        listed.expect("luc starts").status.success() && place.left().is_empty()
    });
    until_clean(&place);
}

#[test]
fn what_is_missing_is_named_in_one_line() {
    if !common::is_root() {
        return;
    }
    let message = refusal(&without_mkfs().arg("demo").output().expect("unshare runs"));
    for part in ["mkfs.ext4", "e2fsprogs", "--dir"] {
        assert!(message.contains(part), "{message}");
    }
    let folder = tempfile::tempdir().expect("a directory");
    let missing = folder.path().join("missing");
    let mut command = Command::new(LUC);
    command.arg("demo").arg("--dir").arg(&missing);
    let message = refusal(&command.output().expect("luc starts"));
    assert!(message.contains("missing"), "{message}");
    // A file system where the gate stands aside: no figure.
    let script = "mount -t tmpfs none \"$0\" && exec \"$@\" \"$0\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]);
    command.arg(folder.path()).args([LUC, "demo", "--dir"]);
    let message = refusal(&command.output().expect("unshare runs"));
    let said = "is on tmpfs, not ext4: luc run does nothing here";
    assert!(message.contains(said), "{message}");
}

#[test]
fn on_a_disk_of_the_user_s_the_files_are_removed() {
    let Some(disk) = EmulatedTestDisk::new("demo", "ext4", "") else {
        return;
    };
    let output = disk.luc(&["demo", "--json", "--dir", &disk.mount()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["disk"], Value::Null);
    assert_eq!(report["powercut"], Value::Null);
    let runs = report["comparison"]["with"].as_array().map(Vec::len);
    assert_eq!(runs, Some(3));
    let left = fs::read_dir(disk.mount()).expect("read").flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["lost+found"]);
}
