//! Tasks that are frozen by their cgroup, stopped by a signal or kept within a quota while they are recorded. Needs
//! root, cgroups and BTF.

use crate::common::throttle;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{LUC, is_root, stderr, stdout};
use serde_json::Value;
use tempfile::TempDir;
use throttle::cgroups;

/// Number of times that the tasks are frozen; below, the shortest time of each, in seconds.
const FREEZES: u64 = 3;
const FROZEN_S: f64 = 0.4;
/// Time for which one task has a quota, in seconds.
const THROTTLED_S: f64 = 1.2;

/// One that computes and one that sleeps, in a cgroup that is frozen and thawed. It puts all back when it is ended.
fn script(cgroup: &str) -> String {
    format!(
        "mkdir {cgroup} || exit 3
        (echo 0 >{cgroup}/cgroup.procs; exec dd if=/dev/zero of=/dev/null bs=4k) 2>/dev/null & busy=$!
        (echo 0 >{cgroup}/cgroup.procs; exec sleep 100) & asleep=$!
        trap 'echo 0 >{cgroup}/cgroup.freeze; kill $busy $asleep; wait; rmdir {cgroup}' EXIT
        for _ in $(seq {FREEZES}); do
            sleep 0.1
            echo 1 >{cgroup}/cgroup.freeze
            until grep -q 'frozen 1' {cgroup}/cgroup.events; do sleep 0.01; done
            sleep {FROZEN_S}
            echo 0 >{cgroup}/cgroup.freeze
        done
        sleep 0.1"
    )
}

#[test]
fn who_is_frozen_is_said_to_be_and_not_to_sleep_or_compute() {
    if !is_root() || !Path::new("/sys/kernel/btf/vmlinux").exists() {
        luc_testkit::skipped!("this needs root and the kernel's BTF");
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let trace = folder.path().join("trace").display().to_string();
    let cgroup = cgroups().join(format!("luc-explain-frozen-{}", std::process::id()));
    let script = script(&cgroup.display().to_string());
    let output = Command::new(LUC)
        .args(["record", "-q", "-o", &trace, "--", "sh", "-c", &script])
        .output()
        .expect("luc runs");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!cgroup.exists());

    let explain = |options: &[&str]| {
        let command = Command::new(LUC).arg("explain").args(options).arg(&trace).output();
        let output = command.expect("luc runs");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let report: Value = serde_json::from_str(&explain(&["--json"])).expect("JSON");
    let processes = report["accounts"]["processes"].as_array().expect("accounts");
    for comm in ["dd", "sleep"] {
        let frozen_s = |account: &Value| account["blocked"]["frozen"].as_f64().unwrap_or(0.0) / 1e9;
        let of_comm = processes.iter().filter(|account| account["comm"] == comm);
        let longest = of_comm.max_by(|a, b| frozen_s(a).total_cmp(&frozen_s(b)));
        let account = longest.unwrap_or_else(|| panic!("no {comm} in {processes:#?}"));
        assert!(frozen_s(account) >= FREEZES as f64 * FROZEN_S * 0.9, "{account:#}");
        assert_eq!(account["freezes"].as_u64(), Some(FREEZES), "{account:#}");
    }
    let findings = report["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["kind"] == "frozen");
    let sentence = found.expect("found")["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("dd (") && sentence.contains("sleep ("), "{sentence}");
    let text = explain(&[]);
    assert!(text.contains("luc throttle status"), "{text}");
}

#[test]
fn who_is_stopped_by_a_signal_is_said_to_be() {
    if !is_root() || !Path::new("/sys/kernel/btf/vmlinux").exists() {
        luc_testkit::skipped!("this needs root and the kernel's BTF");
        return;
    }
    let report = explained(&format!(
        "sleep 100 & asleep=$!
        sleep 0.1
        kill -STOP $asleep
        sleep {FROZEN_S}
        kill -CONT $asleep
        sleep 0.1
        kill $asleep"
    ));
    let blocked_s = longest_s(&report, "stopped");
    assert!(blocked_s >= FROZEN_S * 0.9, "{blocked_s} s");
    let first = &report["findings"][0];
    assert_eq!(first["kind"], "stopped", "{first:#}");
    assert_eq!([&first["victim"]["comm"], &first["culprit"]["comm"]], ["sleep", "sh"], "{first:#}");
}

#[test]
fn who_has_used_up_a_quota_is_said_to_be_throttled() {
    if !is_root() || !Path::new("/sys/kernel/btf/vmlinux").exists() {
        luc_testkit::skipped!("this needs root and the kernel's BTF");
        return;
    }
    let Some((root, quota)) = quotas() else {
        luc_testkit::skipped!("no cgroup here has the controller for processors");
        return;
    };
    let cgroup = root.join(format!("luc-explain-quota-{}", std::process::id()));
    let cgroup = cgroup.display();
    // 10 ms of each 100.
    let report = explained(&format!(
        "mkdir {cgroup} || exit 3
        trap 'kill $busy; wait; rmdir {cgroup}' EXIT
        {quota} || exit 3
        (echo 0 >{cgroup}/cgroup.procs; exec dd if=/dev/zero of=/dev/null bs=4k) 2>/dev/null & busy=$!
        sleep {THROTTLED_S}",
        quota = quota.replace("CGROUP", &cgroup.to_string()),
    ));
    let blocked_s = longest_s(&report, "throttled");
    assert!(blocked_s >= THROTTLED_S * 0.5, "{blocked_s} s");
    let findings = report["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["kind"] == "throttled");
    let sentence = found.expect("found")["sentence"].as_str();
    assert!(sentence.expect("a sentence").contains("dd ("), "{sentence:?}");
}

/// Folder for cgroups with a quota of processor time, and a command that gives one a tenth of a processor.
fn quotas() -> Option<(PathBuf, &'static str)> {
    let old = Path::new("/sys/fs/cgroup/cpu");
    if old.join("cpu.cfs_quota_us").exists() || old.join("cpu.shares").exists() {
        return Some((
            old.to_owned(),
            "echo 100000 >CGROUP/cpu.cfs_period_us && echo 10000 >CGROUP/cpu.cfs_quota_us",
        ));
    }
    let root = cgroups();
    let on = fs::read_to_string(root.join("cgroup.subtree_control")).ok()?;
    let has = on.split_whitespace().any(|controller| controller == "cpu");
    has.then_some((root, "echo 10000 100000 >CGROUP/cpu.max"))
}

/// Records a script, and returns what `luc explain` says of it.
pub(crate) fn explained(script: &str) -> Value {
    let folder = TempDir::new().expect("a folder");
    let trace = folder.path().join("trace").display().to_string();
    let run = |arguments: &[&str]| {
        let output = Command::new(LUC).args(arguments).output().expect("luc runs");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    run(&["record", "-q", "-o", &trace, "--", "sh", "-c", script]);
    serde_json::from_str(&run(&["explain", "--json", &trace])).expect("JSON")
}

/// Time that a process was blocked for `cause`, of the process with the longest one, s.
fn longest_s(report: &Value, cause: &str) -> f64 {
    let processes = report["accounts"]["processes"].as_array();
    let blocked_ns = |account: &Value| account["blocked"][cause].as_f64().unwrap_or(0.0);
    let of_processes = processes.into_iter().flatten().map(blocked_ns);
    of_processes.fold(0.0, f64::max) / 1e9
}
