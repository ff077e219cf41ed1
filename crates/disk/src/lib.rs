//! Emulated block devices.
//!
//! A disk is a FUSE file system that holds one file, a loop device with direct I/O on that file,
//! and a daemon that decides when each read, write and flush is done ([`model`]) and what of it
//! outlives a power cut (a volatile write cache, thrown away by [`cut`]).

mod clock;
mod control;
mod daemon;
mod engine;
mod error;
mod fs;
mod image;
pub mod interrupt;
mod lifecycle;
mod loopdev;
pub mod model;
mod mounts;
mod spec;
mod state;
mod timer;
pub mod units;
mod volatile;

pub use daemon::serve;
pub use error::Error;
pub use lifecycle::{create, cut, list, mount_disk, remove, remove_all, restore, stats};
pub use model::ModelSpec;
pub use mounts::{check_mkfs, mkfs, mkfs_command, mount, mount_command, mount_of, unmount};
pub use spec::{DiskInfo, DiskSpec, DiskState, Mkfs, Mount, Stats};
pub use state::RUN_DIR_VARIABLE;
pub use volatile::{CutReport, SECTOR_BYTES};
