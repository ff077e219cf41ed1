//! Emulated block devices.
//!
//! A disk is a FUSE file system with one file, a loop device on that file, and a daemon. The loop device uses direct
//! I/O. The daemon decides when each read, write and flush is complete ([`model`]). It also has a volatile write
//! cache, whose unflushed contents [`cut`] throws away. Requests fail where [`fail`] says so.

mod block_errno;
mod control_protocol;
mod daemon;
mod disk_holder;
mod disk_image;
mod disk_spec;
mod engine;
mod error;
mod fuse_fs;
mod injected_fault;
mod lifecycle;
mod loopdev;
pub mod model;
mod mounts;
mod state_dir;
mod timer;
mod volatile_cache;

pub use block_errno::{BlockErrno, kernel_release};
pub use daemon::serve;
pub use disk_holder::DiskHolder;
pub use disk_spec::{
    DiskInfo, DiskSpec, DiskStats, EmulatedDiskState, MkfsSpec, MountSpec, READ_AHEAD_BYTES,
};
pub use error::Error;
pub use injected_fault::{ByteRange, FaultKind, FaultSpec, FaultStatus};
pub use lifecycle::{
    clear_fault, create, cut, fail, fault, list, mount_disk, remove, remove_all, remove_when_free,
    restore, stats,
};
pub use model::ModelSpec;
pub use mounts::{check_mkfs, mkfs, mkfs_command, mount, mount_command, mount_of, unmount};
pub use volatile_cache::{CutReport, SECTOR_BYTES};
