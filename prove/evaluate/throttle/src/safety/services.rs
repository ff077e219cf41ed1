//! Cgroups with work in them, and throttles that may be killed.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use luc_harness::error::EvaluateError;
use luc_harness::groups::Group;
use luc_harness::harness::Harness;
use luc_host::run_dir;
use rustix::process::{Pid, Signal, kill_process};

/// Maximum time for a daemon to freeze the first task, and for a cgroup to become empty.
pub(super) const FREEZE_TIMEOUT: Duration = Duration::from_secs(30);

/// A cgroup with a shell that writes without end, or sleeps.
pub(super) struct Service {
    pub(super) group: Group,
    pub(super) child: Child,
}

fn shell(group: &Group, script: &str) -> Result<Child, EvaluateError> {
    let script = format!("echo $$ >{}/cgroup.procs; {script}", group.path.display());
    Command::new("sh")
        .args(["-c", &script])
        .stderr(Stdio::null())
        .spawn()
        .map_err(EvaluateError::file("run", "sh"))
}

impl Service {
    pub(super) fn start(root: &Path, number: usize, script: &str) -> Result<Self, EvaluateError> {
        let group = Group::create(root, number)?;
        let child = shell(&group, script)?;
        Ok(Self { group, child })
    }

    /// Starts another script, after the last one has ended.
    pub(super) fn run(&mut self, script: &str) -> Result<(), EvaluateError> {
        self.child = shell(&self.group, script)?;
        Ok(())
    }

    pub(super) fn is_frozen(&self) -> bool {
        fs::read_to_string(self.group.path.join("cgroup.freeze"))
            .is_ok_and(|text| text.trim() == "1")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = fs::write(self.group.path.join("cgroup.freeze"), "0");
        let _ = fs::write(self.group.path.join("cgroup.kill"), "1");
        let _ = self.child.wait();
        // Its children leave the cgroup a moment later.
        let begun = Instant::now();
        let events = self.group.path.join("cgroup.events");
        while fs::read_to_string(&events).is_ok_and(|text| text.contains("populated 1"))
            && begun.elapsed() < FREEZE_TIMEOUT
        {
            sleep(Duration::from_millis(1));
        }
    }
}

/// A daemon, killed with this value.
pub(super) struct Daemon(pub(super) Child);

impl Daemon {
    pub(super) fn start(harness: &Harness, config: &Path) -> Result<Self, EvaluateError> {
        let mut command = harness.luc(&["throttle", "daemon", "--policy", "fcfs", "--config"]);
        command.arg(config).stderr(Stdio::null());
        // Beside a daemon of the machine's own.
        command.env(run_dir::VARIABLE, harness.path("run"));
        let child = command.spawn();
        Ok(Self(child.map_err(EvaluateError::file("run", harness.luc_path()))?))
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(super) fn guardian(&self) -> Option<u32> {
        let id = self.id();
        let text = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    }

    pub(super) fn end(mut self) {
        kill(self.id(), Signal::TERM);
        let _ = self.0.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn kill(process: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(process as i32) {
        // One that has ended this moment needs no signal.
        let _ = kill_process(pid, signal);
    }
}
