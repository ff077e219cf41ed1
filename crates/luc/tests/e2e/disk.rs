//! `luc disk` end to end, on real loop devices. Needs root and FUSE; skipped, with the reason,
//! where they are missing.

use crate::common;

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A directory of state and mount points for one test, cleared when it ends; what a killed test
/// left, the next run of it clears.
struct Bench {
    root: PathBuf,
}

impl Bench {
    /// `None`, and a line that says why, where emulated disks cannot be had.
    fn new(test: &str) -> Option<Self> {
        if !common::can_make_disks() {
            return None;
        }
        let prefix = format!("luc-disk-test-{test}-");
        let dir = std::env::temp_dir();
        for entry in fs::read_dir(&dir).expect("a readable temporary directory").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(pid) = name.strip_prefix(&prefix) else {
                continue;
            };
            if !Path::new("/proc").join(pid).exists() {
                drop(Self { root: entry.path() });
            }
        }
        let root = dir.join(format!("{prefix}{}", std::process::id()));
        fs::create_dir_all(root.join("mnt")).expect("made");
        Some(Self { root })
    }

    fn mnt(&self) -> PathBuf {
        self.root.join("mnt")
    }

    /// The words that create disk `d` with a mounted ext4 on it.
    fn create(&self) -> Vec<String> {
        let mnt = self.mnt().display().to_string();
        let words = ["create", "d", "--size", "64M", "--mkfs", "ext4", "--mount"];
        words.into_iter().map(str::to_owned).chain([mnt]).collect()
    }

    /// Creates it, with latencies that take no time.
    fn created(&self) -> serde_json::Value {
        let create = self.create();
        let words: Vec<&str> = create.iter().map(String::as_str).collect();
        self.json(&[&words[..], &QUICK[..]].concat())
    }

    fn command<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_luc"));
        command.arg("disk").args(arguments).env("LUC_RUN_DIR", &self.root);
        command
    }

    fn luc(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("luc runs")
    }

    /// Runs what must succeed and gives its JSON.
    fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.luc(&[arguments, &["--json"]].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {message}");
        assert_eq!(message, "", "{arguments:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Runs what must be refused: status 2 and one line, which it returns.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.luc(arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert_eq!(output.stdout, b"", "{arguments:?}");
        assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
        assert!(message.starts_with("luc: "), "{message}");
        message
    }

    /// Mounts, loop devices, processes and state that carry this bench's path.
    fn leftovers(&self) -> Vec<String> {
        let root = self.root.to_string_lossy().into_owned();
        let mut found = Vec::new();
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("readable");
        found.extend(mounts.lines().filter(|line| line.contains(&root)).map(str::to_owned));
        for entry in fs::read_dir("/sys/block").expect("readable").flatten() {
            let backing = fs::read_to_string(entry.path().join("loop/backing_file"));
            found.extend(backing.ok().filter(|file| file.contains(&root)));
        }
        for entry in fs::read_dir("/proc").expect("readable").flatten() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            if line.contains("serve") && line.contains(&root) {
                found.push(line);
            }
        }
        if let Ok(entries) = fs::read_dir(self.root.join("disk")) {
            found.extend(entries.flatten().map(|entry| entry.path().display().to_string()));
        }
        found
    }

    /// As `assert_clean`, where the kernel may take a moment.
    fn assert_clean_soon(&self, after: &str) {
        let deadline = Instant::now() + Duration::from_secs(5);
        while !self.leftovers().is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.assert_clean(after);
    }

    fn assert_clean(&self, after: &str) {
        assert_eq!(self.leftovers(), Vec::<String>::new(), "{after}");
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.luc(&["remove", "--all"]);
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().expect("a string").to_owned()
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().expect("runs");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {message}");
}

fn write_synced(path: &Path, content: &[u8]) {
    let mut file = fs::File::create(path).expect("made");
    file.write_all(content).expect("written");
    file.sync_all().expect("synced");
    fs::File::open(path.parent().expect("a parent")).expect("opens").sync_all().expect("synced");
}

const QUICK: [&str; 6] = ["--flush", "1ms", "--write", "20us", "--read", "20us"];

/// The setting of a disk's queue.
fn queue_setting(info: &serde_json::Value, setting: &str) -> String {
    let device = text(&info["device"]);
    let name = device.strip_prefix("/dev/").expect("a device");
    let path = format!("/sys/block/{name}/queue/{setting}");
    fs::read_to_string(path).expect("readable").trim().to_owned()
}

#[test]
fn the_kernel_reads_ahead_as_on_a_real_disk_unless_told_otherwise() {
    let Some(bench) = Bench::new("read-ahead") else {
        return;
    };
    let info = bench.created();
    assert_eq!(queue_setting(&info, "read_ahead_kb"), "128");
    bench.json(&["remove", "d"]);
    let words = ["create", "d", "--size", "64M", "--read-ahead", "4M"];
    let info = bench.json(&words);
    assert_eq!(queue_setting(&info, "read_ahead_kb"), "4096");
    bench.json(&["remove", "d"]);
    let message = bench.refused(&["create", "d", "--read-ahead", "5"]);
    assert!(message.contains("128K"), "{message}");
    bench.assert_clean("a refusal");
}

#[test]
fn what_was_synced_outlives_a_power_cut_and_the_rest_does_not() {
    let Some(bench) = Bench::new("cut") else {
        return;
    };
    let mnt = bench.mnt();
    let dir = mnt.to_str().expect("text");
    let info = bench.created();
    let device = text(&info["device"]);
    assert_eq!(info["state"], "running");
    assert_eq!(text(&info["mount"]), dir);

    for seed in [None, Some("1"), Some("2")] {
        let kept = mnt.join(format!("kept-{seed:?}"));
        let lost = mnt.join(format!("lost-{seed:?}"));
        write_synced(&kept, &[b'k'; 100_000]);
        fs::write(&lost, [b'l'; 100_000]).expect("written to memory");
        let cut = match seed {
            None => bench.json(&["cut", "d"]),
            Some(seed) => bench.json(&["cut", "d", "--seed", seed]),
        };
        assert!(cut["lost_sectors"].is_u64(), "{cut}");
        assert_eq!(bench.json(&["list"])[0]["state"], "cut");
        assert!(bench.refused(&["cut", "d"]).contains("restore it first"));
        assert!(bench.refused(&["restore", "d"]).contains("unmount it"));
        // The kernel notices: errors, not hangs. The file system may have failed earlier.
        if let Ok(file) = fs::File::create(mnt.join("after-the-cut")) {
            assert!(file.sync_all().is_err(), "a cut disk accepted a flush");
        }
        run("umount", &[dir]);
        assert!(fs::read(&device).is_err(), "a cut disk was read");
        bench.json(&["restore", "d"]);
        assert!(bench.refused(&["restore", "d"]).contains("not cut"));
        run("mount", &[&device, dir]);
        assert_eq!(fs::read(&kept).expect("there"), [b'k'; 100_000]);
        assert!(!lost.exists(), "never flushed, yet there");
    }
    run("umount", &[dir]);
    run("e2fsck", &["-fn", &device]);
    bench.json(&["remove", "d"]);
    bench.assert_clean("remove");
}

#[test]
fn the_device_itself_reads_writes_flushes_and_discards() {
    let Some(bench) = Bench::new("device") else {
        return;
    };
    let info = bench.json(&[&["create", "raw", "--size", "64M"][..], &QUICK[..]].concat());
    let path = text(&info["device"]);
    let mut device = fs::File::options().read(true).write(true).open(&path).expect("opens");
    let pattern: Vec<u8> = (0..5 << 20).map(|at: u32| (at / 512 % 251) as u8).collect();
    device.write_all(&pattern).expect("written");
    device.sync_all().expect("flushed");
    let before = bench.json(&["stats", "raw"]);
    assert_eq!(before["written_bytes"], 5 << 20);
    assert_eq!(before["unflushed_bytes"], 0);
    assert!(before["flushes"].as_u64() >= Some(1), "{before}");
    // 512 KiB is what the kernel makes of it; the disk gets each request whole.
    assert!(before["writes"].as_u64() <= Some(10), "{before}");

    run("blkdiscard", &["-o", "1048576", "-l", "1048576", &path]);
    // With its last user goes the page cache: what is read is what the disk holds.
    drop(device);
    let mut device = fs::File::open(&path).expect("opens");
    let mut back = vec![1; pattern.len()];
    device.seek(SeekFrom::Start(0)).expect("seeks");
    device.read_exact(&mut back).expect("read");
    let mut expected = pattern;
    expected[1 << 20..2 << 20].fill(0);
    assert!(back == expected, "contents differ");
    assert_eq!(bench.json(&["stats", "raw"])["discards"], 1);
    drop(device);
    bench.json(&["remove", "raw"]);
    bench.assert_clean("remove");
}

#[test]
fn a_killed_daemon_leaves_nothing_that_remove_does_not_clear() {
    let Some(bench) = Bench::new("kill") else {
        return;
    };
    let mnt = bench.mnt();
    for busy in [false, true] {
        let info = bench.created();
        fs::write(mnt.join("dirty"), "dirty").expect("written to memory");
        let user = busy.then(|| fs::File::open(mnt.join("dirty")).expect("opens"));
        run("kill", &["-9", &info["daemon_pid"].to_string()]);
        let deadline = Instant::now() + Duration::from_secs(5);
        while bench.json(&["list"])[0]["state"] != "dead" {
            assert!(Instant::now() < deadline, "the daemon outlived its kill");
        }
        assert!(bench.refused(&["stats", "d"]).contains("luc disk remove d"));
        assert_eq!(bench.json(&["remove", "--all"]), serde_json::json!(["d"]));
        drop(user);
        bench.assert_clean_soon("remove --all");
    }
}

#[test]
fn a_creation_killed_at_any_time_is_cleared() {
    let Some(bench) = Bench::new("half") else {
        return;
    };
    for signal in ["-KILL", "-TERM", "-INT"] {
        for after_ms in [0, 2, 5, 10, 20, 40, 80] {
            let mut child = bench
                .command(&bench.create())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("luc runs");
            std::thread::sleep(Duration::from_millis(after_ms));
            let _ = Command::new("kill").args([signal, &child.id().to_string()]).status();
            let status = child.wait().expect("ends");
            // A signal after the last safe point finds the disk complete, which is no failure.
            if signal == "-KILL" || status.success() {
                std::thread::sleep(Duration::from_millis(20));
                bench.json(&["remove", "--all"]);
            }
            bench.assert_clean(&format!("{signal} after {after_ms} ms, {status}"));
        }
    }
}

#[test]
fn bad_input_is_refused_in_one_line_and_leaves_nothing() {
    let Some(bench) = Bench::new("bad") else {
        return;
    };
    let mnt = bench.mnt();
    let dir = mnt.to_str().expect("text");
    let model = bench.root.join("model.toml");
    fs::write(&model, "model = \"hdd\"\nrpm = 0\n").expect("written");
    let model = model.to_str().expect("text");
    for (arguments, expected) in [
        (&["create", "d", "--model", "fixd"][..], "did you mean 'fixed'"),
        (&["create", "d", "--model", "/no/such.toml"], "/no/such.toml"),
        (&["create", "d", "--model", model], "rpm is out of range"),
        (&["create", "d", "--model", "ssd", "--flush", "1ms"], "--flush does not go with"),
        (&["create", "d", "--size", "big"], "size 'big'"),
        (&["create", "d", "--size", "1000"], "size 1000 bytes"),
        (&["create", "d", "--flush", "6"], "duration '6'"),
        (&["create", "a/b"], "'a/b' is not allowed"),
        (&["create", "d", "--mkfs", "nosuch"], "'mkfs.nosuch' is not installed"),
        (&["create", "d", "--mkfs", "ext4", "--mkfs-options", "-O nosuch"], "mkfs.ext4 failed"),
        (&["create", "d", "--mkfs", "ext4", "--mount", "/no/such"], "does not exist"),
        (&["create", "d", "--mkfs", "ext4", "--mount", "/proc"], "is a mount point already"),
        (&["create", "d", "--mkfs", "ext4", "--mount", model], "is not a directory"),
        (
            &["create", "d", "--mkfs", "ext4", "--mount", dir, "--mount-options", "nosuch"],
            "mount failed",
        ),
        (&["stats", "d"], "'d' does not exist"),
        (&["cut", "d"], "'d' does not exist"),
        (&["restore", "d"], "'d' does not exist"),
        (&["remove", "d"], "'d' does not exist"),
    ] {
        let message = bench.refused(arguments);
        assert!(message.contains(expected), "{arguments:?}: {message}");
        bench.assert_clean(&message);
    }

    bench.json(&["create", "d", "--size", "1M"]);
    assert!(bench.refused(&["create", "d"]).contains("exists already"));
    assert_eq!(bench.json(&["list"])[0]["state"], "running", "the first is untouched");
    bench.json(&["remove", "d"]);
    assert_eq!(bench.json(&["list"]), serde_json::json!([]));
    bench.assert_clean("remove");
}

#[test]
fn a_disk_in_use_is_removed_by_all_only() {
    let Some(bench) = Bench::new("busy") else {
        return;
    };
    let mnt = bench.mnt();
    bench.created();
    let user = fs::File::create(mnt.join("open")).expect("made");
    assert!(user.as_raw_fd() >= 0);
    let said = bench.refused(&["remove", "d"]);
    let process = format!("disk 'd' is in use: process {} (", std::process::id());
    assert!(said.contains(&process), "{said}");
    assert!(said.contains(&mnt.join("open").display().to_string()), "{said}");
    write_synced(&mnt.join("still-works"), b"yes");
    bench.json(&["remove", "--all"]);
    drop(user);
    bench.assert_clean_soon("remove --all");
}

#[test]
fn a_disk_does_not_keep_its_creator_s_folder_busy() {
    let Some(bench) = Bench::new("folder") else {
        return;
    };
    bench.created();
    let create = ["create", "e", "--size", "64M"];
    let output = bench.command(&create).args(QUICK).current_dir(bench.mnt()).output();
    assert!(output.expect("luc runs").status.success());
    bench.json(&["remove", "d"]);
    bench.json(&["remove", "e"]);
    bench.assert_clean("remove");
}

#[test]
fn a_program_that_sees_other_mounts_is_named() {
    let Some(bench) = Bench::new("elsewhere") else {
        return;
    };
    bench.created();
    // SECURITY.md says that only root can enter what is noted.
    let noted = fs::metadata(bench.root.join("disk")).expect("it is noted");
    assert_eq!(noted.permissions().mode() & 0o077, 0);
    let mut other = Command::new("unshare")
        .args(["--mount", "sh", "-c", "echo ready; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare runs");
    let mut ready = [0; 6];
    let output = other.stdout.as_mut().expect("piped");
    output.read_exact(&mut ready).expect("it is there");
    let said = bench.refused(&["remove", "d"]);
    let id = other.id();
    assert!(said.contains(&format!("process {id} (cat) has it mounted on")), "{said}");
    assert!(said.contains(&format!("nsenter --target {id} --mount umount")), "{said}");
    drop(other.stdin.take());
    other.wait().expect("it ends");
    bench.json(&["remove", "d"]);
    bench.assert_clean_soon("remove");
}

#[test]
fn every_model_carries_a_file_system() {
    let Some(bench) = Bench::new("models") else {
        return;
    };
    let mnt = bench.mnt();
    let dir = mnt.to_str().expect("text");
    for model in ["fixed", "hdd", "ssd", "cloud"] {
        let create = ["create", model, "--model", model, "--size", "64M", "--mkfs", "ext4"];
        bench.json(&[&create[..], &["--mount", dir]].concat());
        write_synced(&mnt.join("file"), b"content");
        assert_eq!(fs::read(mnt.join("file")).expect("there"), b"content");
        let stats = bench.json(&["stats", model]);
        assert!(stats["writes"].as_u64() > Some(0), "{stats}");
        assert!(stats["flushes"].as_u64() > Some(0), "{stats}");
        bench.json(&["remove", model]);
        bench.assert_clean(model);
    }
}
