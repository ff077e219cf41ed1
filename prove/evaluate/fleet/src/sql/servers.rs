//! A scheduler and its executors on this machine.

use std::path::Path;
use std::process::{Child, Command};

use luc_harness::error::EvaluateError;
use luc_harness::harness::Harness;
use rustix::process::{Pid, Signal, kill_process};

use crate::asked::peak_bytes;
use crate::program::{answers, bound, free_port, free_ports, started};

/// Executors on this machine.
pub(super) const EXECUTORS: usize = 4;
/// Memory that a process, and all executors together, may use for sorts, joins and groups.
pub(super) const MEMORY_MIB: u64 = 2_048;

/// Servers that end with this.
#[derive(Debug)]
pub(super) struct Servers {
    port: u16,
    scheduler: Child,
    executors: Vec<Child>,
    /// The most memory of those that were killed.
    killed_bytes: u64,
}

impl Servers {
    pub(super) fn start(harness: &Harness, program: &Path) -> Result<Self, EvaluateError> {
        let serve = |log: &str, words: &[&str]| {
            let mut command: Command = bound("TERM", false);
            command.arg(program).arg("serve").args(words);
            started(command, &harness.path(log))
        };
        let port = free_port()?;
        let bind = format!("127.0.0.1:{port}");
        let mut servers = Self {
            port,
            scheduler: serve("scheduler.log", &["scheduler", "--bind", &bind])?,
            executors: Vec::new(),
            killed_bytes: 0,
        };
        answers(port)?;
        let url = servers.url();
        let memory = format!("{}MiB", MEMORY_MIB / EXECUTORS as u64);
        for number in 0..EXECUTORS {
            let [port, task_port] = free_ports()?;
            let task_port = task_port.to_string();
            let bind = format!("127.0.0.1:{port}");
            let words = ["executor", "--scheduler", &url, "--bind", &bind];
            let more = ["--task-port", &task_port, "--tasks", "1", "--memory", &memory];
            let log = format!("executor-{number}.log");
            // What one that is killed leaves goes with the harness' directory.
            let directory = harness.path(&format!("executor-{number}"));
            std::fs::create_dir_all(&directory).map_err(EvaluateError::file("make", &directory))?;
            let directory = directory.display().to_string();
            let place = ["--directory", &directory];
            servers.executors.push(serve(&log, &[&words[..], &more, &place].concat())?);
            answers(port)?;
        }
        Ok(servers)
    }

    pub(super) fn url(&self) -> String {
        format!("df://127.0.0.1:{}", self.port)
    }

    /// Kills the executor of this number, by SIGKILL. Returns whether it lived. Those after it move up.
    pub(super) fn kill(&mut self, number: usize) -> bool {
        if number >= self.executors.len() {
            return false;
        }
        let mut executor = self.executors.remove(number);
        self.killed_bytes += peak_bytes(executor.id());
        let lived = matches!(executor.try_wait(), Ok(None));
        // It is waited for in any case.
        let _ = executor.kill();
        let _ = executor.wait();
        lived
    }

    /// The most memory that each has had, added up.
    pub(super) fn peak_bytes(&self) -> u64 {
        let all = self.executors.iter().chain([&self.scheduler]);
        all.map(|server| peak_bytes(server.id())).sum::<u64>() + self.killed_bytes
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in self.executors.iter_mut().chain([&mut self.scheduler]) {
            // One that has ended is only waited for.
            let _ = kill_process(Pid::from_child(server), Signal::TERM);
            let _ = server.wait();
        }
    }
}
