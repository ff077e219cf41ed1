//! Why a run under `luc run` was as fast as it was, on an emulated disk. Needs root, FUSE, loop devices and BTF;
//! skipped, with the reason, where they are missing.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{LUC, RecordedDisk, stderr};
use serde_json::Value;

/// Compares eight threads that create and fsync files with and without the gate: what is said, and the report.
fn compared(bench: &RecordedDisk, options: &[&str]) -> (String, Value) {
    let (json, mount) = (bench.path("report.json"), bench.mount());
    let words = [
        &["run", "--policy", "pid:8", "--compare", "1"],
        options,
        &["--json", &json, "--", LUC, "bench", "metarates", "--dir"],
        &[&mount, "--threads", "8", "--seconds", "1"],
        &["--file-size", "1k", "--json"],
    ];
    let output = bench.luc(&words.concat());
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let report = serde_json::from_slice(&fs::read(json).expect("report")).expect("JSON");
    (text, report)
}

#[test]
fn a_comparison_says_how_predecessor_waits_changed() {
    let Some(bench) = RecordedDisk::new("why") else {
        return;
    };
    let (text, report) = compared(&bench, &[]);
    let message = |words: &str| text.lines().any(|line| line.trim().starts_with(words));
    assert!(message("predecessor waits") && message("calls per commit"), "{text}");
    let why = &report["why"];
    assert_eq!(why["with"]["mount_point"], bench.mount().as_str(), "{why}");
    let us = |side: &str, taker: &str| {
        let taken = &why[side]["takers"][taker]["us_per_call"];
        taken.as_f64().unwrap_or(0.0)
    };
    // Callers in a closed loop that miss a commit wait for all of it; the gate holds them so that they do not.
    let (without_us, with_us) = (us("without", "predecessor"), us("with", "predecessor"));
    assert!(with_us < without_us, "{why:#}");
    assert!(us("without", "gate") == 0.0 && us("with", "gate") > 0.0, "{why:#}");
    for side in ["without", "with"] {
        assert!(us(side, "own_commit") > 0.0, "{why:#}");
    }
}

/// Each program begins when the recorder is there, which is a thread of the shell's parent.
#[test]
fn what_passes_by_and_what_is_not_reached_is_named() {
    let Some(bench) = RecordedDisk::new("passing") else {
        return;
    };
    let (program, json) = (bench.path("passing"), bench.path("report.json"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/sync_by_one_way.c");
    let compiled =
        Command::new("cc").args(["-Wall", "-Wextra", "-O1", "-o", &program]).arg(source).status();
    assert!(compiled.expect("cc starts").success());
    let script = "until grep -qs luc-record /proc/$PPID/task/*/comm; do sleep 0.01; done; \
                  $0 a 40 dsync && $0 b 40 uring && $0 c 40 fsync && env -i $0 d 40 fsync";
    let output = bench
        .command(&["run", "--json", &json, "--", "sh", "-c", script, &program])
        .current_dir(bench.mount())
        .output()
        .expect("luc starts");
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let report: Value = serde_json::from_slice(&fs::read(json).expect("report")).expect("JSON");
    let ways = &report["passing_by"];
    assert_eq!(ways["sync_writes"], 40, "{ways}: {text}");
    assert_eq!(ways["io_uring"], 40, "{ways}: {text}");
    assert_eq!(ways["calls"], 80, "{ways}: {text}");
    assert!(text.contains("40 sync writes and 40 io_uring calls pass by"), "{text}");
    assert!(text.contains(&format!("why: of a call's time on {} from ", bench.mount())), "{text}");
    assert_eq!(report["file_systems"][0]["fsyncs"], 40, "{text}");
    let unreached = &report["unreached"];
    assert_eq!(unreached.as_array().map(Vec::len), Some(1), "{unreached}: {text}");
    assert_eq!(unreached[0]["calls"], 40, "{unreached}");
    assert_eq!(unreached[0]["obstacles"], serde_json::json!(["environment"]));
    assert!(text.contains("passing (40 calls, started with a cleaned environment)"), "{text}");
}

#[test]
fn no_why_leaves_it_out() {
    let Some(bench) = RecordedDisk::new("unexplained") else {
        return;
    };
    let (text, report) = compared(&bench, &["--no-why"]);
    assert!(report.get("why").is_none(), "{report:#}");
    assert!(!text.contains("why"), "{text}");
    assert!(text.contains("mean"), "the rest is there: {text}");
}
