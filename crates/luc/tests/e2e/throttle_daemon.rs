//! `luc throttle daemon` from end to end: it freezes batch, and nothing that must not be frozen. Needs root, cgroup v2,
//! FUSE, loop devices and BTF.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::throttle::{cgroups, device, is_frozen};
use crate::common::{EmulatedTestDisk, LUC, refusal, until};
use crate::throttle::{readers, writer};

#[test]
fn a_daemon_tells_threads_apart_and_gives_the_cgroup_back_as_it_was() {
    let Some(disk) = EmulatedTestDisk::new("throttle-daemon-threads", "ext4", "") else {
        return;
    };
    let Some((program, threads)) = readers(&disk) else {
        return;
    };
    let name = format!("luc-test-{}-threads", std::process::id());
    let work = format!("while :; do {program} {} {threads}; done", disk.mount());
    let service = Service::run(&name, &work);
    let config = format!(
        "disks = ['{}']\n[[task]]\nmatch = '{name}'\nclass = 'batch'\nthreads = true\n",
        device(&disk)
    );
    let daemon = Daemon::start(Path::new(&disk.path("")), &config);
    let threads_of = || -> Vec<PathBuf> {
        let below = fs::read_dir(&service.0).expect("readable").flatten();
        let below = below.map(|entry| entry.path());
        below.filter(|path| path.is_dir()).collect()
    };
    until("a frozen thread", || threads_of().iter().any(|thread| is_frozen(thread)));
    drop(daemon);
    assert!(threads_of().is_empty());
    assert!(!is_frozen(&service.0));
}

/// A daemon with a configuration of its own, ended when dropped.
struct Daemon(Child);

impl Daemon {
    fn start(folder: &Path, config: &str) -> Self {
        let path = folder.join("throttle.toml");
        fs::write(&path, config).expect("written");
        let mut command = Command::new(LUC);
        command.args(["throttle", "daemon", "--policy", "fcfs", "--config"]);
        command.arg(path).env("LUC_RUN_DIR", folder);
        Self(command.spawn().expect("luc runs"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.0.id() as i32).expect("a process");
        let _ = kill_process(pid, Signal::TERM);
        let _ = self.0.wait();
    }
}

/// A cgroup with a shell that writes for ever; killed and removed when dropped.
struct Service(PathBuf);

impl Service {
    fn start(name: &str, disk: &EmulatedTestDisk) -> Self {
        Self::run(name, &writer(disk, name, None))
    }

    fn run(name: &str, work: &str) -> Self {
        let path = cgroups().join(name);
        fs::create_dir(&path).expect("made");
        let this = Self(path);
        let script = format!("echo $$ >{}/cgroup.procs; {work}", this.0.display());
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        // It is waited for by the cgroup's end.
        std::thread::spawn(move || command.status());
        this
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        until("the service's end", || {
            let _ = fs::write(self.0.join("cgroup.kill"), "1");
            fs::remove_dir(&self.0).is_ok() || !self.0.exists()
        });
    }
}

#[test]
fn a_daemon_freezes_batch_and_nothing_else() {
    let Some(disk) = EmulatedTestDisk::new("throttle-daemon", "ext4", "") else {
        return;
    };
    let mark = std::process::id();
    let services = ["batch-a", "batch-b", "other"]
        .map(|name| Service::start(&format!("luc-test-{mark}-{name}"), &disk));
    let config = format!(
        "max_frozen = '2s'\ndisks = ['{}']\nmetrics = '{}'\n\
         [[task]]\nmatch = 'luc-test-{mark}-batch-*'\nclass = 'batch'\n",
        device(&disk),
        disk.path("metrics")
    );
    let daemon = Daemon::start(Path::new(&disk.path("")), &config);
    until("a frozen task", || services[..2].iter().any(|service| is_frozen(&service.0)));
    assert!(!is_frozen(&services[2].0));
    until("metrics", || {
        fs::read_to_string(disk.path("metrics"))
            .is_ok_and(|text| text.contains("luc_throttle_orders_total{action=\"freeze\""))
    });
    let status = disk.luc(&["throttle", "status", "--json"]);
    let figures: Value = serde_json::from_slice(&status.stdout).expect("JSON");
    assert_eq!(figures["tasks"].as_array().map(Vec::len), Some(2), "{figures}");
    let mut second = Command::new(LUC);
    second.args(["throttle", "daemon", "--config"]);
    second.arg(disk.path("throttle.toml"));
    second.env("LUC_RUN_DIR", disk.path(""));
    let said = refusal(&second.output().expect("luc runs"));
    let daemon_id = daemon.0.id();
    assert!(said.contains(&format!("process {daemon_id} is")), "{said}");
    let top = ["throttle", "top", "--once", "--json", "--delay", "3s"];
    let seen: Value = serde_json::from_slice(&disk.luc(&top).stdout).expect("JSON");
    assert_eq!(seen["daemon"], figures["process"], "{seen}");
    let shown = seen["tasks"].as_array().expect("tasks");
    // One has the turn, the other is frozen for it; the third is not the daemon's.
    assert_eq!(shown.len(), 2, "{seen}");
    assert!(shown.iter().all(|task| task["class"] == "batch"), "{seen}");
    assert!(shown.iter().any(|task| task["why"] != ""), "{seen}");
    assert!(seen["disks"][0]["busy"].as_f64() > Some(0.1), "{seen}");
    drop(daemon);
    assert!(services.iter().all(|service| !is_frozen(&service.0)));
    let left = fs::read_dir(cgroups()).expect("read").flatten();
    let own = format!("luc-throttle-{}", daemon_id);
    assert!(left.map(|entry| entry.file_name()).all(|name| name != *own));
    assert_eq!(disk.luc(&["throttle", "status"]).status.code(), Some(2));
}

#[test]
fn a_cgroup_is_a_task_while_nothing_in_it_forbids_that() {
    let Some(disk) = EmulatedTestDisk::new("throttle-again", "ext4", "") else {
        return;
    };
    let name = format!("luc-test-{}-again", std::process::id());
    let end = disk.path("end");
    let sshd = disk.path("sshd");
    std::os::unix::fs::symlink("/bin/sh", &sshd).expect("made");
    let again = disk.path("again");
    let work = format!(
        "{sshd} -c 'while [ ! -e {end} ]; do sleep 0.1; done'
        while [ ! -e {again} ]; do sleep 0.1; done
        {sshd} -c 'sleep 1000; :'"
    );
    let service = Service::run(&name, &work);
    let rule = format!("[[task]]\nmatch = '{name}'\nclass = 'batch'\n");
    let config = format!("disks = ['{}']\n{rule}", device(&disk));
    until("the process", || {
        let ids = fs::read_to_string(service.0.join("cgroup.procs")).unwrap_or_default();
        ids.lines().any(|id| fs::read(format!("/proc/{id}/comm")).is_ok_and(|it| it == b"sshd\n"))
    });
    let _daemon = Daemon::start(Path::new(&disk.path("")), &config);
    let tasks = || {
        let status = disk.luc(&["throttle", "status", "--json"]);
        let figures: Value = serde_json::from_slice(&status.stdout).ok()?;
        figures["tasks"].as_array().map(Vec::len)
    };
    until("the daemon, without a task", || tasks() == Some(0));
    fs::write(end, "").expect("written");
    until("the task", || tasks() == Some(1));
    fs::write(again, "").expect("written");
    until("the daemon, without the task", || tasks() == Some(0));
}

#[test]
fn a_configuration_that_is_wrong_is_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("throttle.toml").display().to_string();
    let daemon = |text: &str| {
        fs::write(&path, text).expect("written");
        let output = Command::new(LUC).args(["throttle", "daemon", "--config", &path]).output();
        refusal(&output.expect("luc runs"))
    };
    let said = daemon("[[task]]\nmatch = 'a'\nclas = 'batch'\n");
    assert!(said.contains("line 3") && said.contains("did you mean `class`"), "{said}");
    let said = daemon("");
    assert!(said.contains("no task of class batch"), "{said}");
}
