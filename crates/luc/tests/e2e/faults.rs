//! `luc faults` end to end. Needs root and FUSE; skipped, with the reason, where they are missing.

use crate::common;
use crate::common::leftover_check;

use std::time::Duration;

use leftover_check::LeftoverCheck;

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
    let Some(place) = LeftoverCheck::new("faults") else {
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
    let Some(place) = LeftoverCheck::new("faults") else {
        return;
    };
    let words = ["--policy", "delay:1ms", "--errno", "ENODATA"];
    let report = place.report(&[&SMALL[..], &words].concat(), 0);
    assert!(report["policies"][1]["held_calls"].as_u64() > Some(0), "{report:#}");
}

#[test]
fn a_command_that_notices_ends_the_same_and_one_that_sees_no_failure_is_an_error() {
    let Some(place) = LeftoverCheck::new("faults") else {
        return;
    };
    let write = "dd if=/dev/zero of=file bs=64k count=4 conv=fsync";
    let words = ["--errno", "EIO", "--policy", "delay:1ms", "--", "sh", "-c", write];
    let report = place.report(&words, 0);
    for run in report["runs"].as_array().expect("runs") {
        assert_eq!(run["status"], 1, "{report:#}");
        assert!(run["failed_requests"].as_u64() > Some(0), "{report:#}");
    }
    let message = common::refusal(&place.run(&["--after", "1000", "--", "sh", "-c", write]));
    assert!(message.contains("no request of 'sh' failed without luc"), "{message}");
}

#[test]
fn a_command_that_ends_otherwise_under_the_gate_is_found() {
    let Some(place) = LeftoverCheck::new("faults") else {
        return;
    };
    let script = "echo x > file; sync file; test -z \"$LUC_GATE_POLICY\"";
    let report = place.report(&["--errno", "EIO", "--", "sh", "-c", script], 1);
    assert_eq!(report["differences"], 1);
    assert_eq!(report["runs"][1]["policy"], "auto");
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let Some(place) = LeftoverCheck::new("faults") else {
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
        (&["--policy", "engaged", "--", "true"], "without a COMMAND only"),
        (&["--errno", "EIO", "--errno", "ENODATA", "--", "true"], "more than once"),
        (&["--errno", "ENODATA", "--on", "flush", "--", "true"], "use --errno EIO"),
        (&["--every", "0", "--", "true"], "--every 0"),
        (&["--level", "both"], "'both'"),
        (&["--copy-out", "on"], "use --level kernel"),
        (&["--level", "kernel", "--reach", "notify"], "--reach is the gate's"),
        (&["--level", "kernel", "--runner", "luc"], "--runner is the gate's"),
        (&["--", "/no/such/program"], "/no/such/program"),
    ] {
        place.refused(words, expected);
    }
}

#[test]
fn a_signal_leaves_nothing() {
    let Some(place) = LeftoverCheck::new("faults") else {
        return;
    };
    for (signal, after_ms) in [("INT", 300), ("TERM", 1500)] {
        place.interrupted(&[], signal, Duration::from_millis(after_ms));
    }
}
