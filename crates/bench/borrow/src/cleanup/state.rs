//! Names of everything that a sweep makes and changes, derived from plan and folder, and their removal.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use luc_host::mountinfo::mounts;
use luc_power::frequency::{self, cpu_quota};
use luc_units::OnPath as _;
use serde::{Deserialize, Serialize};

use crate::borrow_request::BorrowRequest;
use crate::device::{self, ChangedDevice};
use crate::error::BorrowError;

/// Time for a disk to become free after its users are killed.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the name of the sweep whose results are in `out`, an absolute path.
#[must_use]
pub fn name_of(out: &Path) -> String {
    // FNV-1a.
    let hash =
        out.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("sweep-{hash:016x}")
}

/// Names of everything that a sweep makes or changes. All of it is removed or restored at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanupState {
    /// Name of the sweep and of its emulated disk.
    pub disk: String,
    pub(super) out: PathBuf,
    /// Folder of the mount point and of the programs' output.
    pub work: PathBuf,
    /// Folders made in existing directories of the user.
    pub scratch: Vec<PathBuf>,
    /// File with the original settings of the processors; exists while they differ.
    pub processors: PathBuf,
    /// File with the original settings of block devices; exists while they differ.
    pub devices: PathBuf,
    /// Devices that the plan gives up to be formatted. No other device is ever wiped.
    named: Vec<PathBuf>,
    /// Cgroup that limits the processors' time.
    pub cgroup: Option<PathBuf>,
    pub sysfs: PathBuf,
}

impl CleanupState {
    /// Derives all names. They are the same for the same `out`, so that a later sweep finds leftovers of an earlier
    /// one.
    pub(super) fn of(request: &BorrowRequest<'_>) -> Result<Self, BorrowError> {
        let &BorrowRequest { out, sysfs, .. } = request;
        let out = out.canonicalize().map_err(BorrowError::io("find", out))?;
        let absolute =
            |path: &Path| std::path::absolute(path).map_err(BorrowError::io("find", path));
        let name = name_of(&out);
        let directories = request.directories.iter();
        let cgroup = if request.throttles {
            let place = cpu_quota::find(sysfs)?;
            Some(absolute(&place.root.join(format!("luc-{name}")))?)
        } else {
            None
        };
        Ok(Self {
            processors: out.join("processors.json"),
            devices: device::file(&out),
            named: request.devices.iter().map(|device| device.path.clone()).collect(),
            cgroup,
            // The process that restores may have another working directory.
            sysfs: absolute(sysfs)?,
            work: out.join("work"),
            scratch: directories.map(|directory| directory.join(format!("luc-{name}"))).collect(),
            disk: name,
            out,
        })
    }

    #[cfg(test)]
    pub(super) fn made_up(out: &Path) -> Self {
        Self {
            disk: "sweep-x".to_owned(),
            work: out.join("work"),
            scratch: Vec::new(),
            processors: out.join("processors.json"),
            devices: device::file(out),
            named: Vec::new(),
            cgroup: None,
            sysfs: "/sys".into(),
            out: out.to_owned(),
        }
    }

    /// Lists in words what still has to be removed or restored.
    pub(super) fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        if self.processors.exists() {
            left.push("the processors' settings".to_owned());
        }
        // A file that is not trusted is reported by `clear`.
        let lent = ChangedDevice::all(&self.devices).unwrap_or_default();
        left.extend(lent.iter().map(|lent| lent.path().display().to_string()));
        let cgroup = self.cgroup.iter().filter(|cgroup| cgroup.exists());
        left.extend(cgroup.map(|cgroup| format!("cgroup {}", cgroup.display())));
        if luc_disk::stats(&self.disk).is_ok() || is_mounted_below(&self.work) {
            left.push(format!("disk and mount of {}", self.disk));
        }
        let folders = self.folders();
        let folders = folders.iter().filter(|folder| folder.exists());
        left.extend(folders.map(|folder| format!("folder {}", folder.display())));
        left
    }

    fn folders(&self) -> Vec<PathBuf> {
        self.scratch.iter().chain([&self.work]).cloned().collect()
    }

    /// Removes everything and restores processors and schedulers. A failure of one does not keep the others back.
    fn clear(&self) -> Result<(), BorrowError> {
        let processors = frequency::restore(&self.sysfs, &self.processors);
        let schedulers = ChangedDevice::restore_schedulers(&self.devices, &self.sysfs);
        self.remove()?;
        schedulers?;
        Ok(processors?)
    }

    fn remove(&self) -> Result<(), BorrowError> {
        if let Some(cgroup) = &self.cgroup {
            cpu_quota::remove(cgroup).map_err(BorrowError::io("remove", cgroup))?;
        }
        self.remove_disk()?;
        ChangedDevice::wipe(&self.devices, &self.named, &self.mount(), &self.sysfs)?;
        remove_folders(&self.folders())
    }

    fn remove_disk(&self) -> Result<(), BorrowError> {
        match luc_disk::remove(&self.disk) {
            Ok(()) | Err(luc_disk::Error::NoSuchDisk(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes leftovers of a failed repeat. Formatted devices stay on record.
    pub(super) fn remove_repeat(&self) -> Result<(), BorrowError> {
        // Before the disk is removed: its loop device stays, with its scheduler.
        ChangedDevice::restore_schedulers(&self.devices, &self.sysfs)?;
        self.remove_disk()?;
        // It may not be mounted. If it is busy, removing its folder fails.
        let _ = luc_disk::unmount(&self.mount());
        remove_folders(&self.scratch)
    }

    #[must_use]
    pub fn mount(&self) -> PathBuf {
        self.work.join("mnt")
    }

    /// Removes and restores everything; tries until `timeout` while something is busy.
    pub(super) fn clear_patiently(&self, timeout: Duration) -> Result<(), BorrowError> {
        retry(timeout, || self.clear())
    }
}

/// Repeats `clear` until it succeeds, fails for good, or `timeout` is over.
pub(super) fn retry(
    timeout: Duration,
    clear: impl Fn() -> Result<(), BorrowError>,
) -> Result<(), BorrowError> {
    let begun = Instant::now();
    loop {
        match clear() {
            Err(error) if begun.elapsed() < timeout && !error.is_lasting() => {
                sleep(Duration::from_millis(100));
            }
            outcome => return outcome,
        }
    }
}

fn is_mounted_below(folder: &Path) -> bool {
    let mounts = mounts().unwrap_or_default();
    let is_below = |place: &Path| place != folder && place.starts_with(folder);
    mounts.iter().any(|mount| is_below(&mount.mount_point))
}

fn remove_folders(folders: &[PathBuf]) -> Result<(), BorrowError> {
    for folder in folders {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(BorrowError::io("remove", folder)(error));
            }
            _ => {}
        }
    }
    Ok(())
}
