//! `luc advise --device` from end to end, on a loop device that stands for the real one. Refused requests leave the
//! device unchanged; granted ones give advice. That needs root, and what lacks it says `skipped`.

use crate::common::loop_device;

use std::fs;
use std::process::{Command, Output, Stdio};

use crate::common::{LUC, refusal, stderr, stdout};
use loop_device::{LoopDevice, run};
use serde_json::Value;

/// Short runs of few candidates.
const QUICK: &[&str] = &[
    "--workload",
    "metarates",
    "--seconds",
    "0.5",
    "--threads",
    "2",
    "--set",
    "warmup=0",
    "--only",
    "ext4,xfs",
    "--options",
    "default,noatime",
    "--rounds",
    "3",
    "--idle",
    "0",
    "--out",
    "out",
];

fn command(device: &LoopDevice, arguments: &[&str]) -> Command {
    let mut command = Command::new(LUC);
    command
        .arg("advise")
        .args(QUICK)
        .args(arguments)
        .current_dir(device.folder.path())
        .env("LUC_RUN_DIR", device.beside("run"))
        .stdin(Stdio::null());
    command
}

fn advise(device: &LoopDevice, arguments: &[&str]) -> Output {
    command(device, arguments).output().expect("luc runs")
}

/// Refused with one line that has these words; nothing is made, and what is on the device stays.
fn refuses(device: &LoopDevice, arguments: &[&str], words: &[&str]) {
    let before = device.signatures();
    let message = refusal(&advise(device, arguments));
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
    assert!(!device.beside("out").exists(), "{message}");
    assert_eq!(device.signatures(), before);
}

#[test]
fn what_may_not_be_formatted_is_left_alone() {
    let Some(device) = LoopDevice::new(280) else {
        return;
    };
    let name = device.name();
    let twice = ["--device", &name, "--erase", &name];
    let with = |more: &[&'static str]| -> Vec<&str> {
        twice.iter().copied().chain(more.iter().copied()).collect()
    };
    refuses(&device, &["--device", &name], &[&name, &format!("--erase {name}")]);
    refuses(
        &device,
        &["--device", &name, "--erase", "/dev/null"],
        &[&name, "/dev/null", "the same path"],
    );
    refuses(&device, &["--erase", &name], &["--device"]);
    refuses(&device, &["--overwrite"], &["--device"]);
    for other in [&["--disk", "ssd"][..], &["--disk-size", "1G"], &["--on", "/tmp"]] {
        refuses(&device, &with(other), &["cannot be used with", "--device", other[0]]);
    }
    refuses(&device, &["--device", "loop0", "--erase", "loop0"], &["loop0", "absolute"]);
    for (path, why) in [("/dev/null", "no block device"), ("/dev/no-such", "no such device")] {
        refuses(&device, &["--device", path, "--erase", path], &[path, why, "lsblk"]);
    }
    let large = ["--workload", "webserver", "--set", "nfiles=100000", "--out", "out"];
    let output = Command::new(LUC)
        .arg("advise")
        .args(large.iter().chain(&twice))
        .current_dir(device.folder.path())
        .output()
        .expect("luc runs");
    let message = refusal(&output);
    assert!(
        ["the workload's files take", "has 280 MiB", "--set"]
            .iter()
            .all(|word| message.contains(word)),
        "{message}"
    );
    assert!(!device.beside("out").exists());
    run("blockdev", &["--setro", &name]);
    refuses(&device, &twice, &[&name, "read-only"]);
    run("blockdev", &["--setrw", &name]);
    run("mkfs.ext4", &["-q", "-F", &name]);
    refuses(&device, &twice, &[&name, "not empty (ext4)", "give --overwrite"]);
    let _mounted = device.mount(&name);
    refuses(&device, &with(&["--overwrite"]), &[&name, "is mounted on"]);
}

#[test]
fn advice_on_a_device_leaves_it_empty() {
    // Enough for the files, not for XFS.
    let Some(device) = LoopDevice::new(280) else {
        return;
    };
    let name = device.name();
    run("mkfs.ext4", &["-q", "-F", &name]);
    let arguments = ["--device", &name, "--erase", &name, "--overwrite"];
    let output = command(&device, &arguments).arg("--json").output().expect("luc runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let answer: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(answer["repeats"], 6);
    assert_eq!(answer["device"]["path"], name);
    assert_eq!(answer["device"]["size_bytes"], 280 << 20);
    let candidates = answer["selection"]["candidates"].as_array();
    assert_eq!(candidates.map(Vec::len), Some(2), "{answer:#}");
    let not_tried = answer["not_tried"].as_array().expect("reasons");
    let xfs: Vec<&Value> = not_tried.iter().filter(|one| one["what"] == "xfs").collect();
    assert_eq!(xfs.len(), 1, "{not_tried:?}");
    let known = fs::read_to_string("/proc/filesystems").expect("readable");
    if known.contains("\txfs\n") {
        let why = xfs[0]["why"].as_str().expect("words");
        assert!(why.contains("300M") && why.contains("280 MiB"), "{why}");
    }
    let results = fs::read_to_string(device.beside("out/results.jsonl")).expect("readable");
    assert!(results.matches(&format!("{name} ")).count() >= 6, "{results}");
    // All is there: nothing more is measured, and the same is said in words.
    let text = stdout(&advise(&device, &arguments));
    for part in [
        &format!("place: device {name}: loop device on "),
        ", 280 MiB, ",
        "scheduler ",
        "advice: ext4",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(device.signatures(), "");
    assert!(!device.is_mounted());
    for name in ["out/devices.json", "out/work"] {
        assert!(!device.beside(name).exists(), "{name}");
    }
}
