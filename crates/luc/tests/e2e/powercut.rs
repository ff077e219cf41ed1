//! `luc powercut` from end to end: needs root, FUSE and mkfs.ext4, says so if they are missing.

use crate::common::leftover_check;

use std::path::Path;
use std::time::Duration;

use leftover_check::LeftoverCheck;
use serde_json::Value;

/// `None`, and a line that says why, where disks with ext4 cannot be had.
fn place() -> Option<LeftoverCheck> {
    let mkfs = ["/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"].map(Path::new);
    if !mkfs.iter().any(|path| path.exists()) {
        luc_testkit::skipped!("needs mkfs.ext4");
        return None;
    }
    LeftoverCheck::new("powercut")
}

#[test]
fn ext4_keeps_what_it_has_acknowledged() {
    let Some(place) = place() else { return };
    for kind in [&[][..], &["--processes"]] {
        let report = place.report(&[&["--rounds", "2", "--clients", "4"], kind].concat(), 0);
        assert_eq!(report["rounds"], 2);
        assert!(report["acknowledged"].as_u64().expect("count") > 0, "{report}");
        for key in ["lost", "torn", "not_mountable", "fsck_unclean"] {
            assert_eq!(report[key], 0, "{report}");
        }
        assert_eq!(report["checker"], "e2fsck -fn");
    }
}

#[test]
fn without_fsync_losses_are_found() {
    let Some(place) = place() else { return };
    let words = ["--rounds", "2", "--clients", "4", "--unsafe-no-fsync", "--seed", "5"];
    let report = place.report(&words, 1);
    assert!(report["lost"].as_u64().expect("count") > 0, "{report}");
    assert_eq!(report["unsafe_no_fsync"], true);
    let bad = report["bad_rounds"].as_array().expect("rounds");
    assert_eq!(bad[0]["seed"], 5);
    assert!(!bad[0]["examples"].as_array().expect("examples").is_empty());
}

#[test]
fn a_command_that_syncs_passes_and_one_that_does_not_fails() {
    let Some(place) = place() else { return };
    let store = |sync: &str| {
        format!("n=0; while true; do n=$((n+1)); echo $n > f$n; {sync}; echo f$n; done")
    };
    let report = place.report(&["--rounds", "1", "--", "sh", "-c", &store("sync f$n")], 0);
    assert!(report["acknowledged"].as_u64().expect("count") > 0, "{report}");
    let report = place.report(&["--rounds", "1", "--", "sh", "-c", &store("sleep 0.01")], 1);
    assert_eq!(report["lost"], report["acknowledged"]);
}

#[test]
fn processes_that_left_the_group_are_killed_too() {
    let Some(place) = place() else { return };
    let script = "setsid sleep 3000 & while true; do date > f; sync f; echo f; sleep 0.1; done";
    let report = place.report(&["--rounds", "1", "--", "sh", "-c", script], 0);
    assert!(report["acknowledged"].as_u64().expect("count") > 0, "{report}");
}

#[test]
fn bad_input_and_bad_commands_are_one_line() {
    let Some(place) = place() else { return };
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
    place.refused(&["--", "sh", "-c", "echo ../x; sleep 60"], "below the directory");
}

#[test]
fn a_signal_leaves_nothing() {
    let Some(place) = place() else { return };
    for (signal, after_ms) in [("INT", 300), ("TERM", 1300)] {
        let words = ["--rounds", "1000", "--json"];
        let output = place.interrupted(&words, signal, Duration::from_millis(after_ms));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(report["interrupted"], true);
    }
}
