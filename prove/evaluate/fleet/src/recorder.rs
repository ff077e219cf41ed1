//! `luc record` beside the recorded programs.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, line, stop_if_interrupted};
use rustix::process::{Pid, Signal, kill_process};

/// Maximum time for the recorder to begin.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Time between the recorder's first file and the first request. In it the BPF programs are attached and begin to see
/// system calls.
pub(crate) const WARMUP: Duration = Duration::from_secs(2);

/// A running recorder, which is ended when dropped.
#[derive(Debug)]
pub(crate) struct Recorder {
    child: Child,
    command: String,
}

impl Recorder {
    /// Starts `luc record --fleet` of the network and the threads of the whole machine, and waits until requests may
    /// come.
    pub(crate) fn of_fleet(harness: &Harness, trace: &Path) -> Result<Self, EvaluateError> {
        let words = ["record", "--fleet", "--no-calls", "--quiet", "--out"];
        let mut words: Vec<String> = words.map(str::to_owned).into();
        words.push(trace.display().to_string());
        let recorder = Self::start(harness, &words, trace)?;
        thread::sleep(WARMUP);
        Ok(recorder)
    }

    /// Runs `luc WORDS`, which records into `trace`, and waits for its first file.
    pub(crate) fn start(
        harness: &Harness,
        words: &[String],
        trace: &Path,
    ) -> Result<Self, EvaluateError> {
        let said = harness.path("recorder");
        let file = File::create(&said).map_err(EvaluateError::file("make", &said))?;
        let mut command = Command::new(harness.luc_path());
        command.args(words).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(file);
        let child = command.spawn().map_err(EvaluateError::file("run", harness.luc_path()))?;
        let mut recorder = Self { child, command: line(&command) };
        let began = Instant::now();
        while !fs::read_dir(trace).is_ok_and(|mut files| files.next().is_some()) {
            let ended = recorder.child.try_wait();
            let ended = ended.map_err(EvaluateError::file("wait for", harness.luc_path()))?;
            if ended.is_some() || began.elapsed() > START_TIMEOUT {
                return Err(EvaluateError::Command {
                    command: recorder.command.clone(),
                    how: ended
                        .map_or_else(|| "it does not begin".to_owned(), |how| how.to_string()),
                    said: fs::read_to_string(&said).unwrap_or_default(),
                });
            }
            stop_if_interrupted()?;
            thread::sleep(POLL_INTERVAL);
        }
        Ok(recorder)
    }

    /// Ends the recorder, and returns its command line. Status 1 says that events were lost, which the trace says, too.
    pub(crate) fn stop(mut self) -> Result<String, EvaluateError> {
        let status = self.end()?;
        match status {
            Some(0 | 1) => Ok(self.command.clone()),
            _ => Err(EvaluateError::Command {
                command: self.command.clone(),
                how: format!("status {status:?}"),
                said: "see above".to_owned(),
            }),
        }
    }

    fn end(&mut self) -> Result<Option<i32>, EvaluateError> {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let status = self.child.wait();
        status.map(|status| status.code()).map_err(EvaluateError::file("wait for", "luc"))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Once it has ended this finds nothing to do.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.end();
        }
    }
}
