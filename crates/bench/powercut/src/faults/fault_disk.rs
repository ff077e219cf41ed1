//! A disk with a mounted file system. Both can be made anew, and are removed on drop.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use luc_disk::{DiskSpec, FaultSpec, FaultStatus, MkfsSpec, MountSpec};
use luc_host::interrupt_flag::interrupted;
use luc_units::OnPath as _;
use luc_workload::scratch_directory::ScratchDirectory;

use super::FaultTrialSetting;
use super::error::FaultsError;
use crate::stray_processes::kill_strays;

/// Time for killed processes to release the file system.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);
/// Environment variable that names the directory under trial.
pub(super) const DIRECTORY_VARIABLE: &str = "LUC_FAULTS_DIR";

pub(super) struct FaultDisk {
    name: String,
    device: PathBuf,
    dir: PathBuf,
    mkfs: MkfsSpec,
    is_removed: bool,
    /// Holds `dir`; removed last.
    work: ScratchDirectory,
}

impl FaultDisk {
    pub(super) fn create(
        setting: &FaultTrialSetting,
        mount_options: &str,
    ) -> Result<Self, FaultsError> {
        let work = ScratchDirectory::create(&std::env::temp_dir())?;
        let dir = work.path().join("mnt");
        std::fs::create_dir(&dir).map_err(FaultsError::io("making a directory", &dir))?;
        let mkfs = MkfsSpec { fs: setting.fs.clone(), options: setting.mkfs_options.clone() };
        let name = format!("faults-{}", std::process::id());
        let info = luc_disk::create(
            &DiskSpec {
                name: name.clone(),
                model: setting.model.clone(),
                size_bytes: setting.size_bytes,
                huge_pages: false,
                read_ahead_bytes: luc_disk::READ_AHEAD_BYTES,
                mkfs: Some(mkfs.clone()),
                mount: Some(MountSpec { dir: dir.clone(), options: mount_options.to_owned() }),
            },
            &setting.luc,
        )?;
        Ok(Self { name, device: info.device, dir, mkfs, is_removed: false, work })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns a directory beside it, where nothing fails.
    pub(super) fn work(&self) -> &Path {
        self.work.path()
    }

    /// Makes the file system anew and mounts it.
    pub(super) fn renew(&self, mount_options: &str) -> Result<(), FaultsError> {
        let deadline = Instant::now() + RELEASE_TIMEOUT;
        while let Err(error) = luc_disk::unmount(&self.dir) {
            if Instant::now() >= deadline {
                return Err(error.into());
            }
            kill_strays(DIRECTORY_VARIABLE, &self.dir);
            std::thread::sleep(Duration::from_millis(5));
        }
        // Another mount namespace, made while it was mounted here, may hold it for a moment longer.
        while let Err(error) = luc_disk::mkfs(&self.device, &self.mkfs) {
            if Instant::now() >= deadline || interrupted() {
                return Err(error.into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let mount = MountSpec { dir: self.dir.clone(), options: mount_options.to_owned() };
        Ok(luc_disk::mount(&self.device, &mount)?)
    }

    pub(super) fn fail(&self, fault: &FaultSpec) -> Result<(), FaultsError> {
        luc_disk::fail(&self.name, fault)?;
        Ok(())
    }

    /// Makes no request fail from now on. Returns the counters of the fault.
    pub(super) fn clear(&self) -> Result<FaultStatus, FaultsError> {
        Ok(luc_disk::clear_fault(&self.name)?)
    }

    /// Removes everything, and reports failures.
    pub(super) fn remove(mut self) -> Result<(), FaultsError> {
        self.take_away()
    }

    fn take_away(&mut self) -> Result<(), FaultsError> {
        if self.is_removed {
            return Ok(());
        }
        // A failure now would only be repeated on drop.
        self.is_removed = true;
        let mut end_users = || kill_strays(DIRECTORY_VARIABLE, &self.dir);
        Ok(luc_disk::remove_when_free(&self.name, RELEASE_TIMEOUT, &mut end_users)?)
    }
}

impl Drop for FaultDisk {
    fn drop(&mut self) {
        // Another error, or an interrupt, is on its way to the user already.
        let _ = self.take_away();
    }
}
