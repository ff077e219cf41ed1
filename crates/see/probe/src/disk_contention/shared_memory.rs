//! The memory shared with the programs: the mirror of `bpf/contention.h`, and its mapping.
//!
//! The test `layouts_agree` compares both with a C compiler.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Disks that can be watched.
pub const MAX_DISKS: usize = 16;
/// Tasks that can be watched at a time.
pub const MAX_TASKS: usize = 1024;
/// Disks and devices above them.
pub(super) const MAX_DEVS: usize = 32;
/// File locks whose refusals are remembered.
pub(super) const LOCKS: usize = 64;

/// Values of [`Sent::kind`], and flags in [`TaskControl::notify`].
pub(super) const NOTIFY_SUBMIT: u32 = 1;
pub(super) const NOTIFY_DONE: u32 = 2;
pub(super) const NOTIFY_LOCK: u32 = 4;

/// Number of counters of events that could not be counted.
pub(super) const UNKEPT_PLACES: usize = 4;

/// Defines the mirror of a C structure, and what the test compares.
macro_rules! mirror {
    ($(
        $(#[$doc:meta])*
        struct $name:ident = $c_name:literal {
            $($field:ident: $type:ty,)+
        }
    )+) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            #[repr(C)]
            pub(super) struct $name {
                $(pub(super) $field: $type,)+
            }
        )+

        #[cfg(test)]
        fn layouts() -> Vec<crate::layout_check::StructLayout> {
            crate::layout_check::layouts! {
                $($name = $c_name { $($field: $type,)+ })+
            }
        }
    };
}

mirror! {
    /// A disk, or a device above it.
    struct WatchedDev = "watched_dev" {
        dev: AtomicU32,
        disk: AtomicU32,
    }

    /// Settings of a task's place by user space.
    struct TaskControl = "task_control" {
        generation: AtomicU32,
        notify: AtomicU32,
    }

    /// A task's use of a disk.
    struct TaskMemory = "task_sums" {
        bytes_read: AtomicU64,
        bytes_written: AtomicU64,
        requests: AtomicU64,
        sequential: AtomicU64,
        queue_ns: AtomicU64,
        device_ns: AtomicU64,
        last_submit_ns: AtomicU64,
        last_complete_ns: AtomicU64,
        outstanding: AtomicU32,
        sequential_reads: AtomicU32,
        continued: AtomicU64,
        next_sector: AtomicU64,
        sequential_bytes: AtomicU64,
        sequential_ns: AtomicU64,
        writes: AtomicU64,
        write_ns: AtomicU64,
        active_ns: AtomicU64,
        sequential_apart_ns: AtomicU64,
        reserved: [AtomicU64; 7],
    }

    /// Everybody's use of a disk.
    struct DiskMemory = "disk_sums" {
        busy_ns: AtomicU64,
        bytes: AtomicU64,
        requests: AtomicU64,
        last_complete_ns: AtomicU64,
        next_sector: AtomicU64,
        unowned_bytes: AtomicU64,
        unowned_device_ns: AtomicU64,
        in_flight: AtomicU32,
        reserved: AtomicU32,
    }

    /// A file lock that a cgroup was refused.
    struct LockMemory = "refused_lock" {
        cgroup: AtomicU64,
        inode: AtomicU64,
        first_byte: AtomicU64,
        last_byte: AtomicU64,
        last_ns: AtomicU64,
        dev: AtomicU32,
        is_flock: AtomicU32,
        process: AtomicU32,
        refusals: AtomicU32,
        takings: AtomicU32,
        takings_by_others: AtomicU32,
    }

    struct Shared = "contention" {
        generation: AtomicU32,
        tasks_watched: AtomicU32,
        threads_watched: AtomicU32,
        dev_count: AtomicU32,
        devs: [WatchedDev; MAX_DEVS],
        tasks: [TaskControl; MAX_TASKS],
        unkept: [AtomicU64; UNKEPT_PLACES],
        lock_waits: AtomicU64,
        lock_refusals: AtomicU64,
        notify_lock: AtomicU32,
        lock_refused: AtomicU32,
        reserved: [AtomicU32; 14],
        refused: [LockMemory; LOCKS],
        disks: [DiskMemory; MAX_DISKS],
        sums: [[TaskMemory; MAX_TASKS]; MAX_DISKS],
    }

    /// Record of the ring buffer.
    struct Sent = "notification" {
        at_ns: u64,
        task: u32,
        generation: u32,
        disk: u32,
        kind: u32,
    }
}

impl Sent {
    /// Reads a notification; `None` if there are too few bytes.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < size_of::<Self>() {
            return None;
        }
        // SAFETY: enough bytes are there, any bytes are valid integers, and the read does not need alignment.
        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

/// [`Shared`], in this process.
#[derive(Debug)]
pub(super) struct SharedMapping(NonNull<Shared>);

// SAFETY: the mapping is this value's own, and all in it is atomic.
unsafe impl Send for SharedMapping {}
// SAFETY: likewise.
unsafe impl Sync for SharedMapping {}

impl SharedMapping {
    /// Maps a BPF map of one element that is a `struct contention`.
    pub(super) fn new(map: &impl AsFd) -> io::Result<Self> {
        // SAFETY: a new mapping, at an address of the kernel's choice; the map's only element is this large, or the
        // call fails.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size_of::<Shared>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_fd().as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(address.cast())
            .map(Self)
            .ok_or_else(|| io::Error::other("mapped at address 0"))
    }
}

impl std::ops::Deref for SharedMapping {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        // SAFETY: mapped until this value is dropped; all members are atomic integers, for which any bytes are valid.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nothing refers to it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Shared>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout_check;

    #[test]
    fn layouts_agree() {
        let numbers = [
            ("LUC_DISKS", MAX_DISKS),
            ("LUC_TASKS", MAX_TASKS),
            ("LUC_DEVS", MAX_DEVS),
            ("LUC_LOCKS", LOCKS),
            ("UNKEPT_PLACES", UNKEPT_PLACES),
            ("NOTIFY_SUBMIT", NOTIFY_SUBMIT as usize),
            ("NOTIFY_DONE", NOTIFY_DONE as usize),
            ("NOTIFY_LOCK", NOTIFY_LOCK as usize),
        ];
        layout_check::agree("contention.h", &layouts(), &numbers);
    }

    #[test]
    fn sums_are_on_cache_lines_of_their_own() {
        assert_eq!(std::mem::offset_of!(Shared, disks) % 64, 0);
        assert_eq!(std::mem::offset_of!(Shared, sums) % 64, 0);
        assert_eq!(size_of::<TaskMemory>() % 64, 0);
        assert_eq!(size_of::<DiskMemory>() % 64, 0);
    }
}
