//! `luc bench` from end to end, on a temporary directory.

mod refused_or_interrupted;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Signals are not ignored, as they are for what a shell runs in the background.
fn luc(words: &[&str], dir: &Path) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_luc")]);
    command.arg("bench").args(words).arg("--dir").arg(dir);
    command
}

fn run(words: &[&str], dir: &Path) -> Output {
    luc(words, dir).output().expect("luc starts")
}

fn report(words: &[&str]) -> Value {
    let dir = TempDir::new().expect("directory");
    let output = run(words, dir.path());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {stderr}");
    assert_eq!(stderr, "");
    assert_empty(dir.path());
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn assert_empty(dir: &Path) {
    let left: Vec<_> = std::fs::read_dir(dir).expect("list").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

fn operations(report: &Value) -> Vec<(String, u64)> {
    let rows = report["operations"].as_array().expect("operations");
    let row = |row: &Value| {
        let name = row["operation"].as_str().expect("name").to_owned();
        for pair in ["p50_us", "p90_us", "p99_us", "p999_us", "max_us"].windows(2) {
            let at = |key: &str| row[key].as_f64().expect("number");
            assert!(at(pair[0]) <= at(pair[1]), "{row}");
        }
        (name, row["count"].as_u64().expect("count"))
    };
    rows.iter().map(row).collect()
}

#[test]
fn metarates_with_threads_and_processes() {
    for kind in [&["--threads", "4"][..], &["--threads", "4", "--processes"]] {
        let words = ["metarates", "--seconds", "1", "--warmup", "100ms", "--json"];
        let report = report(&[&words[..], kind, &["--file-size", "1k"]].concat());
        let creations = report["creations"].as_u64().expect("creations");
        assert!(creations > 0);
        assert_eq!(report["measured_s"], 1.0);
        assert_eq!(report["warmup_s"], 0.1);
        assert!(report["file_creation_rate_per_second"].as_f64().expect("rate") > 0.0);
        let names = ["open", "write", "fsync", "close"];
        let expected: Vec<_> = names.map(|name| (name.to_owned(), creations)).into();
        assert_eq!(operations(&report), expected);
    }
}

#[test]
fn metarates_keeps_the_last_files_of_each_client() {
    let words = [
        &["metarates", "--seconds", "0.5", "--warmup", "0", "--json"][..],
        &["--threads", "2", "--keep", "3", "--file-size", "1k"],
    ];
    let report = report(&words.concat());
    assert_eq!(report["keep"], 3);
    let names: Vec<String> = operations(&report).into_iter().map(|row| row.0).collect();
    assert_eq!(names, ["open", "write", "fsync", "close", "unlink"]);
}

#[test]
fn overwrite_and_append_with_threads_and_processes() {
    let workloads: [(&str, &[&str], &str); 4] = [
        ("overwrite", &["--file-size", "64k"], "fdatasync"),
        ("overwrite", &["--file-size", "64k", "--offsets", "random", "--call", "fsync"], "fsync"),
        ("append", &[], "fdatasync"),
        ("append", &["--preallocate", "1m", "--record-size", "4k"], "fdatasync"),
    ];
    for kind in [&[][..], &["--processes"]] {
        for (workload, options, call) in workloads {
            let words = [
                &[workload, "--seconds", "0.5", "--warmup", "0", "--json"][..],
                &["--threads", "4"],
                options,
                kind,
            ];
            let report = report(&words.concat());
            let syncs = report["syncs"].as_u64().expect("syncs");
            assert!(syncs > 0, "{report}");
            assert!(report["syncs_per_second"].as_f64().expect("rate") > 0.0);
            let operations = operations(&report);
            let both = operations[operations.len() - 2..].to_vec();
            let expected = [("write".to_owned(), syncs), (call.to_owned(), syncs)];
            assert_eq!(both, expected);
        }
    }
}

#[test]
fn pauses_are_reported() {
    let words = [
        &["overwrite", "--seconds", "0.5", "--warmup", "0", "--json"][..],
        &["--threads", "4", "--file-size", "64k", "--think", "2ms"],
        &["--think-distribution", "exponential"],
        &["--slow-clients", "1", "--slow-factor", "4"],
    ];
    let report = report(&words.concat());
    assert_eq!(report["think_us"], 2000.0);
    assert_eq!(report["think_distribution"], "exponential");
    assert_eq!(report["slow_clients"], 1);
    assert_eq!(report["slow_factor"], 4.0);
}

#[test]
fn varmail_with_threads_and_processes() {
    for kind in [&["--threads", "4"][..], &["--threads", "4", "--processes"]] {
        let words = ["varmail", "--seconds", "1", "--warmup", "100ms", "--json"];
        let report = report(&[&words[..], kind, &["--parameters", "luc"]].concat());
        let operations = operations(&report);
        assert_eq!(operations.len(), 13);
        assert!(operations.iter().all(|(_, count)| *count > 0), "{operations:?}");
        let sum: u64 = operations.iter().map(|(_, count)| count).sum();
        assert_eq!(report["flowops"], sum);
    }
}

#[test]
fn oltp_with_threads_and_processes() {
    for kind in [&[][..], &["--processes"]] {
        let words = [
            &["oltp", "--seconds", "1", "--warmup", "100ms", "--json"][..],
            &["--parameters", "luc", "--readers", "2", "--writers", "4"],
            &["--files", "4", "--file-size", "64k", "--durability", "dsync"],
            kind,
        ];
        let report = report(&words.concat());
        assert_eq!(report["clients"], 7);
        let operations = operations(&report);
        let names: Vec<&str> = operations.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["read", "write", "logwrite", "logfsync"]);
        assert!(operations.iter().all(|(_, count)| *count > 0), "{operations:?}");
        let sum: u64 = operations[..3].iter().map(|(_, count)| count).sum();
        assert_eq!(report["flowops"], sum);
    }
}

#[test]
fn oltp_as_filebench_has_it() {
    let words = [
        &["oltp", "--seconds", "1", "--warmup", "100ms", "--json"][..],
        &["--readers", "20", "--file-size", "1m"],
    ];
    let report = report(&words.concat());
    assert_eq!(report["parameters"]["writers"], 10);
    let names: Vec<String> = operations(&report).into_iter().map(|row| row.0).collect();
    assert_eq!(names, ["read", "write", "logwrite"]);
}

#[test]
fn varmail_in_rounds_goes_through_its_loop_once_in_each() {
    let words = [
        &["varmail", "--threads", "3", "--rounds", "2", "--json"][..],
        &["--arrivals", "100us", "--directories", "own"],
    ];
    let report = report(&words.concat());
    let rows = operations(&report);
    assert_eq!(rows.len(), 13);
    assert!(rows.iter().all(|(_, count)| *count == 6), "{rows:?}");
    assert_eq!(report["arrivals"], "uniform:100us");
    assert_eq!(report["directory_per_client"], true);
}

#[test]
fn initial_write_with_threads_and_processes() {
    for kind in [&[][..], &["--processes"]] {
        let words = [
            &["initial-write", "--threads", "4", "--rounds", "6", "--json"][..],
            &["--file-size", "64k", "--record-size", "16k"],
            &["--include", "fsync,close", "--copy-per-kib", "1us"],
            kind,
        ];
        let report = report(&words.concat());
        let expected = [("open", 24), ("write", 96), ("fsync", 24), ("close", 24), ("child", 24)];
        let expected: Vec<_> = expected.map(|(name, n)| (name.to_owned(), n)).into();
        assert_eq!(operations(&report), expected);
        assert_eq!(report["include"]["close"], true);
        assert_eq!(report["copy_ns_per_kib"], 1000);
        assert_eq!(report["rounds"].as_array().map(Vec::len), Some(6));
        for figure in ["children_kib_per_second", "parent_kib_per_second"] {
            let at = |key: &str| report[figure][key].as_f64().expect("number");
            assert!(at("low") <= at("median") && at("median") <= at("high"));
        }
        // No child's interval is longer than that of all, so the sum is at least the whole.
        let at = |key: &str| report[key]["median"].as_f64().expect("number");
        assert!(at("children_kib_per_second") >= at("parent_kib_per_second"));
    }
}

#[test]
fn commit_reports_the_median_and_its_parts() {
    let words = ["commit", "--files", "8", "--rounds", "10", "--file-size", "4k", "--json"];
    let report = report(&words);
    assert_eq!(report["rounds"], 10);
    for part in ["total", "create", "start_writeback", "wait_writeback", "fsync"] {
        assert!(report[part]["median_us"].as_f64().expect("median") >= 0.0, "{report}");
        assert!(report[part]["low_us"].is_number(), "{report}");
    }
    assert!(report["files_per_second"].as_f64().expect("limit") > 0.0);
}

#[test]
fn commit_of_logs_and_of_files_that_are_replaced() {
    for work in ["replace", "append", "preallocated", "overwrite"] {
        let words = ["commit", "--files", "4", "--rounds", "20", "--work", work];
        let report = report(&[&words[..], &["--file-size", "512", "--json"]].concat());
        assert_eq!(report["work"], work);
        assert!(report["files_per_second"].as_f64().expect("limit") > 0.0);
    }
}

#[test]
fn text_says_what_was_left_out() {
    let dir = TempDir::new().expect("directory");
    let words = ["metarates", "--seconds", "0.2", "--warmup", "0.1s", "--threads", "1"];
    let output = run(&words, dir.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 thread, 0.2 s measured after 0.1 s of warm-up left out"), "{text}");
    assert!(text.contains("file creation rate"), "{text}");
}
