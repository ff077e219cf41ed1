//! A server that runs.

use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Instant;

use luc_harness::error::EvaluateError;
use luc_harness::harness::line;
use rustix::process::{Pid, Signal, kill_process};

use crate::program::{ANSWER_TIMEOUT, POLL_INTERVAL, started};

/// A running server, which is ended when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    pub(crate) command: String,
}

impl Running {
    pub(crate) fn start(command: Command, log: &Path) -> Result<Self, EvaluateError> {
        let text = line(&command);
        Ok(Self { child: started(command, log)?, command: text })
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server, and waits until it has cleaned up.
    pub(crate) fn end(mut self) -> Result<ExitStatus, EvaluateError> {
        self.terminate().map_err(EvaluateError::file("wait for", &self.command))
    }

    fn terminate(&mut self) -> std::io::Result<ExitStatus> {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let began = Instant::now();
        while began.elapsed() < ANSWER_TIMEOUT {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(POLL_INTERVAL);
        }
        self.child.kill()?;
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Once it has ended this finds nothing to do.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.terminate();
        }
    }
}
