//! Description of a block device, from sysfs.

use std::fmt;
use std::path::{Path, PathBuf};

use luc_host::sysfs;
use serde::Serialize;

use super::super::error::BorrowError;
use super::BorrowableDevice;

/// A block device as sysfs describes it. `None` stands for attributes that are not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceDescription {
    pub path: PathBuf,
    /// Vendor and model, or the file or devices that it is made of.
    pub model: Option<String>,
    pub size_bytes: u64,
    /// Name of the disk if this is a partition; the fields below describe the disk.
    pub partition_of: Option<String>,
    /// Whether the kernel takes it for a rotating disk. Virtual disks report either.
    pub rotational: Option<bool>,
    /// `write back` if flushes take effect, or `write through`.
    pub write_cache: Option<String>,
    pub scheduler: Option<String>,
}

impl DeviceDescription {
    /// Describes the device at `path` without opening it; `sysfs` is the root of sysfs.
    ///
    /// # Errors
    /// [`BorrowError::Device`]: it is no block device.
    pub fn of(path: &Path, sysfs: &Path) -> Result<Self, BorrowError> {
        Ok(Self::read(&BorrowableDevice::open(path, sysfs)?))
    }

    fn read(block: &BorrowableDevice) -> Self {
        let disk = block.disk();
        let queue = |name: &str| sysfs::read(&disk.join("queue").join(name)).ok();
        let name = disk.file_name().unwrap_or_default().to_string_lossy();
        Self {
            path: block.path.clone(),
            model: model(&disk),
            size_bytes: block.size_bytes(),
            partition_of: (disk != block.about).then(|| name.into_owned()),
            rotational: queue("rotational").map(|word| word == "1"),
            write_cache: queue("write_cache"),
            scheduler: block.schedulers().map(|(now, _)| now),
        }
    }
}

/// Returns vendor and model of SCSI disks, the model of ATA and NVMe disks, or the name of cards. For a loop,
/// device-mapper or RAID device it returns the kind with its file, name or level.
fn model(disk: &Path) -> Option<String> {
    let text = |name: &str| {
        let text = sysfs::read(&disk.join(name)).ok()?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // virtio has a PCI number as its vendor, which tells people nothing.
        (!text.is_empty() && !text.starts_with("0x")).then_some(text)
    };
    let made = |what: &str, name: &str| text(name).map(|of| format!("{what} {of}"));
    match (text("device/vendor"), text("device/model")) {
        (Some(vendor), Some(model)) if vendor != "ATA" => Some(format!("{vendor} {model}")),
        (_, Some(model)) => Some(model),
        _ => text("device/name")
            .or_else(|| made("loop device on", "loop/backing_file"))
            .or_else(|| made("device-mapper", "dm/name"))
            .or_else(|| made("RAID", "md/level")),
    }
}

impl fmt::Display for DeviceDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let model = self.model.as_deref().unwrap_or("no model name");
        write!(f, "{}: {model}", self.path.display())?;
        write!(f, ", {}", shown_size(self.size_bytes))?;
        if let Some(disk) = &self.partition_of {
            write!(f, " as a partition of {disk}")?;
        }
        match self.rotational {
            Some(true) => write!(f, ", rotational")?,
            Some(false) => write!(f, ", not rotational")?,
            None => {}
        }
        if let Some(cache) = &self.write_cache {
            write!(f, ", {cache} cache")?;
        }
        if let Some(scheduler) = &self.scheduler {
            write!(f, ", scheduler {scheduler}")?;
        }
        Ok(())
    }
}

/// Formats a device's size for people, rounded.
#[must_use]
pub fn shown_size(bytes: u64) -> String {
    for (unit, scale) in [("TiB", 1_u64 << 40), ("GiB", 1 << 30)] {
        if bytes >= scale {
            return format!("{:.1} {unit}", bytes as f64 / scale as f64);
        }
    }
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Makes a sysfs folder of a disk with these files.
    fn disk(files: &[(&str, &str)]) -> (tempfile::TempDir, BorrowableDevice) {
        let folder = tempfile::tempdir().expect("a folder");
        let about = folder.path().join("sdb");
        for (name, text) in files {
            let file = about.join(name);
            fs::create_dir_all(file.parent().expect("a parent")).expect("made");
            fs::write(file, text).expect("written");
        }
        let block = BorrowableDevice { path: "/dev/sdb".into(), major: 8, minor: 16, about };
        (folder, block)
    }

    #[test]
    fn a_disk_in_words() {
        let (_folder, mut block) = disk(&[
            ("device/vendor", "ATA     \n"),
            ("device/model", "ST250DM000-1BD14\n"),
            ("size", "488397168\n"),
            ("queue/rotational", "1\n"),
            ("queue/write_cache", "write back\n"),
            ("queue/scheduler", "none [mq-deadline]\n"),
            ("sdb2/partition", "2\n"),
            ("sdb2/size", "204800\n"),
        ]);
        assert_eq!(
            DeviceDescription::read(&block).to_string(),
            "/dev/sdb: ST250DM000-1BD14, 232.9 GiB, rotational, write back cache, scheduler mq-deadline"
        );
        block.about.push("sdb2");
        let partition = DeviceDescription::read(&block);
        assert_eq!(partition.size_bytes, 100 << 20);
        assert!(
            partition
                .to_string()
                .contains("ST250DM000-1BD14, 100 MiB as a partition of sdb, rotational"),
            "{partition}"
        );
    }

    #[test]
    fn models_where_they_are() {
        for (files, wanted) in [
            (
                &[("device/vendor", "Samsung"), ("device/model", "Portable  SSD T5 ")][..],
                "Samsung Portable SSD T5",
            ),
            (&[("device/model", "WDC SN730")], "WDC SN730"),
            (&[("device/name", "SD32G")], "SD32G"),
            (&[("device/vendor", "0x1af4"), ("size", "8")], "no model name"),
            (&[("loop/backing_file", "/srv/image")], "loop device on /srv/image"),
            (&[("dm/name", "vg-home")], "device-mapper vg-home"),
            (&[("md/level", "raid1")], "RAID raid1"),
        ] {
            let (_folder, block) = disk(files);
            let said = DeviceDescription::read(&block).to_string();
            assert!(said.contains(&format!(": {wanted},")), "{said}");
        }
    }
}
