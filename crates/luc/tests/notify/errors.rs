//! Errors: with notifications a program is told what it is told without.

use crate::common::Disk;
use crate::place::Place;

/// A bad sector and a full thin disk, by every kind of round.
#[test]
fn failed_writes_are_told_as_without_luc() {
    let Some(place) = Place::new("faults") else {
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
    assert!(
        report["policies"][2]["held_calls"].as_u64() > Some(0),
        "{report:#}"
    );
}

/// What is no file, and what has no journal.
#[test]
fn what_cannot_gain_is_left_alone() {
    let Some(disk) = Disk::new("notify-nojournal", "ext4", "-O ^has_journal") else {
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
    assert!(
        output.status.success(),
        "{}",
        crate::common::stderr(&output)
    );
    let report = std::fs::read(json).expect("report");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    let systems = report["file_systems"].as_array().expect("a list");
    assert_eq!(systems.len(), 2, "{report:#}");
    for system in systems {
        assert_eq!(system["gate"], serde_json::Value::Null, "{report:#}");
        assert_eq!(system["fsyncs"], 1, "{report:#}");
    }
}
