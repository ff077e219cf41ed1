//! Reads the activity of tasks on disks from the probe, as samples for a policy.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use luc_control::throttle::policy_input::{DiskSample, TaskSample};
use luc_events::Dev;
use luc_probe::disk_contention::{
    ContentionProbe, DiskSlot, LockNews, NotifyOn, RefusedLock, TaskSlot, TaskSums,
};

use crate::ThrottleError;
use crate::cgroup::FreezableCgroup;

const BLOCK_DEVICES: &str = "/sys/block";
/// Name prefixes of disks that are watched only if they are named.
const UNWATCHED_PREFIXES: [&str; 3] = ["ram", "zram", "nbd"];

/// A disk that the observer watches.
#[derive(Clone, Debug)]
pub struct ObservedDevice {
    /// Name of the disk, such as "sda".
    pub name: String,
    pub dev: Dev,
    /// Whether it reports itself as rotational.
    pub has_arm: bool,
    slot: DiskSlot,
}

/// The probe, and the disks that it watches.
#[derive(Debug)]
pub struct DiskObserver {
    contention: ContentionProbe,
    disks: Vec<ObservedDevice>,
}

impl DiskObserver {
    /// Watches the named disks, or all disks that have a size.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::Probe`]: BPF programs cannot be loaded. [`ThrottleError::Disk`]: no disk has one of the names.
    pub fn open(names: &[String]) -> Result<Self, ThrottleError> {
        let mut contention = ContentionProbe::open()?;
        let mut disks = Vec::new();
        for found in find_disks(Path::new(BLOCK_DEVICES), names)? {
            let slot = contention.watch_disk(found.dev)?;
            disks.push(ObservedDevice {
                name: found.name,
                dev: found.dev,
                has_arm: found.has_arm,
                slot,
            });
        }
        Ok(Self { contention, disks })
    }

    /// Checks that disks of these names exist.
    pub fn check(names: &[String]) -> Result<(), ThrottleError> {
        find_disks(Path::new(BLOCK_DEVICES), names).map(drop)
    }

    #[must_use]
    pub fn disks(&self) -> &[ObservedDevice] {
        &self.disks
    }

    /// Begins to watch a cgroup. `notify` selects its requests at which [`DiskObserver::notified`] becomes readable.
    pub fn watch(
        &mut self,
        cgroup: &FreezableCgroup,
        notify: NotifyOn,
    ) -> Result<TaskSlot, ThrottleError> {
        self.watch_id(cgroup.id(), notify)
    }

    /// Like [`watch`](Self::watch), by a cgroup's number, for a cgroup that is only observed.
    pub fn watch_id(&mut self, cgroup: u64, notify: NotifyOn) -> Result<TaskSlot, ThrottleError> {
        Ok(self.contention.watch_cgroup(cgroup, notify)?)
    }

    /// Changes the notifications of a task.
    pub fn notify(&mut self, slot: TaskSlot, notify: NotifyOn) {
        self.contention.set_notify(slot, notify);
    }

    pub fn unwatch(&mut self, slot: TaskSlot) {
        self.contention.unwatch(slot);
    }

    #[must_use]
    pub fn disk(&self, disk: &ObservedDevice) -> DiskSample {
        let sums = self.contention.disk(disk.slot);
        DiskSample {
            busy_ns: sums.busy_ns,
            bytes: sums.bytes,
            requests: sums.requests,
            in_flight: sums.in_flight,
            last_complete_ns: sums.last_complete_ns,
        }
    }

    /// Whether a task has made a request to a disk.
    #[must_use]
    pub fn has_used(&self, slot: TaskSlot, disk: &ObservedDevice) -> bool {
        self.sums(slot, disk).last_submit_ns != 0
    }

    /// Whether a task has made a request to any disk.
    #[must_use]
    pub fn has_used_any(&self, slot: TaskSlot) -> bool {
        self.disks.iter().any(|disk| self.has_used(slot, disk))
    }

    /// Sums of a task's activity on a disk.
    #[must_use]
    pub fn sums(&self, slot: TaskSlot, disk: &ObservedDevice) -> TaskSums {
        self.contention.task(slot, disk.slot)
    }

    /// Fills `sample` with a task's activity on a disk.
    pub fn fill(&self, sample: &mut TaskSample, slot: TaskSlot, disk: &ObservedDevice) {
        let sums = self.sums(slot, disk);
        sample.bytes = sums.bytes_read + sums.bytes_written;
        sample.requests = sums.requests;
        sample.sequential = sums.sequential;
        sample.queue_ns = sums.queue_ns;
        sample.device_ns = sums.device_ns;
        sample.outstanding = sums.outstanding;
        sample.last_submit_ns = sums.last_submit_ns;
    }

    /// News about file locks so far; `None` if this kernel does not report them.
    #[must_use]
    pub fn lock_news(&self) -> Option<LockNews> {
        self.contention.lock_news()
    }

    /// Makes the next change of [`DiskObserver::lock_news`] turn [`DiskObserver::notified`] readable.
    pub fn notify_lock(&self) {
        self.contention.notify_lock();
    }

    /// File locks that a process tried repeatedly to take in vain, the last time at `since_ns` or later.
    #[must_use]
    pub fn refused_locks(&self, since_ns: u64) -> Vec<RefusedLock> {
        self.contention.refused_locks(since_ns)
    }

    /// Descriptor that becomes readable when a task gives notice.
    #[must_use]
    pub fn notified(&self) -> BorrowedFd<'_> {
        self.contention.notifications()
    }

    /// Takes the pending notifications. Returns whether one of them came from a task.
    pub fn take_notifications(&mut self) -> bool {
        !self.contention.take_notifications().is_empty()
    }
}

/// Description of a disk in sysfs.
#[derive(Debug, PartialEq, Eq)]
struct FoundDisk {
    name: String,
    dev: Dev,
    has_arm: bool,
}

fn find_disks(block: &Path, names: &[String]) -> Result<Vec<FoundDisk>, ThrottleError> {
    let text = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let mut found = Vec::new();
    let entries = std::fs::read_dir(block).map_err(ThrottleError::cgroup("read", block))?;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_named = names.iter().any(|wanted| strip_dev(wanted) == name);
        let is_likely = names.is_empty()
            && !UNWATCHED_PREFIXES.iter().any(|kind| name.starts_with(kind))
            && text(entry.path().join("size")).trim() != "0";
        let dev = text(entry.path().join("dev"));
        if let Some(dev) = parse_dev(dev.trim()).filter(|_| is_named || is_likely) {
            let rotational = text(entry.path().join("queue/rotational"));
            found.push(FoundDisk { name, dev, has_arm: rotational.trim() == "1" });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    for wanted in names {
        if !found.iter().any(|disk| disk.name == strip_dev(wanted)) {
            return Err(ThrottleError::Disk(wanted.clone()));
        }
    }
    Ok(found)
}

fn strip_dev(name: &str) -> &str {
    name.strip_prefix("/dev/").unwrap_or(name)
}

fn parse_dev(text: &str) -> Option<Dev> {
    let (major, minor) = text.split_once(':')?;
    Some(Dev::new(major.parse().ok()?, minor.parse().ok()?))
}
