//! The file system below an overlay, on which containers have their root: a file that was written to is one of the overlay's
//! upper directory, and `fsync` of it commits the journal of that directory's file system.
//!
//! The overlay has a device number of its own, and the kernel tells of the upper directory only by its path, among the
//! options of the mount. So the path is looked up, once for each overlay: in this process' own file systems, since whoever
//! mounts a container's root does so on the host. A path that leads elsewhere here makes its callers wait for those of
//! another journal, in bounds, and nothing else.

use std::os::fd::{AsFd as _, BorrowedFd};

use luc_host::mountinfo::{Mount, mounts_of};
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, fstat, open, statx};

/// Devices that are looked at, at most: a program that mounts overlays without end is not to be followed.
const REMEMBERED: usize = 64;

/// What is known of devices that are no block devices.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    /// A device, and the one below it, if it is an overlay's.
    known: Vec<(u64, Option<u64>)>,
}

impl Layers {
    /// The device that has what is written to `file` of `device`, which a process has open; `None` if that is no overlay's.
    pub(crate) fn below(&mut self, device: u64, file: BorrowedFd<'_>, process: u32) -> Option<u64> {
        if let Some((_, below)) = self.known.iter().find(|(known, _)| *known == device) {
            return *below;
        }
        if self.known.len() >= REMEMBERED {
            return None;
        }
        let below = upper(file, process);
        self.known.push((device, below));
        below
    }
}

/// The device of the upper directory of the overlay that has `file`. Nothing else than an overlay is asked anything.
fn upper(file: BorrowedFd<'_>, process: u32) -> Option<u64> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let status = statx(file, c"", flags, StatxFlags::MNT_ID).ok()?;
    let mounts = mounts_of(process).ok()?;
    let mount = mounts.iter().find(|mount| mount.id == status.stx_mnt_id)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = open(upper_path(mount)?, flags, Mode::empty()).ok()?;
    Some(fstat(directory.as_fd()).ok()?.st_dev)
}

/// The upper directory of an overlay that makes durable what it is asked to.
fn upper_path(mount: &Mount) -> Option<&str> {
    let mut options = mount.super_options.split(',');
    let is_durable = options
        .clone()
        .all(|option| !["volatile", "fsync=volatile"].contains(&option));
    let path = options.find_map(|option| option.strip_prefix("upperdir="))?;
    (mount.kind == "overlay" && is_durable && path.starts_with('/')).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_host::mountinfo::parse;

    #[test]
    fn an_overlay_s_options_tell_its_upper_directory() {
        for (line, expected) in [
            (
                "overlay overlay rw,lowerdir=/l:/m,upperdir=/d/u\\040v,workdir=/d/w,uuid=on",
                Some("/d/u v"),
            ),
            (
                "overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w,volatile",
                None,
            ),
            ("overlay overlay ro,lowerdir=/l:/m", None),
            ("overlay overlay rw,lowerdir=l,upperdir=u,workdir=w", None),
            ("tmpfs tmpfs rw,upperdir=/u", None),
        ] {
            let text = format!("70 67 0:40 / /m rw,relatime shared:1 - {line}\n");
            assert_eq!(upper_path(&parse(text.as_bytes())[0]), expected, "{line}");
        }
    }

    #[test]
    fn what_is_no_overlay_has_nothing_below() {
        let mut layers = Layers::default();
        let file = std::fs::File::open("/proc/self/stat").unwrap();
        for _ in 0..2 {
            assert_eq!(layers.below(7, file.as_fd(), std::process::id()), None);
        }
        assert_eq!(layers.known, [(7, None)]);
    }
}
