//! Finds the file system and the journal behind a path or a device. [`raw`](super::raw) describes how the
//! journal is found.

use std::fmt;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use luc_host::mountinfo::{MOUNTINFO, MountEntry, mounts};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::InspectError;
use super::raw::{JournalKind, journal_of_device_raw, journal_of_file_raw};

/// A mounted file system and the journal behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InspectedFileSystem {
    /// Major and minor number of the device; major 0 if it is on no block device.
    pub device: (u32, u32),
    /// The device's name in /sys, such as `nvme0n1p2`. Without a device, the last part of the mount's source, such as
    /// `tmpfs`.
    pub name: String,
    /// The type it is mounted as, such as `ext4`.
    pub kind: String,
    pub mount_point: PathBuf,
    /// The journal that its fsyncs wait for.
    pub journal: FileSystemJournal,
}

/// The journal behind a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSystemJournal {
    /// ext4's journal: each fsync is a commit unless it joins another's.
    Jbd2,
    /// ext4's journal with fast commit, where most fsyncs start no journal commit.
    Jbd2FastCommit,
    /// ext4's driver without a journal (ext2, or made with `-O ^has_journal`).
    None,
    /// Another file system, of this kind.
    NotExt4(String),
    /// ext4, perhaps with a journal: /sys and /proc may be hidden from this container.
    Unknown,
}

impl fmt::Display for FileSystemJournal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jbd2 => formatter.write_str("ext4 with a journal"),
            Self::Jbd2FastCommit => formatter.write_str("ext4 with a journal and fast commit"),
            Self::None => formatter.write_str("ext4 without a journal"),
            Self::NotExt4(kind) => write!(formatter, "{kind}, which has no ext4 journal"),
            Self::Unknown => formatter.write_str("ext4, perhaps with a journal"),
        }
    }
}

/// The file system that holds `path`, which must exist; symbolic links are followed.
///
/// # Errors
/// [`InspectError::Io`]: the path or the mount table cannot be read. [`InspectError::NotMounted`]: its mount is hidden
/// from this process.
pub fn of_path(path: &Path) -> Result<InspectedFileSystem, InspectError> {
    let metadata = path.metadata().map_err(InspectError::io(path))?;
    let device = device_of(metadata.dev());
    let mounts = read_mounts()?;
    let mount = mount_of(path, device, &mounts)
        .ok_or(InspectError::NotMounted { major: device.0, minor: device.1 })?;
    // An open file lets newer kernels tell more; a pipe, socket or device must not be opened.
    let is_plain = metadata.is_file() || metadata.is_dir();
    let file = is_plain.then(|| File::open(path).ok()).flatten();
    let kind = match file {
        Some(file) => journal_of_file_raw(file.as_raw_fd()),
        None => journal_of_device_raw(mount.device.0, mount.device.1),
    };
    Ok(describe(mount, kind))
}

/// The mounted file system on the block device `major`:`minor`.
///
/// # Errors
/// [`InspectError::Io`]: the mount table cannot be read. [`InspectError::NotMounted`]: the device has no mount in this
/// namespace.
pub fn of_device(major: u32, minor: u32) -> Result<InspectedFileSystem, InspectError> {
    let mounts = read_mounts()?;
    let mut here = mounts.iter().filter(|mount| mount.device == (major, minor));
    let first = here.next().ok_or(InspectError::NotMounted { major, minor })?;
    // The whole file system rather than a folder of it bound elsewhere.
    let whole = Path::new("/");
    let mount = std::iter::once(first).chain(here).find(|mount| mount.root == whole);
    Ok(describe(mount.unwrap_or(first), journal_of_device_raw(major, minor)))
}

/// Finds the mount of `path` by its mount id (Linux >= 5.8). On older kernels it is the deepest mount of the device
/// above `path`. Of several mounts on one place it is the latest.
fn mount_of<'m>(
    path: &Path,
    device: (u32, u32),
    mounts: &'m [MountEntry],
) -> Option<&'m MountEntry> {
    if let Ok(status) = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID)
        && StatxFlags::from_bits_retain(status.stx_mask).contains(StatxFlags::MNT_ID)
        && let Some(mount) = mounts.iter().find(|mount| mount.id == status.stx_mnt_id)
    {
        return Some(mount);
    }
    let whole = path.canonicalize().ok()?;
    mounts
        .iter()
        .filter(|mount| mount.device == device && whole.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.as_os_str().len())
}

fn read_mounts() -> Result<Vec<MountEntry>, InspectError> {
    mounts().map_err(InspectError::io(Path::new(MOUNTINFO)))
}

fn describe(mount: &MountEntry, kind: JournalKind) -> InspectedFileSystem {
    let (major, minor) = mount.device;
    let link = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let target = link.read_link().ok();
    let name = target.as_deref().and_then(Path::file_name).unwrap_or(mount.source_name());
    let is_ext = matches!(mount.kind.as_str(), "ext2" | "ext3" | "ext4");
    let journal = match kind {
        JournalKind::Jbd2 => FileSystemJournal::Jbd2,
        JournalKind::FastCommit => FileSystemJournal::Jbd2FastCommit,
        JournalKind::None => FileSystemJournal::None,
        JournalKind::Unknown if is_ext => FileSystemJournal::Unknown,
        JournalKind::Unknown | JournalKind::NotExt4 => {
            FileSystemJournal::NotExt4(mount.kind.clone())
        }
    };
    InspectedFileSystem {
        device: mount.device,
        name: name.to_string_lossy().into_owned(),
        kind: mount.kind.clone(),
        mount_point: mount.mount_point.clone(),
        journal,
    }
}

fn device_of(device: u64) -> (u32, u32) {
    (rustix::fs::major(device), rustix::fs::minor(device))
}
