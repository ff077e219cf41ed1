//! One process of a run, seen from the run.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::error::TwinError;
use crate::process::{SAYS_NETWORK, SAYS_READY};

/// A process of a run. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Host {
    name: String,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Host {
    /// Starts a process, and returns when it has a network namespace.
    pub(super) fn start(
        program: &Path,
        name: &str,
        arguments: Vec<OsString>,
    ) -> Result<Self, TwinError> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(TwinError::system(format!("starting {name}")))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(ended_error(name, "no pipes".into()));
        };
        let mut host = Self { name: name.to_owned(), child, input, output: BufReader::new(output) };
        host.wait_for(SAYS_NETWORK)?;
        Ok(host)
    }

    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends the line that lets the process go on: its network is there, or the run is over.
    pub(super) fn go_on(&mut self) -> Result<(), TwinError> {
        writeln!(self.input).map_err(TwinError::system(format!("writing to {}", self.name)))
    }

    pub(super) fn wait_until_ready(&mut self) -> Result<(), TwinError> {
        self.wait_for(SAYS_READY)
    }

    fn wait_for(&mut self, what: &str) -> Result<(), TwinError> {
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .map_err(TwinError::system(format!("reading from {}", self.name)))?;
        if line.trim_end() == what {
            return Ok(());
        }
        let status = self.child.wait();
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        Err(ended_error(&self.name, status))
    }

    /// Waits until the process has ended by itself.
    pub(super) fn wait(mut self) -> Result<(), TwinError> {
        let status =
            self.child.wait().map_err(TwinError::system(format!("waiting for {}", self.name)))?;
        if status.success() {
            return Ok(());
        }
        Err(ended_error(&self.name, status.to_string()))
    }

    /// Tells the process to end, and waits for it.
    pub(super) fn end(mut self) -> Result<(), TwinError> {
        self.go_on()?;
        self.wait()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It has ended already, or ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ended_error(name: &str, status: String) -> TwinError {
    TwinError::Ended { name: name.to_owned(), status }
}
