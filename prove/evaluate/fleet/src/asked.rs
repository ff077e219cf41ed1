//! Runs a program that answers a question, and observes it meanwhile.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, line, stop_if_interrupted};
use luc_host::interrupt;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// Interval at which a process is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) command: String,
    pub(crate) seconds: f64,
    /// Peak memory of its process or of all servers together, bytes.
    pub(crate) peak_bytes: u64,
    pub(crate) answer_bytes: usize,
}

/// Runs a command to its end, and calls `look` repeatedly meanwhile. Returns the answer, too.
pub(crate) fn ask(
    harness: &Harness,
    mut command: Command,
    mut look: impl FnMut(Duration),
) -> Result<(Asked, Vec<u8>), EvaluateError> {
    stop_if_interrupted()?;
    let (out, err) = (harness.path("answer"), harness.path("said"));
    let create = |path: &PathBuf| File::create(path).map_err(EvaluateError::file("make", path));
    let text = line(&command);
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(create(&out)?)
        .stderr(create(&err)?)
        .spawn()
        .map_err(EvaluateError::file("run", &text))?;
    let (mut peak, mut is_told) = (0, false);
    let status = loop {
        peak = peak.max(peak_bytes(child.id()));
        let status = child.try_wait().map_err(EvaluateError::file("wait for", &text))?;
        if let Some(status) = status {
            break status;
        }
        if interrupt::interrupted() && !is_told {
            is_told = kill_process(Pid::from_child(&child), Signal::TERM).is_ok();
        }
        if began.elapsed() >= ANSWER_TIMEOUT {
            // It may just have ended; it is waited for in any case.
            let _ = child.kill();
            let _ = child.wait();
            return Err(EvaluateError::Command {
                command: text,
                how: format!("no answer after {} s", ANSWER_TIMEOUT.as_secs()),
                said: fs::read_to_string(&err).unwrap_or_default(),
            });
        }
        look(began.elapsed());
        std::thread::sleep(POLL_INTERVAL);
    };
    let seconds = began.elapsed().as_secs_f64();
    stop_if_interrupted()?;
    if !status.success() {
        return Err(EvaluateError::Command {
            command: text,
            how: status.to_string(),
            said: fs::read_to_string(&err).unwrap_or_default(),
        });
    }
    let answer = fs::read(&out).map_err(EvaluateError::file("read", &out))?;
    let asked = Asked { command: text, seconds, peak_bytes: peak, answer_bytes: answer.len() };
    Ok((asked, answer))
}

/// Returns the peak memory of a process (VmHWM); 0 if it has ended.
pub(crate) fn peak_bytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_has_no_memory() {
        assert!(peak_bytes(std::process::id()) > 1 << 20);
        assert_eq!(peak_bytes(u32::MAX), 0);
    }
}
