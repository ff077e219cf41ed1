//! Who uses a block device.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::Block;

/// What uses it, as words after its name; `None` if nothing does.
pub(super) fn by(block: &Block) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if let Some(place) = mounted_on(&mounts, block) {
        return Some(format!("is mounted on {place}"));
    }
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let mut areas = swaps
        .lines()
        .skip(1)
        .filter_map(|line| line.split(' ').next());
    if areas.any(|area| is_same(Path::new(area), block)) {
        return Some("is used as swap".to_owned());
    }
    if let Some(holder) = holder(&block.about) {
        let kind = if holder.starts_with("md") {
            "a RAID"
        } else {
            "LVM, encryption or multipath"
        };
        return Some(format!("is part of {holder} ({kind})"));
    }
    if let Some(device) = loop_on(&block.path) {
        return Some(format!("is behind {device}"));
    }
    // What has it for itself, in whatever namespace, is told by the kernel.
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

/// Where it is mounted (proc_pid_mountinfo(5)).
fn mounted_on(mounts: &str, block: &Block) -> Option<String> {
    let number = format!("{}:{}", block.major, block.minor);
    let place = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ');
        let is_number = fields.nth(2)? == number;
        let place = fields.nth(1)?;
        // btrfs has a number of its own: its source is the device.
        let source = after.split(' ').nth(1)?;
        (is_number || is_same(Path::new(source), block)).then(|| place.to_owned())
    };
    mounts.lines().find_map(place)
}

fn is_same(path: &Path, block: &Block) -> bool {
    let number = rustix::fs::makedev(block.major, block.minor);
    path.is_absolute() && fs::metadata(path).is_ok_and(|node| node.rdev() == number)
}

/// A device that is made of it.
fn holder(about: &Path) -> Option<String> {
    let mut entries = fs::read_dir(about.join("holders")).ok()?.flatten();
    Some(entries.next()?.file_name().to_string_lossy().into_owned())
}

/// A loop device whose file it is.
fn loop_on(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let entries = fs::read_dir("/sys/block").ok()?.flatten();
    let mut loops = entries.filter(|entry| {
        let file = fs::read_to_string(entry.path().join("loop/backing_file"));
        file.is_ok_and(|file| Path::new(file.trim_end()) == path)
    });
    let name = loops.next()?.file_name();
    Some(format!("/dev/{}", name.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_by_number() {
        let mounts = "36 35 98:0 /mnt1 /srv/a rw,noatime master:1 - ext3 /dev/root rw\n\
                      37 35 0:45 / /srv/b rw - btrfs /dev/null rw\n";
        let block = Block {
            path: "/dev/x".into(),
            major: 98,
            minor: 0,
            about: "/sys".into(),
        };
        assert_eq!(mounted_on(mounts, &block).as_deref(), Some("/srv/a"));
        // By its source: /dev/null has the number 1:3.
        let other = Block {
            major: 1,
            minor: 3,
            ..block.clone()
        };
        assert_eq!(mounted_on(mounts, &other).as_deref(), Some("/srv/b"));
        let free = Block { minor: 7, ..block };
        assert_eq!(mounted_on(mounts, &free), None);
    }

    #[test]
    fn holders() {
        let about = tempfile::tempdir().expect("a folder");
        assert_eq!(holder(about.path()), None);
        fs::create_dir_all(about.path().join("holders/dm-3")).expect("made");
        assert_eq!(holder(about.path()).as_deref(), Some("dm-3"));
    }
}
