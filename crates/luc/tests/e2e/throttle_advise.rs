//! `luc throttle advise` and `learn` from end to end, on an emulated disk. Needs root, cgroup v2, FUSE, loop devices
//! and BTF.

use crate::common::throttle;

use std::fs;
use std::process::{Command, Output, Stdio};

use crate::common::{
    EmulatedTestDisk, LUC, is_root, refusal, stderr, stdout, until, without_privileges,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use throttle::{device, tasks_of};

fn luc(words: &[&str]) -> Output {
    let mut command = Command::new(LUC);
    command.arg("throttle").args(words);
    command.output().expect("luc runs")
}

/// Makes a file of `mib` MiB; returns a command that reads it past the page cache.
fn reader(disk: &EmulatedTestDisk, file: &str, mib: u32) -> String {
    let path = format!("{}/{file}", disk.mount());
    let made = Command::new("dd")
        .args(["if=/dev/zero", "bs=1M", "conv=fsync"])
        .args([format!("of={path}"), format!("count={mib}")])
        .stderr(Stdio::null())
        .status();
    assert!(made.expect("dd runs").success());
    format!("dd if={path} of=/dev/null bs=128k iflag=direct 2>/dev/null")
}

#[test]
fn commands_run_unthrottled_and_advice_is_given_on_each() {
    let Some(disk) = EmulatedTestDisk::new("advise-tasks", "ext4", "") else {
        return;
    };
    let device = device(&disk);
    let (a, b) = (reader(&disk, "a", 8), reader(&disk, "b", 16));
    let output = luc(&["advise", "--json", "--disk", &device, "--task", &a, "--task", &b]);
    assert!(output.status.success(), "{}", stderr(&output));
    let advice: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let on_disk = &advice["disks"][0];
    assert_eq!(on_disk["disk"], device.as_str());
    let tasks = on_disk["tasks"].as_array().expect("tasks");
    let bytes: Vec<u64> =
        tasks.iter().map(|task| task["bytes_read"].as_u64().expect("a number")).collect();
    assert!(bytes[0] >= 8 << 20 && bytes[1] >= 16 << 20, "{bytes:?}");
    for task in tasks {
        assert!(task["alone_s"].as_f64().expect("a number") > 0.0, "{task}");
        assert!(task["continued"].as_f64().expect("a number") > 0.5, "{task}");
    }
    assert!(!on_disk["reason"].as_str().expect("words").is_empty());
    let output = luc(&["advise", "--disk", &device, "--task", &a, "--task", "exit 3"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("only one task uses it"), "{said}");
}

#[test]
fn ctrl_c_ends_early_with_what_was_seen() {
    let Some(disk) = EmulatedTestDisk::new("advise-ended", "ext4", "") else {
        return;
    };
    let device = device(&disk);
    let endless = format!("while :; do {}; done", reader(&disk, "a", 4));
    let child = Command::new(LUC)
        .args(["throttle", "advise", "--disk", &device, "--task", &endless])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("luc runs");
    until("a task", || !tasks_of(child.id()).is_empty());
    std::thread::sleep(std::time::Duration::from_millis(500));
    let id = child.id();
    kill_process(Pid::from_raw(id as i32).expect("a process"), Signal::INT).expect("told");
    let output = child.wait_with_output().expect("ended");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stdout(&output).contains(&device), "{}", stdout(&output));
    assert!(tasks_of(id).is_empty());
}

#[test]
fn a_disk_is_learned_and_nothing_is_left_on_it() {
    let Some(disk) = EmulatedTestDisk::new("learn", "ext4", "") else {
        return;
    };
    let folder = disk.mount();
    let before = names(&folder);
    let output = luc(&["learn", "--dry-run", &folder]);
    let said = stdout(&output);
    if !output.status.success() && stderr(&output).contains("are needed") {
        panic!("the test's disk is too small: {}", stderr(&output));
    }
    assert!(said.contains("writes") && said.contains("reads"), "{said}");
    assert_eq!(names(&folder), before);
    let output = luc(&["learn", "--for", "8s", "--json", &folder]);
    assert!(output.status.success(), "{}", stderr(&output));
    let learned: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert!(learned["peak_bytes_per_s"].as_f64().expect("a number") > 1e6);
    assert_eq!(learned["curves"].as_array().expect("curves").len(), 12);
    assert_eq!(names(&folder), before);
    let kept = fs::read_dir("/var/lib/luc/throttle").expect("kept");
    let name = learned["disk"]["name"].as_str().expect("a name");
    let part: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    for entry in kept.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&part) {
            fs::remove_file(entry.path()).expect("removed");
        }
    }
}

fn names(folder: &str) -> Vec<std::ffi::OsString> {
    let entries = fs::read_dir(folder).expect("readable");
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

#[test]
fn refusals_are_one_line_and_leave_nothing() {
    let said = refusal(&without_privileges(&["throttle", "advise", "--task", "true"]));
    assert!(said.contains("needs root"), "{said}");
    let said = refusal(&without_privileges(&["throttle", "learn", "/"]));
    assert!(said.contains("needs root"), "{said}");
    let said = refusal(&luc(&["advise", "--for", "0s", "a"]));
    assert!(said.contains("--for 0"), "{said}");
    let said = refusal(&luc(&["advise", "/absolute"]));
    assert!(said.contains("below the root cgroup"), "{said}");
    if !is_root() {
        return;
    }
    let said = refusal(&luc(&["advise", "no.such/cgroup-*"]));
    assert!(said.contains("no cgroup matches"), "{said}");
    let said = refusal(&luc(&["advise", "--disk", "nosuch", "--task", "true"]));
    assert!(said.contains("lsblk"), "{said}");
    let said = refusal(&luc(&["learn", "/no/such/path"]));
    assert!(said.contains("/no/such/path"), "{said}");
    let said = refusal(&luc(&["learn", "/proc"]));
    assert!(said.contains("on no disk"), "{said}");
    let said = refusal(&luc(&["learn", "--for", "1s", "/"]));
    assert!(said.contains("--for"), "{said}");
}
