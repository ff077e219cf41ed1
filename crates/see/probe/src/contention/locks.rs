//! What is known of file locks that somebody waits for.

use std::sync::atomic::Ordering::Relaxed;

use luc_events::Dev;

use super::shared::LockMemory;

/// What was heard of file locks, anybody's. Both only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockNews {
    /// Waits that began: who sleeps until a lock is free is shown by `/proc/locks`.
    pub waits: u64,
    /// Refusals, without a wait, of locks that the same cgroup was refused before: see [`RefusedLock`].
    pub refusals: u64,
}

/// A file lock that the processes of a cgroup try to take again and again, and are refused.
///
/// It is read while it may be written: a hint, to be confirmed by `/proc/locks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedLock {
    /// The cgroup's number; 0: not known.
    pub cgroup: u64,
    /// The process that was refused last.
    pub process: u32,
    /// The device of the file system.
    pub dev: Dev,
    pub inode: u64,
    /// The first byte of the lock.
    pub first_byte: u64,
    /// The last one; more than a file has: to its end.
    pub last_byte: u64,
    /// Whether it is a lock of flock, and not of fcntl.
    pub is_flock: bool,
    /// How often it was refused in a row.
    pub refusals: u32,
    /// How often the cgroup took it after all.
    pub takings: u32,
    /// How often another cgroup took it while this one was refused it.
    pub takings_by_others: u32,
    /// When it was refused last, ns of CLOCK_MONOTONIC.
    pub last_ns: u64,
}

impl RefusedLock {
    pub(super) fn read(memory: &LockMemory) -> Self {
        Self {
            cgroup: memory.cgroup.load(Relaxed),
            process: memory.process.load(Relaxed),
            dev: Dev(memory.dev.load(Relaxed)),
            inode: memory.inode.load(Relaxed),
            first_byte: memory.first_byte.load(Relaxed),
            last_byte: memory.last_byte.load(Relaxed),
            is_flock: memory.is_flock.load(Relaxed) != 0,
            refusals: memory.refusals.load(Relaxed),
            takings: memory.takings.load(Relaxed),
            takings_by_others: memory.takings_by_others.load(Relaxed),
            last_ns: memory.last_ns.load(Relaxed),
        }
    }
}
