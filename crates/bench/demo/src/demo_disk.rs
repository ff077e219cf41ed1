//! The demo's emulated disk and its mount point: made in one order, taken away in the other.
//!
//! Both are named by the demo's process, so that whoever comes later knows whether it still runs. The mount point is
//! in `/run/luc/demo`, which only root can enter; it is made first and removed last, so that what a killed demo has
//! left is found by it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use luc_disk::{DiskSpec, Error, MkfsSpec, ModelSpec, MountSpec};
use luc_host::run_dir;
use luc_units::OnPath as _;

use crate::DemoError;

/// The disk's size; only pages that are written take memory.
const SIZE_BYTES: u64 = 4 << 30;
/// The journal of a large disk: with a small one, the benchmark would wait for checkpoints.
const MKFS_OPTIONS: &str = "-J size=1024";

/// A disk and its mount point.
#[derive(Debug, Clone)]
pub struct DemoDisk {
    disk: String,
    pub(crate) directory: PathBuf,
}

impl DemoDisk {
    /// Returns the disk of the demo with this process ID.
    #[must_use]
    pub fn of_process(process: u32) -> Self {
        Self { disk: format!("demo-{process}"), directory: folder().join(process.to_string()) }
    }

    pub(crate) fn make(&self, luc: &Path) -> Result<ModelSpec, DemoError> {
        let model = ModelSpec::Fixed { read_ns: 100_000, write_ns: 20_000, flush_ns: 6_000_000 };
        let directory = &self.directory;
        DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(directory)
            .map_err(DemoError::io("make", directory))?;
        let spec = DiskSpec {
            name: self.disk.clone(),
            model: model.clone(),
            size_bytes: SIZE_BYTES,
            huge_pages: false,
            read_ahead_bytes: luc_disk::READ_AHEAD_BYTES,
            mkfs: Some(MkfsSpec { fs: "ext4".to_owned(), options: MKFS_OPTIONS.to_owned() }),
            mount: Some(MountSpec { dir: directory.clone(), options: String::new() }),
        };
        match luc_disk::create(&spec, luc) {
            Err(Error::Interrupted) => Err(DemoError::Interrupted),
            created => Ok(created.map(|_| model)?),
        }
    }

    /// Removes disk and mount point, and waits up to `timeout` until programs release it. Missing parts count as
    /// removed.
    ///
    /// # Errors
    ///
    /// The disk's, [`DemoError::Io`].
    pub fn clear(&self, timeout: Duration) -> Result<(), DemoError> {
        match luc_disk::remove_when_free(&self.disk, timeout, &mut || {}) {
            Ok(()) | Err(Error::NoSuchDisk(_)) => {}
            Err(error) => return Err(error.into()),
        }
        remove_folder(&self.directory)?;
        // The folder of all demos goes with the last one.
        let _ = fs::remove_dir(folder());
        Ok(())
    }
}

/// Number of demo disks that were removed, and the failures.
#[derive(Debug, Default)]
pub struct RemovedDemoDisks {
    /// Disks of demos that were killed together with their guardians, now removed.
    pub removed: usize,
    /// Errors, one per line.
    pub failed: Vec<String>,
}

/// Removes leftovers of killed demos, and waits up to `timeout` for each. Without leftovers it costs one system call.
#[must_use]
pub fn restore_left(timeout: Duration) -> RemovedDemoDisks {
    let mut restored = RemovedDemoDisks::default();
    for process in list_left(&folder()) {
        match DemoDisk::of_process(process).clear(timeout) {
            Ok(()) => restored.removed += 1,
            Err(error) => restored.failed.push(error.to_string()),
        }
    }
    restored
}

/// Returns the processes of demos in `folder` that have ended.
fn list_left(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process: &u32| !Path::new("/proc").join(process.to_string()).exists())
        .collect()
}

fn remove_folder(folder: &Path) -> Result<(), DemoError> {
    match fs::remove_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(DemoError::io("remove", folder)(error))
        }
        _ => Ok(()),
    }
}

fn folder() -> PathBuf {
    run_dir::path().join("demo")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_demos_that_have_ended_are_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let living = std::process::id().to_string();
        // The number of no process, and no number.
        for name in ["4294967295", "other", &living] {
            fs::create_dir(folder.path().join(name)).expect("made");
        }
        assert_eq!(list_left(folder.path()), [u32::MAX]);
        assert!(list_left(&folder.path().join("missing")).is_empty());
    }

    #[test]
    fn a_folder_with_something_in_it_stays_and_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("file"), "precious").expect("written");
        let error = remove_folder(folder.path()).expect_err("refused");
        let name = folder.path().to_str().expect("plain");
        assert!(error.to_string().contains(name), "{error}");
        assert!(folder.path().join("file").exists());
        remove_folder(&folder.path().join("missing")).expect("nothing to do");
    }
}
