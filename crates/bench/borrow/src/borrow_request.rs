//! The resources that one sweep asks for.

use std::path::{Path, PathBuf};

use luc_power::{energy, frequency};

use super::scheduler::IoScheduler;

/// A block device that the plan gives up to be formatted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRequest {
    pub path: PathBuf,
    /// File system to be made on it, as `mkfs` names it.
    pub file_system: String,
    /// Smallest device that its mkfs takes; `None` if that is not known.
    pub min_bytes: Option<u64>,
    /// Whether file systems and other content on it may be lost.
    pub overwrite: bool,
}

/// All resources that one sweep borrows, and where it runs.
#[derive(Debug, Clone)]
pub struct BorrowRequest<'a> {
    pub out: &'a Path,
    /// The `luc` program, which is also the cleanup process.
    pub luc: &'a Path,
    /// Root of sysfs, `/sys` except in tests.
    pub sysfs: &'a Path,
    pub devices: Vec<DeviceRequest>,
    pub makes_disks: bool,
    /// Existing directories in which folders are made.
    pub directories: Vec<PathBuf>,
    pub schedulers: &'a [IoScheduler],
    /// Options of the processors' frequency; `None` if the sweep changes no setting of them.
    pub frequency: Option<&'a frequency::TurboAndSmtOptions>,
    pub throttles: bool,
    pub poll_idle: bool,
    pub energy: &'a energy::EnergyOptions,
}
