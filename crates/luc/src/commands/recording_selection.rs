//! Options of `luc record` and `luc top` that select what is recorded.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use luc_events::Dev;
use luc_gate::inspect::filesystem::{self, FileSystemJournal};
use luc_probe::RecordingFilter;
use luc_units::parse_size_bytes;

use super::threads_named;

/// Selects what is recorded; by default everything.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordingSelection {
    /// Record only this process and its descendants; may be repeated
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,

    /// Record only threads of this name, and threads of processes of this name
    #[arg(long, value_name = "NAME")]
    comm: Option<String>,

    /// Record only threads in this cgroup or below; DIR is a version 2 cgroup's directory
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,

    /// Record only this file system, given by its device or any path in it; may be repeated
    #[arg(long, value_name = "PATH")]
    device: Vec<PathBuf>,
}

/// The bytes of `--buffer`.
pub(crate) fn ring_bytes(buffer: &str) -> anyhow::Result<u32> {
    u32::try_from(parse_size_bytes(buffer)?)
        .ok()
        .filter(|bytes| bytes.is_power_of_two() && *bytes >= 1 << 16)
        .with_context(|| format!("--buffer {buffer}: give a power of two from 64k to 2G"))
}

impl RecordingSelection {
    pub(crate) fn filter(&self) -> anyhow::Result<RecordingFilter> {
        Ok(RecordingFilter {
            processes: self.pid.clone(),
            children: false,
            comm: self.comm.clone(),
            cgroup: self.cgroup.clone(),
            devices: self
                .device
                .iter()
                .map(|path| devices(path))
                .collect::<anyhow::Result<Vec<_>>>()?
                .concat(),
        })
    }

    /// One line if no thread has the selected name.
    pub(crate) fn without_thread(&self) -> Option<String> {
        threads_named::note_if_none(self.comm.as_deref()?)
    }

    /// One line for each selected file system that has no journal to look into.
    pub(crate) fn without_journal(&self) -> Vec<String> {
        let found = self.device.iter().filter_map(|path| {
            let journal = filesystem::of_path(path).ok()?.journal;
            let known = matches!(journal, FileSystemJournal::None | FileSystemJournal::NotExt4(_));
            known.then(|| {
                format!(
                    "{} is on {journal}: its syncs, waits and requests are recorded, but no commits",
                    path.display()
                )
            })
        });
        found.collect()
    }
}

/// The block device that a path names; else the file system that it is in, and the disk below if that has another
/// number.
fn devices(path: &Path) -> anyhow::Result<Vec<Dev>> {
    let found = fs::metadata(path)
        .with_context(|| format!("--device {}: give a device or a path", path.display()))?;
    let of_number = |number: u64| Dev::new(major(number), minor(number));
    if found.file_type().is_block_device() {
        return Ok(vec![of_number(found.rdev())]);
    }
    // The kernel's number of a btrfs is the mount table's, not that which stat has for its files.
    let Ok(mounted) = filesystem::of_path(path) else {
        return Ok(vec![of_number(found.dev())]);
    };
    let mut all = vec![Dev::new(mounted.device.0, mounted.device.1)];
    if mounted.device.0 == 0 {
        all.extend(disk_named(&mounted.name));
    }
    Ok(all)
}

/// The block device of this name, if there is one.
fn disk_named(name: &str) -> Option<Dev> {
    let text = fs::read_to_string(Path::new("/sys/class/block").join(name).join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(Dev::new(major.parse().ok()?, minor.parse().ok()?))
}

/// The parts of a `dev_t` as user space has it (`gnu_dev_major`).
fn major(number: u64) -> u32 {
    (number >> 8 & 0xfff | number >> 32 & 0xffff_f000) as u32
}

fn minor(number: u64) -> u32 {
    (number & 0xff | number >> 12 & 0xffff_ff00) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_taken_apart() {
        assert_eq!((major(0x0801), minor(0x0801)), (8, 1));
        let large = 0x0000_1000_0010_0f05;
        assert_eq!((major(large), minor(large)), (0x100f, 0x105));
    }
}
