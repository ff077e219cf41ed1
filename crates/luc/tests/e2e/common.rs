//! Parts that the end-to-end tests share: running `luc`, an emulated disk, and reading traces.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod fake_machine;
pub(crate) mod fleet_recording;
pub(crate) mod leftover_check;
pub(crate) mod loop_device;
pub(crate) mod throttle;

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use luc_events::Dev;
use luc_events::store::TraceReader;
use luc_events::tables::{MountedFileSystem, TableRow};
use luc_testkit::Meanwhile;

pub(crate) const LUC: &str = env!("CARGO_BIN_EXE_luc");

/// Sources of the program of awkward callers, in `tests/programs`.
pub(crate) const CALLER_SOURCES: [&str; 2] = ["caller.c", "exchanged_files.c"];

/// Copies `luc`, for users who cannot reach it where it was built. A process of its own copies it. If this process
/// had the copy open for writing, a child of another test might inherit that. Then the copy could not be run for a
/// moment (ETXTBSY).
pub(crate) fn copy_luc(to: &Path) {
    let copied = Command::new("cp").arg(LUC).arg(to).status();
    assert!(copied.expect("cp runs").success());
}

/// Time to wait for something on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns a refusal: one line, with status 2. Lines on what a test beside this one left, and was restored first, are
/// dropped.
pub(crate) fn refusal(output: &Output) -> String {
    let text = stderr(output);
    let is_of_this = |line: &&str| !line.ends_with(": restored");
    let text = text.lines().filter(is_of_this).map(|line| format!("{line}\n")).collect::<String>();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

/// Runs `luc` without any privilege.
pub(crate) fn without_privileges(arguments: &[&str]) -> Output {
    let status = fs::read_to_string("/proc/self/status").expect("readable");
    let capable = status
        .lines()
        .any(|line| line.starts_with("CapEff:") && !line.ends_with("0000000000000000"));
    let mut command = Command::new("setpriv");
    if capable {
        command.args(["--bounding-set=-all", "--inh-caps=-all", "--"]);
    }
    command.arg(LUC).args(arguments).output().expect("setpriv runs")
}

/// `luc` on a machine without any mkfs: its arguments follow. Needs root.
pub(crate) fn without_mkfs() -> Command {
    let script = "mount -t tmpfs none /usr/sbin && mount -t tmpfs none /sbin && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh", LUC]);
    command
}

/// `luc` as another user, who may write to `folder`: its arguments follow. Needs root. Without root only capabilities
/// could be taken away, and the user would still be root.
pub(crate) fn as_nobody(folder: &Path) -> Command {
    let luc = folder.join("luc");
    copy_luc(&luc);
    for path in [folder, &luc] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("opened");
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--clear-groups"]).arg(luc);
    command
}

/// Compiles a C program and links it statically; if that cannot be had, says that a test is skipped.
pub(crate) fn compiled_statically(source: &Path, program: &Path) -> bool {
    let compiled = Command::new("cc").arg("-static").arg("-o").args([program, source]).status();
    let is_there = compiled.is_ok_and(|status| status.success());
    if !is_there {
        luc_testkit::skipped!("cc cannot link statically here");
    }
    is_there
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < TIMEOUT, "{what} did not come");
        sleep(Duration::from_millis(5));
    }
}

pub(crate) fn rows<T: TableRow>(reader: &TraceReader) -> Vec<T> {
    reader
        .rows::<T>()
        .expect("the table can be read")
        .map(|row| row.expect("a whole row"))
        .collect()
}

/// Whether this is root; else says that a test is skipped.
pub(crate) fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("readable");
    let root = status.contains("\nUid:\t0\t0\t");
    if !root {
        luc_testkit::skipped!("needs root");
    }
    root
}

/// Whether emulated disks can be had here; else says that a test is skipped.
pub(crate) fn can_make_disks() -> bool {
    if !is_root() {
        return false;
    }
    for device in ["/dev/fuse", "/dev/loop-control"] {
        if let Err(error) = fs::File::options().read(true).write(true).open(device) {
            luc_testkit::skipped!("{device}: {error}");
            return false;
        }
    }
    true
}

/// An emulated disk with a file system, whose flush takes [`FLUSH_NS`], and a folder beside it. All is gone when it
/// is dropped, or this process killed.
pub(crate) struct EmulatedTestDisk {
    root: PathBuf,
    _removed_at_end: Meanwhile,
}

/// Removes the disk in `$LUC_RUN_DIR` by the `luc` that is `$1`. What a killed shell had started may not be over yet,
/// and keeps the file system busy.
const REMOVE_DISK: &str = r#"
    tries=600
    while [ -e "$LUC_RUN_DIR/disk/disk" ]; do
        error=$("$1" disk remove disk 2>&1) && break
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { echo "$error" >&2; exit 1; }
        sleep 0.1
    done
    rm -rf "$LUC_RUN_DIR""#;

/// Time of a flush of the emulated disk.
pub(crate) const FLUSH_NS: u64 = 6_000_000;

impl EmulatedTestDisk {
    /// A disk with a file system of `kind`, made with `mkfs_options`. `None`, and a line that says why, where this
    /// cannot be had.
    pub(crate) fn new(test: &str, kind: &str, mkfs_options: &str) -> Option<Self> {
        let latencies = ["--flush", "6ms", "--write", "20us"];
        Self::made(test, &latencies, kind, mkfs_options)
    }

    /// A disk of a model, with ext4. `None`, and a line that says why, where this cannot be had.
    pub(crate) fn with_model(test: &str, model: &str) -> Option<Self> {
        Self::made(test, &["--model", model], "ext4", "")
    }

    fn made(test: &str, about: &[&str], kind: &str, mkfs_options: &str) -> Option<Self> {
        if !can_make_disks() {
            return None;
        }
        let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
        if !known.split_whitespace().any(|name| name == kind) {
            luc_testkit::skipped!("this kernel has no {kind}");
            return None;
        }
        let root = std::env::temp_dir().join(format!("luc-test-{test}-{}", std::process::id()));
        fs::create_dir_all(root.join("mnt")).expect("made");
        let run_dir = format!("LUC_RUN_DIR={}", root.display());
        // The disk is made after this, so that one half made is removed too.
        let removed = Meanwhile::under(&["env", &run_dir], "echo ready", REMOVE_DISK, &[LUC]);
        let disk = Self { root, _removed_at_end: removed };
        let mount = disk.mount();
        let mut words = vec!["disk", "create", "disk"];
        words.extend(about);
        words.extend(["--size", "512M", "--mkfs", kind]);
        words.extend(["--mkfs-options", mkfs_options, "--mount", &mount]);
        let made = disk.luc(&words);
        assert!(made.status.success(), "{}", stderr(&made));
        Some(disk)
    }

    /// Something beside the file system.
    pub(crate) fn path(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    /// Path at which the file system is mounted.
    pub(crate) fn mount(&self) -> String {
        self.path("mnt")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(LUC);
        command.args(arguments);
        self.set_environment(&mut command);
        command
    }

    /// Sets the variables by which a `luc` finds the disk, if [`EmulatedTestDisk::command`] does not start it.
    pub(crate) fn set_environment(&self, command: &mut Command) {
        command.env("LUC_RUN_DIR", &self.root);
    }

    pub(crate) fn luc(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("luc runs")
    }

    /// A script that creates, writes and fsyncs `count` files one after the other.
    pub(crate) fn syncs(&self, count: u32) -> String {
        format!(
            "cd {}; for i in $(seq {count}); do \
             dd if=/dev/zero of=f$i bs=1k count=1 conv=fsync 2>/dev/null; done",
            self.mount()
        )
    }
}

/// The disk's device number, from the trace that saw it mounted.
pub(crate) fn dev(disk: &EmulatedTestDisk, reader: &TraceReader) -> Dev {
    let mount = disk.mount();
    let found = rows::<MountedFileSystem>(reader)
        .into_iter()
        .find(|row| row.mount_point == mount)
        .expect("the mounted file system is in the trace");
    assert_eq!(found.kind, "ext4");
    assert!(found.journal_blocks > 0, "{found:?}");
    found.dev
}

/// Tests that record take turns: each wants the machine's processors for itself.
static TURN: Mutex<()> = Mutex::new(());

/// An emulated disk with ext4 where `luc record` works.
pub(crate) struct RecordedDisk {
    disk: EmulatedTestDisk,
    _turn: MutexGuard<'static, ()>,
}

impl RecordedDisk {
    /// `None`, and a line that says why, where this cannot be had.
    pub(crate) fn new(test: &str) -> Option<Self> {
        Self::with(test, "")
    }

    /// The same with options of mkfs.
    pub(crate) fn with(test: &str, mkfs_options: &str) -> Option<Self> {
        Self::on(|| EmulatedTestDisk::new(test, "ext4", mkfs_options))
    }

    /// The same on a disk of a model.
    pub(crate) fn with_model(test: &str, model: &str) -> Option<Self> {
        Self::on(|| EmulatedTestDisk::with_model(test, model))
    }

    fn on(disk: impl FnOnce() -> Option<EmulatedTestDisk>) -> Option<Self> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let disk = disk()?;
        let bench = Self { disk, _turn: turn };
        let probe = bench.luc(&["record", "-q", "--out", &bench.path("probe"), "--", "true"]);
        if !probe.status.success() {
            luc_testkit::skipped!("{}", stderr(&probe).trim());
            return None;
        }
        Some(bench)
    }

    pub(crate) fn open(&self, trace: &str) -> TraceReader {
        TraceReader::open(Path::new(trace)).expect("a readable trace")
    }
}

impl Deref for RecordedDisk {
    type Target = EmulatedTestDisk;

    fn deref(&self) -> &EmulatedTestDisk {
        &self.disk
    }
}
