//! `luc-fleet export`: engines read what it writes, and their answers are right.

mod duckdb_answers;
mod refusals;
mod spark;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use luc_testkit::fleet::PlantedFleet;
use serde_json::Value;

/// Traces, and what was exported of them.
pub(crate) struct PlantedExport {
    folder: tempfile::TempDir,
    pub(crate) traces: Vec<PathBuf>,
}

impl PlantedExport {
    pub(crate) fn planted(fleet: PlantedFleet) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let traces = fleet.write(&folder.path().join("traces")).expect("written");
        Self { folder, traces }
    }

    /// 300 requests, each with two calls.
    pub(crate) fn small() -> Self {
        let planted = Self::planted(PlantedFleet { back_ends: 2, requests: 300, waits: 500 });
        planted.export();
        planted
    }

    pub(crate) fn export(&self) {
        let sources: Vec<String> =
            self.traces.iter().map(|trace| trace.display().to_string()).collect();
        let out = program().args(["export", "--out"]).arg(self.tables()).args(sources).output();
        succeeded(&out.expect("run"));
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn tables(&self) -> PathBuf {
        self.folder.path().join("tables")
    }

    /// Answers of DuckDB, a list of rows for each query; `None` where it is not installed.
    pub(crate) fn duckdb(&self, queries: &[&str]) -> Option<Vec<Vec<Vec<Value>>>> {
        self.ask("duckdb", queries, &[])
    }

    pub(crate) fn ask(
        &self,
        engine: &str,
        queries: &[&str],
        words: &[&str],
    ) -> Option<Vec<Vec<Vec<Value>>>> {
        let python = python_of(engine)?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/export/engine.py");
        let temporary = self.folder.path().join("tmp");
        std::fs::create_dir_all(&temporary).expect("made");
        let mut child = Command::new(python)
            .arg(script)
            .arg(engine)
            .arg(self.tables())
            .args(words)
            .env("TMPDIR", &temporary)
            .current_dir(&temporary)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("python runs");
        let text = serde_json::to_string(queries).expect("JSON");
        child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("written");
        let out = child.wait_with_output().expect("it ends");
        let text = succeeded(&out);
        let answers = text.lines().map(|line| {
            let answer: Value = serde_json::from_str(line).expect("JSON");
            serde_json::from_value(answer["rows"].clone()).expect("rows")
        });
        let answers: Vec<_> = answers.collect();
        assert_eq!(answers.len(), queries.len(), "{}", String::from_utf8_lossy(&out.stderr));
        Some(answers)
    }
}

/// Python that has the engine; `None`, and a line that says so, where `make setup` has not brought it.
fn python_of(engine: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let python = cache?.join("luc").join(engine).join("bin/python");
    if !python.exists() {
        luc_testkit::skipped!(
            "{engine} is not there: `scripts/setup-engines.sh {engine}` installs it"
        );
        return None;
    }
    Some(python)
}

pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_luc-fleet"))
}

/// Standard output of a program that ended well.
pub(crate) fn succeeded(out: &Output) -> String {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout.clone()).expect("text")
}
