//! Thousands of random programs, and programs that failed before. Needs root, FUSE and `luc` beside this crate's
//! program.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Number of random programs: five batches; `lucd` serves two.
const PROGRAMS: &str = "5120";
/// Time limit for them on a busy machine, s.
const TIMEOUT_S: &str = "500";
/// Maximum share of a notified program's synchronizations that may be interrupted: before the supervisor is told of a
/// call, the kernel waits interruptibly.
const MAX_INTERRUPTED_SHARE: f64 = 0.002;
/// Maximum share of a notified program's synchronizations that may find another file or none. Another thread has then
/// closed the descriptor, or given it to another file.
///
/// Nobody holds the file before the supervisor has received the call. Nor does anybody after its answer, until the
/// thread has a processor again. Half of these programs try, more than a hundred at once on two processors.
const MAX_UNSEEN_SHARE: f64 = 0.005;
/// Maximum share of 64 copies that try at once.
const MAX_UNSEEN_COPIES_SHARE: f64 = 0.1;
/// Maximum share of synchronizations by the library during which another thread's open may return another number.
/// `msync` has a descriptor for a moment, which takes that number.
const MAX_SHIFTED_SHARE: f64 = 0.001;
/// Maximum share of synchronizations without LUC that may find another file: a thread that lost its processor between
/// saying so and its call. A million programs had four, on a busy machine 5,120 had one.
const MAX_LATE_SHARE: f64 = 0.0005;
/// Minimum share of the calls under test that must be held, or nothing is shown.
const MIN_HELD_SHARE: f64 = 0.1;

fn run(words: &[&str]) -> Option<Output> {
    let status = std::fs::read_to_string("/proc/self/status").expect("readable");
    if !status.contains("\nUid:\t0\t0\t") {
        luc_testkit::skipped!("needs root");
        return None;
    }
    for device in ["/dev/fuse", "/dev/loop-control"] {
        if !Path::new(device).exists() {
            luc_testkit::skipped!("there is no {device}");
            return None;
        }
    }
    let output =
        Command::new(env!("CARGO_BIN_EXE_luc-differential")).args(words).output().expect("it runs");
    let code = output.status.code();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(code, Some(0 | 1)), "{code:?}: {said}");
    Some(output)
}

/// Runs random programs, and returns the summary.
fn fuzz(words: &[&str]) -> Option<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("summary.json");
    let json = json.to_str().expect("plain");
    run(&[&["fuzz", "--json", json], words].concat())?;
    let summary = std::fs::read(json).expect("a summary");
    Some(serde_json::from_slice(&summary).expect("JSON"))
}

/// Returns the kinds of differences by one way.
fn kinds(summary: &Value, way: &str) -> Vec<(String, u64)> {
    let kinds = summary["ways"][way]["differences"].as_object().expect("an object");
    let kinds = kinds.iter();
    kinds.map(|(kind, count)| (kind.clone(), count.as_u64().expect("a number"))).collect()
}

/// Replays copies of a program. Returns each kind of difference with its way and the share of copies.
fn replay(name: &str, ways: &str) -> Option<Vec<(String, String, f64)>> {
    let path = format!("{}/corpus/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let output = run(&["replay", &path, "--times", "5", "--ways", ways])?;
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(found["held"].as_u64() > Some(0), "{found:#}");
    let copies = found["copies"].as_f64().expect("a number");
    let differences = found["differences"].as_array().expect("a list");
    let word = |one: &Value, name: &str| one[name].as_str().expect("a word").to_owned();
    let all = differences.iter().map(|one| {
        let share = one["copies"].as_f64().expect("a number") / copies;
        (word(one, "way"), word(one, "kind"), share)
    });
    Some(all.collect())
}

#[test]
fn random_programs_are_told_the_same_and_keep_what_they_were_promised() {
    let Some(summary) = fuzz(&["--count", PROGRAMS, "--seconds", TIMEOUT_S, "--shrink", "0"])
    else {
        return;
    };
    let plain = summary["ways"]["plain"]["synchronizations"].as_f64().expect("a number");
    for (kind, count) in kinds(&summary, "plain") {
        let is_late = kind == "lost" && (count as f64) < MAX_LATE_SHARE * plain;
        assert!(is_late, "{kind}: {summary:#}");
    }
    for way in ["library", "notify", "attach"] {
        let figures = &summary["ways"][way];
        let synchronizations = figures["synchronizations"].as_f64().expect("a number");
        let held = figures["holds"].as_f64().expect("a number");
        // lucd's policy may find no reason so soon.
        let has_held = held > MIN_HELD_SHARE * synchronizations || way == "attach";
        assert!(has_held && synchronizations > 0.0, "{summary:#}");
        for (kind, count) in kinds(&summary, way) {
            let count = match kind.as_str() {
                "interrupted" => figures["interrupted"].as_u64().expect("a number"),
                _ => count,
            };
            let share = count as f64 / synchronizations;
            let may = match (way, kind.as_str()) {
                // A library learns of a close after the hold, and says what a slower caller is told.
                ("library", "closed") => true,
                ("library", "result") => share < MAX_SHIFTED_SHARE,
                // As without LUC.
                ("library", "lost") => share < MAX_LATE_SHARE,
                ("notify" | "attach", "interrupted") => share < MAX_INTERRUPTED_SHARE,
                ("notify" | "attach", "closed" | "lost") => share < MAX_UNSEEN_SHARE,
                _ => false,
            };
            assert!(may, "{way}: {kind}: {count} of {synchronizations}: {summary:#}");
        }
    }
}

/// A descriptor that is closed and reused while its call is held.
#[test]
fn a_file_whose_number_is_reused_is_not_lost() {
    for (way, kind, share) in replay("reused", "library,notify").into_iter().flatten() {
        let may_lose = way == "notify" && share < MAX_UNSEEN_COPIES_SHARE;
        let may = kind == "closed" || (kind == "lost" && may_lose);
        assert!(may, "{way}: {kind} in {share} of the copies");
    }
}

/// Memory that is unmapped while its msync is held, and mapped anew from another file.
#[test]
fn a_file_whose_memory_is_mapped_anew_is_not_lost() {
    for (way, kind, share) in replay("remapped", "library").into_iter().flatten() {
        assert_eq!(kind, "closed", "{way}: in {share} of the copies");
    }
}

/// Signals without SA_RESTART. Copies send ten each as the call begins, so the share is that of the worst case.
#[test]
fn a_signal_interrupts_no_synchronization() {
    const MAX_SHARE: f64 = 0.02;
    for (way, kind, share) in replay("interrupted", "library,notify").into_iter().flatten() {
        let may = way != "library" && kind == "interrupted" && share < MAX_SHARE;
        assert!(may, "{way}: {kind} in {share} of the copies");
    }
}

/// Programs of which half never synchronize.
#[test]
fn a_lost_file_is_found() {
    let words = ["--count", "512", "--seed", "7", "--ways", "none", "--lie", "2"];
    let Some(summary) = fuzz(&words) else {
        return;
    };
    let found = kinds(&summary, "plain");
    assert_eq!(found.len(), 1, "{summary:#}");
    let (kind, count) = &found[0];
    assert!(kind == "lost" && *count > 10, "{summary:#}");
}
