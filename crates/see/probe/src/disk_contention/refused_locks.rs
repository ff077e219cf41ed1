//! File locks that processes wait for.

use std::sync::atomic::Ordering::Relaxed;

use luc_events::Dev;

use super::shared_memory::LockMemory;

/// Counts of file locks of all processes. Both only grow.
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
    /// Number of the cgroup; 0 if unknown.
    pub cgroup: u64,
    /// Process that was refused last.
    pub process: u32,
    /// Device of the file system.
    pub dev: Dev,
    pub inode: u64,
    /// First byte of the lock.
    pub first_byte: u64,
    /// Last byte of the lock. A value beyond any file means its end.
    pub last_byte: u64,
    /// Whether it is a lock of flock instead of fcntl.
    pub is_flock: bool,
    /// Number of refusals in a row.
    pub refusals: u32,
    /// Number of times that the cgroup took it after refusals.
    pub takings: u32,
    /// Number of times that another cgroup took it while this one was refused.
    pub takings_by_others: u32,
    /// Time of the last refusal, ns of CLOCK_MONOTONIC.
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
