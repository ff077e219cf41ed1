//! `luc explain` on what is no trace.

use std::fs;
use std::process::{Command, Output};

fn explain(path: &std::path::Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_luc"))
        .arg("explain")
        .arg(path)
        .output()
        .expect("luc runs")
}

#[test]
fn what_is_no_trace_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a directory");
    let damaged = folder.path().join("damaged");
    fs::create_dir(&damaged).expect("made");
    fs::write(damaged.join("sync-000001-000002.parquet"), b"PAR1 no more").expect("written");
    for path in [
        folder.path().to_owned(),
        folder.path().join("missing"),
        damaged,
    ] {
        let output = explain(&path);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(output.stdout, b"");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(&path.display().to_string()), "{said}");
    }
}
