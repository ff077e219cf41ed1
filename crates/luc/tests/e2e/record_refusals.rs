//! Messages where recording, or a part of it, is not possible: without BTF, on file systems without a jbd2 journal.
//! Needs root (and a disk for the latter), and says so where it is missing. Without root:
//! `without_privileges_one_line_says_so` and the like beside the other tests of each command. And what becomes of
//! output that nobody takes.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{EmulatedTestDisk, FLUSH_NS, LUC, is_root, refusal, rows, stderr};
use luc_events::store::TraceReader;
use luc_events::tables::{BlockRequest, FsyncCall};

/// Runs `luc` where the kernel's type information is hidden, in a mount namespace of its own.
fn without_btf(arguments: &[&str]) -> Output {
    let script = "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"";
    Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh", LUC])
        .args(arguments)
        .output()
        .expect("unshare runs")
}

#[test]
fn without_btf_one_line_says_so() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("trace");
    let out = out.to_str().expect("plain");
    for arguments in [
        &["record", "--out", out, "--", "true"][..],
        &["record", "--summary", "--out", out, "--duration", "1s"],
        &["record", "--fleet", "--out", out, "--duration", "1s"],
        &["top", "--once"],
    ] {
        let output = without_btf(arguments);
        let message = refusal(&output);
        assert!(message.contains("BTF"), "{arguments:?}: {message}");
        assert!(!folder.path().join("trace").exists());
    }
}

#[test]
fn a_run_that_cannot_be_recorded_is_the_same_run() {
    let folder = tempfile::tempdir().expect("a directory");
    let of = folder.path().join("file");
    // Long enough that a recorder would have begun.
    let script = format!(
        "dd if=/dev/zero bs=1k count=1 conv=fsync status=none of={}; sleep 1",
        of.display()
    );
    let words = ["sh", "-c", &script];
    let run = |options: &[&'static str]| {
        let mut all = vec!["run"];
        all.extend(options);
        all.push("--");
        all.extend(words);
        all
    };
    if !is_root() {
        return;
    }
    let output = without_btf(&run(&[]));
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(text.matches("why is not known").count(), 1, "{text}");
    assert!(text.contains("BTF") && text.contains("--no-why"), "{text}");
    let output = without_btf(&run(&["--no-why"]));
    assert_eq!(output.status.code(), Some(0));
    assert!(!stderr(&output).contains("why"), "{}", stderr(&output));
}

/// On `kind` all is recorded but commits, and that is said.
fn what_can_be_said_of(kind: &str) {
    let Some(disk) = EmulatedTestDisk::new(kind, kind, "") else {
        return;
    };
    let (mount, trace) = (disk.mount(), disk.path("trace"));
    let script = disk.syncs(5);
    let output =
        disk.luc(&["record", "--device", &mount, "--out", &trace, "--", "sh", "-c", &script]);
    let text = stderr(&output);
    if text.contains("needs root") || text.contains("BTF") {
        luc_testkit::skipped!("{}", text.trim());
        return;
    }
    assert!(output.status.success(), "{text}");
    let told = format!("{mount} is on {kind}, which has no ext4 journal");
    assert!(text.lines().any(|line| line.contains(&told)), "{text}");
    let reader = TraceReader::open(Path::new(&trace)).expect("a trace");
    let syncs = rows::<FsyncCall>(&reader);
    assert_eq!(syncs.len(), 5, "{syncs:?}");
    // Each waits for at least one flush of the disk.
    assert!(syncs.iter().all(|row| row.exit_ns - row.enter_ns >= FLUSH_NS), "{syncs:?}");
    assert!(!rows::<BlockRequest>(&reader).is_empty(), "{text}");
    let output = disk.luc(&["explain", "--json", &trace]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let found = report["file_systems"].as_array().expect("a list");
    let found = found.iter().find(|found| found["mount_point"] == mount.as_str());
    let found = found.expect("the file system");
    assert_eq!(found["kind"], kind);
    assert_eq!(found["syncs"]["latency"]["count"], 5);
    assert_eq!(found["commits"]["full"]["count"], 0);
}

#[test]
fn on_xfs_all_but_commits_is_recorded() {
    what_can_be_said_of("xfs");
}

#[test]
fn on_btrfs_all_but_commits_is_recorded() {
    what_can_be_said_of("btrfs");
}

#[test]
fn a_place_without_any_disk_is_told() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let trace = folder.path().join("trace");
    let trace = trace.to_str().expect("plain");
    let output = Command::new(LUC)
        .args(["record", "--device", "/dev/shm", "--out", trace, "--", "true"])
        .output()
        .expect("luc runs");
    let text = stderr(&output);
    if text.contains("needs root") || text.contains("BTF") {
        luc_testkit::skipped!("{}", text.trim());
        return;
    }
    assert!(output.status.success(), "{text}");
    assert!(text.contains("/dev/shm is on tmpfs, which has no ext4 journal"), "{text}");
}

/// Commands that print a text, soon.
const PRINTING: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["completions", "bash"],
    &["man"],
    &["throttle", "--help"],
    &["disk", "list"],
    &["disk", "list", "--json"],
    &["throttle", "install-unit", "--print"],
];

/// Commands that work, and then print.
const WORKING: &[&[&str]] = &[
    &["bench", "metarates", "--dir", ".", "--seconds", "0.2"],
    &["top", "--batch", "--count", "1", "--delay", "250ms"],
    &["run", "--json=/dev/stdout", "--", "true"],
];

/// A pipe whose reader has gone.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    Stdio::from(writer)
}

fn to_full() -> Stdio {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    Stdio::from(full.expect("/dev/full"))
}

#[test]
fn output_that_nobody_takes_is_no_panic() {
    let place = tempfile::tempdir().expect("a directory");
    let luc = |words: &[&str]| {
        let mut command = Command::new(LUC);
        command.args(words).current_dir(place.path());
        command.env("LUC_RUN_DIR", place.path()).stdin(Stdio::null());
        command
    };
    for words in PRINTING.iter().chain(WORKING) {
        let read_by_nobody = luc(words).stdout(unread()).output().expect("luc runs");
        let said = stderr(&read_by_nobody);
        assert!(read_by_nobody.status.success(), "{words:?}: {said}");
        assert!(!said.contains("panicked") && !said.contains("roken pipe"), "{words:?}: {said}");
    }
    for words in PRINTING {
        let deaf = luc(words).stdout(unread()).stderr(unread()).status();
        assert!(deaf.expect("luc runs").success(), "{words:?}");
        // A loss is not hidden.
        let full = luc(words).stdout(to_full()).output().expect("luc runs");
        let refused = refusal(&full);
        assert!(refused.contains("No space left"), "{words:?}: {refused}");
    }
    // A mistake stays one.
    let status = Command::new(LUC).arg("nosuch").stderr(unread()).status();
    assert_eq!(status.expect("luc runs").code(), Some(2));
}
