//! Parts of the time inside a call.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use luc_events::WaitCause;

use crate::saturating_grow::SaturatingGrow as _;

/// A part of an fsync's or another call's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum CallTimePart {
    /// The file's data was on its way to the disk.
    DataWriteback,
    /// An earlier transaction's commit had to end first: the paper's file synchronization delay.
    Predecessor,
    /// Nothing was being committed yet: the journal thread had to wake up and begin.
    Start,
    /// The own commit waited for running handles (before and during its locking phase).
    Locking,
    /// The own commit sent out data.
    Flushing,
    /// The own commit wrote the journal and waited for data, journal and the disk's cache.
    Logging,
    /// The own commit was over and the caller had not been woken yet.
    Done,
    /// A commit whose row is not in the trace, or another file system's log.
    UnknownCommit,
    FastCommit,
    /// A flush of the disk's cache outside a commit.
    Flush,
    /// A metadata buffer that a commit was writing: the paper's file write delay.
    WriteDelay,
    /// A transaction that took no more handles: lock-up.
    LockUp,
    /// Space in the journal that a checkpoint had to free.
    Checkpoint,
    DirectoryLock,
    /// An inode's or another lock of the kernel.
    Lock,
    /// Slowed down by the kernel because too much data was dirty.
    Throttle,
    Device,
    /// Blocked for a reason that is not one of these.
    Other,
    /// Runnable but not running.
    Runnable,
    /// On a processor, or blocked unseen.
    Running,
}

impl CallTimePart {
    pub const ALL: [Self; 20] = [
        Self::DataWriteback,
        Self::Predecessor,
        Self::Start,
        Self::Locking,
        Self::Flushing,
        Self::Logging,
        Self::Done,
        Self::UnknownCommit,
        Self::FastCommit,
        Self::Flush,
        Self::WriteDelay,
        Self::LockUp,
        Self::Checkpoint,
        Self::DirectoryLock,
        Self::Lock,
        Self::Throttle,
        Self::Device,
        Self::Other,
        Self::Runnable,
        Self::Running,
    ];

    /// Returns the part's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::DataWriteback => "data_writeback",
            Self::Predecessor => "predecessor",
            Self::Start => "start",
            Self::Locking => "locking",
            Self::Flushing => "flushing",
            Self::Logging => "logging",
            Self::Done => "done",
            Self::UnknownCommit => "unknown_commit",
            Self::FastCommit => "fast_commit",
            Self::Flush => "flush",
            Self::WriteDelay => "write_delay",
            Self::LockUp => "lock_up",
            Self::Checkpoint => "checkpoint",
            Self::DirectoryLock => "directory_lock",
            Self::Lock => "lock",
            Self::Throttle => "throttle",
            Self::Device => "device",
            Self::Other => "other",
            Self::Runnable => "runnable",
            Self::Running => "running",
        }
    }

    /// Returns whether this is a part of the own commit.
    pub fn is_own_commit(self) -> bool {
        matches!(self, Self::Start | Self::Locking | Self::Flushing | Self::Logging | Self::Done)
    }

    /// Returns the part of a blocked interval by its cause. Waits for commits are split further by the commits.
    pub(crate) fn of(cause: WaitCause) -> Self {
        match cause {
            WaitCause::DataWriteback => Self::DataWriteback,
            WaitCause::CommitWait => Self::UnknownCommit,
            WaitCause::FastCommit => Self::FastCommit,
            WaitCause::Flush => Self::Flush,
            WaitCause::ShadowBuffer => Self::WriteDelay,
            WaitCause::TransactionLocked => Self::LockUp,
            WaitCause::Checkpoint => Self::Checkpoint,
            WaitCause::DirectoryLock => Self::DirectoryLock,
            WaitCause::InodeLock | WaitCause::KernelLock => Self::Lock,
            WaitCause::DirtyThrottle => Self::Throttle,
            WaitCause::Device => Self::Device,
            WaitCause::Preempted | WaitCause::Throttled => Self::Runnable,
            WaitCause::Futex
            | WaitCause::Sleep
            | WaitCause::Poll
            | WaitCause::PipeSocket
            | WaitCause::PageFault
            | WaitCause::Updates
            | WaitCause::Frozen
            | WaitCause::Stopped
            | WaitCause::Flock
            | WaitCause::FullPipe
            | WaitCause::FileServer
            | WaitCause::MemoryLimit
            | WaitCause::AsyncIo
            | WaitCause::HeldBack
            | WaitCause::Other => Self::Other,
        }
    }
}

/// Time of a call, or of many, by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTimeParts {
    ns: [u64; CallTimePart::ALL.len()],
    /// A bit for each part that is not 0: a call has few, and only these are read.
    present: u32,
}

impl CallTimeParts {
    /// Adds to a part.
    pub(crate) fn add(&mut self, part: CallTimePart, ns: u64) {
        self.ns[part as usize].grow(ns);
        self.present |= u32::from(ns > 0) << part as u32;
    }

    /// Adds all parts of another.
    pub(crate) fn add_all(&mut self, other: &Self) {
        for (part, ns) in other.iter() {
            self.add(part, ns);
        }
    }

    /// Returns the nanoseconds of a part.
    pub fn get(&self, part: CallTimePart) -> u64 {
        self.ns[part as usize]
    }

    /// Returns the sum of all parts, in nanoseconds.
    pub fn sum(&self) -> u64 {
        self.ns.iter().fold(0, |sum, &ns| sum.saturating_add(ns))
    }

    /// Returns the parts that are not 0, in order.
    pub fn iter(&self) -> impl Iterator<Item = (CallTimePart, u64)> {
        let mut left = self.present;
        std::iter::from_fn(move || {
            let part = *CallTimePart::ALL.get(left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some((part, self.get(part)))
        })
    }

    /// Returns the sum of the own commit's parts, in nanoseconds.
    pub fn own_commit(&self) -> u64 {
        self.iter()
            .filter(|(part, _)| part.is_own_commit())
            .fold(0, |sum, (_, ns)| sum.saturating_add(ns))
    }
}

impl FromIterator<(CallTimePart, u64)> for CallTimeParts {
    /// Sums nanoseconds by part.
    fn from_iter<I: IntoIterator<Item = (CallTimePart, u64)>>(parts: I) -> Self {
        let mut sums = Self::default();
        for (part, ns) in parts {
            sums.add(part, ns);
        }
        sums
    }
}

impl Serialize for CallTimeParts {
    /// Serializes the parts that are not 0 as a map from name to nanoseconds.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (part, ns) in self.iter() {
            map.serialize_entry(part.name(), &ns)?;
        }
        map.end()
    }
}
