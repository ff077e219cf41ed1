//! Errors, each with the input, the reason and the next step.

use std::io;
use std::path::PathBuf;

use luc_units::{FileOperationError, UnitError};

use crate::DiskHolder;

/// An error of this crate. The message is one line that ends with a remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Unit(#[from] UnitError),
    #[error(
        "model '{name}' is unknown: did you mean '{nearest}'? (known: {known}, or a path ending in .toml)"
    )]
    UnknownModel {
        name: String,
        known: String,
        /// The one with the fewest differences.
        nearest: String,
    },
    #[error("model file '{}': {reason}: correct it, see `luc disk create --help`", path.display())]
    ModelFile { path: PathBuf, reason: String },
    #[error("model '{model}': {reason}")]
    ModelParameter {
        model: &'static str,
        /// Parameter, reason and a valid value.
        reason: String,
    },
    #[error("disk name '{0}' is not allowed: use 1 to 32 letters, digits, '-' or '_'")]
    Name(String),
    #[error("size {0} bytes is not a disk's: choose a multiple of 4096 from 1M to 16T")]
    Size(u64),
    #[error(
        "read-ahead of {0} bytes is none: choose 0 or a multiple of 4096 up to 64M, such as 128K"
    )]
    ReadAhead(u64),
    #[error("disk '{0}' exists already: choose another name or run `luc disk remove {0}`")]
    Taken(String),
    #[error("disk '{0}' does not exist: see `luc disk list`")]
    NoSuchDisk(String),
    #[error("disk '{0}' is being created or removed by another luc: wait for it, or stop it")]
    Locked(String),
    /// A mount of the disk is in use, or its device is.
    #[error("disk '{name}' is in use: {holder}, then remove it again")]
    InUse { name: String, holder: DiskHolder },
    /// A restore while a file system is mounted on the disk.
    #[error("disk '{name}' is still mounted on {}: unmount it, then restore", dir.display())]
    StillMounted { name: String, dir: PathBuf },
    /// The disk is in the wrong state for the request.
    #[error("disk '{name}' {reason}")]
    State { name: String, reason: &'static str },
    /// The daemon that is the disk does not answer.
    #[error("disk '{name}': its daemon does not answer ({reason}): run `luc disk remove {name}`")]
    Dead { name: String, reason: String },
    #[error("disk '{name}': its daemon did not start: {reason}")]
    Daemon { name: String, reason: String },
    #[error("errno '{given}': {reason}: use one of {known}")]
    Errno { given: String, reason: String, known: String },
    #[error("{option}: {reason}")]
    Fault { option: String, reason: &'static str },
    #[error("emulated disks need root (loop devices and mounts): run it with sudo")]
    NotRoot,
    #[error("/dev/fuse cannot be opened ({0}): load it with `modprobe fuse`")]
    NoFuse(io::Error),
    #[error(
        "no loop device can be had ({0}): load them with `modprobe loop`, or detach one with `losetup -d`"
    )]
    NoLoop(io::Error),
    #[error("'{0}' is not installed: install the package that has it, or choose another --mkfs")]
    MissingTool(String),
    /// A file system name that cannot be one.
    #[error("file system '{0}' is no name of one: write it like ext4 or xfs")]
    FileSystemName(String),
    #[error("mount directory '{}' {reason}", dir.display())]
    MountDir { dir: PathBuf, reason: &'static str },
    #[error("{command} failed: {reason}")]
    Command {
        command: String,
        /// Last line that it printed.
        reason: String,
    },
    /// A SIGINT or SIGTERM came. Everything was removed.
    #[error("interrupted: nothing was left behind, run it again")]
    Interrupted,
    #[error("cannot {action} '{}': {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

impl From<FileOperationError> for Error {
    fn from(FileOperationError { what, path, source }: FileOperationError) -> Self {
        Self::Io { action: what, path, source }
    }
}
