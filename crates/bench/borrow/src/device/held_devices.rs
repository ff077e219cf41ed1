//! Devices held for a sweep: locked from before the first check until everything is given back, and claimed while
//! nothing is mounted on them.
//!
//! The lock follows systemd's "Locking Block Device Access": flock(2) on the device node. udev and some tools respect
//! it, and mkfs and mount under the lock do not mind it. For a partition, its own node is locked exclusively, and the
//! disk's node is locked shared. So sweeps on two partitions of a disk run side by side. A sweep that sets the I/O
//! scheduler locks the disk exclusively, since a disk has only one scheduler. The cleanup process inherits the locks
//! and keeps them until it has finished.
//!
//! A flock is advisory: a user's mkfs or mount would succeed between repeats. So the sweep keeps a device open with
//! `O_EXCL` while it is not mounted. The kernel then gives it to nobody else. The sweep closes it only around its own
//! mkfs and mount.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use luc_units::plain;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};

use super::super::borrow_request::BorrowRequest;
use super::super::error::BorrowError;
use super::{BorrowableDevice, refuse};

/// Time for udev to look at a device, and for a process that has just ended to release it.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);
/// Time for the cleanup process of an ended sweep to finish.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(45);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub struct HeldDevices {
    locks: Vec<File>,
    blocks: Vec<BorrowableDevice>,
    /// Devices open with `O_EXCL`, by device number.
    claims: RefCell<BTreeMap<(u32, u32), File>>,
}

impl HeldDevices {
    /// Locks all devices of the request. Waits for a cleanup process that is giving one back.
    pub(super) fn lock(request: &BorrowRequest<'_>) -> Result<Self, BorrowError> {
        let mut held = Self::default();
        let mut nodes: BTreeMap<PathBuf, Node> = BTreeMap::new();
        for device in &request.devices {
            let block = BorrowableDevice::open(&device.path, request.sysfs)?;
            if held.blocks.iter().any(|known| known.is_same(&block)) {
                continue;
            }
            for node in Node::of(&block, !request.schedulers.is_empty()) {
                let known = nodes.entry(node.path.clone()).or_insert(node.clone());
                known.is_shared &= node.is_shared;
            }
            held.blocks.push(block);
        }
        for node in nodes.values() {
            held.locks.push(node.lock()?);
        }
        Ok(held)
    }

    /// Opens every device with `O_EXCL` that is not open yet. None may be mounted.
    ///
    /// # Errors
    /// [`BorrowError::Device`]: another program uses it.
    pub fn claim(&self) -> Result<(), BorrowError> {
        let mut claims = self.claims.borrow_mut();
        for block in &self.blocks {
            if let Entry::Vacant(place) = claims.entry((block.major, block.minor)) {
                place.insert(claim(block)?);
            }
        }
        Ok(())
    }

    /// Gives up the `O_EXCL` claim on `block`, which stays locked.
    pub fn release(&self, block: &BorrowableDevice) {
        self.claims.borrow_mut().remove(&(block.major, block.minor));
    }

    /// Gives up the claims on all devices, which stay locked.
    pub fn release_all(&self) {
        self.claims.borrow_mut().clear();
    }

    /// Runs `start` so that the process it starts inherits the locks.
    pub(crate) fn inherited<T>(&self, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        for lock in &self.locks {
            fcntl_setfd(lock, FdFlags::empty())?;
        }
        let started = start();
        for lock in &self.locks {
            fcntl_setfd(lock, FdFlags::CLOEXEC)?;
        }
        started
    }
}

/// Opens it with `O_EXCL`: nobody else can mount or format it until the file is closed.
pub(super) fn claim(block: &BorrowableDevice) -> Result<File, BorrowError> {
    let begun = Instant::now();
    loop {
        let alone = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&block.path);
        match alone {
            Ok(file) => return Ok(file),
            Err(error) if error.raw_os_error() != Some(libc::EBUSY) => {
                let reason = format!("it cannot be opened ({error}): see `lsblk --paths`");
                return Err(refuse(&block.path, reason));
            }
            Err(_) if begun.elapsed() < RELEASE_TIMEOUT => sleep(POLL_INTERVAL),
            Err(_) => {
                let reason =
                    "something else has begun to use it: free it, and give the same command again";
                return Err(refuse(&block.path, reason));
            }
        }
    }
}

/// A device node to be locked.
#[derive(Debug, Clone)]
struct Node {
    path: PathBuf,
    is_shared: bool,
    device: PathBuf,
    /// Relation of the node to that device, in words.
    what: String,
}

impl Node {
    fn of(block: &BorrowableDevice, sets_scheduler: bool) -> Vec<Self> {
        let own = Self {
            // The kernel's name: all sweeps find the same node, whatever name their plans use.
            path: node(&block.about).unwrap_or_else(|| block.path.clone()),
            is_shared: false,
            device: block.path.clone(),
            what: "it".to_owned(),
        };
        let disk = block.disk();
        if disk == block.about {
            return vec![own];
        }
        // Without a node of the disk, nobody here can lock it.
        let disk = node(&disk).map(|path| Self {
            is_shared: !sets_scheduler,
            device: block.path.clone(),
            what: format!("its disk {}", path.display()),
            path,
        });
        [own].into_iter().chain(disk).collect()
    }

    fn lock(&self) -> Result<File, BorrowError> {
        let no = |reason: String| refuse(&self.device, reason);
        let file = File::open(&self.path)
            .map_err(|error| no(format!("it cannot be opened ({error}): name another")))?;
        let operation = if self.is_shared {
            FlockOperation::NonBlockingLockShared
        } else {
            FlockOperation::NonBlockingLockExclusive
        };
        let begun = Instant::now();
        loop {
            match flock(&file, operation) {
                Ok(()) => return Ok(file),
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(error) => return Err(no(format!("it cannot be locked ({error})"))),
            }
            let holder = LockHolder::of(&file);
            let timeout = match &holder {
                Some(holder) if holder.is_cleanup => CLEANUP_TIMEOUT,
                _ => RELEASE_TIMEOUT,
            };
            if begun.elapsed() >= timeout {
                let who = holder.map_or("another program".to_owned(), |holder| holder.to_string());
                return Err(no(format!(
                    "{who} has {}: wait until that has ended, or name another device",
                    self.what
                )));
            }
            sleep(POLL_INTERVAL);
        }
    }
}

/// Finds the device node for the sysfs folder `about`.
fn node(about: &Path) -> Option<PathBuf> {
    let uevent = fs::read_to_string(about.join("uevent")).ok()?;
    let name = uevent.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
    let path = Path::new("/dev").join(name);
    let number = fs::metadata(&path).ok()?.rdev();
    let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    let is_it = luc_host::sysfs::read(&about.join("dev")).is_ok_and(|dev| dev.trim() == number);
    is_it.then_some(path)
}

/// A process that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LockHolder {
    pid: u32,
    name: String,
    /// Whether it is the cleanup process of a sweep.
    is_cleanup: bool,
}

impl LockHolder {
    /// Finds the process that has a lock on `file`, the sweep before its cleanup process; `None` if none is visible.
    fn of(file: &File) -> Option<Self> {
        let about = file.metadata().ok()?;
        let mut holders: Vec<Self> = fs::read_dir("/proc")
            .ok()?
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|&pid| has_lock(pid, &about))
            .map(Self::process)
            .collect();
        holders.sort_by_key(|holder| (holder.is_cleanup, holder.pid));
        holders.into_iter().next()
    }

    fn process(pid: u32) -> Self {
        let read = |name| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        Self {
            pid,
            name: plain(read("comm").trim_end()),
            is_cleanup: read("cmdline").contains("\0--clean-up\0"),
        }
    }
}

impl std::fmt::Display for LockHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { pid, name, .. } = self;
        if self.is_cleanup {
            write!(f, "the cleanup process of a sweep that was ended (pid {pid}) still works and")
        } else if name == "luc" {
            write!(f, "another luc (pid {pid})")
        } else {
            write!(f, "{name} (pid {pid})")
        }
    }
}

/// Returns whether a process has a flock on the file, by proc_pid_fdinfo(5) and proc_locks(5).
fn has_lock(pid: u32, file: &fs::Metadata) -> bool {
    let (major, minor) = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
    let place = format!(" {major:02x}:{minor:02x}:{} ", file.ino());
    let is_it =
        |line: &str| line.starts_with("lock:") && line.contains(" FLOCK ") && line.contains(&place);
    let mut opened = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    opened.any(|entry| fs::read_to_string(entry.path()).is_ok_and(|text| text.lines().any(is_it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_lock() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let open = || File::open(file.path()).expect("opened");
        let (mine, other) = (open(), open());
        assert_eq!(LockHolder::of(&other), None);
        for operation in [FlockOperation::LockShared, FlockOperation::LockExclusive] {
            flock(&mine, operation).expect("locked");
            let holder = LockHolder::of(&other).expect("this process");
            assert_eq!(holder.pid, std::process::id());
            assert!(!holder.is_cleanup);
        }
        drop(mine);
        assert_eq!(LockHolder::of(&other), None);
    }

    #[test]
    fn holders_in_words() {
        let holder =
            |name: &str, is_cleanup| LockHolder { pid: 7, name: name.to_owned(), is_cleanup };
        assert_eq!(holder("luc", false).to_string(), "another luc (pid 7)");
        assert_eq!(holder("sfdisk", false).to_string(), "sfdisk (pid 7)");
        let cleanup = holder("luc", true).to_string();
        assert!(cleanup.contains("cleanup process") && cleanup.contains("pid 7"));
    }

    #[test]
    fn a_partition_shares_its_disk_unless_it_sets_the_scheduler() {
        let sysfs = tempfile::tempdir().expect("a folder");
        let disk = sysfs.path().join("null");
        let partition = disk.join("null1");
        fs::create_dir_all(&partition).expect("made");
        fs::write(partition.join("partition"), "1\n").expect("written");
        // A node that every machine has.
        fs::write(disk.join("uevent"), "MAJOR=1\nDEVNAME=null\n").expect("written");
        fs::write(disk.join("dev"), "1:3\n").expect("written");
        let block = |about: &Path| BorrowableDevice {
            path: "/dev/x".into(),
            major: 1,
            minor: 3,
            about: about.to_owned(),
        };
        let shared = |about: &Path, sets_scheduler| -> Vec<(PathBuf, bool)> {
            let nodes = Node::of(&block(about), sets_scheduler);
            nodes.into_iter().map(|node| (node.path, node.is_shared)).collect()
        };
        assert_eq!(shared(&disk, true), [("/dev/null".into(), false)]);
        for sets_scheduler in [false, true] {
            assert_eq!(
                shared(&partition, sets_scheduler),
                [("/dev/x".into(), false), ("/dev/null".into(), !sets_scheduler)]
            );
        }
        // Another device came to the name.
        fs::write(disk.join("dev"), "8:0\n").expect("written");
        assert_eq!(shared(&partition, false).len(), 1);
    }
}
