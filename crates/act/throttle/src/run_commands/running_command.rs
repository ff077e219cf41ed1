//! One command in its cgroup.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use luc_control::throttle::policy_input::TaskId;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::ThrottleError;
use crate::cgroup::FreezableCgroup;
use crate::engine::{FreezeTotals, ThrottleEngine};
use crate::kernel_clocks::now_ns;
use crate::thread_tasks::ThreadTasks;

/// Exit status of a command that cannot be waited for.
const LOST_STATUS: i32 = 255;

/// A cgroup that is ready for its command.
#[derive(Debug)]
pub(super) struct ReadyCgroup {
    cgroup: FreezableCgroup,
    entrance: File,
}

impl ReadyCgroup {
    pub(super) fn new(
        cgroup: FreezableCgroup,
        settings: &[(String, String)],
    ) -> Result<Self, ThrottleError> {
        for (file, value) in settings {
            cgroup.set(file, value)?;
        }
        let entrance = cgroup.entrance()?;
        Ok(Self { cgroup, entrance })
    }
}

/// A command that was started.
#[derive(Debug)]
pub(super) struct RunningCommand {
    pub(super) id: Option<TaskId>,
    /// Its threads, if they are tasks instead of the whole.
    pub(super) threads: Option<ThreadTasks>,
    pub(super) command: String,
    pub(super) cgroup: PathBuf,
    pub(super) start_ns: u64,
    pub(super) finish_ns: u64,
    pub(super) status: i32,
    pub(super) totals: FreezeTotals,
    pub(super) bytes: Option<u64>,
    process: std::process::Child,
    /// Present until the command has ended.
    pidfd: Option<OwnedFd>,
}

impl RunningCommand {
    pub(super) fn start(
        command: &OsStr,
        place: ReadyCgroup,
        discard_output: bool,
    ) -> Result<(Self, FreezableCgroup), ThrottleError> {
        let text = command.to_string_lossy().into_owned();
        let failed = || ThrottleError::process(format!("cannot start {text:?}"));
        let entrance = place.entrance;
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command).stdin(Stdio::null());
        if discard_output {
            shell.stdout(Stdio::null());
        }
        // SAFETY: between fork and exec only one system call is made; nothing allocates or locks.
        unsafe {
            shell.pre_exec(move || {
                rustix::io::write(&entrance, b"0").map(|_| ()).map_err(Into::into)
            });
        }
        let start_ns = now_ns();
        let process = shell.spawn().map_err(failed())?;
        let pid = Pid::from_child(&process);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| failed()(error.into()))?;
        let child = Self {
            id: None,
            threads: None,
            command: text.clone(),
            cgroup: place.cgroup.path().to_owned(),
            start_ns,
            finish_ns: start_ns,
            status: 0,
            totals: FreezeTotals::default(),
            process,
            bytes: None,
            pidfd: Some(pidfd),
        };
        Ok((child, place.cgroup))
    }

    pub(super) fn is_running(&self) -> bool {
        self.pidfd.is_some()
    }

    pub(super) fn pidfd(&self) -> Option<&OwnedFd> {
        self.pidfd.as_ref()
    }

    /// Whether it has ended since the last call.
    pub(super) fn has_just_ended(&mut self) -> Result<bool, ThrottleError> {
        if self.pidfd.is_none() {
            return Ok(false);
        }
        let ended = self
            .process
            .try_wait()
            .map_err(ThrottleError::process(format!("waiting for {:?}", self.command)))?;
        let Some(status) = ended else {
            return Ok(false);
        };
        self.finish_ns = now_ns();
        self.status = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(LOST_STATUS);
        let moved = std::fs::read_to_string(self.cgroup.join("io.stat"));
        self.bytes = moved.ok().map(|text| bytes_of(&text));
        self.pidfd = None;
        Ok(true)
    }

    /// Finds new threads. Returns the latest time of the next call, ns.
    pub(super) fn look_at_threads(
        &mut self,
        engine: &mut ThrottleEngine,
    ) -> Result<u64, ThrottleError> {
        match &mut self.threads {
            Some(threads) if self.pidfd.is_some() => threads.look(engine),
            _ => Ok(u64::MAX),
        }
    }

    /// Takes the totals of its freezes, after it has ended.
    pub(super) fn take_totals(&mut self, engine: &mut ThrottleEngine) -> Result<(), ThrottleError> {
        if let Some(id) = self.id {
            self.totals = engine.end_task(id)?;
        }
        if let Some(threads) = &mut self.threads {
            self.totals = threads.end(engine)?;
        }
        Ok(())
    }

    pub(super) fn clear_threads(&self) {
        if let Some(threads) = &self.threads {
            threads.clear();
        }
    }

    pub(super) fn signal(&self, signal: libc::c_int) {
        let Some(pidfd) = &self.pidfd else {
            return;
        };
        if let Some(signal) = rustix::process::Signal::from_named_raw(signal) {
            // It may have ended this moment.
            let _ = rustix::process::pidfd_send_signal(pidfd, signal);
        }
    }

    /// Waits for a command that was killed.
    pub(super) fn wait(&mut self) {
        if self.pidfd.take().is_some() {
            let _ = self.process.wait();
        }
    }
}

/// Sums the bytes read and written in a cgroup's `io.stat`.
fn bytes_of(text: &str) -> u64 {
    let words = text.split_whitespace();
    let counts = words.filter_map(|word| {
        let (key, count) = word.split_once('=')?;
        ["rbytes", "wbytes"].contains(&key).then(|| count.parse::<u64>().ok())?
    });
    counts.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_all_disks_are_added_up() {
        let text = "8:0 rbytes=4096 wbytes=1 rios=1 wios=1 dbytes=9 dios=1\n7:0 rbytes=2\n";
        assert_eq!(bytes_of(text), 4099);
        assert_eq!(bytes_of("8:0 \n"), 0);
    }
}
