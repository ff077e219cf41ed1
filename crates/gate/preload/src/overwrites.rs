//! `fdatasync` of a file that was only overwritten in place.
//!
//! Such a call changes nothing in the journal: the kernel writes the data and flushes the device. Databases
//! make many of them (SQLite two in each transaction), and in a round they share a flush with the commit
//! of the others (`rounds::ride` in the gate) instead of delaying it by one of their own.
//!
//! A file counts as overwritten when neither its size nor its blocks have changed since its last
//! synchronization here. The memory is small and may be wrong: then a call is made at another moment,
//! never left out.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const REMEMBERED: usize = 256;

/// A file at its last synchronization.
struct Seen {
    file: AtomicU64,
    extent: AtomicU64,
}

static SEEN: [Seen; REMEMBERED] = [const {
    Seen {
        file: AtomicU64::new(0),
        extent: AtomicU64::new(0),
    }
}; REMEMBERED];

/// What identifies a file, and what tells whether it has grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    file: u64,
    extent: u64,
}

impl Extent {
    pub(crate) fn of(stat: &libc::statx) -> Self {
        // The time of birth tells a file from an earlier one with the same inode number.
        let birth = (stat.stx_btime.tv_sec as u64) << 32 | u64::from(stat.stx_btime.tv_nsec);
        let device = libc::makedev(stat.stx_dev_major, stat.stx_dev_minor);
        Self {
            file: mix(mix(device, stat.stx_ino), birth),
            extent: mix(stat.stx_size, stat.stx_blocks),
        }
    }

    /// Whether the file was synchronized with this extent before.
    pub(crate) fn is_unchanged(self) -> bool {
        let seen = self.place();
        seen.file.load(Relaxed) == self.file && seen.extent.load(Relaxed) == self.extent
    }

    /// Remembers that the file has been synchronized with this extent.
    pub(crate) fn remember(self) {
        let seen = self.place();
        // A reader between the two stores finds a file with another's extent: no match, most likely.
        seen.file.store(self.file, Relaxed);
        seen.extent.store(self.extent, Relaxed);
    }

    fn place(self) -> &'static Seen {
        &SEEN[self.file as usize % REMEMBERED]
    }
}

/// Mixes two numbers into one (the finalizer of SplitMix64); never 0, which marks an empty place.
fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.rotate_left(32) ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) | 1
}
