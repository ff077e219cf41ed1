//! A place for the disks that a command makes for itself, and for its mounts: nothing may be left in it.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{LUC, can_make_disks, refusal, stderr, stdout};

/// Directory for a command's disks and mounts, checked to be empty at the end.
pub(crate) struct LeftoverCheck {
    folder: TempDir,
    command: &'static str,
}

impl LeftoverCheck {
    /// For a command of `luc`. `None`, and a line that says why, where emulated disks cannot be had.
    pub(crate) fn new(command: &'static str) -> Option<Self> {
        if !can_make_disks() {
            return None;
        }
        let folder = TempDir::new().expect("a directory");
        fs::create_dir(folder.path().join("tmp")).expect("made");
        Some(Self { folder, command })
    }

    pub(crate) fn luc(&self, words: &[&str]) -> Command {
        self.other(&[&[self.command], words].concat())
    }

    /// Another command of `luc`.
    pub(crate) fn other(&self, words: &[&str]) -> Command {
        let mut command = Command::new(LUC);
        command
            .args(words)
            .env("LUC_RUN_DIR", self.folder.path().join("run"))
            .env("TMPDIR", self.folder.path().join("tmp"));
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        let output = self.luc(words).output().expect("luc starts");
        self.assert_clean();
        output
    }

    /// The report as JSON of a run that ends with this status.
    pub(crate) fn report(&self, words: &[&str], status: i32) -> Value {
        let output = self.run(&[&["--json"], words].concat());
        let (message, report) = (stderr(&output), stdout(&output));
        assert_eq!(output.status.code(), Some(status), "{words:?}: {message}{report}");
        serde_json::from_str(&report).expect("JSON")
    }

    pub(crate) fn refused(&self, words: &[&str], reason: &str) {
        let message = refusal(&self.run(words));
        assert!(message.contains(reason), "{words:?}: {message}");
    }

    /// Runs `luc`, ends it by a signal after a while, and returns its output.
    pub(crate) fn interrupted(&self, words: &[&str], signal: &str, after: Duration) -> Output {
        let child = self.luc(words).stdout(Stdio::piped()).spawn().expect("luc starts");
        sleep(after);
        let pid = child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        let output = child.wait_with_output().expect("luc ends");
        assert_eq!(output.status.code(), Some(130));
        self.assert_clean();
        output
    }

    fn assert_clean(&self) {
        let left = self.left();
        assert!(left.is_empty(), "{left:?}");
    }

    /// Files and mounts that are left here, a line each. Files are looked for where disks and mount points are made.
    pub(crate) fn left(&self) -> Vec<String> {
        let files = ["run/disk", "run/demo", "tmp"]
            .into_iter()
            .flat_map(|folder| fs::read_dir(self.folder.path().join(folder)))
            .flatten()
            .map(|entry| format!("{entry:?}"));
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let here = self.folder.path().to_str().expect("plain path");
        let mounts = mounts.lines().filter(|line| line.contains(here));
        files.chain(mounts.map(str::to_owned)).collect()
    }
}

impl Drop for LeftoverCheck {
    fn drop(&mut self) {
        // What a failed test left.
        let _ = Command::new(LUC)
            .args(["disk", "remove", "--all"])
            .env("LUC_RUN_DIR", self.folder.path().join("run"))
            .output();
    }
}
