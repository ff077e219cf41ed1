//! `luc faults` end to end. Needs root and FUSE; skipped, with the reason, where they are missing.

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use common::{LUC, is_root, refusal, stderr};
use serde_json::Value;

/// A directory for state and mounts of one test, which must be empty in the end.
struct Place(PathBuf);

impl Place {
    /// `None`, and a line that says why, where emulated disks cannot be had.
    fn new(test: &str) -> Option<Self> {
        if !is_root() {
            return None;
        }
        for device in ["/dev/fuse", "/dev/loop-control"] {
            if let Err(error) = fs::File::options().read(true).write(true).open(device) {
                luc_testkit::skipped!("{device}: {error}");
                return None;
            }
        }
        let name = format!("luc-faults-test-{test}-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        fs::create_dir_all(root.join("tmp")).expect("made");
        Some(Self(root))
    }

    fn luc(&self, words: &[&str]) -> Command {
        let mut command = Command::new(LUC);
        command
            .arg("faults")
            .args(words)
            .env("LUC_RUN_DIR", self.0.join("run"))
            .env("TMPDIR", self.0.join("tmp"));
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        let output = self.luc(words).output().expect("luc starts");
        self.assert_clean();
        output
    }

    fn report(&self, words: &[&str], status: i32) -> Value {
        let output = self.run(&[&["--json"], words].concat());
        let message = stderr(&output);
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(
            output.status.code(),
            Some(status),
            "{words:?}: {message}{report}"
        );
        serde_json::from_str(&report).expect("JSON")
    }

    fn assert_clean(&self) {
        for folder in ["run/disk", "tmp"] {
            let left: Vec<_> = fs::read_dir(self.0.join(folder))
                .into_iter()
                .flatten()
                .collect();
            assert!(left.is_empty(), "{left:?}");
        }
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let here = self.0.to_str().expect("plain path");
        assert!(!mounts.contains(here), "{mounts}");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let disks = Command::new(LUC)
            .args(["disk", "remove", "--all"])
            .env("LUC_RUN_DIR", self.0.join("run"))
            .output();
        let _ = disks;
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A small part of the matrix.
const SMALL: [&str; 8] = [
    "--call",
    "fsync",
    "--call",
    "o_sync",
    "--mount-options",
    "errors=remount-ro",
    "--flush",
    "1ms",
];

#[test]
fn what_the_gate_only_counts_is_told_as_without_it() {
    let Some(place) = Place::new("off") else {
        return;
    };
    let words = ["--policy", "off", "--errno", "EIO", "--errno", "ENODATA"];
    let report = place.report(&[&SMALL[..], &words].concat(), 0);
    // Two calls, three blocks, two kinds of files, with and without opening them again; flushes with one block.
    let trials = 2 * 24 + 8;
    assert_eq!(report["trials"], trials);
    assert_eq!(report["differences"], serde_json::json!([]));
    let failed = report["failed_requests"].as_u64();
    assert!(failed >= Some(2 * 2 * 24), "{report:#}");
    assert_eq!(report["policies"][1]["policy"], "off");
    assert_eq!(report["policies"][1]["held_calls"], 0);
}

/// A bad sector: the commonest way for a disk to fail.
#[test]
fn a_bad_sector_is_told_of_by_the_gate() {
    let Some(place) = Place::new("medium") else {
        return;
    };
    let words = ["--policy", "delay:1ms", "--errno", "ENODATA"];
    let report = place.report(&[&SMALL[..], &words].concat(), 0);
    assert!(
        report["policies"][1]["held_calls"].as_u64() > Some(0),
        "{report:#}"
    );
}

#[test]
fn a_command_that_notices_ends_the_same_and_one_that_sees_no_failure_is_an_error() {
    let Some(place) = Place::new("command") else {
        return;
    };
    let write = "dd if=/dev/zero of=file bs=64k count=4 conv=fsync";
    let words = [
        "--errno",
        "EIO",
        "--policy",
        "delay:1ms",
        "--",
        "sh",
        "-c",
        write,
    ];
    let report = place.report(&words, 0);
    for run in report["runs"].as_array().expect("runs") {
        assert_eq!(run["status"], 1, "{report:#}");
        assert!(run["failed_requests"].as_u64() > Some(0), "{report:#}");
    }
    let message = refusal(&place.run(&["--after", "1000", "--", "sh", "-c", write]));
    assert!(
        message.contains("no request of 'sh' failed without the gate"),
        "{message}"
    );
}

#[test]
fn a_command_that_ends_otherwise_under_the_gate_is_found() {
    let Some(place) = Place::new("otherwise") else {
        return;
    };
    let script = "echo x > file; sync file; test -z \"$LUC_GATE_POLICY\"";
    let report = place.report(&["--errno", "EIO", "--", "sh", "-c", script], 1);
    assert_eq!(report["differences"], 1);
    assert_eq!(report["runs"][1]["policy"], "auto");
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let Some(place) = Place::new("bad") else {
        return;
    };
    for (words, expected) in [
        (&["--errno", "EPERM"][..], "cannot carry it"),
        (&["--call", "sync"], "no such call"),
        (&["--policy", "fast"], "no such policy"),
        (&["--after", "3"], "--after goes with a COMMAND only"),
        (&["--beside", "0"], "--beside 0"),
        (&["--flush", "soon"], "'soon'"),
        (&["--size", "1k"], "1024"),
        (&["--fs", "no-such-fs"], "no-such-fs"),
        (&["--runner", "/no/such/luc"], "/no/such/luc"),
        (
            &["--policy", "engaged", "--", "true"],
            "without a COMMAND only",
        ),
        (
            &["--errno", "EIO", "--errno", "ENODATA", "--", "true"],
            "more than once",
        ),
        (
            &["--errno", "ENODATA", "--on", "flush", "--", "true"],
            "use --errno EIO",
        ),
        (&["--every", "0", "--", "true"], "--every 0"),
        (&["--", "/no/such/program"], "/no/such/program"),
    ] {
        let message = refusal(&place.run(words));
        assert!(message.contains(expected), "{words:?}: {message}");
    }
}

#[test]
fn a_signal_leaves_nothing() {
    let Some(place) = Place::new("signal") else {
        return;
    };
    for (signal, after_ms) in [("INT", 300), ("TERM", 1500)] {
        let child = place
            .luc(&[])
            .stdout(Stdio::piped())
            .spawn()
            .expect("luc starts");
        std::thread::sleep(Duration::from_millis(after_ms));
        let pid = child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        let output = child.wait_with_output().expect("luc ends");
        assert_eq!(output.status.code(), Some(130));
        place.assert_clean();
    }
}
