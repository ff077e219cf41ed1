//! What a sweep makes and changes, by names that follow from its plan and its folder, and clearing it up.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use luc_host::mountinfo::mounts;
use luc_power::frequency::{self, throttle};
use luc_units::OnPath as _;
use serde::{Deserialize, Serialize};

use crate::device::{self, Lent};
use crate::error::SweepError;
use crate::plan::Plan;

/// How long a disk may stay busy after its users are killed.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// The name of the sweep whose results are in `out`, an absolute path.
#[must_use]
pub fn name_of(out: &Path) -> String {
    // FNV-1a.
    let hash =
        out.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("sweep-{hash:016x}")
}

/// What a sweep makes and what must be gone when it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CleanupState {
    /// The sweep's name, and its emulated disk's.
    pub(crate) disk: String,
    /// The folder of the results.
    pub(super) out: PathBuf,
    /// The folder of the mount point and of what programs print.
    pub(crate) work: PathBuf,
    /// The folders in directories of the user's.
    pub(crate) scratch: Vec<PathBuf>,
    /// What the processors were, in a file that is there while they are something else.
    pub(crate) processors: PathBuf,
    /// What block devices were, in a file that is there while they are something else.
    pub(crate) devices: PathBuf,
    /// The devices that the plan lets be formatted: no other is ever wiped.
    named: Vec<PathBuf>,
    /// The cgroup that limits the processors' time.
    pub(crate) cgroup: Option<PathBuf>,
    /// The root of sysfs.
    pub(crate) sysfs: PathBuf,
}

impl CleanupState {
    /// The same names for the same `out`, so that what is left of one sweep is found by the next.
    pub(super) fn of(plan: &Plan, out: &Path, sysfs: &Path) -> Result<Self, SweepError> {
        let out = out.canonicalize().map_err(SweepError::io("find", out))?;
        let absolute =
            |path: &Path| std::path::absolute(path).map_err(SweepError::io("find", path));
        let name = name_of(&out);
        let directories = plan.target.iter().filter_map(|target| target.directory.as_ref());
        let devices = plan.target.iter().filter_map(|target| target.device.clone());
        let cgroup = if plan.throttles() {
            let place = throttle::find(sysfs)?;
            Some(absolute(&place.root.join(format!("luc-{name}")))?)
        } else {
            None
        };
        Ok(Self {
            processors: out.join("processors.json"),
            devices: device::file(&out),
            named: devices.collect(),
            cgroup,
            // Whoever restores may be elsewhere.
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

    /// What of it is there, in words; nothing if all is clear.
    pub(super) fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        if self.processors.exists() {
            left.push("the processors' settings".to_owned());
        }
        // A file that is not to be trusted is told when it is cleared.
        let lent = Lent::all(&self.devices).unwrap_or_default();
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

    /// Removes whatever there is of it, and puts the processors back; one does not wait for the other.
    fn clear(&self) -> Result<(), SweepError> {
        let processors = frequency::restore(&self.sysfs, &self.processors);
        let schedulers = Lent::restore_schedulers(&self.devices, &self.sysfs);
        self.remove()?;
        schedulers?;
        Ok(processors?)
    }

    fn remove(&self) -> Result<(), SweepError> {
        if let Some(cgroup) = &self.cgroup {
            throttle::remove(cgroup).map_err(SweepError::io("remove", cgroup))?;
        }
        self.remove_disk()?;
        Lent::wipe(&self.devices, &self.named, &self.mount(), &self.sysfs)?;
        remove_folders(&self.folders())
    }

    fn remove_disk(&self) -> Result<(), SweepError> {
        match luc_disk::remove(&self.disk) {
            Ok(()) | Err(luc_disk::Error::NoSuchDisk(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What a repeat that failed has left; devices that were formatted stay lent.
    pub(super) fn remove_repeat(&self) -> Result<(), SweepError> {
        // Before the disk goes: its loop device stays, with its scheduler.
        Lent::restore_schedulers(&self.devices, &self.sysfs)?;
        self.remove_disk()?;
        // A device that is not mounted is as wanted; if it is busy, its folder says so.
        let _ = luc_disk::unmount(&self.mount());
        remove_folders(&self.scratch)
    }

    /// Where disks are mounted.
    pub(crate) fn mount(&self) -> PathBuf {
        self.work.join("mnt")
    }

    /// The same, for as long as something is still busy.
    pub(super) fn clear_patiently(&self, patience: Duration) -> Result<(), SweepError> {
        patiently(patience, || self.clear())
    }
}

/// Tries until it succeeds, cannot succeed, or `patience` ends.
pub(super) fn patiently(
    patience: Duration,
    clear: impl Fn() -> Result<(), SweepError>,
) -> Result<(), SweepError> {
    let begun = Instant::now();
    loop {
        match clear() {
            Err(error) if begun.elapsed() < patience && !error.is_lasting() => {
                sleep(Duration::from_millis(100))
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

fn remove_folders(folders: &[PathBuf]) -> Result<(), SweepError> {
    for folder in folders {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(SweepError::io("remove", folder)(error));
            }
            _ => {}
        }
    }
    Ok(())
}
