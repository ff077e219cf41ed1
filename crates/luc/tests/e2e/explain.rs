//! `luc explain` on what is no trace, and commit by commit.

use std::fs;
use std::process::{Command, Output};

use luc_events::Transaction;
use luc_events::store::TraceWriter;
use luc_events::tables::{JournalCommit, TraceDescription};

fn explain(path: &std::path::Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_luc")).arg("explain").arg(path).output().expect("luc runs")
}

#[test]
fn what_is_no_trace_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a directory");
    let damaged = folder.path().join("damaged");
    fs::create_dir(&damaged).expect("made");
    fs::write(damaged.join("sync-000001-000002.parquet"), b"PAR1 no more").expect("written");
    for path in [folder.path().to_owned(), folder.path().join("missing"), damaged] {
        let output = explain(&path);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert_eq!(output.stdout, b"");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains(&path.display().to_string()), "{message}");
    }
}

#[test]
fn commits_are_printed_one_by_one() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut writer =
        TraceWriter::create(folder.path(), TraceDescription::default()).expect("a trace");
    for number in 1..=3 {
        let commit = JournalCommit {
            transaction: Transaction(number),
            start_ns: u64::from(number) * 1_000,
            end_ns: u64::from(number) * 1_000 + 500,
            ..JournalCommit::default()
        };
        writer.add(commit).expect("written");
    }
    writer.finish(TraceDescription::default()).expect("finished");
    let output = Command::new(env!("CARGO_BIN_EXE_luc"))
        .args(["explain", "--commits"])
        .arg(folder.path())
        .output()
        .expect("luc runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let commits: Vec<serde_json::Value> =
        (text.lines()).map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let transactions: Vec<_> =
        commits.iter().map(|commit| commit["transaction"].as_u64()).collect();
    assert_eq!(transactions, [Some(1), Some(2), Some(3)]);
    assert!(commits.iter().all(|commit| commit["duration_ns"] == 500));
}
