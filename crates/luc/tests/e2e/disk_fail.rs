//! `luc disk fail` end to end: what a disk that fails tells its users. Needs root and FUSE; skipped, with the reason,
//! where they are missing.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

use crate::common::{EmulatedTestDisk, refusal, stderr, until};
use luc_disk::{BlockErrno, kernel_release};
use serde_json::{Value, json};

fn disk(test: &str) -> Option<EmulatedTestDisk> {
    EmulatedTestDisk::new(&format!("fail-{test}"), "ext4", "")
}

/// Runs what must succeed and gives its JSON.
fn json_of(disk: &EmulatedTestDisk, words: &[&str]) -> Value {
    let output = disk.luc(&[&["disk"], words, &["--json"]].concat());
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn fail(disk: &EmulatedTestDisk, words: &[&str]) -> Value {
    json_of(disk, &[&["fail", "disk"], words].concat())
}

/// Unmounts the disk, so that nobody but the test reads and writes it. Its device.
fn device(disk: &EmulatedTestDisk) -> String {
    let info = json_of(disk, &["list"]);
    let unmounted = Command::new("umount").arg(disk.mount()).status();
    assert!(unmounted.expect("umount runs").success());
    info[0]["device"].as_str().expect("a device").to_owned()
}

/// Writes or reads the blocks of the device with these numbers, each by a request of its own; which failed.
fn failed_blocks(device: &str, is_write: bool, blocks: std::ops::Range<u32>) -> Vec<u32> {
    let works = |block: &u32| {
        let mut dd = Command::new("dd");
        dd.args(["bs=4k", "count=1", "status=none"]);
        if is_write {
            dd.args(["if=/dev/zero", "oflag=direct", "conv=notrunc"])
                .args([format!("of={device}"), format!("seek={block}")]);
        } else {
            dd.args(["of=/dev/null", "iflag=direct"])
                .args([format!("if={device}"), format!("skip={block}")]);
        }
        dd.output().expect("dd runs").status.success()
    };
    blocks.filter(|block| !works(block)).collect()
}

#[test]
fn the_errno_reaches_the_program_that_synchronizes() {
    let Some(disk) = disk("errno") else { return };
    // Before Linux 6.4 ext4 gives EIO for every failure.
    let release = kernel_release();
    let is_told = |name: &str| {
        let newest = [6, 4];
        let numbers = release.split(['.', '-']).take(2);
        let version: Vec<u32> = numbers.filter_map(|number| number.parse().ok()).collect();
        if version.as_slice() < newest.as_slice() { "EIO" } else { name }.to_owned()
    };
    let path = Path::new(&disk.mount()).join("file");
    let mut file = File::create(&path).expect("made");
    file.write_all(&[1; 4096]).expect("written");
    file.sync_all().expect("synchronized");
    for errno in BlockErrno::of_kernel(&release) {
        let begun = fail(&disk, &["--errno", errno.name()]);
        assert_eq!(begun["errno"], errno.name());
        file.write_all_at(&[2; 4096], 0).expect("to memory");
        let told = file.sync_data().expect_err("the disk failed");
        let expected: BlockErrno = is_told(errno.name()).parse().expect("an errno");
        assert_eq!(told.raw_os_error(), Some(expected.number()), "{errno}");
        // A failure is told once.
        file.sync_data().expect("nothing is left to write");
        let ended = fail(&disk, &["--clear"]);
        assert!(ended["failed"].as_u64() >= Some(1), "{ended}");
    }
}

#[test]
fn what_failed_is_not_on_the_disk() {
    let Some(disk) = disk("content") else { return };
    let device = device(&disk);
    let block = |byte: u8| {
        let file = disk.path("block");
        fs::write(&file, [byte; 4096]).expect("written");
        let copied = Command::new("dd")
            .args(["bs=4k", "status=none", "oflag=direct", "conv=notrunc"])
            .args([format!("if={file}"), format!("of={device}")])
            .output();
        copied.expect("dd runs").status.success()
    };
    assert!(block(1));
    fail(&disk, &["--errno", "ENODATA"]);
    assert!(!block(2));
    fail(&disk, &["--clear"]);
    let there = Command::new("dd")
        .args(["bs=4k", "count=1", "status=none", "iflag=direct"])
        .arg(format!("if={device}"))
        .output();
    assert_eq!(there.expect("dd runs").stdout, [1; 4096]);
}

#[test]
fn some_requests_fail_and_others_do_not() {
    let Some(disk) = disk("some") else { return };
    let device = device(&disk);
    for (words, is_write, expected) in [
        (&["--errno", "EIO", "--after", "2"][..], true, vec![2, 3, 4, 5]),
        (&["--errno", "EIO", "--every", "3"], true, vec![2, 5]),
        (&["--errno", "EIO", "--after", "1", "--every", "2"], true, vec![2, 4]),
        (&["--errno", "5", "--range", "4K-12K"], true, vec![1, 2]),
        (&["--errno", "EIO", "--range", "0-1", "--range", "20479-21K"], true, vec![0, 4, 5]),
        (&["--errno", "ETIMEDOUT", "--on", "read"], true, vec![]),
        (&["--errno", "ETIMEDOUT", "--on", "read"], false, vec![0, 1, 2, 3, 4, 5]),
        (&["--errno", "EIO", "--on", "write,read", "--after", "5"], false, vec![5]),
        (&["--errno", "EIO", "--on", "flush"], true, vec![]),
    ] {
        fail(&disk, words);
        assert_eq!(failed_blocks(&device, is_write, 0..6), expected, "{words:?}");
        let ended = fail(&disk, &["--clear"]);
        assert_eq!(ended["failed"], expected.len(), "{words:?}");
    }
    let stats = json_of(&disk, &["status", "disk"]);
    assert_eq!(stats["failed"], 20, "{stats}");
}

#[test]
fn a_flush_fails_and_the_disk_says_so() {
    let Some(disk) = disk("flush") else { return };
    let device = device(&disk);
    fail(&disk, &["--errno", "EIO", "--on", "flush"]);
    let file = File::options().write(true).open(&device).expect("opens");
    let told = file.sync_all().expect_err("the disk failed");
    assert_eq!(told.raw_os_error(), Some(BlockErrno::EIO.number()));
    let listed = json_of(&disk, &["list"]);
    assert_eq!(listed[0]["fault"]["failed"], 1, "{listed}");
    assert_eq!(listed[0]["fault"]["on"], json!(["flush"]), "{listed}");
    let text = disk.luc(&["disk", "list"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("flushes fail with EIO: 1 of 1"), "{text}");
}

#[test]
fn a_fault_ends_in_time() {
    let Some(disk) = disk("time") else { return };
    let device = device(&disk);
    fail(&disk, &["--errno", "EIO", "--for", "10s"]);
    assert_eq!(failed_blocks(&device, true, 0..1), [0]);
    // A later fault takes the place of an earlier one.
    fail(&disk, &["--errno", "EIO", "--for", "1ms"]);
    until("the end of the fault", || fail(&disk, &[])["is_over"] == true);
    assert!(failed_blocks(&device, true, 0..1).is_empty());
}

#[test]
fn bad_faults_are_refused_in_one_line() {
    let Some(disk) = disk("bad") else { return };
    for (words, expected) in [
        (&["disk"][..], "does not fail"),
        (&["disk", "--clear"], "does not fail"),
        (&["disk", "--errno", "EPERM"], "cannot carry it"),
        (&["disk", "--errno", "disk"], "neither an errno's name"),
        (&["disk", "--errno", "ENODATA", "--on", "flush"], "turns any failed flush into EIO"),
        (&["disk", "--errno", "EIO", "--on", "erase"], "use write, read or flush"),
        (&["disk", "--errno", "EIO", "--every", "0"], "--every 0"),
        (&["disk", "--errno", "EIO", "--range", "8K"], "--range 8K"),
        (&["disk", "--errno", "EIO", "--range", "8K-4K"], "no byte is in it"),
        (&["disk", "--errno", "EIO", "--range", "0-1G"], "beyond the end"),
        (&["disk", "--errno", "EIO", "--for", "2"], "duration '2'"),
        (&["disk", "--after", "3"], "add --errno"),
        (&["disk", "--errno", "EIO", "--clear"], "--clear"),
        (&["none", "--errno", "EIO"], "'none' does not exist"),
    ] {
        let message = refusal(&disk.luc(&[&["disk", "fail"], words].concat()));
        assert!(message.contains(expected), "{words:?}: {message}");
    }
    assert_eq!(json_of(&disk, &["list"])[0]["fault"], Value::Null);
}
