//! Plans a measurement: what is measured, where, and what that takes.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use luc_events::Dev;
use luc_host::{block_device, mountinfo};

use super::disk_profile::DiskIdentity;
use crate::ThrottleError;
use crate::advise::advise_watch::AdviseWatch;

/// Numbers of probes that run together.
pub(super) const STACK_SIZES: [u32; 4] = [1, 2, 4, 8];
/// Demands of the probes. The first is the fastest.
pub(super) const DEMANDS: [ProbeDemand; 3] = [
    ProbeDemand { block_bytes: 128 << 10, think_ns: 0 },
    ProbeDemand { block_bytes: 32 << 10, think_ns: 1_000_000 },
    ProbeDemand { block_bytes: 4 << 10, think_ns: 1_000_000 },
];
/// Number of cells: each demand with each number, random reads alone, and each file alone.
pub(super) const CELLS: u64 = (STACK_SIZES.len() * DEMANDS.len()) as u64 + 1 + MAX_STACK as u64;
/// Largest number of probes at a time. Each has a file of its own.
const MAX_STACK: u32 = 8;
/// Largest and smallest size of a file, and the divisor of the free space that gives the largest total size.
const MAX_FILE_BYTES: u64 = 64 << 20;
const MIN_FILE_BYTES: u64 = 8 << 20;
const FREE_SPACE_DIVISOR: u64 = 4;
const MIN_CELL_NS: u64 = 250_000_000;

/// Block size of a probe, and its pause after each block.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeDemand {
    pub(super) block_bytes: u64,
    pub(super) think_ns: u64,
}

/// A measurement, and what it takes.
#[derive(Clone, Debug)]
pub struct MeasurementPlan {
    pub disk: String,
    /// Folder in which the files are created.
    pub folder: PathBuf,
    /// Number of files that are created, and removed afterwards.
    pub files: u64,
    pub file_bytes: u64,
    /// Time of all measurements, ns, without creating the files.
    pub measuring_ns: u64,
    pub(super) identity: DiskIdentity,
}

impl MeasurementPlan {
    /// Checks that this machine lets disks be watched.
    pub fn check(&self) -> Result<(), ThrottleError> {
        AdviseWatch::open(std::slice::from_ref(&self.disk), Box::new(|_| {})).map(|_| ())
    }

    /// Plans a measurement for a device with a mounted file system, or any path. `for_ns` is the time for measuring.
    ///
    /// # Errors
    ///
    /// [`ThrottleError::Learn`]: there is no disk, no file system or not enough space.
    pub fn new(target: &Path, for_ns: u64) -> Result<Self, ThrottleError> {
        let refused =
            |reason: String| ThrottleError::Learn { what: target.display().to_string(), reason };
        if for_ns < CELLS * MIN_CELL_NS {
            return Err(ThrottleError::Learn {
                what: "--for".to_owned(),
                reason: format!(
                    "{CELLS} measurements need {} s at least",
                    (CELLS * MIN_CELL_NS).div_ceil(1_000_000_000)
                ),
            });
        }
        let folder = folder_of(target).map_err(refused)?;
        let about = fs::metadata(&folder).map_err(|error| refused(error.to_string()))?;
        let (disk, dev) = disk_of(about.dev()).map_err(refused)?;
        let identity = DiskIdentity::of(dev).map_err(|error| refused(error.to_string()))?;
        let space = rustix::fs::statvfs(&folder).map_err(|error| refused(error.to_string()))?;
        let files = u64::from(MAX_STACK);
        let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
        let file_bytes = (free_bytes / FREE_SPACE_DIVISOR / files).min(MAX_FILE_BYTES) >> 20 << 20;
        if file_bytes < MIN_FILE_BYTES {
            return Err(refused(format!(
                "{} MiB are free and {} are needed: give a path on the same disk with more space",
                free_bytes >> 20,
                (files * FREE_SPACE_DIVISOR * MIN_FILE_BYTES) >> 20
            )));
        }
        Ok(Self { disk, folder, files, file_bytes, measuring_ns: for_ns, identity })
    }

    /// Largest number of bytes that are read.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        let stacked: u32 = STACK_SIZES.iter().sum();
        (u64::from(stacked) * DEMANDS.len() as u64 + 1 + self.files) * self.file_bytes
    }

    #[must_use]
    pub fn written_bytes(&self) -> u64 {
        self.files * self.file_bytes
    }
}

/// A folder on the file system of a path, or on that of a device.
fn folder_of(target: &Path) -> Result<PathBuf, String> {
    use std::os::unix::fs::FileTypeExt as _;
    let target = fs::canonicalize(target)
        .map_err(|error| format!("{error}; give a disk such as /dev/sda, or a folder on it"))?;
    let about = fs::metadata(&target).map_err(|error| error.to_string())?;
    if about.is_dir() {
        return Ok(target);
    }
    if !about.file_type().is_block_device() {
        return target.parent().map(Path::to_owned).ok_or_else(|| "it is in no folder".to_owned());
    }
    let mounts = mountinfo::mounts().map_err(|error| error.to_string())?;
    let wanted = disk_of(about.rdev())?.1;
    let is_on = |mount: &&mountinfo::MountEntry| {
        let about = fs::metadata(&mount.mount_point);
        about.is_ok_and(|about| disk_of(about.dev()).is_ok_and(|(_, dev)| dev == wanted))
    };
    mounts.iter().find(is_on).map(|mount| mount.mount_point.clone()).ok_or_else(|| {
        "no file system of it is mounted: mount one, as files are needed to measure".to_owned()
    })
}

/// Name and number of the disk of a device number, which may be a partition's.
fn disk_of(number: u64) -> Result<(String, Dev), String> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let no_disk = || {
        format!(
            "its file system ({major}:{minor}) is on no disk of its own: give a path on a disk's"
        )
    };
    let folder = block_device::folder(major, minor).map_err(|_| no_disk())?;
    let disk = block_device::whole_disk(&folder);
    let (major, minor) = block_device::number(disk).ok_or_else(no_disk)?;
    let name = disk.file_name().ok_or_else(no_disk)?;
    Ok((name.to_string_lossy().into_owned(), Dev::new(major, minor)))
}
