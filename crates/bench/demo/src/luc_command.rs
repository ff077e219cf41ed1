//! One step: a command of `luc` that returns its figures as JSON.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use luc_host::interrupt_flag;
use luc_units::OnPath as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::DemoError;

/// Output file of a step whose figures would go to a file.
pub(crate) const OUTPUT_FILE: &str = "/proc/self/fd/1";
/// Interval of polling, for signals that come just before the poll.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Time between two signals to a step that goes on.
const TELL_INTERVAL: Duration = Duration::from_millis(500);

/// Runs `luc` with `words` and returns the JSON that it printed, if it ends with one of these statuses.
///
/// It gets SIGTERM when this process is interrupted or dies, and then takes away what it has made.
pub(crate) fn run(luc: &Path, words: &[OsString], statuses: &[u8]) -> Result<Value, DemoError> {
    let step = words.first().map_or(String::new(), |word| word.to_string_lossy().into_owned());
    if interrupt_flag::interrupted() {
        return Err(DemoError::Interrupted);
    }
    let (output, status) = outcome(luc, words).map_err(DemoError::io("run", luc))?;
    if interrupt_flag::interrupted() {
        return Err(DemoError::Interrupted);
    }
    let status = status_of(status);
    if !statuses.contains(&status) {
        return Err(DemoError::Step { step, status });
    }
    serde_json::from_slice(&output).map_err(|reason| DemoError::Figures { step, reason })
}

fn outcome(luc: &Path, words: &[OsString]) -> io::Result<(Vec<u8>, ExitStatus)> {
    let parent = std::process::id();
    let mut command = Command::new(luc);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped());
    // SAFETY: between fork and exec only prctl and getppid are called, which are async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            // The parent may have died before prctl.
            if libc::getppid().cast_unsigned() == parent {
                Ok(())
            } else {
                Err(io::ErrorKind::Interrupted.into())
            }
        });
    }
    let mut child = command.spawn()?;
    let output = match child.stdout.take() {
        Some(stdout) => read(OwnedFd::from(stdout), &child, interrupt_flag::interrupted),
        None => Ok(Vec::new()),
    };
    Ok((output?, child.wait()?))
}

/// Reads the output of the child until its end. Passes an interruption on to it again and again: between two of its
/// own commands it may have nobody to end, and go on.
fn read(pipe: OwnedFd, child: &Child, interrupted: impl Fn() -> bool) -> io::Result<Vec<u8>> {
    let mut pipe = File::from(pipe);
    let (mut output, mut bytes) = (Vec::new(), [0; 4096]);
    let mut told: Option<Instant> = None;
    loop {
        if interrupted() && told.is_none_or(|told| told.elapsed() >= TELL_INTERVAL) {
            // It has not been waited for, so its number is still its own.
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
            told = Some(Instant::now());
        }
        let mut events = [PollFd::new(&pipe, PollFlags::IN)];
        match poll(&mut events, Some(&POLL_INTERVAL)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            polled => polled?,
        };
        match pipe.read(&mut bytes)? {
            0 => return Ok(output),
            count => output.extend(&bytes[..count]),
        }
    }
}

/// Returns the status as shells do: 128 and the signal's number if a signal ended it.
fn status_of(status: ExitStatus) -> u8 {
    let number = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, signal) => 128 + signal.unwrap_or(0),
    };
    u8::try_from(number).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, statuses: &[u8]) -> Result<Value, DemoError> {
        run(Path::new("/bin/sh"), &["-c", script].map(OsString::from), statuses)
    }

    #[test]
    fn figures_come_back_however_many() {
        let script = "printf '\"'; head -c 200000 /dev/zero | tr '\\0' x; printf '\"'";
        let value = shell(script, &[0]).expect("JSON");
        assert_eq!(value.as_str().map(str::len), Some(200_000));
    }

    #[test]
    fn other_statuses_and_texts_are_errors() {
        let error = shell("echo 1; exit 3", &[0, 1]).expect_err("refused");
        assert!(matches!(error, DemoError::Step { status: 3, .. }), "{error}");
        let error = shell("kill -KILL $$", &[0]).expect_err("refused");
        assert!(matches!(error, DemoError::Step { status: 137, .. }), "{error}");
        assert_eq!(shell("echo 1; exit 3", &[3]).expect("JSON"), 1);
        let error = shell("echo no", &[0]).expect_err("refused");
        assert!(matches!(error, DemoError::Figures { .. }), "{error}");
    }

    #[test]
    fn a_step_that_has_lost_a_signal_gets_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let ready = folder.path().join("ready");
        let script =
            "trap 'n=x$n; [ $n = xx ] && exit' TERM; >\"$0\"; while :; do sleep 0.01; done";
        let mut child = Command::new("/bin/sh")
            .args(["-c", script])
            .arg(&ready)
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh runs");
        let pipe = OwnedFd::from(child.stdout.take().expect("piped"));
        read(pipe, &child, || ready.exists()).expect("read to its end");
        child.wait().expect("it has ended");
    }

    #[test]
    fn a_step_writes_where_it_is_told() {
        assert_eq!(shell(&format!("echo 7 >{OUTPUT_FILE}"), &[0]).expect("JSON"), 7);
    }
}
