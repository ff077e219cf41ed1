//! `luc record --fleet` beside a test.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::common::LUC;

/// A recording that goes on.
pub(crate) struct FleetRecording {
    luc: Child,
    folder: TempDir,
}

/// A trace, gone when dropped.
pub(crate) struct TemporaryTrace {
    folder: TempDir,
    /// Messages of its recorder.
    pub(crate) text: String,
}

impl FleetRecording {
    /// Begins to record with these options. When this returns, everything is attached: the recorded command says so.
    pub(crate) fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let mut luc = Command::new(LUC)
            .args(["record", "--fleet", "--out"])
            .arg(folder.path().join("trace"))
            .args(options)
            .args(["--", "sh", "-c", "echo; read end"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("luc runs");
        let mut line = String::new();
        let out = luc.stdout.as_mut().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("a line");
        if line.is_empty() {
            let output = luc.wait_with_output().expect("luc ends");
            panic!("{}", String::from_utf8_lossy(&output.stderr));
        }
        Self { luc, folder }
    }

    /// Directory that the trace is written to.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    pub(crate) fn stop(mut self) -> TemporaryTrace {
        drop(self.luc.stdin.take());
        let output = self.luc.wait_with_output().expect("luc ends");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        // `read` comes to the end of its input, and says 1.
        assert_eq!(output.status.code(), Some(1), "{text}");
        TemporaryTrace { folder: self.folder, text }
    }
}

impl TemporaryTrace {
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("trace")
    }
}
