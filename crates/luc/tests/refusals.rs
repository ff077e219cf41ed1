//! What is said where recording, or a part of it, is not possible: without BTF, on file systems without a jbd2
//! journal. Needs root (and a disk for the latter), and says so where it is missing. Without root:
//! `without_privileges_one_line_says_so` and the like beside the other tests of each command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use luc_events::store::Reader;
use luc_events::tables::{Request, Row, Sync};

const LUC: &str = env!("CARGO_BIN_EXE_luc");

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("readable");
    let root = status.contains("\nUid:\t0\t0\t");
    if !root {
        println!("skipped: needs root");
    }
    root
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs `luc` where the kernel's type information is hidden, in a mount namespace of its own.
fn without_btf(arguments: &[&str]) -> Output {
    let script = "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"";
    Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh", LUC])
        .args(arguments)
        .output()
        .expect("unshare runs")
}

#[test]
fn without_btf_one_line_says_so() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("trace");
    let out = out.to_str().expect("plain");
    for arguments in [
        &["record", "--out", out, "--", "true"][..],
        &["record", "--summary", "--out", out, "--duration", "1s"],
        &["top", "--once"],
    ] {
        let output = without_btf(arguments);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
        assert!(said.contains("BTF"), "{arguments:?}: {said}");
        assert!(!folder.path().join("trace").exists());
    }
}

#[test]
fn a_run_that_cannot_be_recorded_is_the_same_run() {
    let folder = tempfile::tempdir().expect("a directory");
    let of = format!("of={}", folder.path().join("file").display());
    let words = [
        "dd",
        "if=/dev/zero",
        "bs=1k",
        "count=1",
        "conv=fsync",
        "status=none",
        &of,
    ];
    let run = |options: &[&'static str]| {
        let mut all = vec!["run"];
        all.extend(options);
        all.push("--");
        all.extend(words);
        all
    };
    if !is_root() {
        return;
    }
    let output = without_btf(&run(&[]));
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(text.matches("why is not known").count(), 1, "{text}");
    assert!(text.contains("BTF") && text.contains("--no-why"), "{text}");
    let output = without_btf(&run(&["--no-why"]));
    assert_eq!(output.status.code(), Some(0));
    assert!(!said(&output).contains("why"), "{}", said(&output));
}

/// An emulated disk with a file system, gone when dropped.
struct Disk {
    root: PathBuf,
}

impl Disk {
    fn new(kind: &str) -> Option<Self> {
        if !is_root() {
            return None;
        }
        for device in ["/dev/fuse", "/dev/loop-control"] {
            if let Err(error) = fs::File::options().read(true).write(true).open(device) {
                println!("skipped: {device}: {error}");
                return None;
            }
        }
        let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
        if !known.split_whitespace().any(|name| name == kind) {
            println!("skipped: this kernel has no {kind}");
            return None;
        }
        let name = format!("luc-refusals-{kind}-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        fs::create_dir_all(root.join("mnt")).expect("made");
        let disk = Self { root };
        let mount = disk.path("mnt");
        let made = disk.luc(&[
            "disk", "create", "other", "--flush", "6ms", "--write", "20us", "--size", "512M",
            "--mkfs", kind, "--mount", &mount,
        ]);
        assert!(made.status.success(), "{made:?}");
        Some(disk)
    }

    fn path(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    fn luc(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(LUC);
        command.args(arguments).env("LUC_RUN_DIR", &self.root);
        command.output().expect("luc runs")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.luc(&["disk", "remove", "other"]);
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn rows<T: Row>(reader: &Reader) -> Vec<T> {
    let rows = reader.rows::<T>().expect("the table can be read");
    rows.map(|row| row.expect("a whole row")).collect()
}

/// On `kind` all is recorded but commits, and that is said.
fn what_can_be_said_of(kind: &str) {
    let Some(disk) = Disk::new(kind) else {
        return;
    };
    let (mount, trace) = (disk.path("mnt"), disk.path("trace"));
    let script = format!(
        "cd {mount}; for i in 1 2 3 4 5; do dd if=/dev/zero of=f$i bs=1k count=1 conv=fsync 2>/dev/null; done"
    );
    let output = disk.luc(&[
        "record", "--device", &mount, "--out", &trace, "--", "sh", "-c", &script,
    ]);
    let text = said(&output);
    if text.contains("needs root") || text.contains("BTF") {
        println!("skipped: {}", text.trim());
        return;
    }
    assert!(output.status.success(), "{text}");
    let told = format!("{mount} is on {kind}, which has no ext4 journal");
    assert!(text.lines().any(|line| line.contains(&told)), "{text}");
    let reader = Reader::open(Path::new(&trace)).expect("a trace");
    let syncs = rows::<Sync>(&reader);
    assert_eq!(syncs.len(), 5, "{syncs:?}");
    // Each waits for at least one flush of the disk.
    assert!(
        syncs
            .iter()
            .all(|row| row.exit_ns - row.enter_ns >= 6_000_000),
        "{syncs:?}"
    );
    assert!(!rows::<Request>(&reader).is_empty(), "{text}");
    let output = disk.luc(&["explain", "--json", &trace]);
    assert!(output.status.success(), "{}", said(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let found = report["file_systems"].as_array().expect("a list");
    let found = found
        .iter()
        .find(|found| found["mount_point"] == mount.as_str());
    let found = found.expect("the file system");
    assert_eq!(found["kind"], kind);
    assert_eq!(found["syncs"]["latency"]["count"], 5);
    assert_eq!(found["commits"]["full"]["count"], 0);
}

#[test]
fn on_xfs_all_but_commits_is_recorded() {
    what_can_be_said_of("xfs");
}

#[test]
fn on_btrfs_all_but_commits_is_recorded() {
    what_can_be_said_of("btrfs");
}

#[test]
fn a_place_without_any_disk_is_told() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let trace = folder.path().join("trace");
    let trace = trace.to_str().expect("plain");
    let output = Command::new(LUC)
        .args([
            "record", "--device", "/dev/shm", "--out", trace, "--", "true",
        ])
        .output()
        .expect("luc runs");
    let text = said(&output);
    if text.contains("needs root") || text.contains("BTF") {
        println!("skipped: {}", text.trim());
        return;
    }
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("/dev/shm is on tmpfs, which has no ext4 journal"),
        "{text}"
    );
}
