//! The kernel's limit of dirty data on a disk, above which writers are slowed down.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::super::error::EvaluateError;

/// A disk's limit, which is removed with this value. It belongs to the block device and would outlive the disk.
#[derive(Debug)]
pub(super) struct Limit {
    directory: PathBuf,
}

impl Limit {
    /// Sets the limit of the disk mounted at `mount`, or removes one that a killed evaluation may have left.
    pub(super) fn set(mount: &Path, bytes: Option<u64>) -> Result<Self, EvaluateError> {
        let about = fs::metadata(mount).map_err(EvaluateError::file("look at", mount))?;
        let (major, minor) = (rustix::fs::major(about.dev()), rustix::fs::minor(about.dev()));
        let limit = Self { directory: PathBuf::from(format!("/sys/class/bdi/{major}:{minor}")) };
        match bytes {
            Some(bytes) => {
                limit.write("max_bytes", bytes)?;
                limit.write("strict_limit", 1)?;
            }
            None => limit.take_back()?,
        }
        Ok(limit)
    }

    /// Removes the limit. Linux has a strict limit since 6.2; before, there is nothing to remove.
    fn take_back(&self) -> Result<(), EvaluateError> {
        let strict = fs::read_to_string(self.directory.join("strict_limit"));
        if strict.is_ok_and(|strict| strict.trim() == "1") {
            self.write("strict_limit", 0)?;
            self.write("max_ratio", 100)?;
        }
        Ok(())
    }

    fn write(&self, name: &str, value: u64) -> Result<(), EvaluateError> {
        let path = self.directory.join(name);
        fs::write(&path, value.to_string()).map_err(EvaluateError::file("set", &path))
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        if let Err(error) = self.take_back() {
            eprintln!("luc-evaluate: {error}");
        }
    }
}
