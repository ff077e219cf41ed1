//! `luc throttle run` from end to end: tasks on an emulated disk are frozen, and never stay so. Needs root, cgroup v2,
//! FUSE, loop devices and BTF.

use crate::common::throttle;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::common::{
    EmulatedTestDisk, LUC, compiled_statically, is_root, refusal, stderr, stdout, until,
    without_privileges,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use throttle::{device, is_frozen, processes, tasks_of};

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
pub(crate) fn writer(disk: &EmulatedTestDisk, file: &str, count: Option<u32>) -> String {
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
pub(crate) fn readers(disk: &EmulatedTestDisk) -> Option<(String, u64)> {
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
