//! Why a run under `luc run` was as fast as it was, on an emulated disk. Needs root, FUSE, loop devices and BTF; skipped,
//! with the reason, where they are missing.

mod common;

use std::fs;

use common::{Bench, LUC, stderr};
use serde_json::Value;

/// Compares eight threads that create and fsync files with and without the gate: what is said, and the report.
fn compared(bench: &Bench, options: &[&str]) -> (String, Value) {
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
    let Some(bench) = Bench::new("why") else {
        return;
    };
    let (text, report) = compared(&bench, &[]);
    let message = |words: &str| text.lines().any(|line| line.trim().starts_with(words));
    assert!(
        message("predecessor waits") && message("calls per commit"),
        "{text}"
    );
    let why = &report["why"];
    assert_eq!(why["with"]["mount_point"], bench.mount().as_str(), "{why}");
    let us = |side: &str, taker: &str| {
        let taken = &why[side]["takers"][taker]["us_per_call"];
        taken.as_f64().unwrap_or(0.0)
    };
    // Callers in a closed loop that miss a commit wait for all of it; the gate holds them so that they do not.
    let (without_us, with_us) = (us("without", "predecessor"), us("with", "predecessor"));
    assert!(with_us < without_us, "{why:#}");
    assert!(
        us("without", "gate") == 0.0 && us("with", "gate") > 0.0,
        "{why:#}"
    );
    for side in ["without", "with"] {
        assert!(us(side, "own_commit") > 0.0, "{why:#}");
    }
}

#[test]
fn no_why_leaves_it_out() {
    let Some(bench) = Bench::new("unexplained") else {
        return;
    };
    let (text, report) = compared(&bench, &["--no-why"]);
    assert!(report.get("why").is_none(), "{report:#}");
    assert!(!text.contains("why"), "{text}");
    assert!(text.contains("mean"), "the rest is there: {text}");
}
