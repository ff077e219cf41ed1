//! Processes to kill: those of a site by their role, and any others.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Time that a killed process may take to be gone.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KilledRole {
    Sweep,
    CleanupProcess,
    /// A program of the sweep: mkfs, mount, luc disk, workloads.
    Program,
    DiskDaemon,
    Run,
    Command,
    Watcher,
}

pub(super) const ROLES: [KilledRole; 7] = [
    KilledRole::Sweep,
    KilledRole::CleanupProcess,
    KilledRole::Program,
    KilledRole::DiskDaemon,
    KilledRole::Run,
    KilledRole::Command,
    KilledRole::Watcher,
];

impl KilledRole {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sweep => "the sweep",
            Self::CleanupProcess => "its cleanup process",
            Self::Program => "its programs",
            Self::DiskDaemon => "the disk's daemon",
            Self::Run => "the run",
            Self::Command => "its command",
            Self::Watcher => "its watcher",
        }
    }

    /// Returns the role of a process by its command line.
    fn of(words: &str) -> Self {
        let has = |part: &str| words.contains(part);
        match () {
            () if has("\0--clean-up\0") => Self::CleanupProcess,
            () if has("\0sweep\0plan.toml\0") => Self::Sweep,
            () if has("\0disk\0serve\0") => Self::DiskDaemon,
            () if has("\0kernel\0watch\0") => Self::Watcher,
            () if has("\0run\0--level\0kernel\0") => Self::Run,
            () if has("\0luc-kills-command\0") || words.starts_with("sleep\x001000\0") => {
                Self::Command
            }
            () => Self::Program,
        }
    }
}

/// Returns all living processes with this variable in their environment. The site gives it to all that it starts.
pub(super) fn with(variable: &str) -> Vec<(KilledRole, i32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let role = |pid: i32| {
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let is_ours =
            read("environ").split(|&byte| byte == 0).any(|found| found == variable.as_bytes());
        (is_ours && is_alive(pid))
            .then(|| (KilledRole::of(&String::from_utf8_lossy(&read("cmdline"))), pid))
    };
    pids.filter_map(role).collect()
}

/// Whether a process exists and is no zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
    state.is_some_and(|state| !["Z", "X"].contains(&state))
}

pub(crate) fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // One that has ended in the meantime is as wanted.
        let _ = kill_process(pid, signal);
    }
}

/// Waits until killed processes are gone. A process in a system call finishes that first.
pub(crate) fn await_end(pids: impl Iterator<Item = i32>) {
    let begun = Instant::now();
    for pid in pids {
        while is_alive(pid) && begun.elapsed() < EXIT_TIMEOUT {
            thread::sleep(Duration::from_millis(2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_by_command_lines() {
        for (words, role) in [
            ("luc\0sweep\0--clean-up\0", KilledRole::CleanupProcess),
            ("/x/luc\0sweep\0plan.toml\0--out\0out\0", KilledRole::Sweep),
            ("luc\0disk\0serve\0--dir\0/x\0", KilledRole::DiskDaemon),
            ("luc\0kernel\0watch\x0012-0\0", KilledRole::Watcher),
            ("luc\0run\0--level\0kernel\0--\0sh\0-c\0x\0luc-kills-command\0", KilledRole::Run),
            ("sh\0-c\0x\0luc-kills-command\0", KilledRole::Command),
            ("sleep\x001000\0", KilledRole::Command),
            ("mkfs.ext4\0/dev/loop3\0", KilledRole::Program),
        ] {
            assert_eq!(KilledRole::of(words), role, "{words:?}");
        }
    }

    #[test]
    fn those_of_a_variable() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .env("LUC_KILLS_TEST", "1")
            .spawn()
            .expect("sleep starts");
        let pid = child.id().cast_signed();
        while with("LUC_KILLS_TEST=1") != [(KilledRole::Command, pid)] {
            thread::sleep(Duration::from_millis(2));
        }
        send(pid, Signal::KILL);
        await_end([pid].into_iter());
        assert_eq!(with("LUC_KILLS_TEST=1"), []);
        child.wait().expect("waited for");
    }
}
