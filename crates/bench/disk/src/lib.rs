//! Emulated block devices.
//!
//! A disk is a FUSE file system with one file, a loop device on that file, and a daemon. The loop device uses direct
//! I/O. The daemon decides when each read, write and flush is complete ([`model`]). It also has a volatile write
//! cache, whose unflushed contents [`cut`] throws away. Requests fail where [`fail`] says so.

mod control;
mod daemon;
mod engine;
mod errno;
mod error;
mod fault;
mod fs;
mod holder;
mod image;
mod lifecycle;
mod loopdev;
pub mod model;
mod mounts;
mod spec;
mod state;
mod timer;
mod volatile;

pub use daemon::serve;
pub use errno::{BlockErrno, kernel_release};
pub use error::Error;
pub use fault::{ByteRange, FaultKind, FaultSpec, FaultStatus};
pub use holder::Holder;
pub use lifecycle::{
    clear_fault, create, cut, fail, fault, list, mount_disk, remove, remove_all, remove_when_free,
    restore, stats,
};
pub use model::ModelSpec;
pub use mounts::{check_mkfs, mkfs, mkfs_command, mount, mount_command, mount_of, unmount};
pub use spec::{DiskInfo, DiskSpec, DiskState, Mkfs, Mount, READ_AHEAD_BYTES, Stats};
pub use volatile::{CutReport, SECTOR_BYTES};
