//! What the tasks do on the disks: the probe's sums, as a policy is shown them.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use luc_control::throttle::sample::{DiskSample, TaskSample};
use luc_events::Dev;
use luc_probe::contention::{
    Contention, DiskSlot, LockNews, Notify, RefusedLock, TaskSlot, TaskSums,
};

use crate::ThrottleError;
use crate::cgroup::Cgroup;

const BLOCK_DEVICES: &str = "/sys/block";
/// Disks in memory, on which nobody waits for anybody.
const IN_MEMORY: [&str; 3] = ["ram", "zram", "nbd"];

/// A disk that is observed.
#[derive(Clone, Debug)]
pub struct Disk {
    /// Its name, such as "sda".
    pub name: String,
    pub dev: Dev,
    /// Whether it says that it has an arm to move.
    pub has_arm: bool,
    slot: DiskSlot,
}

/// The probe and the disks that it watches.
#[derive(Debug)]
pub struct Observer {
    contention: Contention,
    disks: Vec<Disk>,
}

impl Observer {
    /// Watches `names`, or all disks that have a size.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::Probe`]: BPF programs cannot be loaded. [`ThrottleError::Disk`]: there is none of a name.
    pub fn open(names: &[String]) -> Result<Self, ThrottleError> {
        let mut contention = Contention::open()?;
        let mut disks = Vec::new();
        for found in disks_of(Path::new(BLOCK_DEVICES), names)? {
            let slot = contention.watch_disk(found.dev)?;
            disks.push(Disk { name: found.name, dev: found.dev, has_arm: found.has_arm, slot });
        }
        Ok(Self { contention, disks })
    }

    /// Checks that disks of these names are there.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::Disk`].
    pub fn check(names: &[String]) -> Result<(), ThrottleError> {
        disks_of(Path::new(BLOCK_DEVICES), names).map(drop)
    }

    #[must_use]
    pub fn disks(&self) -> &[Disk] {
        &self.disks
    }

    /// Begins to watch a cgroup; `notify` says at which of its requests [`Observer::notified`] becomes readable.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::Probe`].
    pub fn watch(&mut self, cgroup: &Cgroup, notify: Notify) -> Result<TaskSlot, ThrottleError> {
        self.watch_id(cgroup.id(), notify)
    }

    /// The same by a cgroup's number, for one that is only looked at.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::Probe`].
    pub fn watch_id(&mut self, cgroup: u64, notify: Notify) -> Result<TaskSlot, ThrottleError> {
        Ok(self.contention.watch_cgroup(cgroup, notify)?)
    }

    /// Changes what a task gives notice of.
    pub fn notify(&mut self, slot: TaskSlot, notify: Notify) {
        self.contention.set_notify(slot, notify);
    }

    /// No longer watches it.
    pub fn unwatch(&mut self, slot: TaskSlot) {
        self.contention.unwatch(slot);
    }

    /// What a disk has done.
    #[must_use]
    pub fn disk(&self, disk: &Disk) -> DiskSample {
        let sums = self.contention.disk(disk.slot);
        DiskSample {
            busy_ns: sums.busy_ns,
            bytes: sums.bytes,
            requests: sums.requests,
            in_flight: sums.in_flight,
            last_complete_ns: sums.last_complete_ns,
        }
    }

    /// Whether a task has asked a disk for anything.
    #[must_use]
    pub fn has_used(&self, slot: TaskSlot, disk: &Disk) -> bool {
        self.contention.task(slot, disk.slot).last_submit_ns != 0
    }

    /// All that a task has done on a disk.
    #[must_use]
    pub fn sums(&self, slot: TaskSlot, disk: &Disk) -> TaskSums {
        self.contention.task(slot, disk.slot)
    }

    /// What a task has done on a disk, put into `sample`.
    pub fn fill(&self, sample: &mut TaskSample, slot: TaskSlot, disk: &Disk) {
        let sums = self.contention.task(slot, disk.slot);
        sample.bytes = sums.bytes_read + sums.bytes_written;
        sample.requests = sums.requests;
        sample.sequential = sums.sequential;
        sample.queue_ns = sums.queue_ns;
        sample.device_ns = sums.device_ns;
        sample.outstanding = sums.outstanding;
        sample.last_submit_ns = sums.last_submit_ns;
    }

    /// What was heard of file locks so far; `None`: this kernel does not tell.
    #[must_use]
    pub fn lock_news(&self) -> Option<LockNews> {
        self.contention.lock_news()
    }

    /// Has the next change of [`Observer::lock_news`] make [`Observer::notified`] readable.
    pub fn notify_lock(&self) {
        self.contention.notify_lock();
    }

    /// The file locks that somebody tried in vain to take more than once, the last time at `since_ns` or later.
    #[must_use]
    pub fn refused_locks(&self, since_ns: u64) -> Vec<RefusedLock> {
        self.contention.refused_locks(since_ns)
    }

    /// Readable when a task did what it was to be notified of.
    #[must_use]
    pub fn notified(&self) -> BorrowedFd<'_> {
        self.contention.notifications()
    }

    /// Forgets the notifications that have come, and says whether one of them was a task's.
    pub fn take_notifications(&mut self) -> bool {
        !self.contention.take_notifications().is_empty()
    }
}

/// What sysfs says of a disk.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    name: String,
    dev: Dev,
    has_arm: bool,
}

fn disks_of(block: &Path, names: &[String]) -> Result<Vec<Found>, ThrottleError> {
    let text = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let mut found = Vec::new();
    let entries = std::fs::read_dir(block).map_err(ThrottleError::cgroup("read", block))?;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_named = names.iter().any(|wanted| strip(wanted) == name);
        let is_likely = names.is_empty()
            && !IN_MEMORY.iter().any(|kind| name.starts_with(kind))
            && text(entry.path().join("size")).trim() != "0";
        let dev = text(entry.path().join("dev"));
        if let Some(dev) = dev_of(dev.trim()).filter(|_| is_named || is_likely) {
            let rotational = text(entry.path().join("queue/rotational"));
            found.push(Found { name, dev, has_arm: rotational.trim() == "1" });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    for wanted in names {
        if !found.iter().any(|disk| disk.name == strip(wanted)) {
            return Err(ThrottleError::Disk(wanted.clone()));
        }
    }
    Ok(found)
}

fn strip(name: &str) -> &str {
    name.strip_prefix("/dev/").unwrap_or(name)
}

fn dev_of(text: &str) -> Option<Dev> {
    let (major, minor) = text.split_once(':')?;
    Some(Dev::new(major.parse().ok()?, minor.parse().ok()?))
}
