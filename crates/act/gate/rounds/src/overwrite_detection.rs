//! `fdatasync` of a file that was only overwritten in place.
//!
//! Such a call changes nothing in the journal: the kernel writes the data and flushes the device. Databases
//! make many of them (SQLite two in each transaction), and in a round they share a flush with the commit
//! of the others (`rounds::flush_only`) instead of delaying it by one of their own.
//!
//! A file may have been overwritten when neither its size nor its blocks have changed since its last
//! synchronization here. If its last block was written to before, it was. But in a file that was allocated
//! ahead (`fallocate`: logs of key-value stores, journald) size and blocks stay while the kernel notes in the
//! journal which blocks have been written to. Such a file fills from its beginning, so one question about
//! the first block that was not yet written to tells what the last write did ([`OverwriteCandidate::needs`]).
//!
//! The memory is small and may be wrong: then a call is made at another moment, never left out.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::call_path_syscalls;
use crate::rounds::DurabilityNeed;

/// Places, and of how many of them each file may take the least recently used one. Two files that drive each
/// other out are never taken for overwritten, and one supervisor remembers those of all its programs.
const REMEMBERED: usize = 1024;
const WAYS: usize = 8;

/// `Seen::unwritten_bytes` of a file that is written to its end.
const FULL: u64 = u64::MAX;

/// A file at its last synchronization.
#[derive(Debug)]
struct Seen {
    file: AtomicU64,
    extent: AtomicU64,
    /// Offset in bytes of its first allocated block without data, as far as is known.
    unwritten_bytes: AtomicU64,
    /// When it was asked for last.
    used_ns: AtomicU64,
}

static SEEN: [[Seen; WAYS]; REMEMBERED / WAYS] = [const {
    [const {
        Seen {
            file: AtomicU64::new(0),
            extent: AtomicU64::new(0),
            unwritten_bytes: AtomicU64::new(0),
            used_ns: AtomicU64::new(0),
        }
    }; WAYS]
}; REMEMBERED / WAYS];

/// The identity of a file, and its extent, by which growth is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    file: u64,
    extent: u64,
    size_bytes: u64,
}

impl FileExtent {
    /// The file of `fd` now; `None` if the kernel does not tell.
    pub fn of(fd: c_int) -> Option<Self> {
        call_path_syscalls::extended_status(fd).as_ref().map(Self::new)
    }

    fn new(stat: &libc::statx) -> Self {
        // The time of birth tells a file from an earlier one with the same inode number.
        let birth = (stat.stx_btime.tv_sec as u64) << 32 | u64::from(stat.stx_btime.tv_nsec);
        let device = libc::makedev(stat.stx_dev_major, stat.stx_dev_minor);
        Self {
            file: mix(mix(device, stat.stx_ino), birth),
            extent: mix(stat.stx_size, stat.stx_blocks),
            size_bytes: stat.stx_size,
        }
    }

    /// The file, open as `fd`, if it may have been only overwritten in place since its last synchronization.
    pub fn candidate(self, fd: c_int) -> Option<OverwriteCandidate> {
        let seen = self.find()?;
        seen.used_ns.store(call_path_syscalls::now_ns(), Relaxed);
        let unchanged = seen.extent.load(Relaxed) == self.extent;
        unchanged.then_some(OverwriteCandidate { fd, seen, size_bytes: self.size_bytes })
    }

    /// Remembers that the file has been synchronized with this extent.
    pub fn remember(self) {
        let seen = self.find().unwrap_or_else(|| self.least_used());
        seen.used_ns.store(call_path_syscalls::now_ns(), Relaxed);
        if seen.file.load(Relaxed) != self.file || seen.extent.load(Relaxed) != self.extent {
            seen.unwritten_bytes.store(0, Relaxed);
            // A reader between the two stores finds a file with another's extent: no match, most likely.
            seen.file.store(self.file, Relaxed);
            seen.extent.store(self.extent, Relaxed);
        }
    }

    /// The places that it may have. The lowest bit is the same for all files.
    fn places(self) -> &'static [Seen; WAYS] {
        let set = (self.file >> 1) as usize % (REMEMBERED / WAYS);
        &SEEN[set]
    }

    fn find(self) -> Option<&'static Seen> {
        let is_this = |seen: &&Seen| seen.file.load(Relaxed) == self.file;
        self.places().iter().find(is_this)
    }

    fn least_used(self) -> &'static Seen {
        let [first, others @ ..] = self.places();
        let used_ns = |seen: &Seen| seen.used_ns.load(Relaxed);
        others.iter().fold(
            first,
            |least, seen| {
                if used_ns(seen) < used_ns(least) { seen } else { least }
            },
        )
    }
}

/// A file whose size and blocks are as they were at its last synchronization.
#[derive(Clone, Copy, Debug)]
pub struct OverwriteCandidate {
    fd: c_int,
    seen: &'static Seen,
    size_bytes: u64,
}

impl OverwriteCandidate {
    /// What it takes to make durable what was written to the file, whose pages have just been written to the
    /// device: a commit if blocks were written to for the first time.
    pub fn needs(self) -> DurabilityNeed {
        let unwritten_bytes = &self.seen.unwritten_bytes;
        let known_bytes = unwritten_bytes.load(Relaxed);
        if known_bytes == FULL {
            return DurabilityNeed::Flush;
        }
        if known_bytes == 0
            && !call_path_syscalls::extent_at(self.fd, self.size_bytes.saturating_sub(1)).unwritten
        {
            unwritten_bytes.store(FULL, Relaxed);
            return DurabilityNeed::Flush;
        }
        let extent = call_path_syscalls::extent_at(self.fd, known_bytes);
        if extent.unwritten {
            return DurabilityNeed::Flush;
        }
        let end_bytes = extent.end_bytes.filter(|&end| end < self.size_bytes);
        unwritten_bytes.store(end_bytes.unwrap_or(FULL), Relaxed);
        DurabilityNeed::Commit
    }
}

/// Mixes two numbers into one (the finalizer of SplitMix64); never 0, which marks an empty place.
fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.rotate_left(32) ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_of_many_drives_another_out() {
        let extent =
            |inode| FileExtent { file: mix(mix(5, inode), inode), extent: 1, size_bytes: 4096 };
        for _ in 0..2 {
            (0..128).for_each(|inode| extent(inode).remember());
        }
        assert!((0..128).all(|inode| extent(inode).candidate(-1).is_some()));
    }
}
