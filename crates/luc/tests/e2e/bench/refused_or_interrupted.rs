//! Runs that are refused, that find the file system full, or that a signal interrupts: nothing is left.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::bench::{assert_empty, luc, operations, report, run};

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

#[test]
fn bad_input_is_one_line() {
    let dir = TempDir::new().expect("directory");
    let dir = dir.path();
    refused(&["metarates", "--threads", "0"], dir, "--threads 0");
    refused(&["varmail", "--threads", "0"], dir, "--threads 0");
    refused(&["metarates", "--think", "3 parsecs"], dir, "--think '3 parsecs'");
    refused(&["append", "--threads", "2", "--slow-clients", "3"], dir, "--slow-clients 3");
    refused(&["varmail", "--slow-clients", "1", "--slow-factor", "0.1"], dir, "--slow-factor 0.1");
    refused(&["overwrite", "--threads", "0"], dir, "--threads 0");
    refused(&["overwrite", "--record-size", "0"], dir, "--record-size 0");
    refused(&["overwrite", "--file-size", "4k"], dir, "--record-size 8192 with --file-size 4096");
    refused(&["append", "--preallocate", "x"], dir, "--preallocate 'x'");
    refused(&["append", "--preallocate", "100"], dir, "--record-size 512 with --preallocate 100");
    refused(&["metarates", "--seconds", "0"], dir, "--seconds 0");
    refused(&["varmail", "--seconds", "nan"], dir, "--seconds NaN");
    refused(&["varmail", "--warmup", "5"], dir, "--warmup '5'");
    refused(&["metarates", "--file-size", "many"], dir, "--file-size 'many'");
    refused(&["oltp", "--files", "0"], dir, "--files 0");
    refused(&["oltp", "--readers", "0"], dir, "--readers 0");
    refused(&["oltp", "--io-size", "0"], dir, "--io-size 0");
    refused(&["initial-write", "--threads", "0"], dir, "--threads 0");
    refused(&["initial-write", "--record-size", "5k"], dir, "--record-size 5120");
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
            let words = [&["metarates", "--seconds", "30", "--threads", "2"][..], kind].concat();
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

/// Output of a `luc bench` that gets `signal` after `wait`.
fn signalled(words: &[&str], dir: &Path, wait: Duration, signal: &str) -> Output {
    let child = luc(words, dir).stdout(std::process::Stdio::piped()).spawn().expect("luc starts");
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
            ("overwrite", "INT", &[timed, &["--file-size", "64k"]].concat()),
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
    refused(&["filebench", &path], dir.path(), "post.f:2:9: this flowop has no target");
    refused(&["filebench", "/no/such.f"], dir.path(), "/no/such.f");
    refused(&["filebench", "varmail", "--set", "x"], dir.path(), "--set 'x'");

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
