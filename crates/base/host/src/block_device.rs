//! Block devices, by their folders in sysfs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::sysfs;

/// Returns the folder of a block device below `/sys/devices`.
///
/// # Errors
/// The system's: no device has these numbers.
pub fn folder(major: u32, minor: u32) -> io::Result<PathBuf> {
    fs::canonicalize(format!("/sys/dev/block/{major}:{minor}"))
}

/// Tells a partition from a whole disk.
#[must_use]
pub fn is_partition(folder: &Path) -> bool {
    folder.join("partition").exists()
}

/// Returns the folder of the whole disk that holds a device: a partition's is the one above, a disk's is its own.
#[must_use]
pub fn whole_disk(folder: &Path) -> &Path {
    match folder.parent() {
        Some(parent) if is_partition(folder) => parent,
        _ => folder,
    }
}

/// Reads a device's major and minor number.
#[must_use]
pub fn number(folder: &Path) -> Option<(u32, u32)> {
    let text = sysfs::read(&folder.join("dev")).ok()?;
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_lies_on_the_disk_above_it() {
        let sysfs = tempfile::tempdir().expect("a folder");
        let disk = sysfs.path().join("sda");
        let partition = disk.join("sda1");
        fs::create_dir_all(&partition).expect("folders");
        fs::write(disk.join("dev"), "8:0\n").expect("written");
        fs::write(partition.join("dev"), "8:1\n").expect("written");
        fs::write(partition.join("partition"), "1\n").expect("written");
        assert_eq!(whole_disk(&partition), disk);
        assert_eq!(whole_disk(&disk), disk);
        assert_eq!(number(whole_disk(&partition)), Some((8, 0)));
        assert_eq!(number(&partition), Some((8, 1)));
        assert_eq!(number(sysfs.path()), None);
    }
}
