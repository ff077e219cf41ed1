//! Record of the changes that a sweep made to block devices, kept in a file until they are reverted.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use luc_host::root_owned;
use luc_host::sysfs;
use luc_units::OnPath as _;
use serde::{Deserialize, Serialize};

use super::super::error::{BorrowError, TRUST};
use super::super::scheduler::IoScheduler;
use super::{BorrowableDevice, refuse, signatures};

/// A block device that a sweep has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedDevice {
    path: PathBuf,
    number: (u32, u32),
    /// Disk sequence number. With the boot ID it identifies the disk, since device names are reused.
    sequence: Option<u64>,
    boot: String,
    /// Scheduler before the sweep; `None` if that was not changed.
    scheduler: Option<String>,
    /// UUID of all file systems that the sweep makes and wipes on it; `None` if it is not formatted.
    #[serde(default)]
    uuid: Option<String>,
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

impl ChangedDevice {
    fn new(block: &BorrowableDevice) -> Self {
        Self {
            path: block.path.clone(),
            number: (block.major, block.minor),
            sequence: block.sequence(),
            boot: boot(),
            scheduler: None,
            uuid: None,
        }
    }

    /// Returns whether `block` is this device, and not another one with the same name.
    pub(super) fn is(&self, block: &BorrowableDevice) -> bool {
        let now = Self::new(block);
        (self.number, self.sequence, &self.boot) == (now.number, now.sequence, &now.boot)
    }

    /// Returns the path that the plan has for it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn uuid(&self) -> Option<&str> {
        self.uuid.as_deref()
    }

    /// Reads all entries of `file`; without the file, nothing was changed.
    pub(crate) fn all(file: &Path) -> Result<Vec<Self>, BorrowError> {
        let text = root_owned::read(file).map_err(BorrowError::io(TRUST, file))?;
        text.map_or(Ok(Vec::new()), |text| {
            Self::parse(&text)
                .map_err(|reason| BorrowError::Saved { path: file.to_owned(), reason })
        })
    }

    pub(super) fn parse(text: &str) -> Result<Vec<Self>, String> {
        let all: Vec<Self> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let is_sane = |lent: &Self| {
            let scheduler = lent.scheduler.as_deref().unwrap_or("none");
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            lent.path.is_absolute()
                && lent.uuid.as_deref().is_none_or(signatures::is_uuid)
                && !scheduler.is_empty()
                && scheduler.chars().all(is_name)
        };
        if !all.iter().all(is_sane) {
            return Err("a path, scheduler or UUID that is none".to_owned());
        }
        Ok(all)
    }

    /// Saves the entries durably; removes the file if there are none.
    fn save(file: &Path, all: &[Self]) -> Result<(), BorrowError> {
        if all.is_empty() {
            return match fs::remove_file(file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(BorrowError::io("remove", file)(error))
                }
                _ => Ok(()),
            };
        }
        let new = file.with_extension("json.new");
        let written = root_owned::create(&new).and_then(|mut place| {
            writeln!(place, "{:#}", serde_json::json!(all))?;
            place.sync_all()?;
            fs::rename(&new, file)?;
            file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
        });
        written.map_err(BorrowError::io("write", file))
    }

    /// Changes the entry of `block`, or adds one, and saves the file.
    fn change(
        file: &Path,
        block: &BorrowableDevice,
        change: impl FnOnce(&mut Self),
    ) -> Result<(), BorrowError> {
        let mut all = Self::all(file)?;
        let before = all.clone();
        match all.iter_mut().find(|lent| lent.is(block)) {
            Some(lent) => change(lent),
            None => {
                let mut lent = Self::new(block);
                change(&mut lent);
                all.push(lent);
            }
        }
        if all == before {
            return Ok(());
        }
        Self::save(file, &all)
    }

    /// Records that `block` is about to be formatted, and returns the UUID to be used. A device always gets the same
    /// UUID, so that leftovers of several file systems are all recognized.
    pub(super) fn format(file: &Path, block: &BorrowableDevice) -> Result<String, BorrowError> {
        let new = signatures::new_uuid()?;
        let mut given = String::new();
        Self::change(file, block, |lent| {
            given.clone_from(lent.uuid.get_or_insert(new));
        })?;
        Ok(given)
    }

    /// Sets the I/O scheduler of the disk of `block`, and records the one before.
    ///
    /// # Errors
    /// [`BorrowError`]: the disk has no scheduler, or the kernel refuses this one.
    pub fn set_scheduler(
        file: &Path,
        block: &BorrowableDevice,
        scheduler: IoScheduler,
    ) -> Result<(), BorrowError> {
        let wanted = scheduler.name();
        let no = |reason: String| refuse(&block.path, reason);
        let (now, _) = block.schedulers().ok_or_else(|| {
            no("it has no I/O scheduler: leave the axis scheduler out".to_owned())
        })?;
        if now == wanted {
            return Ok(());
        }
        Self::change(file, block, |lent| {
            lent.scheduler.get_or_insert(now);
        })?;
        let place = block.scheduler_file();
        sysfs::write(&place, wanted).map_err(BorrowError::io("write", &place))?;
        match block.schedulers() {
            Some((now, _)) if now == wanted => Ok(()),
            _ => Err(no(format!(
                "the scheduler {wanted} was set, and the kernel has another: leave it out"
            ))),
        }
    }

    /// Restores the schedulers of all recorded devices.
    ///
    /// # Errors
    /// [`BorrowError`]: the record cannot be read, or the kernel refuses.
    pub fn restore_schedulers(file: &Path, sysfs: &Path) -> Result<(), BorrowError> {
        let mut all = Self::all(file)?;
        for lent in &mut all {
            if let (Some(block), Some(name)) = (lent.block(sysfs), &lent.scheduler) {
                let place = block.scheduler_file();
                sysfs::write(&place, name).map_err(BorrowError::io("write", &place))?;
            }
            lent.scheduler = None;
        }
        all.retain(|lent| lent.uuid.is_some());
        Self::save(file, &all)
    }

    /// Unmounts `mount` and removes the sweep's own file systems from formatted devices. Only devices in `named`, those
    /// of the plan, are touched. Other content on them stays.
    pub(crate) fn wipe(
        file: &Path,
        named: &[PathBuf],
        mount: &Path,
        sysfs: &Path,
    ) -> Result<(), BorrowError> {
        let all = Self::all(file)?;
        let named: Vec<BorrowableDevice> =
            named.iter().filter_map(|path| BorrowableDevice::open(path, sysfs).ok()).collect();
        for lent in &all {
            let (Some(block), Some(uuid)) = (lent.block(sysfs), &lent.uuid) else {
                continue;
            };
            if !named.iter().any(|known| known.is_same(&block)) {
                continue;
            }
            // It may not be mounted. If it is still in use, wiping fails.
            let _ = luc_disk::unmount(mount);
            block.wipe_own(uuid)?;
        }
        Self::save(file, &[])
    }

    /// Finds the device; `None` if its name now belongs to another one, as after a reboot.
    fn block(&self, sysfs: &Path) -> Option<BorrowableDevice> {
        let block = BorrowableDevice::open(&self.path, sysfs).ok()?;
        self.is(&block).then_some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(disk: &Path) -> BorrowableDevice {
        fs::create_dir_all(disk.join("queue")).expect("made");
        fs::write(disk.join("queue/scheduler"), "[none] bfq").expect("written");
        fs::write(disk.join("diskseq"), "7\n").expect("written");
        BorrowableDevice { path: "/dev/x".into(), major: 8, minor: 16, about: disk.to_owned() }
    }

    #[test]
    fn the_first_scheduler_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("devices.json");
        let block = block(&folder.path().join("sdb"));
        // It has that scheduler already: nothing to restore.
        ChangedDevice::set_scheduler(&file, &block, IoScheduler::None).expect("set");
        assert!(!file.exists());
        // Unlike the kernel, a plain file keeps the text without brackets: refused, but recorded.
        ChangedDevice::set_scheduler(&file, &block, IoScheduler::Bfq).expect_err("not in brackets");
        let uuid = ChangedDevice::format(&file, &block).expect("kept");
        let all = ChangedDevice::all(&file).expect("read");
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].scheduler.as_deref(), Some("none"));
        assert!(all[0].uuid() == Some(&uuid) && all[0].is(&block));
        assert_eq!(ChangedDevice::format(&file, &block).expect("kept"), uuid);
        let scheduler = fs::read_to_string(block.scheduler_file()).expect("there");
        assert_eq!(scheduler, "bfq");
    }

    #[test]
    fn another_disk_of_that_name_is_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("devices.json");
        let block = block(&folder.path().join("sdb"));
        ChangedDevice::format(&file, &block).expect("kept");
        fs::write(folder.path().join("sdb/diskseq"), "8\n").expect("written");
        assert!(!ChangedDevice::all(&file).expect("read")[0].is(&block));
        // A device that is gone is not wiped, and its entry is dropped.
        let mount = folder.path().join("mnt");
        ChangedDevice::wipe(&file, &["/dev/x".into()], &mount, Path::new("/sys"))
            .expect("forgotten");
        assert!(!file.exists());
    }

    #[test]
    fn what_no_sweep_writes_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("devices.json");
        assert_eq!(ChangedDevice::all(&file).expect("no file"), []);
        let uuid = signatures::new_uuid().expect("a UUID");
        let entry = |path: &str, scheduler: &str, uuid: &str| {
            format!(
                "[{{\"path\":\"{path}\",\"number\":[8,0],\"sequence\":1,\"boot\":\"b\",\"scheduler\":\"{scheduler}\",\
                 \"uuid\":\"{uuid}\"}}]"
            )
        };
        ChangedDevice::parse(&entry("/dev/x", "mq-deadline", &uuid)).expect("sane");
        for text in [
            "",
            "{}",
            &entry("dev/x", "none", &uuid),
            &entry("/dev/x", "a b", &uuid),
            &entry("/dev/x", "none", "--all"),
        ] {
            fs::write(&file, text).expect("written");
            let said = ChangedDevice::all(&file).expect_err("refused").to_string();
            assert!(said.contains("devices.json") && said.lines().count() == 1, "{said}");
        }
    }
}
