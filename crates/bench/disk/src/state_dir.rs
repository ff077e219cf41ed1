//! A disk's state: `/run/luc/disk/NAME/`, which only root can enter.
//!
//! | file | content |
//! |---|---|
//! | `disk.json` | the [`DiskSpec`] |
//! | `lock` | flock(2)ed by whoever creates or removes the disk |
//! | `fuse/` | where the file system with the image is mounted |
//! | `control.sock` | the daemon's control socket |
//! | `daemon.log` | what the daemon says, normally nothing |
//! | `complete` | exists once the creation is complete |

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use luc_units::OnPath as _;
use rustix::fs::{FlockOperation, flock};

use crate::control_protocol::SOCKET_NAME;
use crate::fuse_fs::FILE_NAME;
use crate::{DiskSpec, Error};

/// The state directory of one disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateDir(PathBuf);

impl StateDir {
    /// Returns the directory of the disk `name`, which need not exist.
    ///
    /// # Errors
    /// [`Error::Name`].
    pub(crate) fn of(name: &str) -> Result<Self, Error> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 32 || name.starts_with('-') || !name.chars().all(plain) {
            return Err(Error::Name(name.to_owned()));
        }
        Ok(Self(root().join(name)))
    }

    /// Returns the directory at a path that [`StateDir::path`] gave.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Lists the sorted names of all disks that have left anything.
    pub(crate) fn names() -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(root()) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| Self::of(name).is_ok())
            .collect();
        names.sort();
        names
    }

    /// Creates the directory and its files, and locks it.
    ///
    /// # Errors
    /// [`Error::Taken`] when it exists, [`Error::Io`].
    pub(crate) fn create(&self, spec: &DiskSpec) -> Result<StateLock, Error> {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        let root = root();
        builder.recursive(true).create(&root).map_err(Error::io("create", &root))?;
        builder.recursive(false).create(&self.0).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Error::Taken(spec.name.clone()),
            _ => Error::io("create", &self.0)(error),
        })?;
        let lock = self.lock(&spec.name)?;
        let fuse = self.fuse();
        builder.create(&fuse).map_err(Error::io("create", &fuse))?;
        let path = self.spec_file();
        let json = serde_json::to_vec(spec).map_err(Error::io("write", &path))?;
        std::fs::write(&path, json).map_err(Error::io("write", &path))?;
        Ok(lock)
    }

    /// Locks the disk against being created or removed by another process at the same time.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::NoSuchDisk`], [`Error::Io`].
    pub(crate) fn lock(&self, name: &str) -> Result<StateLock, Error> {
        if !self.0.is_dir() {
            return Err(Error::NoSuchDisk(name.to_owned()));
        }
        let path = self.0.join("lock");
        let file = File::create(&path).map_err(Error::io("create", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(StateLock { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Locked(name.to_owned())),
            Err(errno) => Err(Error::io("lock", &path)(errno)),
        }
    }

    /// Returns the request that the disk was made by; `None` while it is not written yet.
    pub(crate) fn spec(&self) -> Option<DiskSpec> {
        serde_json::from_slice(&std::fs::read(self.spec_file()).ok()?).ok()
    }

    /// Notes that the creation is complete.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn set_complete(&self) -> Result<(), Error> {
        let path = self.complete_file();
        File::create(&path).map(drop).map_err(Error::io("create", &path))
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.complete_file().exists()
    }

    /// Removes the directory with the files listed above. Never reaches into a mounted `fuse`.
    ///
    /// # Errors
    /// [`Error::Io`] when something foreign or mounted is in it.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        let _ = std::fs::remove_dir(self.fuse());
        let files = [self.0.join(SOCKET_NAME), self.log_file(), self.spec_file()];
        for file in files.iter().chain([&self.complete_file(), &self.0.join("lock")]) {
            // If it stays, removing the directory fails, with a better message.
            let _ = std::fs::remove_file(file);
        }
        match std::fs::remove_dir(&self.0) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove", &self.0)(error))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the mount point of FUSE.
    pub(crate) fn fuse(&self) -> PathBuf {
        self.0.join("fuse")
    }

    /// Returns the path of the image, which the loop device is backed by.
    pub(crate) fn image(&self) -> PathBuf {
        self.fuse().join(FILE_NAME)
    }

    pub(crate) fn log_file(&self) -> PathBuf {
        self.0.join("daemon.log")
    }

    fn spec_file(&self) -> PathBuf {
        self.0.join("disk.json")
    }

    fn complete_file(&self) -> PathBuf {
        self.0.join("complete")
    }
}

/// Held while a disk is created or removed; let go when dropped, also by being killed.
#[derive(Debug)]
pub(crate) struct StateLock {
    _file: File,
}

/// Returns the directory of all disks, without links so that kernel paths compare equal.
fn root() -> PathBuf {
    let run = luc_host::run_dir::path();
    let run = run.canonicalize().or_else(|_| std::path::absolute(&run)).unwrap_or(run);
    run.join("disk")
}
