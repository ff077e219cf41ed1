//! Errors: with notifications a program is told what it is told without.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use crate::common::EmulatedTestDisk;
use crate::notify::leftover_check::LeftoverCheck;

/// A bad sector and a full thin disk, by every kind of round.
#[test]
fn failed_writes_are_told_as_without_luc() {
    let Some(place) = LeftoverCheck::new("faults") else {
        return;
    };
    let words = [
        "--reach",
        "notify",
        "--call",
        "fsync",
        "--call",
        "fdatasync",
        "--mount-options",
        "errors=remount-ro",
        "--flush",
        "1ms",
        "--policy",
        "off",
        "--policy",
        "delay:1ms",
        "--errno",
        "ENODATA",
        "--errno",
        "ENOSPC",
        "--errno",
        "EIO",
    ];
    let report = place.report(&words, 0);
    assert_eq!(report["differences"], serde_json::json!([]), "{report:#}");
    assert!(report["failed_requests"].as_u64() > Some(0), "{report:#}");
    assert!(report["policies"][2]["held_calls"].as_u64() > Some(0), "{report:#}");
}

/// Synchronizes a file on ext4 without a journal, and one in memory.
#[test]
fn what_cannot_gain_is_left_alone() {
    let Some(disk) = EmulatedTestDisk::new("notify-nojournal", "ext4", "-O ^has_journal") else {
        return;
    };
    let json = disk.path("report.json");
    let script = "dd if=/dev/zero of=f bs=1k count=1 conv=fsync status=none; \
                  dd if=/dev/zero of=/dev/shm/luc-test-notify bs=1k count=1 conv=fsync status=none; \
                  rm /dev/shm/luc-test-notify";
    let output = disk
        .command(&[
            "run",
            "--no-why",
            "--reach",
            "notify",
            "--policy",
            "delay:5ms",
            "--json",
            &json,
        ])
        .args(["--", "sh", "-c", script])
        .current_dir(disk.mount())
        .output()
        .expect("luc starts");
    assert!(output.status.success(), "{}", crate::common::stderr(&output));
    let report = std::fs::read(json).expect("report");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    let systems = report["file_systems"].as_array().expect("a list");
    assert_eq!(systems.len(), 2, "{report:#}");
    for system in systems {
        assert_eq!(system["gate"], serde_json::Value::Null, "{report:#}");
        assert_eq!(system["fsyncs"], 1, "{report:#}");
    }
}

/// A container's root is an overlay, through which the kernel tells less of what it has recorded.
#[test]
fn failed_writes_below_an_overlay_are_told_as_without_luc() {
    const BYTES: u64 = 65_536;
    let Some(place) = crate::notify::many_callers::NotifyDisk::new("overlay") else {
        return;
    };
    let program = place.compile("layered", "sync_on_overlay.c", &["-static", "-O1"]);
    let mounted = "mkdir -p l u w m && mount -t overlay o -o lowerdir=$PWD/l,upperdir=$PWD/u,workdir=$PWD/w m && exec \"$@\"";
    let told = |errno: &str, file: &str, gate: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", mounted, "sh"]).args(gate);
        command.args([&program, &format!("m/{file}")]);
        place.disk.set_environment(&mut command);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.current_dir(place.disk.mount()).spawn().expect("unshare starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut line = |word: &str| {
            let line = lines.next().expect("a line").expect("read");
            line.strip_prefix(word).map(|rest| rest.trim().to_owned()).unwrap_or(line)
        };
        let at: u64 = line("at").parse().expect("a number");
        let fails = ["--range", &format!("{at}-{}", at + BYTES), "--errno", errno];
        let fails = place.disk.luc(&[&["disk", "fail", "disk"], &fails[..]].concat());
        assert!(fails.status.success(), "{fails:?}");
        child.stdin.take().expect("piped").write_all(b"\n").expect("written");
        let told = line("told");
        assert!(child.wait().expect("ended").success());
        assert!(place.disk.luc(&["disk", "fail", "disk", "--clear"]).status.success());
        told
    };
    let report = place.disk.path("report.json");
    let gate = [
        crate::common::LUC,
        "run",
        "--no-why",
        "--reach",
        "notify",
        "--policy",
        "delay:2ms",
        "--json",
        &report,
        "--",
    ];
    for (errno, number) in [("EIO", 5), ("ENOSPC", 28), ("ENODATA", 61)] {
        let stock = told(errno, "stock", &[]);
        assert_eq!(stock, format!("{number} 0 {number} 0"));
        assert_eq!(told(errno, "held", &gate), stock);
        let report = std::fs::read(&report).expect("report");
        let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
        let held = &report["file_systems"][0]["gate"]["gated"];
        assert!(held.as_u64() > Some(4), "{report:#}");
    }
}
