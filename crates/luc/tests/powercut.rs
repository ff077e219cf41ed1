//! `luc powercut` from end to end: needs root, FUSE and mkfs.ext4, says so if they are missing.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// A place for the disks' state and the mounts; nothing may be left in it.
struct Place(TempDir);

impl Place {
    /// `None`, and the reason printed, if this machine cannot do it.
    fn new() -> Option<Self> {
        let fuse = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse");
        let mkfs = ["/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"].map(Path::new);
        let reason = match std::fs::read_to_string("/proc/self/status") {
            Ok(status) if !status.contains("\nUid:\t0\t0\t") => "needs root",
            _ if fuse.is_err() => "needs /dev/fuse",
            _ if !mkfs.iter().any(|path| path.exists()) => "needs mkfs.ext4",
            _ if !Path::new("/dev/loop-control").exists() => "needs loop devices",
            _ => return Some(Self(TempDir::new().expect("directory"))),
        };
        luc_testkit::skipped!("{reason}");
        None
    }

    fn luc(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_luc"));
        let work = self.0.path().join("tmp");
        std::fs::create_dir_all(&work).expect("directory");
        command
            .arg("powercut")
            .args(words)
            .env("LUC_RUN_DIR", self.0.path().join("run"))
            .env("TMPDIR", work);
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        let output = self.luc(words).output().expect("luc starts");
        self.assert_clean();
        output
    }

    fn report(&self, words: &[&str], status: i32) -> Value {
        let output = self.run(&[&["--json"], words].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {stderr}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn refused(&self, words: &[&str], reason: &str) {
        let output = self.run(words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains(reason), "{stderr}");
    }

    fn assert_clean(&self) {
        for folder in ["run/disk", "tmp"] {
            let left: Vec<_> = std::fs::read_dir(self.0.path().join(folder))
                .into_iter()
                .flatten()
                .collect();
            assert!(left.is_empty(), "{left:?}");
        }
        let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
        let here = self.0.path().to_str().expect("plain path");
        assert!(!mounts.contains(here), "{mounts}");
    }
}

#[test]
fn ext4_keeps_what_it_has_acknowledged() {
    let Some(place) = Place::new() else { return };
    for kind in [&[][..], &["--processes"]] {
        let report = place.report(&[&["--rounds", "2", "--clients", "4"], kind].concat(), 0);
        assert_eq!(report["rounds"], 2);
        assert!(
            report["acknowledged"].as_u64().expect("count") > 0,
            "{report}"
        );
        for key in ["lost", "torn", "not_mountable", "fsck_unclean"] {
            assert_eq!(report[key], 0, "{report}");
        }
        assert_eq!(report["checker"], "e2fsck -fn");
    }
}

#[test]
fn without_fsync_losses_are_found() {
    let Some(place) = Place::new() else { return };
    let words = [
        "--rounds",
        "2",
        "--clients",
        "4",
        "--unsafe-no-fsync",
        "--seed",
        "5",
    ];
    let report = place.report(&words, 1);
    assert!(report["lost"].as_u64().expect("count") > 0, "{report}");
    assert_eq!(report["unsafe_no_fsync"], true);
    let bad = report["bad_rounds"].as_array().expect("rounds");
    assert_eq!(bad[0]["seed"], 5);
    assert!(!bad[0]["examples"].as_array().expect("examples").is_empty());
}

#[test]
fn a_command_that_syncs_passes_and_one_that_does_not_fails() {
    let Some(place) = Place::new() else { return };
    let store = |sync: &str| {
        format!("n=0; while true; do n=$((n+1)); echo $n > f$n; {sync}; echo f$n; done")
    };
    let report = place.report(&["--rounds", "1", "--", "sh", "-c", &store("sync f$n")], 0);
    assert!(
        report["acknowledged"].as_u64().expect("count") > 0,
        "{report}"
    );
    let report = place.report(
        &["--rounds", "1", "--", "sh", "-c", &store("sleep 0.01")],
        1,
    );
    assert_eq!(report["lost"], report["acknowledged"]);
}

#[test]
fn processes_that_left_the_group_are_killed_too() {
    let Some(place) = Place::new() else { return };
    let script = "setsid sleep 3000 & while true; do date > f; sync f; echo f; sleep 0.1; done";
    let report = place.report(&["--rounds", "1", "--", "sh", "-c", script], 0);
    assert!(
        report["acknowledged"].as_u64().expect("count") > 0,
        "{report}"
    );
}

#[test]
fn bad_input_and_bad_commands_are_one_line() {
    let Some(place) = Place::new() else { return };
    place.refused(&["--rounds", "0"], "--rounds 0");
    place.refused(&["--clients", "0"], "--clients 0");
    place.refused(&["--fs", "no-such-fs"], "no-such-fs");
    place.refused(&["--size", "1k"], "1024");
    place.refused(&["--flush", "soon"], "soon");
    place.refused(&["--model", "fxed"], "fxed");
    place.refused(&["--mkfs-options", "-O nonsense"], "nonsense");
    place.refused(&["--", "true"], "ended before the power was cut");
    place.refused(&["--", "/no/such/program"], "/no/such/program");
    place.refused(&["--", "sh", "-c", "echo reason >&2; exit 3"], "reason");
    place.refused(&["--", "sh", "-c", "echo missing; sleep 60"], "'missing'");
    place.refused(
        &["--", "sh", "-c", "echo ../x; sleep 60"],
        "below the directory",
    );
}

#[test]
fn a_signal_leaves_nothing() {
    let Some(place) = Place::new() else { return };
    for (signal, after_ms) in [("INT", 300), ("TERM", 1300)] {
        let child = place
            .luc(&["--rounds", "1000", "--json"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("luc starts");
        std::thread::sleep(Duration::from_millis(after_ms));
        let pid = child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        let output = child.wait_with_output().expect("luc ends");
        assert_eq!(output.status.code(), Some(130));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(report["interrupted"], true);
        place.assert_clean();
    }
}
