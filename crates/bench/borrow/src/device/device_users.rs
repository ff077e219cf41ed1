//! Detects users of a block device: mounts, swap, RAID and LVM, loop devices, exclusive openers.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use luc_host::mountinfo::{self, MountEntry};
use luc_host::sysfs;

use super::BorrowableDevice;

/// Describes a user of the device, in words that follow its name; `None` if there is none.
pub(super) fn describe_user(block: &BorrowableDevice) -> Option<String> {
    if let Some(place) = mounted_anywhere(block) {
        return Some(format!("is mounted on {place}"));
    }
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let mut areas = swaps.lines().skip(1).filter_map(|line| line.split(' ').next());
    if areas.any(|area| is_same(Path::new(area), block)) {
        return Some("is used as swap".to_owned());
    }
    if let Some(holder) = holder(&block.about) {
        return Some(format!("is part of {holder}"));
    }
    if let Some((device, number)) = loop_on(block) {
        let disk = (number != block.number()).then_some(" with its whole disk");
        return Some(format!("is behind {device}{}", disk.unwrap_or_default()));
    }
    // The kernel refuses O_EXCL if anybody has it exclusively, in whatever namespace.
    let alone = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_EXCL | libc::O_CLOEXEC)
        .open(&block.path);
    match alone {
        Ok(_) => None,
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            Some("is in use (the kernel gives it to nobody else)".to_owned())
        }
        Err(error) => Some(format!("cannot be opened ({error})")),
    }
}

/// Finds a mount point of it, also in mount namespaces of other processes.
fn mounted_anywhere(block: &BorrowableDevice) -> Option<String> {
    if let Some(place) = mounted_on(&mountinfo::mounts().unwrap_or_default(), block) {
        return Some(place);
    }
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let mut seen = BTreeSet::from([namespace("self")?]);
    let entries = fs::read_dir("/proc").ok()?.flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        // A process that has ended in the meantime has no mounts.
        if !namespace(&pid.to_string()).is_some_and(|found| seen.insert(found)) {
            continue;
        }
        let mounts = mountinfo::mounts_of(pid).unwrap_or_default();
        if let Some(place) = mounted_on(&mounts, block) {
            return Some(format!("{place} in the mount namespace of process {pid}"));
        }
    }
    None
}

/// Finds its mount point among `mounts`.
fn mounted_on(mounts: &[MountEntry], block: &BorrowableDevice) -> Option<String> {
    let is_it = |mount: &&MountEntry| {
        // btrfs mounts have an anonymous device number; their source is the device.
        mount.device == (block.major, block.minor) || is_same(Path::new(&mount.source), block)
    };
    let mount = mounts.iter().find(is_it)?;
    Some(mount.mount_point.display().to_string())
}

fn is_same(path: &Path, block: &BorrowableDevice) -> bool {
    path.is_absolute() && fs::metadata(path).is_ok_and(|node| node.rdev() == block.number())
}

/// Names a device that is built on it, with its kind.
fn holder(about: &Path) -> Option<String> {
    let mut entries = fs::read_dir(about.join("holders")).ok()?.flatten();
    let entry = entries.next()?;
    let name = entry.file_name().to_string_lossy().into_owned();
    if name.starts_with("md") {
        return Some(format!("{name} (a RAID)"));
    }
    let mapped = sysfs::read(&entry.path().join("dm/name"));
    let mapped = mapped.map_or_else(|_| String::new(), |mapped| format!("'{mapped}': "));
    Some(format!("{name} ({mapped}LVM, encryption or multipath)"))
}

/// Finds a loop device on it or on its whole disk, with the device number of the backing file.
fn loop_on(block: &BorrowableDevice) -> Option<(String, u64)> {
    let disk = sysfs::read(&block.disk().join("dev")).unwrap_or_default();
    let whole = disk.split_once(':').and_then(|(major, minor)| {
        Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
    });
    let mut entries = fs::read_dir("/sys/block").ok()?.flatten();
    entries.find_map(|entry| {
        // Compared by number, since a device may have several names.
        let file = sysfs::read(&entry.path().join("loop/backing_file")).ok()?;
        let file = fs::metadata(file).ok()?;
        let is_it = file.file_type().is_block_device()
            && (file.rdev() == block.number() || Some(file.rdev()) == whole);
        let name = entry.file_name();
        is_it.then(|| (format!("/dev/{}", name.to_string_lossy()), file.rdev()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_by_number() {
        let mounts = mountinfo::parse(
            b"36 35 98:0 /mnt1 /srv/a rw,noatime master:1 - ext3 /dev/root rw\n\
              37 35 0:45 / /srv/b rw - btrfs /dev/null rw\n",
        );
        let block =
            BorrowableDevice { path: "/dev/x".into(), major: 98, minor: 0, about: "/sys".into() };
        assert_eq!(mounted_on(&mounts, &block).as_deref(), Some("/srv/a"));
        // By its source: /dev/null has the number 1:3.
        let other = BorrowableDevice { major: 1, minor: 3, ..block.clone() };
        assert_eq!(mounted_on(&mounts, &other).as_deref(), Some("/srv/b"));
        let free = BorrowableDevice { minor: 7, ..block };
        assert_eq!(mounted_on(&mounts, &free), None);
    }

    #[test]
    fn holders() {
        let about = tempfile::tempdir().expect("a folder");
        assert_eq!(holder(about.path()), None);
        let dm = about.path().join("holders/dm-3");
        fs::create_dir_all(dm.join("dm")).expect("made");
        let said = holder(about.path());
        assert_eq!(said.as_deref(), Some("dm-3 (LVM, encryption or multipath)"));
        fs::write(dm.join("dm/name"), "vg-home\n").expect("written");
        let said = holder(about.path());
        assert_eq!(said.as_deref(), Some("dm-3 ('vg-home': LVM, encryption or multipath)"));
        fs::remove_dir_all(dm).expect("removed");
        fs::create_dir(about.path().join("holders/md127")).expect("made");
        let said = holder(about.path());
        assert_eq!(said.as_deref(), Some("md127 (a RAID)"));
    }
}
