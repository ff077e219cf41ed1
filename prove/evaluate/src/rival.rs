//! bpftrace beside a program, with a script that does a part of what `luc record` does.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::EvaluateError;
use crate::harness::Harness;

/// Script that measures fsync on ext4 and the time that threads are off the processors.
const SCRIPT: &str = include_str!("rival.bt");

/// Shell command that starts bpftrace. It needs tracepoints below /sys/kernel/tracing, which not every system mounts.
/// It runs in a mount namespace of its own, which leaves this system unchanged.
const SHELL: &str = "mountpoint -q /sys/kernel/tracing || mountpoint -q /sys/kernel/debug/tracing || \
    mount -t tracefs tracefs /sys/kernel/tracing; exec bpftrace -B line \"$0\"";

/// Maximum time to begin and to end.
const BPFTRACE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between its first output and the program's start: its probes are attached one after the other.
const ATTACH_TIME: Duration = Duration::from_millis(500);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Evidence that bpftrace works here.
#[derive(Debug)]
pub(super) struct Rival(());

/// A running bpftrace, ended when dropped.
#[derive(Debug)]
pub(super) struct Watching {
    child: Child,
    output: std::path::PathBuf,
}

impl Rival {
    /// Tries the script, and returns in one line why it does not work.
    pub(super) fn find(harness: &Harness) -> Result<Self, String> {
        let rival = Self(());
        let watching = rival.start(harness).map_err(|error| error.to_string())?;
        watching.stop().map_err(|error| error.to_string())?;
        Ok(rival)
    }

    /// Starts bpftrace, and returns when it counts.
    pub(super) fn start(&self, harness: &Harness) -> Result<Watching, EvaluateError> {
        let script = harness.path("rival.bt");
        fs::write(&script, SCRIPT).map_err(EvaluateError::file("write", &script))?;
        let output = harness.path("rival.out");
        let file = File::create(&output).map_err(EvaluateError::file("make", &output))?;
        let both = file.try_clone().map_err(EvaluateError::file("make", &output))?;
        let child = Command::new("unshare")
            .args(["--mount", "sh", "-c", SHELL])
            .arg(&script)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(both)
            .spawn()
            .map_err(EvaluateError::file("run", "unshare"))?;
        let mut watching = Watching { child, output };
        watching.wait_until(|said| said.contains("begun\n"))?;
        thread::sleep(ATTACH_TIME);
        Ok(watching)
    }
}

impl Watching {
    /// Ends bpftrace. Returns the number of histogram lines that it printed: 0 means that it saw nothing.
    pub(super) fn stop(mut self) -> Result<usize, EvaluateError> {
        kill_process(Pid::from_child(&self.child), Signal::INT)
            .map_err(|error| EvaluateError::file("end", "bpftrace")(error.into()))?;
        let began = Instant::now();
        while began.elapsed() < BPFTRACE_TIMEOUT {
            let ended = self.child.try_wait();
            if ended.map_err(EvaluateError::file("wait for", "bpftrace"))?.is_some() {
                break;
            }
            thread::sleep(POLL_INTERVAL);
        }
        let said = self.read_output()?;
        Ok(said.lines().filter(|line| line.ends_with('|')).count())
    }

    fn read_output(&self) -> Result<String, EvaluateError> {
        fs::read_to_string(&self.output).map_err(EvaluateError::file("read", &self.output))
    }

    fn wait_until(&mut self, ready: impl Fn(&str) -> bool) -> Result<(), EvaluateError> {
        let began = Instant::now();
        loop {
            let said = self.read_output()?;
            if ready(&said) {
                return Ok(());
            }
            let ended = self.child.try_wait();
            let ended = ended.map_err(EvaluateError::file("wait for", "bpftrace"))?;
            if ended.is_some() || began.elapsed() > BPFTRACE_TIMEOUT {
                let how =
                    ended.map_or_else(|| "it does not begin".to_owned(), |how| how.to_string());
                return Err(EvaluateError::Command {
                    command: "bpftrace".to_owned(),
                    how,
                    said: said.split_whitespace().collect::<Vec<_>>().join(" "),
                });
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
