//! `luc throttle` from end to end: tasks on an emulated disk are frozen, and never stay so. Needs root, cgroup v2,
//! FUSE, loop devices and BTF.

use crate::common::throttle;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::common::{
    EmulatedTestDisk, LUC, compiled_statically, is_root, refusal, stderr, stdout, until,
    without_privileges,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use throttle::{cgroups, device, is_frozen, processes, tasks_of};

fn kill(process: u32) {
    let pid = Pid::from_raw(process as i32).expect("a process");
    kill_process(pid, Signal::KILL).expect("killed");
}

/// Whether a process has ended, and so closed its files. A zombie has.
fn has_ended(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat"));
    status.map_or(true, |text| text.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}

/// The guardian of a throttle: its only child that is called luc.
fn guardian_of(throttle: u32) -> u32 {
    let text = fs::read_to_string(format!("/proc/{throttle}/task/{throttle}/children"));
    let children = text.expect("readable");
    let guardian = children.split_whitespace().find(|child| {
        let words = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).ends_with("throttle\0guardian\0")
    });
    guardian.expect("a guardian").parse().expect("a number")
}

/// A command that writes to a file in pieces, past the page cache, `count` times 4 KiB; without a count for ever.
fn writer(disk: &EmulatedTestDisk, file: &str, count: Option<u32>) -> String {
    let dd = |count: u32| {
        format!(
            "dd if=/dev/zero of={}/{file} bs=4k count={count} oflag=direct conv=notrunc 2>/dev/null",
            disk.mount()
        )
    };
    count.map_or_else(|| format!("while :; do {}; done", dd(1000)), dd)
}

/// A throttle of endless writers, ended with all of its tasks when dropped.
struct Throttle(Child);

impl Throttle {
    fn start(disk: &EmulatedTestDisk, tasks: usize) -> Self {
        let device = device(disk);
        let mut command = Command::new(LUC);
        command.args(["throttle", "run", "--policy", "fcfs", "--disk", &device]);
        for task in 0..tasks {
            command.args(["--task", &writer(disk, &format!("f{task}"), None)]);
        }
        let child = command.stderr(Stdio::null()).spawn().expect("luc runs");
        let this = Self(child);
        until("a frozen task", || this.frozen() > 0);
        this
    }

    fn frozen(&self) -> usize {
        let tasks = tasks_of(self.0.id());
        tasks.iter().filter(|task| is_frozen(task)).count()
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        let tasks = tasks_of(self.0.id());
        let _ = self.0.kill();
        let _ = self.0.wait();
        // A shell starts the next dd until it is killed itself.
        until("the tasks' end", || {
            let left: Vec<i32> = tasks.iter().flat_map(|task| processes(task)).collect();
            for process in left.iter().filter_map(|&process| Pid::from_raw(process)) {
                let _ = kill_process(process, Signal::KILL);
            }
            left.is_empty()
        });
        until("cgroups that are removed", || tasks.iter().all(|task| !task.exists()));
    }
}

fn run(words: &[&str]) -> Output {
    let mut command = Command::new(LUC);
    command.args(["throttle", "run"]).args(words);
    command.output().expect("luc runs")
}

#[test]
fn commands_have_a_cgroup_each_and_their_status_is_passed_on() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("json").display().to_string();
    let output = run(&[
        "--policy",
        "off",
        "--json",
        &json,
        "--task",
        "grep 0:: /proc/self/cgroup",
        "--task",
        "exit 3",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("/luc-throttle-") && said.contains("/task-0"), "{said}");
    let figures: Value = serde_json::from_slice(&fs::read(&json).expect("written")).expect("JSON");
    let statuses: Vec<&Value> =
        figures["tasks"].as_array().expect("tasks").iter().map(|task| &task["status"]).collect();
    assert_eq!(statuses, [0, 3]);
    let cgroup = figures["tasks"][0]["cgroup"].as_str().expect("a path");
    assert!(!Path::new(cgroup).exists(), "{cgroup} is still there");
}

#[test]
fn tasks_that_want_one_disk_take_turns_and_all_is_thawed_in_the_end() {
    let Some(disk) = EmulatedTestDisk::new("throttle-turns", "ext4", "") else {
        return;
    };
    let json = disk.path("json");
    let (a, b) = (writer(&disk, "a", Some(20_000)), writer(&disk, "b", Some(20_000)));
    let device = device(&disk);
    let output =
        run(&["--policy", "fcfs", "--disk", &device, "--json", &json, "--task", &a, "--task", &b]);
    assert!(output.status.success(), "{}", stderr(&output));
    let figures: Value = serde_json::from_slice(&fs::read(&json).expect("written")).expect("JSON");
    let freezes = |task: usize| figures["tasks"][task]["freezes"].as_u64().expect("a number");
    assert!(freezes(0) + freezes(1) > 0, "{figures}");
}

#[test]
fn killed_its_guardian_thaws() {
    let Some(disk) = EmulatedTestDisk::new("throttle-killed", "ext4", "") else {
        return;
    };
    let throttle = Throttle::start(&disk, 3);
    kill(throttle.0.id());
    until("a thaw", || throttle.frozen() == 0);
}

#[test]
fn a_throttle_that_hangs_is_thawed_too() {
    let Some(disk) = EmulatedTestDisk::new("throttle-hangs", "ext4", "") else {
        return;
    };
    let throttle = Throttle::start(&disk, 2);
    let pid = Pid::from_raw(throttle.0.id() as i32).expect("a process");
    kill_process(pid, Signal::STOP).expect("stopped");
    until("a thaw", || throttle.frozen() == 0);
    kill_process(pid, Signal::CONT).expect("continued");
    until("the next freeze", || throttle.frozen() > 0);
}

#[test]
fn a_guardian_that_is_killed_has_a_successor() {
    let Some(disk) = EmulatedTestDisk::new("throttle-guardian", "ext4", "") else {
        return;
    };
    let throttle = Throttle::start(&disk, 2);
    let first = guardian_of(throttle.0.id());
    kill(first);
    until("another guardian", || {
        Path::new(&format!("/proc/{}", throttle.0.id())).exists()
            && fs::read_to_string(format!("/proc/{0}/task/{0}/children", throttle.0.id()))
                .is_ok_and(|children| {
                    !children.split_whitespace().any(|child| child == first.to_string())
                        && children.split_whitespace().count() > 2
                })
    });
    kill(throttle.0.id());
    until("a thaw", || throttle.frozen() == 0);
}

#[test]
fn killed_with_its_guardian_the_next_command_thaws() {
    let Some(disk) = EmulatedTestDisk::new("throttle-both", "ext4", "") else {
        return;
    };
    let throttle = Throttle::start(&disk, 3);
    let id = throttle.0.id();
    let guardian = guardian_of(id);
    // What `killall luc` does not match.
    until("its name", || {
        let name = fs::read_to_string(format!("/proc/{guardian}/comm"));
        name.is_ok_and(|name| name == "thaw-guardian\n")
    });
    kill(guardian);
    kill(id);
    // The record's lock goes with the last of them.
    until("their end", || has_ended(guardian) && has_ended(id));
    // The throttle may have started another guardian in between, which then thaws; otherwise this does.
    // Whatever it is asked, also with words that are wrong.
    let output = disk.luc(&["throttle", "no-such-command"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    until("a thaw", || throttle.frozen() == 0);
    for task in tasks_of(id) {
        for process in processes(&task) {
            let _ = kill_process(Pid::from_raw(process).expect("a process"), Signal::KILL);
        }
    }
    let made = tasks_of(id);
    until("the tasks' end", || made.iter().all(|task| processes(task).is_empty()));
    for task in &made {
        let _ = fs::remove_dir(task);
    }
    if let Some(parent) = made.first().and_then(|task| task.parent()) {
        let _ = fs::remove_dir(parent.join("guardian"));
        let _ = fs::remove_dir(parent);
    }
}

#[test]
fn what_somebody_else_has_frozen_is_left_alone() {
    let Some(disk) = EmulatedTestDisk::new("throttle-theirs", "ext4", "") else {
        return;
    };
    let throttle = Throttle::start(&disk, 3);
    let all = tasks_of(throttle.0.id());
    let running = all.iter().find(|task| !is_frozen(task)).expect("one runs");
    fs::write(running.join("cgroup.freeze"), "1").expect("frozen");
    kill(throttle.0.id());
    until("a thaw", || throttle.frozen() == 1);
    assert!(is_frozen(running), "it was not luc's to thaw");
    fs::write(running.join("cgroup.freeze"), "0").expect("thawed");
}

#[test]
fn refusals_are_one_line_and_leave_nothing() {
    let said = refusal(&run(&[]));
    assert!(said.contains("--task COMMAND"), "{said}");
    let said = refusal(&run(&["--policy", "fast", "--task", "true"]));
    assert!(said.contains("known are auto"), "{said}");
    let said = refusal(&run(&["--size", "1M,2M", "--task", "true"]));
    assert!(said.contains("2 values for 1 task"), "{said}");
    let said = refusal(&run(&["--set", "io.max", "--task", "true"]));
    assert!(said.contains("FILE=VALUE"), "{said}");
    let said = refusal(&without_privileges(&["throttle", "run", "--task", "true"]));
    assert!(said.contains("needs root"), "{said}");
    if !is_root() {
        return;
    }
    let said = refusal(&run(&["--disk", "nosuch", "--task", "true"]));
    assert!(said.contains("lsblk"), "{said}");
    let said = refusal(&run(&["--set", "no.such=1", "--task", "true"]));
    assert!(said.contains("no.such"), "{said}");
}

#[test]
fn tasks_that_read_the_same_file_do_not_take_turns() {
    let Some(disk) = EmulatedTestDisk::new("throttle-same-data", "ext4", "") else {
        return;
    };
    let device = device(&disk);
    let thaws = |files: [&str; 2]| {
        let json = disk.path("json");
        let read = |file: &str| {
            let path = format!("{}/{file}", disk.mount());
            fs::write(&path, vec![1; 16 << 20]).expect("written");
            format!("dd if={path} of=/dev/null bs=4k iflag=direct")
        };
        let (a, b) = (read(files[0]), read(files[1]));
        let output = run(&[
            "--policy", "fcfs", "--disk", &device, "--json", &json, "--task", &a, "--task", &b,
        ]);
        assert!(output.status.success(), "{}", stderr(&output));
        let figures: Value =
            serde_json::from_slice(&fs::read(&json).expect("written")).expect("JSON");
        let orders = figures["orders"].as_array().expect("orders").clone();
        let reasons = orders.iter().filter(|order| order["action"] == "thaw");
        let reasons = reasons.map(|order| order["reason"].as_str().expect("a reason").to_owned());
        // On a busy machine a task may pause, and loses its turn as idle.
        let reasons = reasons.filter(|reason| reason != "idle");
        reasons.collect::<Vec<String>>()
    };
    assert_eq!(thaws(["a", "b"]), ["turn"]);
    // The second may have been frozen before it was seen what it reads.
    let same = thaws(["a", "a"]);
    assert!(same.iter().all(|reason| reason == "same-data"), "{same:?}");
}

/// A program whose threads read a file each, and how many.
fn readers(disk: &EmulatedTestDisk) -> Option<(String, u64)> {
    const THREADS: u64 = 6;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/uncached_readers.c");
    let program = disk.path("readers");
    for number in 0..THREADS {
        let path = format!("{}/{number}", disk.mount());
        fs::write(path, vec![1; 8 << 20]).expect("written");
    }
    compiled_statically(&source, Path::new(&program)).then_some((program, THREADS))
}

#[test]
fn threads_of_a_task_take_turns_and_leave_no_cgroup() {
    let Some(disk) = EmulatedTestDisk::new("throttle-threads", "ext4", "") else {
        return;
    };
    let Some((program, threads)) = readers(&disk) else {
        return;
    };
    let (json, device) = (disk.path("json"), device(&disk));
    let task = format!("{program} {} {threads}", disk.mount());
    let output = run(&[
        "--policy",
        "fcfs",
        "--disk",
        &device,
        "--json",
        &json,
        "--threads",
        "--task",
        &task,
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let figures: Value = serde_json::from_slice(&fs::read(&json).expect("written")).expect("JSON");
    let freezes = figures["tasks"][0]["freezes"].as_u64().expect("a number");
    assert!(freezes >= threads - 1, "{figures}");
    let cgroup = figures["tasks"][0]["cgroup"].as_str().expect("a path");
    assert!(!Path::new(cgroup).exists());
}

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
