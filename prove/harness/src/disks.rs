//! Emulated disks that are removed when their values are dropped.

use std::fs;
use std::path::PathBuf;

use rustix::mount::{MountFlags, mount_remount};

use crate::error::EvaluateError;
use crate::harness::{Harness, missing};

/// An emulated disk and its file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpec {
    /// Options of `luc disk create` for the model.
    pub model: &'static [&'static str],
    pub fs: &'static str,
    pub mkfs: &'static str,
}

/// Disk of most parts: a flush takes 6 ms, a request 20 µs.
pub const FLUSH_6MS: &[&str] =
    &["--model", "fixed", "--flush", "6ms", "--write", "20us", "--read", "20us"];

/// ext4 with the journal that mke2fs gives a disk of 128 GiB or more.
pub const EXT4: DiskSpec = DiskSpec { model: FLUSH_6MS, fs: "ext4", mkfs: "-i 4096 -J size=1024" };

impl DiskSpec {
    /// Returns the words of `luc disk create`.
    pub fn words(&self) -> Vec<String> {
        let mut words: Vec<&str> = self.model.to_vec();
        words.extend(["--size", "4G", "--mkfs", self.fs]);
        if !self.mkfs.is_empty() {
            words.extend(["--mkfs-options", self.mkfs]);
        }
        words.into_iter().map(str::to_owned).collect()
    }

    /// Returns these words as a text.
    pub fn text(&self) -> String {
        let words = self.words().into_iter();
        let quoted = words.map(|word| if word.contains(' ') { format!("'{word}'") } else { word });
        quoted.collect::<Vec<_>>().join(" ")
    }
}

/// A disk that is removed when this value is dropped.
#[derive(Debug)]
pub struct Disk<'a> {
    harness: &'a Harness,
    name: String,
    device: String,
    /// Directory on which it is mounted.
    pub mount: PathBuf,
}

/// Counts of a disk and its journal so far.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    pub flushes: u64,
    /// Commits; `None` without a jbd2 journal.
    pub commits: Option<u64>,
}

impl<'a> Disk<'a> {
    pub fn create(harness: &'a Harness, spec: &DiskSpec) -> Result<Self, EvaluateError> {
        Self::create_with(harness, spec.words())
    }

    /// Makes and mounts a disk by these words of `luc disk create`.
    pub fn create_with(harness: &'a Harness, spec: Vec<String>) -> Result<Self, EvaluateError> {
        let number = harness.next_disk();
        let name = format!("evaluate-{}-{number}", std::process::id());
        let mount = harness.path(&format!("mnt-{number}"));
        fs::create_dir(&mount).map_err(EvaluateError::file("make", &mount))?;
        let mut words: Vec<String> = ["disk", "create", &name].map(str::to_owned).into();
        words.extend(spec);
        words.extend(["--mount".to_owned(), mount.display().to_string()]);
        words.push("--json".to_owned());
        // Made before the disk: a creation that is interrupted half way is cleared too.
        let mut disk = Self { harness, name, mount, device: String::new() };
        let info = harness.json(&words)?;
        disk.device = info["device"]
            .as_str()
            .and_then(|path| path.strip_prefix("/dev/"))
            .ok_or_else(|| missing("the disk's device"))?
            .to_owned();
        Ok(disk)
    }

    /// Returns its device as `luc run` names it, `loop3`.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Writes back data that earlier runs left, and empties the journal. So the next run does not pay for it.
    pub fn settle(&self) -> Result<(), EvaluateError> {
        // A journal is checkpointed and emptied when its file system becomes read-only.
        for flags in [MountFlags::RDONLY, MountFlags::empty()] {
            mount_remount(&self.mount, flags, c"")
                .map_err(|error| EvaluateError::file("remount", &self.mount)(error.into()))?;
        }
        Ok(())
    }

    pub fn counts(&self) -> Result<Counts, EvaluateError> {
        let stats = self.harness.json(&["disk", "stats", self.name.as_str(), "--json"])?;
        let info = fs::read_to_string(format!("/proc/fs/jbd2/{}-8/info", self.device));
        Ok(Counts {
            flushes: stats["flushes"].as_u64().ok_or_else(|| missing("flushes"))?,
            commits: info.ok().as_deref().and_then(commits),
        })
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let mut command = self.harness.luc(&["disk", "remove", &self.name]);
        match self.harness.finish(&mut command, &[0], false) {
            Ok(_) => {}
            // A creation that failed has cleared up itself.
            Err(_) if self.device.is_empty() => {}
            Err(error) => eprintln!("luc-evaluate: {error}; try `luc disk remove --all`"),
        }
    }
}

/// Parses the number of commits: `2056 transactions (2055 requested), ...`.
fn commits(info: &str) -> Option<u64> {
    info.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_of_a_journal() {
        assert_eq!(commits("2056 transactions (2055 requested)"), Some(2056));
        assert_eq!(commits(""), None);
    }

    #[test]
    fn words_of_a_disk() {
        assert!(
            EXT4.words().join(" ").ends_with("--mkfs ext4 --mkfs-options -i 4096 -J size=1024")
        );
    }
}
