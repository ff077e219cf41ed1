//! A disk and cgroups to test with. All of it goes when it is dropped, also when a test fails.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{process, thread};

use luc_events::Dev;
use luc_probe::contention::{Contention, DiskSlot, TaskSlot, TaskSums};
use tempfile::TempDir;

/// What a program prints, which has to succeed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// This thread's number.
pub(crate) fn thread_id() -> u32 {
    rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .cast_unsigned()
}

/// A loop device on a sparse file.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) path: PathBuf,
    pub(crate) dev: Dev,
    /// For its file, or what is mounted.
    folder: TempDir,
    /// The device is detached when the last one closes it.
    _open: File,
}

impl Disk {
    fn new(size_mib: u64) -> Self {
        let folder = TempDir::new().expect("a folder");
        let image = folder.path().join("image");
        Self::made(folder, &image, size_mib)
    }

    /// On a new file of this name.
    pub(crate) fn on(image: &Path, size_mib: u64) -> Self {
        Self::made(TempDir::new().expect("a folder"), image, size_mib)
    }

    fn made(folder: TempDir, image: &Path, size_mib: u64) -> Self {
        let file = File::create(image).expect("made");
        file.set_len(size_mib << 20).expect("sized");
        let path = PathBuf::from(run(
            "losetup",
            &["--find", "--show", &image.display().to_string()],
        ));
        let open = File::open(&path).expect("opened");
        // While it is open this only says that it goes with its last user.
        run("losetup", &["--detach", &path.display().to_string()]);
        let number = rustix::fs::fstat(&open).expect("a device").st_rdev;
        let dev = Dev::new(rustix::fs::major(number), rustix::fs::minor(number));
        Self {
            path,
            dev,
            folder,
            _open: open,
        }
    }

    /// Makes an ext4 file system on it and mounts it.
    pub(crate) fn mount(&self) -> Mount {
        let device = self.path.display().to_string();
        run("mke2fs", &["-q", "-F", "-t", "ext4", &device]);
        let path = self.folder.path().join("mounted");
        fs::create_dir_all(&path).expect("made");
        let place = path.display().to_string();
        run("mount", &["-t", "ext4", &device, &place]);
        Mount { path }
    }

    /// Reads `count` blocks of 64 KiB past the page cache, from the block `first` on.
    pub(crate) fn read(&self, first: u64, count: u64) {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECT)
            .open(&self.path)
            .expect("opened");
        let mut memory = vec![0; BLOCK as usize + 4096];
        let skip = memory.as_ptr().align_offset(4096);
        let block = &mut memory[skip..][..BLOCK as usize];
        for number in first..first + count {
            file.read_exact_at(block, number * BLOCK).expect("read");
        }
    }
}

/// Bytes of a block of [`Disk::read`].
pub(crate) const BLOCK: u64 = 64 << 10;

/// A mounted file system.
#[derive(Debug)]
pub(crate) struct Mount {
    pub(crate) path: PathBuf,
}

impl Mount {
    pub(crate) fn file(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    /// Has the kernel's flusher write what is dirty.
    pub(crate) fn flush(&self) {
        let folder = File::open(&self.path).expect("opened");
        rustix::fs::syncfs(&folder).expect("synced");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let place = self.path.display().to_string();
        // Whoever fails is not to fail again.
        let _ = Command::new("umount").arg(place).status();
    }
}

/// A cgroup of version 2.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
    pub(crate) id: u64,
}

impl Cgroup {
    pub(crate) fn new(parent: &Path) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("luc-probe-test-{}-{number}", process::id()));
        fs::create_dir(&path).expect("a cgroup");
        let id = fs::metadata(&path).expect("a cgroup").ino();
        Self { path, id }
    }

    pub(crate) fn below(&self) -> Self {
        Self::new(&self.path)
    }

    /// Runs `dd` in it, to its end.
    pub(crate) fn dd(&self, words: &[&str]) {
        let (mut child, mut go) = self.start(words);
        go.write_all(b"\n").expect("told");
        drop(go);
        let status = child.wait().expect("waited for");
        assert!(status.success(), "dd {words:?}: {status}");
    }

    /// `dd` in it, which begins when it is told to.
    fn start(&self, words: &[&str]) -> (Child, File) {
        let script = "echo $$ >\"$1\" && shift && read -r _ && exec dd bs=64k status=none \"$@\"";
        let mut child = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(self.path.join("cgroup.procs"))
            .args(words)
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        let pipe = child.stdin.take().expect("a pipe");
        (child, File::from(OwnedFd::from(pipe)))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A process that has ended is gone from it a moment later.
        for _ in 0..1000 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Where tests are possible.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) contention: Contention,
    pub(crate) slot: DiskSlot,
    pub(crate) disk: Disk,
    pub(crate) cgroups: PathBuf,
}

impl Place {
    /// `None`, said aloud, where they are not.
    pub(crate) fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
            luc_testkit::skipped!("no root or no loop devices");
            return None;
        }
        let mounts = luc_host::mountinfo::mounts().expect("mounts");
        let Some(cgroups) = mounts.into_iter().find(|mount| mount.kind == "cgroup2") else {
            luc_testkit::skipped!("cgroup v2 is not mounted");
            return None;
        };
        let mut contention = match Contention::open() {
            Ok(contention) => contention,
            Err(error) => {
                luc_testkit::skipped!("{error}");
                return None;
            }
        };
        for what in contention.missing() {
            println!("not seen here: {what}");
        }
        let disk = Disk::new(64);
        let slot = contention.watch_disk(disk.dev).expect("watched");
        Some(Self {
            contention,
            slot,
            disk,
            cgroups: cgroups.mount_point,
        })
    }

    pub(crate) fn cgroup(&self) -> Cgroup {
        Cgroup::new(&self.cgroups)
    }

    /// What a task did, once nothing of it is under way.
    pub(crate) fn done(&self, task: TaskSlot) -> TaskSums {
        self.done_on(task, self.slot)
    }

    /// The same, on another disk than the place's.
    pub(crate) fn done_on(&self, task: TaskSlot, disk: DiskSlot) -> TaskSums {
        for _ in 0..5000 {
            let sums = self.contention.task(task, disk);
            if sums.outstanding == 0 {
                return sums;
            }
            thread::sleep(Duration::from_millis(2));
        }
        panic!("{:?}", self.contention.task(task, disk));
    }

    /// Whether there are notifications, at the latest after 10 s.
    pub(crate) fn is_notified(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let fd = self.contention.notifications();
        let timeout = Timespec {
            tv_sec: 10,
            tv_nsec: 0,
        };
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        poll(&mut fds, Some(&timeout)).expect("polled") == 1
    }
}
