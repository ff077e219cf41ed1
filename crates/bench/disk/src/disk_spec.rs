//! The request for a disk, and its description.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::ModelSpec;
use crate::injected_fault::FaultStatus;

/// A disk to create.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskSpec {
    /// Name of 1 to 32 letters, digits, `-` or `_`.
    pub name: String,
    pub model: ModelSpec,
    /// Size, a multiple of 4096.
    pub size_bytes: u64,
    /// Whether the contents are kept in huge pages, all reserved at creation: for the disk, and for twice its write
    /// cache.
    #[serde(default)]
    pub huge_pages: bool,
    /// Read-ahead of the kernel for sequential readers: a multiple of 4096; 0 for none.
    #[serde(default = "read_ahead_bytes")]
    pub read_ahead_bytes: u64,
    /// The file system to make on it, if any.
    pub mkfs: Option<MkfsSpec>,
    pub mount: Option<MountSpec>,
}

/// Read-ahead that the kernel gives real disks (`VM_READAHEAD_PAGES`).
pub const READ_AHEAD_BYTES: u64 = 128 << 10;

fn read_ahead_bytes() -> u64 {
    READ_AHEAD_BYTES
}

/// File system to make on the disk, with options for mkfs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MkfsSpec {
    /// Name as in `mkfs.NAME`.
    pub fs: String,
    /// Further options of `mkfs.NAME`, separated by blanks.
    pub options: String,
}

/// Mount point of the disk's file system, with mount options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountSpec {
    /// An existing directory that is no mount point.
    pub dir: PathBuf,
    /// Options as in `mount -o`; may be empty.
    pub options: String,
}

/// State of a disk as `luc disk list` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmulatedDiskState {
    /// Its creation has not ended, or was killed.
    Creating,
    Running,
    /// Its power is cut: every request fails with EIO until it is restored.
    Cut,
    /// Its daemon is gone: remove it.
    Dead,
}

impl std::fmt::Display for EmulatedDiskState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Creating => "creating",
            Self::Running => "running",
            Self::Cut => "cut",
            Self::Dead => "dead",
        })
    }
}

/// A disk that exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskInfo {
    pub name: String,
    /// Block device, `/dev/loopN`; empty while there is none.
    pub device: PathBuf,
    pub size_bytes: u64,
    pub model: ModelSpec,
    /// First mount point, if it is mounted.
    pub mount: Option<PathBuf>,
    /// The process that is the disk; 0 when it is gone.
    pub daemon_pid: u32,
    pub state: EmulatedDiskState,
    /// Fault by which requests fail on purpose, if any.
    #[serde(default)]
    pub fault: Option<FaultStatus>,
}

/// Counters of a disk since its creation. Service times run from a request's arrival at the emulated disk to its
/// completion, queueing included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskStats {
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub discards: u64,
    /// Requests refused because the power was cut.
    pub refused: u64,
    /// Requests that failed on purpose.
    #[serde(default)]
    pub failed: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Bytes in the volatile cache now.
    pub unflushed_bytes: u64,
    pub read_ns: u64,
    pub write_ns: u64,
    pub flush_ns: u64,
    /// Sum of how late replies were, against the model's time, nanoseconds.
    pub late_ns: u64,
}
