//! Tasks that are frozen by their cgroup, or stopped by a signal, while they are recorded. Needs root, cgroup v2 and BTF.

mod common;
#[path = "common/throttle.rs"]
mod throttle;

use std::path::Path;
use std::process::Command;

use common::{LUC, is_root, stderr, stdout};
use serde_json::Value;
use tempfile::TempDir;
use throttle::cgroups;

/// How often the tasks are frozen, and for how long at least.
const FREEZES: u64 = 3;
const FROZEN_S: f64 = 0.4;

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
        let command = Command::new(LUC)
            .arg("explain")
            .args(options)
            .arg(&trace)
            .output();
        let output = command.expect("luc runs");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let report: Value = serde_json::from_str(&explain(&["--json"])).expect("JSON");
    let processes = report["accounts"]["processes"]
        .as_array()
        .expect("accounts");
    for comm in ["dd", "sleep"] {
        let frozen_s = |account: &Value| account["blocked"]["frozen"].as_f64().unwrap_or(0.0) / 1e9;
        let of_comm = processes.iter().filter(|account| account["comm"] == comm);
        let longest = of_comm.max_by(|a, b| frozen_s(a).total_cmp(&frozen_s(b)));
        let account = longest.unwrap_or_else(|| panic!("no {comm} in {processes:#?}"));
        assert!(
            frozen_s(account) >= FREEZES as f64 * FROZEN_S * 0.9,
            "{account:#}"
        );
        assert_eq!(account["freezes"].as_u64(), Some(FREEZES), "{account:#}");
    }
    let findings = report["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["kind"] == "frozen");
    let sentence = found.expect("found")["sentence"]
        .as_str()
        .expect("a sentence");
    assert!(
        sentence.contains("dd (") && sentence.contains("sleep ("),
        "{sentence}"
    );
    let text = explain(&[]);
    assert!(text.contains("luc throttle status"), "{text}");
}

#[test]
fn who_is_stopped_by_a_signal_is_said_to_be() {
    if !is_root() || !Path::new("/sys/kernel/btf/vmlinux").exists() {
        luc_testkit::skipped!("this needs root and the kernel's BTF");
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let trace = folder.path().join("trace").display().to_string();
    let script = format!(
        "sleep 100 & asleep=$!
        sleep 0.1
        kill -STOP $asleep
        sleep {FROZEN_S}
        kill -CONT $asleep
        sleep 0.1
        kill $asleep"
    );
    let run = |arguments: &[&str]| {
        let output = Command::new(LUC)
            .args(arguments)
            .output()
            .expect("luc runs");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    run(&["record", "-q", "-o", &trace, "--", "sh", "-c", &script]);
    let report: Value = serde_json::from_str(&run(&["explain", "--json", &trace])).expect("JSON");
    let processes = report["accounts"]["processes"].as_array();
    let stopped_s = |account: &Value| account["blocked"]["stopped"].as_f64().unwrap_or(0.0) / 1e9;
    let longest = processes.into_iter().flatten().map(stopped_s);
    let longest_s = longest.fold(0.0, f64::max);
    assert!(longest_s >= FROZEN_S * 0.9, "{longest_s} s: {processes:#?}");
}
