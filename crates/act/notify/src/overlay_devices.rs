//! The file system below an overlay, on which containers have their root. A file that was written to is in the
//! overlay's upper directory. Its `fsync` commits the journal of that directory's file system.
//!
//! The overlay has a device number of its own. The kernel names the upper directory only by its path, among the
//! options of the mount. So a thread that may wait looks the path up, once for each overlay. It does so among this
//! process' own mounts, because a container's root is mounted on the host. If the path leads elsewhere here, its
//! callers wait for those of another journal, in bounds, and nothing worse happens.

use std::os::fd::AsFd as _;

use luc_host::mountinfo::{MountEntry, mounts_of};
use rustix::fs::{Mode, OFlags, fstat, open};

/// Maximum number of devices: a program that mounts overlays without end is not followed.
const MAX_DEVICES: usize = 64;

/// Maximum number of searches for the mount of a device.
const MAX_MISSES: u32 = 16;

/// Memory of devices that are no block devices.
#[derive(Debug, Default)]
pub(crate) struct OverlayDevices {
    /// Devices, each with the one below it if it is an overlay's.
    known: Vec<(u64, Option<u64>)>,
    /// The device that is being looked up.
    asked: Option<u64>,
    /// Devices whose mount was not found, with the number of searches.
    missed: Vec<(u64, u32)>,
}

/// Knowledge of a device without waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeviceBelow {
    /// Device that its data is written to; `None` if it is no overlay's.
    Known(Option<u64>),
    /// An overlay that nobody has looked up yet. If there is a path, a thread that may wait is to open it.
    Unknown(Option<String>),
}

impl OverlayDevices {
    /// The device that the data of `device` is written to; `None` if it is no overlay's, or not known yet.
    pub(crate) fn below(&self, device: u64) -> Option<u64> {
        let known = self.known.iter().find(|(known, _)| *known == device);
        known.and_then(|(_, below)| *below)
    }

    /// The device below the device of a file that a process has opened by this mount. One path is opened at a time: it
    /// may lead to a dead server.
    pub(crate) fn find(&mut self, device: u64, mount: u64, process: u32) -> DeviceBelow {
        let known = self.known.iter().find(|(known, _)| *known == device);
        if let Some((_, below)) = known {
            return DeviceBelow::Known(*below);
        }
        if self.known.len() >= MAX_DEVICES {
            return DeviceBelow::Known(None);
        }
        let path = match upper_directory(mount, process) {
            Some(Some(path)) => path,
            Some(None) => {
                self.known.push((device, None));
                return DeviceBelow::Known(None);
            }
            // Its process has ended, and the mount is another namespace's.
            None => return self.note_miss(device),
        };
        let is_first = self.asked.is_none();
        self.asked = self.asked.or(Some(device));
        DeviceBelow::Unknown(is_first.then_some(path))
    }

    /// Notes that the mount of a device was not found. After [`MAX_MISSES`] times it counts as no overlay's.
    fn note_miss(&mut self, device: u64) -> DeviceBelow {
        let of_device = self.missed.iter().position(|(missed, _)| *missed == device);
        let index = of_device.unwrap_or_else(|| {
            self.missed.truncate(MAX_DEVICES - 1);
            self.missed.insert(0, (device, 0));
            0
        });
        if let Some((_, times)) = self.missed.get_mut(index) {
            *times += 1;
            if *times < MAX_MISSES {
                return DeviceBelow::Unknown(None);
            }
            self.known.push((device, None));
        }
        DeviceBelow::Known(None)
    }

    /// Notes the device below the one that was asked for.
    pub(crate) fn learn(&mut self, below: Option<u64>) {
        if let Some(device) = self.asked.take() {
            self.known.push((device, below));
        }
    }
}

/// The device of an upper directory. May wait.
pub(crate) fn device_of(path: &str) -> Option<u64> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = open(path, flags, Mode::empty()).ok()?;
    Some(fstat(directory.as_fd()).ok()?.st_dev)
}

/// The path of the upper directory of this mount, if it is an overlay's; `None` if the mount is not found.
#[expect(clippy::option_option, reason = "not found is not the same as none")]
fn upper_directory(mount: u64, process: u32) -> Option<Option<String>> {
    let find =
        |process| mounts_of(process).ok()?.into_iter().find(|known: &MountEntry| known.id == mount);
    // A program may have ended. The mounts of its namespace are mostly this process' own, and no two share a number.
    let mount = find(process).or_else(|| find(std::process::id()))?;
    Some(upper_path(&mount).map(str::to_owned))
}

/// The upper directory of an overlay that makes durable what it is asked to.
fn upper_path(mount: &MountEntry) -> Option<&str> {
    let mut options = mount.super_options.split(',');
    let is_durable =
        options.clone().all(|option| !["volatile", "fsync=volatile"].contains(&option));
    let path = options.find_map(|option| option.strip_prefix("upperdir="))?;
    (mount.kind == "overlay" && is_durable && path.starts_with('/')).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use luc_host::mountinfo::parse;

    #[test]
    fn a_mount_is_found_when_its_process_has_ended() {
        let ended = u32::MAX;
        let own = mounts_of(std::process::id()).unwrap();
        assert!(own.iter().all(|mount| upper_directory(mount.id, ended).is_some()));
        assert_eq!(upper_directory(u64::MAX, ended), None);
    }

    #[test]
    fn an_overlay_s_options_tell_its_upper_directory() {
        for (line, expected) in [
            (
                "overlay overlay rw,lowerdir=/l:/m,upperdir=/d/u\\040v,workdir=/d/w,uuid=on",
                Some("/d/u v"),
            ),
            ("overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w,volatile", None),
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
        let mut layers = OverlayDevices::default();
        let mount = mounts_of(std::process::id()).unwrap()[0].id;
        for _ in 0..2 {
            let below = layers.find(7, mount, std::process::id());
            assert_eq!(below, DeviceBelow::Known(None));
        }
        assert_eq!(layers.known, [(7, None)]);
    }

    #[test]
    fn a_mount_that_is_not_found_is_looked_for_again() {
        let mut layers = OverlayDevices::default();
        for _ in 1..MAX_MISSES {
            let below = layers.find(7, u64::MAX, std::process::id());
            assert_eq!(below, DeviceBelow::Unknown(None));
        }
        for _ in 0..2 {
            let below = layers.find(7, u64::MAX, std::process::id());
            assert_eq!(below, DeviceBelow::Known(None));
        }
    }

    #[test]
    fn what_was_asked_for_is_learnt() {
        let mut layers = OverlayDevices { asked: Some(7), ..OverlayDevices::default() };
        assert_eq!(layers.below(7), None);
        layers.learn(Some(3));
        assert_eq!((layers.below(7), layers.asked), (Some(3), None));
        assert_eq!(layers.find(7, 1, 1), DeviceBelow::Known(Some(3)));
        let folder = tempfile::tempdir().unwrap();
        let device = std::fs::metadata(folder.path()).unwrap();
        let device = std::os::linux::fs::MetadataExt::st_dev(&device);
        assert_eq!(device_of(folder.path().to_str().unwrap()), Some(device));
        assert_eq!(device_of("/nowhere"), None);
    }
}
