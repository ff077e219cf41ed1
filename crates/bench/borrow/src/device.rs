//! Block devices of the user: checks that one may be formatted, records changes, and gives it back.
//!
//! A device is formatted only if the plan names it twice and nothing uses it. It must be empty unless the plan gives
//! its content up. A sweep draws a UUID for its file systems and records it before mkfs (`signatures`): only file
//! systems with that UUID are removed again. `held_devices` keeps other programs off the device meanwhile. Changes
//! (`changed_device`) are written to `devices.json` in the sweep's folder before they are made. So the cleanup process,
//! or the next luc command, can revert them.

mod changed_device;
mod description;
mod device_users;
mod held_devices;
mod signatures;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use luc_host::installed_programs::tool;
use luc_host::{block_device, sysfs};
use luc_units::OnPath as _;
use luc_units::format_size;

use super::borrow_request::{BorrowRequest, DeviceRequest};
use super::error::BorrowError;
use super::scheduler::IoScheduler;

pub use changed_device::ChangedDevice;
pub use description::{DeviceDescription, shown_size};
pub use held_devices::HeldDevices;
use signatures::WipefsSignature;
pub use signatures::{identified, own_identity};

const SECTOR_BYTES: u64 = 512;

/// Block device of the user that passed the checks for being formatted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BorrowableDevice {
    /// Path as the plan names it.
    path: PathBuf,
    major: u32,
    minor: u32,
    /// Folder of the device in sysfs.
    about: PathBuf,
}

fn refuse(path: &Path, reason: impl Into<String>) -> BorrowError {
    BorrowError::Device { path: path.to_owned(), reason: reason.into() }
}

impl BorrowableDevice {
    /// Finds the device at `path`; `sysfs` is the root of sysfs.
    ///
    /// # Errors
    /// [`BorrowError::Device`]: it is no block device.
    pub fn open(path: &Path, sysfs: &Path) -> Result<Self, BorrowError> {
        let node = fs::metadata(path).map_err(|_| {
            refuse(path, "there is no such device: see `lsblk --paths`, correct device and erase")
        })?;
        if !node.file_type().is_block_device() {
            return Err(refuse(
                path,
                "this is no block device: see `lsblk --paths`, correct device and erase",
            ));
        }
        Self::with_number(path, node.rdev(), sysfs)
    }

    /// Finds the device that is mounted on `mount`.
    ///
    /// # Errors
    /// [`BorrowError::Device`]: nothing is mounted there, or no block device.
    pub fn below(mount: &Path, sysfs: &Path) -> Result<Self, BorrowError> {
        let about = luc_disk::mount_of(mount).unwrap_or_default();
        let source = about.split(' ').nth(1).unwrap_or_default();
        Self::open(Path::new(source), sysfs)
    }

    fn with_number(path: &Path, number: u64, sysfs: &Path) -> Result<Self, BorrowError> {
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let about = sysfs.join(format!("dev/block/{major}:{minor}"));
        Ok(Self {
            path: path.to_owned(),
            major,
            minor,
            about: about.canonicalize().map_err(BorrowError::io("find", &about))?,
        })
    }

    /// Compares devices by number, since one device may have several names.
    fn is_same(&self, other: &Self) -> bool {
        (self.major, self.minor) == (other.major, other.minor)
    }

    /// Returns the device number in the form of stat(2).
    fn number(&self) -> u64 {
        rustix::fs::makedev(self.major, self.minor)
    }

    /// Returns the folder of the whole disk in sysfs; for a partition this is the parent.
    fn disk(&self) -> PathBuf {
        block_device::whole_disk(&self.about).to_owned()
    }

    fn size_bytes(&self) -> u64 {
        sysfs::read_number(&self.about.join("size")).unwrap_or(0) * SECTOR_BYTES
    }

    /// Returns the sysfs file that selects the I/O scheduler.
    fn scheduler_file(&self) -> PathBuf {
        self.disk().join("queue/scheduler")
    }

    /// Returns the active scheduler and all loaded ones.
    fn schedulers(&self) -> Option<(String, Vec<String>)> {
        parse_schedulers(&sysfs::read(&self.scheduler_file()).ok()?)
    }

    /// Returns the kernel's sequence number of the disk, unique since boot; `None` before Linux 5.15.
    fn sequence(&self) -> Option<u64> {
        sysfs::read_number(&self.disk().join("diskseq")).ok()
    }

    /// Checks that it may be formatted.
    fn check(&self, request: &DeviceRequest) -> Result<(), BorrowError> {
        let no = |reason: String| Err(refuse(&self.path, reason));
        if sysfs::read_number(&self.about.join("ro")).unwrap_or(0) != 0 {
            return no("the device is read-only: name another".to_owned());
        }
        let size_bytes = self.size_bytes();
        if let Some(min_bytes) = request.min_bytes.filter(|&min_bytes| size_bytes < min_bytes) {
            return no(format!(
                "{} needs {} or more, and the device has {}: name a larger one",
                request.file_system,
                format_size(min_bytes),
                shown_size(size_bytes)
            ));
        }
        let partitions = self.partitions();
        if !partitions.is_empty() {
            return no(format!(
                "there is a partition table on it, with {}: name a partition, or remove the table yourself",
                partitions.join(", ")
            ));
        }
        if let Some(user) = device_users::describe_user(self) {
            return no(format!("it {user}: free it, or name another"));
        }
        let found: BTreeSet<String> =
            self.signatures()?.into_iter().map(|signature| signature.kind).collect();
        let found: Vec<String> = found.into_iter().collect();
        if let Some(table) = found.iter().find(|name| PARTITION_TABLES.contains(&name.as_str())) {
            return no(format!(
                "there is a partition table on it ({table}): name another, or remove the table yourself (wipefs --all)"
            ));
        }
        if !found.is_empty() && !request.overwrite {
            return Err(BorrowError::NotEmpty { path: self.path.clone(), found: found.join(", ") });
        }
        Ok(())
    }

    fn partitions(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.about).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter(|entry| block_device::is_partition(&entry.path()))
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Lists the signatures that wipefs finds: file systems, RAID and volume group members, partition tables.
    fn signatures(&self) -> Result<Vec<WipefsSignature>, BorrowError> {
        let output = wipefs()
            .args(["--noheadings", "--output", "TYPE,UUID"])
            .arg(&self.path)
            .output()
            .map_err(|_| {
                refuse(
                    &self.path,
                    "wipefs is missing, which tells whether it is empty: install util-linux",
                )
            })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next().unwrap_or("wipefs failed");
            return Err(refuse(&self.path, format!("it cannot be read: {said}")));
        }
        Ok(signatures::parse(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Returns whether it is empty, or has only file systems of the sweep with this UUID.
    fn is_own(&self, uuid: &str) -> Result<bool, BorrowError> {
        Ok(self.signatures()?.iter().all(|signature| signature.is_of(uuid)))
    }

    /// Removes all signatures. The caller keeps other programs off the device.
    fn wipe(&self) -> Result<(), BorrowError> {
        match wipefs().args(["--all", "--quiet"]).arg(&self.path).output() {
            Ok(output) if output.status.success() => Ok(()),
            _ => Err(refuse(
                &self.path,
                "what is on it cannot be wiped: give the same command again, or `wipefs --all` it",
            )),
        }
    }

    /// Removes the file systems of the sweep with this UUID, if nothing else is on the device.
    fn wipe_own(&self, uuid: &str) -> Result<(), BorrowError> {
        // Nobody can mount or format it between the check and the wipe.
        let _claim = held_devices::claim(self)?;
        if !self.is_own(uuid)? {
            return Ok(());
        }
        // --force skips wipefs' own O_EXCL open, which the claim above would block.
        match wipefs().args(["--all", "--force", "--quiet"]).arg(&self.path).output() {
            Ok(output) if output.status.success() => Ok(()),
            _ => Err(refuse(
                &self.path,
                "what the sweep made on it cannot be wiped: give the same command again, or `wipefs --all` it",
            )),
        }
    }

    /// Prepares it for a new file system and returns the UUID to be used, which is then recorded in `file`.
    ///
    /// # Errors
    /// [`BorrowError`]: it has content that neither the sweep made nor the plan gives up.
    pub fn prepare(&self, file: &Path, request: &DeviceRequest) -> Result<String, BorrowError> {
        let known = ChangedDevice::all(file)?;
        let known = known.iter().find(|lent| lent.is(self));
        let is_own = match known.and_then(ChangedDevice::uuid) {
            Some(uuid) => self.is_own(uuid)?,
            None => self.signatures()?.is_empty(),
        };
        if !is_own {
            self.check(request)?;
        }
        let uuid = ChangedDevice::format(file, self)?;
        if !is_own {
            self.wipe()?;
        }
        Ok(uuid)
    }
}

/// Partition tables, as wipefs names them.
const PARTITION_TABLES: [&str; 10] =
    ["gpt", "dos", "PMBR", "mac", "bsd", "sgi", "sun", "minix", "ultrix", "unixware"];

fn wipefs() -> Command {
    let mut command = tool("wipefs");
    command
        // With it, wipefs would wait for the lock that the sweep itself holds.
        .env_remove("LOCK_BLOCK_DEVICE")
        .stdin(Stdio::null());
    command
}

/// Parses `none [mq-deadline] kyber`: the active one in brackets, and all.
fn parse_schedulers(text: &str) -> Option<(String, Vec<String>)> {
    let name = |word: &str| word.trim_matches(['[', ']']).to_owned();
    let now = text.split_whitespace().find(|word| word.starts_with('['))?;
    Some((name(now), text.split_whitespace().map(name).collect()))
}

/// Locks all devices of the request and checks that they may be formatted.
///
/// # Errors
/// [`BorrowError`]: a device is in use, too small, not empty, or lacks a scheduler.
pub fn hold(request: &BorrowRequest<'_>) -> Result<HeldDevices, BorrowError> {
    if !request.devices.is_empty() && !rustix::process::geteuid().is_root() {
        return Err(luc_disk::Error::NotRoot.into());
    }
    let held = HeldDevices::lock(request)?;
    check(request)?;
    Ok(held)
}

/// Checks that all devices may be formatted and have the request's schedulers. A device with only the sweep's own file
/// systems passes here: it is checked again when they are removed.
pub(super) fn check(request: &BorrowRequest<'_>) -> Result<(), BorrowError> {
    let &BorrowRequest { out, sysfs, schedulers, .. } = request;
    let ours = ChangedDevice::all(&file(out))?;
    for device in &request.devices {
        let block = BorrowableDevice::open(&device.path, sysfs)?;
        check_schedulers(schedulers, Some(&block), sysfs)?;
        let ours = ours.iter().find(|lent| lent.is(&block));
        let is_own = match ours.and_then(ChangedDevice::uuid) {
            Some(uuid) => block.is_own(uuid)?,
            None => false,
        };
        if !is_own {
            block.check(device)?;
        }
    }
    if request.makes_disks {
        check_schedulers(schedulers, None, sysfs)?;
    }
    Ok(())
}

/// Checks that a disk has all `schedulers`, or could load them; `block` is `None` for a disk that is not made yet.
fn check_schedulers(
    schedulers: &[IoScheduler],
    block: Option<&BorrowableDevice>,
    sysfs: &Path,
) -> Result<(), BorrowError> {
    let loaded: Vec<String> = match block {
        Some(block) => block.schedulers().map(|(_, all)| all).unwrap_or_default(),
        None => {
            let disks = fs::read_dir(sysfs.join("block")).into_iter().flatten().flatten();
            let texts =
                disks.filter_map(|disk| sysfs::read(&disk.path().join("queue/scheduler")).ok());
            let all = texts.filter_map(|text| parse_schedulers(&text));
            all.flat_map(|(_, all)| all).collect()
        }
    };
    for scheduler in schedulers {
        let name = scheduler.name();
        if name != "none" && !loaded.iter().any(|known| known == name) && !has_module(name) {
            return Err(BorrowError::Scheduler { name, loaded: loaded.join(", ") });
        }
    }
    Ok(())
}

/// Returns whether the running kernel has a module for that scheduler.
fn has_module(name: &str) -> bool {
    let release = rustix::system::uname();
    let folder = format!("/lib/modules/{}", release.release().to_string_lossy());
    let alias = format!("alias {name}-iosched ");
    fs::read_to_string(format!("{folder}/modules.alias"))
        .is_ok_and(|text| text.lines().any(|line| line.starts_with(&alias)))
}

/// Returns the path of the record of changed devices.
pub(super) fn file(out: &Path) -> PathBuf {
    out.join("devices.json")
}

/// Parses a record of changed devices and serializes it again; `None` if it is not one.
pub(super) fn saved(text: &str) -> Option<String> {
    Some(serde_json::json!(ChangedDevice::parse(text).ok()?).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_of_a_disk() {
        let (now, all) = parse_schedulers("none [mq-deadline] kyber bfq \n").expect("understood");
        assert_eq!(now, "mq-deadline");
        assert_eq!(all, ["none", "mq-deadline", "kyber", "bfq"]);
        assert_eq!(parse_schedulers("none"), None);
    }

    #[test]
    fn what_is_no_device_is_refused() {
        for path in ["/no/such", "/dev/null", "/proc"] {
            let error =
                BorrowableDevice::open(Path::new(path), Path::new("/sys")).expect_err("refused");
            let said = error.to_string();
            assert!(said.contains(path) && said.lines().count() == 1, "{said}");
        }
    }

    #[test]
    fn partitions_and_their_disk() {
        let sysfs = tempfile::tempdir().expect("a folder");
        let disk = sysfs.path().join("devices/sda");
        fs::create_dir_all(disk.join("sda1")).expect("made");
        fs::create_dir_all(disk.join("queue")).expect("made");
        fs::write(disk.join("sda1/partition"), "1\n").expect("written");
        fs::write(disk.join("queue/scheduler"), "[none] kyber\n").expect("written");
        fs::create_dir_all(sysfs.path().join("dev/block")).expect("made");
        for (number, target) in [("8:0", "sda"), ("8:1", "sda/sda1")] {
            let link = sysfs.path().join("dev/block").join(number);
            std::os::unix::fs::symlink(sysfs.path().join("devices").join(target), link)
                .expect("linked");
        }
        let open = |minor| {
            let number = rustix::fs::makedev(8, minor);
            BorrowableDevice::with_number(Path::new("/dev/x"), number, sysfs.path()).expect("there")
        };
        assert_eq!(open(0).partitions(), ["sda1"]);
        assert!(open(1).partitions().is_empty());
        assert_eq!(open(1).schedulers(), open(0).schedulers());
        assert_eq!(open(1).schedulers().map(|found| found.0).as_deref(), Some("none"));
    }
}
