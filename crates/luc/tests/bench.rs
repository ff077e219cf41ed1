//! `luc bench` from end to end, on a temporary directory.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

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

/// Status 2, one line that holds `words`, nothing left in `dir`.
fn refused(arguments: &[&str], dir: &Path, words: &str) {
    let output = run(arguments, dir);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains(words), "{stderr}");
    assert!(output.stdout.is_empty());
    if dir.is_dir() {
        assert_empty(dir);
    }
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
        assert!(
            report["file_creation_rate_per_second"]
                .as_f64()
                .expect("rate")
                > 0.0
        );
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
        (
            "overwrite",
            &[
                "--file-size",
                "64k",
                "--offsets",
                "random",
                "--call",
                "fsync",
            ],
            "fsync",
        ),
        ("append", &[], "fdatasync"),
        (
            "append",
            &["--preallocate", "1m", "--record-size", "4k"],
            "fdatasync",
        ),
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
        assert!(
            operations.iter().all(|(_, count)| *count > 0),
            "{operations:?}"
        );
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
            &[
                "--files",
                "4",
                "--file-size",
                "64k",
                "--durability",
                "dsync",
            ],
            kind,
        ];
        let report = report(&words.concat());
        assert_eq!(report["clients"], 7);
        let operations = operations(&report);
        let names: Vec<&str> = operations.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["read", "write", "logwrite", "logfsync"]);
        assert!(
            operations.iter().all(|(_, count)| *count > 0),
            "{operations:?}"
        );
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
        let expected = [
            ("open", 24),
            ("write", 96),
            ("fsync", 24),
            ("close", 24),
            ("child", 24),
        ];
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
    let words = [
        "commit",
        "--files",
        "8",
        "--rounds",
        "10",
        "--file-size",
        "4k",
        "--json",
    ];
    let report = report(&words);
    assert_eq!(report["rounds"], 10);
    for part in [
        "total",
        "create",
        "start_writeback",
        "wait_writeback",
        "fsync",
    ] {
        assert!(
            report[part]["median_us"].as_f64().expect("median") >= 0.0,
            "{report}"
        );
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
    let words = [
        "metarates",
        "--seconds",
        "0.2",
        "--warmup",
        "0.1s",
        "--threads",
        "1",
    ];
    let output = run(&words, dir.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("1 thread, 0.2 s measured after 0.1 s of warm-up left out"),
        "{text}"
    );
    assert!(text.contains("file creation rate"), "{text}");
}

#[test]
fn bad_input_is_one_line() {
    let dir = TempDir::new().expect("directory");
    let dir = dir.path();
    refused(&["metarates", "--threads", "0"], dir, "--threads 0");
    refused(&["varmail", "--threads", "0"], dir, "--threads 0");
    refused(
        &["metarates", "--think", "3 parsecs"],
        dir,
        "--think '3 parsecs'",
    );
    refused(
        &["append", "--threads", "2", "--slow-clients", "3"],
        dir,
        "--slow-clients 3",
    );
    refused(
        &["varmail", "--slow-clients", "1", "--slow-factor", "0.1"],
        dir,
        "--slow-factor 0.1",
    );
    refused(&["overwrite", "--threads", "0"], dir, "--threads 0");
    refused(&["overwrite", "--record-size", "0"], dir, "--record-size 0");
    refused(
        &["overwrite", "--file-size", "4k"],
        dir,
        "--record-size 8192 with --file-size 4096",
    );
    refused(&["append", "--preallocate", "x"], dir, "--preallocate 'x'");
    refused(
        &["append", "--preallocate", "100"],
        dir,
        "--record-size 512 with --preallocate 100",
    );
    refused(&["metarates", "--seconds", "0"], dir, "--seconds 0");
    refused(&["varmail", "--seconds", "nan"], dir, "--seconds NaN");
    refused(&["varmail", "--warmup", "5"], dir, "--warmup '5'");
    refused(
        &["metarates", "--file-size", "many"],
        dir,
        "--file-size 'many'",
    );
    refused(&["oltp", "--files", "0"], dir, "--files 0");
    refused(&["oltp", "--readers", "0"], dir, "--readers 0");
    refused(&["oltp", "--io-size", "0"], dir, "--io-size 0");
    refused(&["initial-write", "--threads", "0"], dir, "--threads 0");
    refused(
        &["initial-write", "--record-size", "5k"],
        dir,
        "--record-size 5120",
    );
    refused(&["commit", "--files", "0"], dir, "--files 0");
    refused(&["commit", "--rounds", "0"], dir, "--rounds 0");
    refused(&["metarates"], &dir.join("missing"), "missing");
    refused(&["varmail"], Path::new("/proc/self/status"), "--dir");
}

#[test]
fn a_full_file_system_is_one_line_and_is_left_empty() {
    let dir = TempDir::new().expect("directory");
    let options = "size=256k,nr_inodes=64";
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", options, "none"])
        .arg(dir.path())
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        luc_testkit::skipped!("needs root to mount a small tmpfs");
        return;
    }
    let outcome = std::panic::catch_unwind(|| {
        for kind in [&[][..], &["--processes"]] {
            let words = [
                &["metarates", "--seconds", "30", "--threads", "2"][..],
                kind,
            ]
            .concat();
            refused(&words, dir.path(), "is full");
        }
        refused(&["varmail"], dir.path(), "is full");
        refused(&["overwrite"], dir.path(), "is full");
        refused(&["append", "--preallocate", "1m"], dir.path(), "is full");
        refused(&["initial-write"], dir.path(), "is full");
        refused(&["oltp"], dir.path(), "is full");
        let words = ["commit", "--files", "500"];
        refused(&words, dir.path(), "is full");
    });
    let unmounted = Command::new("umount").arg(dir.path()).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    assert!(outcome.is_ok());
}

/// What `luc bench` says that gets `signal` after `wait`.
fn signalled(words: &[&str], dir: &Path, wait: Duration, signal: &str) -> Output {
    let child = luc(words, dir)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("luc starts");
    std::thread::sleep(wait);
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-s", signal, &pid]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    child.wait_with_output().expect("luc ends")
}

#[test]
fn a_signal_ends_the_run_with_figures_and_nothing_left() {
    for kind in [&[][..], &["--processes"]] {
        let timed = &["--seconds", "60", "--warmup", "0", "--json"][..];
        let rounds = &["--threads", "4", "--rounds", "1000000", "--json"][..];
        for (workload, signal, options) in [
            ("metarates", "INT", timed),
            ("varmail", "TERM", timed),
            (
                "overwrite",
                "INT",
                &[timed, &["--file-size", "64k"]].concat(),
            ),
            ("append", "TERM", timed),
            ("oltp", "HUP", &[timed, &["--parameters", "luc"]].concat()),
            ("initial-write", "INT", rounds),
        ] {
            let dir = TempDir::new().expect("directory");
            let words = [&[workload][..], options, kind].concat();
            // A signal while the files are made, which others' writing may draw out, has no
            // figures.
            let output = [1500, 6000, 30_000]
                .map(Duration::from_millis)
                .into_iter()
                .map(|wait| signalled(&words, dir.path(), wait, signal))
                .find(|output| !output.stdout.is_empty())
                .expect("figures");
            assert_eq!(output.status.code(), Some(130), "{workload} {kind:?}");
            let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert_eq!(report["interrupted"], true);
            if let Some(seconds) = report["measured_s"].as_f64() {
                assert!(seconds < 60.0);
            } else {
                assert!(!report["rounds"].as_array().expect("rounds").is_empty());
            }
            assert_empty(dir.path());
        }
    }
}

#[test]
fn a_filebench_file_runs_is_refused_and_is_interrupted() {
    let words = ["filebench", "varmail", "--seconds", "1", "--json"];
    let report = report(&[&words[..], &["--set", "nfiles=200", "--set", "nthreads=2"]].concat());
    let counts = operations(&report);
    assert_eq!(counts.len(), 13);
    assert!(counts.iter().all(|(_, count)| *count > 0), "{counts:?}");
    assert_eq!(report["clients"], 2);

    let dir = TempDir::new().expect("directory");
    let place = TempDir::new().expect("directory");
    let path = place.path().join("post.f");
    let text = "define process name=p { thread name=t {\n flowop sempost name=a } }";
    std::fs::write(&path, text).expect("write");
    let path = path.display().to_string();
    refused(
        &["filebench", &path],
        dir.path(),
        "post.f:2:9: this flowop has no target",
    );
    refused(&["filebench", "/no/such.f"], dir.path(), "/no/such.f");
    refused(
        &["filebench", "varmail", "--set", "x"],
        dir.path(),
        "--set 'x'",
    );

    let words = ["filebench", "varmail", "--seconds", "60", "--json"];
    let output = [1500, 6000, 30_000]
        .map(Duration::from_millis)
        .into_iter()
        .map(|wait| signalled(&words, dir.path(), wait, "TERM"))
        .find(|output| !output.stdout.is_empty())
        .expect("figures");
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["interrupted"], true);
    assert_empty(dir.path());
}
