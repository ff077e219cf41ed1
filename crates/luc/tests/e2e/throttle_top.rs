//! `luc throttle top`: what it says of tasks on an emulated disk, with a daemon and without. Needs root, cgroup v2,
//! FUSE, loop devices and BTF.

use crate::common::throttle;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::common::{EmulatedTestDisk, LUC, refusal, stderr, stdout, until, without_privileges};
use serde_json::Value;
use throttle::{cgroups, device};

/// A task that writes past the page cache for ever, in a cgroup of its own; both gone when dropped.
struct Writer {
    child: Child,
    cgroup: PathBuf,
}

impl Writer {
    fn start(disk: &EmulatedTestDisk, name: &str) -> Self {
        let cgroup = cgroups().join(name);
        fs::create_dir_all(&cgroup).expect("made");
        let script = format!(
            "echo $$ >{}/cgroup.procs; while :; do dd if=/dev/zero of={}/{name} bs=64k count=500 \
             oflag=direct conv=notrunc 2>/dev/null; done",
            cgroup.display(),
            disk.mount()
        );
        let mut command = Command::new("sh");
        let child = command.args(["-c", &script]).stdout(Stdio::null()).spawn();
        Self { child: child.expect("sh runs"), cgroup }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = fs::write(self.cgroup.join("cgroup.kill"), "1");
        let _ = self.child.kill();
        let _ = self.child.wait();
        until("a cgroup that is removed", || fs::remove_dir(&self.cgroup).is_ok());
    }
}

fn top(words: &[&str]) -> Vec<Value> {
    let mut command = Command::new(LUC);
    command.args(["throttle", "top", "--json"]).args(words);
    let output = command.output().expect("luc runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = stdout(&output);
    let read = |line| serde_json::from_str(line).expect("JSON");
    lines.lines().map(read).collect()
}

fn named<'a>(list: &'a Value, key: &str, name: &str) -> &'a Value {
    let mut found = list.as_array().expect("a list").iter();
    let found = found.find(|found| found[key] == name);
    found.unwrap_or_else(|| panic!("no {name} in {list:#}"))
}

#[test]
fn tasks_that_share_a_disk_are_seen_and_nobody_is_frozen() {
    let Some(disk) = EmulatedTestDisk::new("throttle-top", "ext4", "") else {
        return;
    };
    let names = ["a", "b"].map(|name| format!("luc-test-top-{}-{name}", std::process::id()));
    let _writers = names.each_ref().map(|name| Writer::start(&disk, name));
    let seen = top(&["--batch", "--count", "2", "--delay", "1s"]);
    assert_eq!(seen.len(), 2);
    let last = &seen[1];
    let about = named(&last["disks"], "name", &device(&disk));
    assert!(about["tasks"].as_u64() >= Some(2), "{about}");
    assert!(about["busy"].as_f64() > Some(0.1), "{about}");
    if last["daemon"].is_null() {
        for name in &names {
            let task = named(&last["tasks"], "cgroup", name);
            assert_eq!(task["frozen_ns"], 0, "{task}");
            assert!(task["share"].as_f64() > Some(0.01), "{task}");
            assert!(task["bytes_per_s"].as_f64() > Some(1e5), "{task}");
            assert_eq!(task["disk"], device(&disk).as_str(), "{task}");
        }
    }
    let mut once = Command::new(LUC);
    let once = once.args(["throttle", "top", "--once", "--delay", "500ms"]).output();
    let text = stdout(&once.expect("luc runs"));
    assert!(text.contains("luc throttle top: ") && text.contains("EFFIC"), "{text}");
}

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    for (words, said) in [
        (&["--json"][..], "--batch"),
        (&["--delay", "1ms", "--once"], "from 250ms to 60s"),
        (&[], "needs a terminal"),
    ] {
        let mut command = Command::new(LUC);
        command.args(["throttle", "top"]).args(words).stdin(Stdio::null());
        let output = command.output().expect("luc runs");
        assert!(refusal(&output).contains(said), "{}", stderr(&output));
    }
    let said = refusal(&without_privileges(&["throttle", "top", "--once"]));
    assert!(said.starts_with("luc: "), "{said}");
}
