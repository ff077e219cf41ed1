//! Part `fleet-guests` at its shortest: relates the clocks of two guests, and checks that the truth is within the
//! bounds.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Seconds in which clocks are read. With two boots the test takes some 20.
const SECONDS: &str = "4";

#[test]
fn the_truth_is_within_the_bounds_of_two_guests() {
    if let Some(why) = luc_vm::missing() {
        luc_testkit::skipped!("{why}");
        return;
    }
    let evaluate = Path::new(env!("CARGO_BIN_EXE_luc-evaluate"));
    for program in ["luc", "luc-fleet"] {
        if !evaluate.with_file_name(program).is_file() {
            luc_testkit::skipped!("{program} is not built: run `make build`");
            return;
        }
    }
    let out = tempfile::tempdir().expect("a directory");
    let run_once = || {
        let run = Command::new(evaluate)
            .args(["fleet-guests", "--only", "drawn rates", "--repeats", "1"])
            .args(["--seconds", SECONDS, "--out"])
            .arg(out.path())
            .output()
            .expect("luc-evaluate runs");
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        (run, said)
    };
    // Where the host corrects its own clock the guests' counters drift apart, and nobody knows the truth.
    let is_unknown = |said: &str| said.contains("a constant difference of two guests' counters");
    let mut tries = (0..3).map(|_| run_once()).skip_while(|(_, said)| is_unknown(said));
    let (run, said) = tries.next().expect("one of three runs with a constant difference");
    if said.contains("needs root") {
        luc_testkit::skipped!("luc-evaluate needs root");
        return;
    }
    // So short a run has too few events for its target.
    assert_eq!(run.status.code(), Some(1), "{said}");
    let raw = fs::read(out.path().join("raw/fleet-guests.json")).expect("raw data");
    let raw: Value = serde_json::from_slice(&raw).expect("JSON");
    let judged = &raw["runs"][0]["judged"];
    let ways = judged["ways"].as_array().expect("both ways");
    assert_eq!(ways.len(), 2);
    for way in ways {
        let events = &way["events"];
        assert!(events["all"].as_u64() > Some(100), "{events}");
        assert_eq!(events["wrong"], 0, "{events}");
        assert_eq!(events["right"], events["all"], "{events}");
        // Both bounds are there: else everything would be within them.
        assert!(
            events["unbounded"].as_u64() < events["all"].as_u64().map(|all| all / 2),
            "{events}"
        );
        assert_eq!(way["map"]["within"], way["map"]["of"], "{way}");
    }
    assert!(judged["explained"]["messages"].as_u64() > Some(100), "{judged}");
}
