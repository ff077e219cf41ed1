//! The program, asked about traces that were made here.

mod answers;
#[cfg(feature = "cluster")]
mod cluster;
mod ends;
mod found;
mod refusals;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use luc_testkit::fleet::PlantedFleet;

/// Traces, and a place for temporary files that must be empty at the end.
pub(crate) struct Asked {
    folder: tempfile::TempDir,
    pub(crate) traces: Vec<PathBuf>,
}

impl Asked {
    pub(crate) fn about(fleet: PlantedFleet) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let traces = fleet.write(&folder.path().join("traces")).expect("written");
        std::fs::create_dir(folder.path().join("tmp")).expect("made");
        Self { folder, traces }
    }

    pub(crate) fn small() -> Self {
        Self::about(PlantedFleet { back_ends: 2, requests: 300, waits: 500 })
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The program with these words and all traces.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = program(&self.temporary());
        command.arg("sql").args(words).args(&self.traces);
        command
    }

    /// Rows of an answer, as fields of CSV without names.
    pub(crate) fn rows(&self, query: &str) -> Vec<Vec<String>> {
        let out = self.command(&["--csv", query]).output().expect("run");
        let text = stdout(&out, query);
        let rows = text.lines().skip(1);
        rows.map(|row| row.split(',').map(str::to_owned).collect()).collect()
    }

    /// The number that an answer is.
    pub(crate) fn number(&self, query: &str) -> i64 {
        let rows = self.rows(query);
        assert!(rows.len() == 1 && rows[0].len() == 1, "{query}: {rows:?}");
        rows[0][0].parse().expect("a number")
    }

    pub(crate) fn assert_nothing_is_left(&self) {
        let left: Vec<_> = std::fs::read_dir(self.temporary())
            .expect("listed")
            .flatten()
            .map(|entry| entry.path())
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

pub(crate) fn program(temporary: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_luc-fleet-sql"));
    command.env("TMPDIR", temporary);
    command
}

pub(crate) fn stdout(out: &Output, of: &str) -> String {
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{of}: {errors}");
    assert!(errors.is_empty(), "{of}: {errors}");
    String::from_utf8(out.stdout.clone()).expect("text")
}
