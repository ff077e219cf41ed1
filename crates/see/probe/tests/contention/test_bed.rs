//! A disk and cgroups to test with. All of it goes when it is dropped, and when this process ends, however it does.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{process, thread};

use luc_events::Dev;
use luc_probe::disk_contention::{ContentionProbe, DiskSlot, TaskSlot, TaskSums};
use luc_testkit::Meanwhile;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};

/// Runs a program, which must succeed. Returns its output.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub(crate) fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// Returns the path of an open file of this process, for other programs.
fn path_of(open: impl AsFd) -> PathBuf {
    let number = open.as_fd().as_raw_fd();
    PathBuf::from(format!("/proc/{}/fd/{number}", process::id()))
}

/// A loop device on a sparse file.
#[derive(Debug)]
pub(crate) struct LoopDisk {
    pub(crate) path: PathBuf,
    pub(crate) dev: Dev,
    _attached: Meanwhile,
}

impl LoopDisk {
    /// Makes a disk on a file without a name.
    fn new(size_mib: u64) -> Self {
        Self::on(&tempfile::tempfile().expect("a file"), size_mib)
    }

    /// Makes a disk on an empty file.
    pub(crate) fn on(file: &File, size_mib: u64) -> Self {
        file.set_len(size_mib << 20).expect("sized");
        let attached = Meanwhile::loop_device(&path_of(file), "");
        let path = PathBuf::from(&attached.message);
        let number = fs::metadata(&path).expect("a device").rdev();
        let dev = Dev::new(rustix::fs::major(number), rustix::fs::minor(number));
        Self { path, dev, _attached: attached }
    }

    /// Makes an ext4 file system on it and mounts it.
    pub(crate) fn mount(&self) -> DetachedMount {
        let device = self.path.display().to_string();
        run("mke2fs", &["-q", "-F", "-t", "ext4", &device]);
        let context = fsopen("ext4", FsOpenFlags::FSOPEN_CLOEXEC).expect("ext4");
        fsconfig_set_string(&context, "source", &device).expect("set");
        fsconfig_create(&context).expect("a file system");
        let flags = FsMountFlags::FSMOUNT_CLOEXEC;
        let root = fsmount(&context, flags, MountAttrFlags::empty()).expect("mounted");
        DetachedMount { path: path_of(&root), _root: root }
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

/// Bytes of a block of [`LoopDisk::read`].
pub(crate) const BLOCK: u64 = 64 << 10;

/// A mounted file system.
///
/// It has no mount point, so that nothing has to be unmounted. `umount` would fail while any process has a file of it
/// open, or the device of a loop in it. A child does, between fork and exec.
#[derive(Debug)]
pub(crate) struct DetachedMount {
    pub(crate) path: PathBuf,
    _root: OwnedFd,
}

impl DetachedMount {
    pub(crate) fn file(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    /// Makes the kernel's flusher write dirty data.
    pub(crate) fn flush(&self) {
        let folder = File::open(&self.path).expect("opened");
        rustix::fs::syncfs(&folder).expect("synced");
    }
}

/// A cgroup of version 2.
#[derive(Debug)]
pub(crate) struct TestCgroup {
    path: PathBuf,
    pub(crate) id: u64,
    _made: Meanwhile,
}

/// A process that has ended is gone from its cgroup a moment later.
const REMOVE: &str =
    "for _ in $(seq 1000); do rmdir \"$1\" && exit; sleep 0.01; done 2>/dev/null; exit 1";

impl TestCgroup {
    pub(crate) fn new(parent: &Path) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("luc-probe-test-{}-{number}", process::id()));
        let name = path.display().to_string();
        let made = Meanwhile::new("mkdir \"$1\" && echo made", REMOVE, &[&name]);
        let id = fs::metadata(&path).expect("a cgroup").ino();
        Self { path, id, _made: made }
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

    /// Starts `dd` in it, which waits for a line before it begins.
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

/// A place for the tests: disk, cgroups, programs.
#[derive(Debug)]
pub(crate) struct ContentionBed {
    pub(crate) contention: ContentionProbe,
    pub(crate) slot: DiskSlot,
    pub(crate) disk: LoopDisk,
    pub(crate) cgroups: PathBuf,
}

impl ContentionBed {
    /// Makes a place; `None` with a message if tests are impossible.
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
        let mut contention = match ContentionProbe::open() {
            Ok(contention) => contention,
            Err(error) => {
                luc_testkit::skipped!("{error}");
                return None;
            }
        };
        for what in contention.missing() {
            println!("not seen here: {what}");
        }
        let disk = LoopDisk::new(64);
        let slot = contention.watch_disk(disk.dev).expect("watched");
        Some(Self { contention, slot, disk, cgroups: cgroups.mount_point })
    }

    pub(crate) fn cgroup(&self) -> TestCgroup {
        TestCgroup::new(&self.cgroups)
    }

    /// Returns a task's sums, once it has nothing outstanding.
    pub(crate) fn done(&self, task: TaskSlot) -> TaskSums {
        self.done_on(task, self.slot)
    }

    /// Returns a task's sums on another disk, once it has nothing outstanding there.
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

    /// Returns whether notifications arrive within 10 s.
    pub(crate) fn is_notified(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let fd = self.contention.notifications();
        let timeout = Timespec { tv_sec: 10, tv_nsec: 0 };
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        poll(&mut fds, Some(&timeout)).expect("polled") == 1
    }
}
