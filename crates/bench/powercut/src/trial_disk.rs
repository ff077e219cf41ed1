//! The disk under trial: an emulated one of our own, or a lagdisk (`kernel/lagdisk`) that is there.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use luc_disk::{CutReport, DiskSpec, MkfsSpec, MountSpec};
use luc_units::OnPath as _;

use super::PowercutRequest;
use super::error::PowercutError;

/// A disk with a file system that is mounted.
#[derive(Debug)]
pub(super) enum TrialDisk {
    /// Made for the round, by its name.
    Emulated(String),
    /// A lagdisk, by the folder of its attributes in sysfs.
    Lagdisk(PathBuf),
}

impl TrialDisk {
    /// Makes or wipes the disk, makes the file system and mounts it on `dir`. `name` is that of an
    /// emulated disk. Returns the device, too.
    pub(super) fn create(
        plan: &PowercutRequest,
        name: &str,
        dir: &Path,
    ) -> Result<(Self, PathBuf), PowercutError> {
        let mkfs = MkfsSpec { fs: plan.fs.clone(), options: plan.mkfs_options.clone() };
        let mount = MountSpec { dir: dir.to_owned(), options: plan.mount_options.clone() };
        if let Some(device) = &plan.lagdisk {
            let attributes = attributes(device)?;
            let disk = Self::Lagdisk(attributes);
            disk.tell("restore", "1")?;
            disk.tell("wipe", "1")?;
            luc_disk::mkfs(device, &mkfs)?;
            luc_disk::mount(device, &mount)?;
            return Ok((disk, device.clone()));
        }
        let spec = DiskSpec {
            name: name.to_owned(),
            model: plan.model.clone(),
            size_bytes: plan.size_bytes,
            huge_pages: false,
            read_ahead_bytes: luc_disk::READ_AHEAD_BYTES,
            mkfs: Some(mkfs),
            mount: Some(mount),
        };
        let info = luc_disk::create(&spec, &plan.luc)?;
        Ok((Self::Emulated(name.to_owned()), info.device))
    }

    /// Cuts the power. With a seed, unflushed sectors drawn by it have reached the medium; without,
    /// none has.
    pub(super) fn cut(&self, seed: Option<u64>) -> Result<CutReport, PowercutError> {
        match self {
            Self::Emulated(name) => Ok(luc_disk::cut(name, seed)?),
            Self::Lagdisk(_) => {
                let words = seed.map(|seed| format!("keep {} {seed}", seed % 101));
                self.tell("power_cut", words.as_deref().unwrap_or("1"))?;
                Ok(CutReport {
                    kept_sectors: self.ask("kept_sectors")?,
                    lost_sectors: self.ask("lost_sectors")?,
                    ..CutReport::default()
                })
            }
        }
    }

    pub(super) fn restore(&self) -> Result<(), PowercutError> {
        match self {
            Self::Emulated(name) => Ok(luc_disk::restore(name)?),
            Self::Lagdisk(_) => self.tell("restore", "1"),
        }
    }

    /// Takes the disk away; a lagdisk's file system only.
    pub(super) fn remove(
        &self,
        dir: &Path,
        patience: Duration,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<(), luc_disk::Error> {
        match self {
            Self::Emulated(name) => luc_disk::remove_when_free(name, patience, meanwhile),
            // It may be unmounted already.
            Self::Lagdisk(_) => luc_disk::unmount(dir).or(Ok(())),
        }
    }

    fn attribute(&self, name: &str) -> PathBuf {
        match self {
            Self::Lagdisk(folder) => folder.join(name),
            Self::Emulated(_) => PathBuf::new(),
        }
    }

    fn tell(&self, name: &str, words: &str) -> Result<(), PowercutError> {
        let path = self.attribute(name);
        fs::write(&path, words).map_err(PowercutError::io("writing", path))
    }

    fn ask(&self, name: &str) -> Result<u64, PowercutError> {
        let path = self.attribute(name);
        let text = fs::read_to_string(&path).map_err(PowercutError::io("reading", &path))?;
        text.trim().parse().map_err(|_| PowercutError::NotLagdisk(path))
    }
}

/// Returns the folder in sysfs of a lagdisk.
fn attributes(device: &Path) -> Result<PathBuf, PowercutError> {
    let name = device.file_name().unwrap_or_default();
    let folder = Path::new("/sys/block").join(name).join("lagdisk");
    if device.parent() == Some(Path::new("/dev")) && folder.join("power_cut").is_file() {
        Ok(folder)
    } else {
        Err(PowercutError::NotLagdisk(device.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_lagdisk_is_refused() {
        for device in ["/dev/null", "/dev/sda", "lagdisk0", "/", ""] {
            let error = attributes(Path::new(device)).expect_err("no lagdisk");
            assert!(matches!(error, PowercutError::NotLagdisk(_)), "{error}");
        }
    }
}
