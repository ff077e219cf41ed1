//! A program that runs beside the measured one, as a recorder does.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::EvaluateError;
use crate::harness::{Harness, stop_if_interrupted};

/// Maximum time to begin and to end.
const BESIDE_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between that line and the run: a recorder attaches its probes one after the other.
const ATTACH_TIME: Duration = Duration::from_millis(500);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Line that says that it has begun.
const BEGUN: &str = "begun";

/// A running program, ended when dropped.
#[derive(Debug)]
pub(super) struct Beside {
    child: Child,
    script: String,
    output: PathBuf,
    /// Line with which it said that it had begun.
    begun: String,
}

impl Beside {
    /// Starts a shell command, and returns when it has begun.
    pub(super) fn start(harness: &Harness, script: String) -> Result<Self, EvaluateError> {
        let output = harness.path("beside.out");
        let file = File::create(&output).map_err(EvaluateError::file("make", &output))?;
        let both = file.try_clone().map_err(EvaluateError::file("make", &output))?;
        let child = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &script])
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(both)
            .spawn()
            .map_err(EvaluateError::file("run", "bash"))?;
        let mut beside = Self { child, script, output, begun: String::new() };
        let began = Instant::now();
        loop {
            let said = beside.said()?;
            if let Some(line) = said.lines().find(|line| line.starts_with(BEGUN)) {
                beside.begun = line.to_owned();
                thread::sleep(ATTACH_TIME);
                return Ok(beside);
            }
            stop_if_interrupted()?;
            if beside.ended()?.is_some() || began.elapsed() > BESIDE_TIMEOUT {
                return Err(beside.failed("it does not begin"));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    pub(super) fn begun(&self) -> &str {
        &self.begun
    }

    /// Ends the program, and returns its output.
    pub(super) fn stop(mut self) -> Result<String, EvaluateError> {
        if self.ended()?.is_some() {
            return Err(self.failed("it ended before the run"));
        }
        match self.end()? {
            status if status.success() => self.said(),
            status => Err(self.failed(&status.to_string())),
        }
    }

    fn said(&self) -> Result<String, EvaluateError> {
        let bytes = fs::read(&self.output).map_err(EvaluateError::file("read", &self.output))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, EvaluateError> {
        self.child.try_wait().map_err(EvaluateError::file("wait for", "bash"))
    }

    fn end(&mut self) -> Result<ExitStatus, EvaluateError> {
        // Once it has ended this finds nothing to do.
        let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        let began = Instant::now();
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if began.elapsed() > BESIDE_TIMEOUT {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return Err(self.failed("it does not end"));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn failed(&self, how: &str) -> EvaluateError {
        EvaluateError::Command {
            command: self.script.clone(),
            how: how.to_owned(),
            said: self.said().unwrap_or_default(),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.end();
        }
    }
}
