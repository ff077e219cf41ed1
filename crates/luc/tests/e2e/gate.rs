//! The gate on a real ext4 journal: programs that are hard on it, and what it gains. Needs root, FUSE and
//! a loop device for the emulated disk, and says so if they are missing.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::common::{CALLER_SOURCES, EmulatedTestDisk, LUC, stderr};
use serde_json::Value;

fn ext4(test: &str, mkfs_options: &str) -> Option<EmulatedTestDisk> {
    EmulatedTestDisk::new(test, "ext4", mkfs_options)
}

/// Compiles the program of awkward callers; outside the emulated disk, which costs time.
fn caller(disk: &EmulatedTestDisk) -> String {
    let program = disk.path("caller");
    let sources = CALLER_SOURCES
        .map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name));
    let compiled = Command::new("cc")
        .args(["-Wall", "-Wextra", "-O1", "-pthread", "-o", &program])
        .args(sources)
        .status()
        .expect("cc starts");
    assert!(compiled.success());
    program
}

/// Runs a command on the disk under `luc run`, and gives the report.
fn report(disk: &EmulatedTestDisk, policy: &str, command: &[&str]) -> Value {
    let json = disk.path("report.json");
    let output = disk
        .command(&["run", "--policy", policy, "--json", &json, "--"])
        .args(command)
        .current_dir(disk.mount())
        .output()
        .expect("luc starts");
    let text = stderr(&output);
    assert!(output.status.success(), "{policy} {command:?}: {text}");
    serde_json::from_slice(&std::fs::read(json).expect("report")).expect("JSON")
}

#[test]
fn awkward_callers_notice_nothing() {
    let Some(disk) = ext4("gate-callers", "") else {
        return;
    };
    let caller = caller(&disk);
    for policy in ["off", "delay:3ms", "pid:4", "auto"] {
        for case in [
            "errors",
            "msync",
            "fork",
            "vfork",
            "exec",
            "cancel",
            "handler",
            "jump",
            "threads",
            "exchange",
            "exchange_in_handler",
            "exchange_and_back",
        ] {
            let report = report(&disk, policy, &[&caller, case]);
            let gate = &report["file_systems"][0]["gate"];
            // A caller that jumps out of the gate stays out of it.
            if policy == "delay:3ms" && case != "jump" {
                assert!(gate["gated"].as_u64().is_some_and(|n| n > 0), "{case}: {report}");
            }
        }
    }
}

#[test]
fn threads_and_processes_share_commits() {
    let Some(disk) = ext4("gate-rounds", "") else {
        return;
    };
    let luc = LUC;
    for kind in [&[][..], &["--processes"][..]] {
        let bench = ["bench", "metarates", "--dir", ".", "--threads", "8", "--seconds", "4"];
        let report = report(&disk, "auto", &[&[luc], &bench[..], kind].concat());
        let fs = &report["file_systems"][0];
        let gate = &fs["gate"];
        assert!(gate["gated"].as_u64() > Some(0), "{fs:#}");
        let per_round =
            gate["gated"].as_f64().expect("number") / gate["rounds"].as_f64().expect("number");
        assert!(per_round > 2.0, "{fs:#}");
        assert_eq!(fs["failed"], 0);
    }
}

#[test]
fn a_lone_caller_is_never_held() {
    let Some(disk) = ext4("gate-alone", "") else {
        return;
    };
    let luc = LUC;
    let report = report(
        &disk,
        "auto",
        &[luc, "bench", "metarates", "--dir", ".", "--threads", "1", "--seconds", "2"],
    );
    let gate = &report["file_systems"][0]["gate"];
    assert_eq!((&gate["gated"], &gate["decision"]["trials"]), (&0.into(), &0.into()), "{gate}");
}

#[test]
fn without_a_journal_or_with_fast_commit_the_gate_stands_aside() {
    for (name, options, journal) in [
        ("gate-nojournal", "-O ^has_journal", "none"),
        ("gate-fast", "-O fast_commit", "fast_commit"),
    ] {
        let Some(disk) = ext4(name, options) else {
            return;
        };
        let caller = caller(&disk);
        let report = report(&disk, "delay:5ms", &[&caller, "threads"]);
        let fs = &report["file_systems"][0];
        assert_eq!((&fs["journal"], &fs["gate"]), (&journal.into(), &Value::Null), "{report:#}");
    }
}

#[test]
fn killed_participants_hold_nobody() {
    let Some(disk) = ext4("gate-kill", "") else {
        return;
    };
    let caller = caller(&disk);
    // Far above the gate's longest wait plus two commits, far below anything that hangs.
    let limit_ms = "2000";
    let worker = |n: usize| -> Child {
        disk.command(&["run", "--policy", "delay:2ms:10", "--quiet", "--"])
            .args([&caller, "worker", &format!("worker{n}"), limit_ms])
            .current_dir(disk.mount())
            .stderr(Stdio::null())
            .spawn()
            .expect("luc starts")
    };
    let mut workers: Vec<Child> = (0..6).map(worker).collect();
    for round in 0..15 {
        sleep(Duration::from_millis(60));
        let victim = round % 3;
        kill_with_command(&mut workers[victim]);
        workers[victim] = worker(victim);
    }
    sleep(Duration::from_millis(500));
    let figures = |n: usize| -> (u64, u64) {
        let path = format!("{}/worker{n}.figures", disk.mount());
        let text = std::fs::read_to_string(path).expect("figures");
        let mut numbers = text.split_whitespace().map(|n| n.parse().expect("number"));
        (numbers.next().expect("calls"), numbers.next().expect("slow calls"))
    };
    let survivors: Vec<(u64, u64)> = (3..6).map(figures).collect();
    for worker in &mut workers {
        kill_with_command(worker);
    }
    for (calls, slow) in survivors {
        assert!(calls > 10 && slow == 0, "{calls} calls, {slow} slow ones");
    }
}

/// SIGKILL for the command of a `luc run`, which then ends by itself and cleans up.
fn kill_with_command(run: &mut Child) {
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    for _ in 0..200 {
        let ids = std::fs::read_to_string(&children).unwrap_or_default();
        if let Some(id) = ids.split_whitespace().next() {
            Command::new("kill").args(["-KILL", id]).status().expect("kill");
            break;
        }
        sleep(Duration::from_millis(5));
    }
    let status = run.wait().expect("waited for");
    assert_eq!(status.code(), Some(137));
}
