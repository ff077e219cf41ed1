//! Groups of the parts of a call's time: as few as fit into a line.

use luc_explain::{CallTimePart, CallTimeParts};
use serde::Serialize;

/// Group of parts of a call's time that share a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartGroup {
    /// An earlier transaction's commit.
    Earlier,
    /// The own commit, fast commits, and unknown commits.
    Commit,
    /// The file's data, flushes outside a commit, the device.
    Disk,
    /// Buffers being written, transactions locked up, space in the journal.
    Journal,
    /// Locks of directories and files.
    Locks,
    /// Anything else that blocks, including the kernel's throttling of writers.
    Other,
    /// Runnable but not running.
    Runnable,
    /// On a processor, or blocked unseen: not lost time.
    Running,
}

impl PartGroup {
    /// All groups, in the order of their display.
    pub const ALL: [Self; 8] = [
        Self::Earlier,
        Self::Commit,
        Self::Disk,
        Self::Journal,
        Self::Locks,
        Self::Other,
        Self::Runnable,
        Self::Running,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Earlier => "earlier commit",
            Self::Commit => "own commit",
            Self::Disk => "disk",
            Self::Journal => "journal",
            Self::Locks => "locks",
            Self::Other => "other",
            Self::Runnable => "runnable",
            Self::Running => "running",
        }
    }

    fn of(part: CallTimePart) -> Self {
        match part {
            CallTimePart::Predecessor => Self::Earlier,
            CallTimePart::Start
            | CallTimePart::Locking
            | CallTimePart::Flushing
            | CallTimePart::Logging
            | CallTimePart::Done
            | CallTimePart::UnknownCommit
            | CallTimePart::FastCommit => Self::Commit,
            CallTimePart::DataWriteback | CallTimePart::Flush | CallTimePart::Device => Self::Disk,
            CallTimePart::WriteDelay | CallTimePart::LockUp | CallTimePart::Checkpoint => {
                Self::Journal
            }
            CallTimePart::DirectoryLock | CallTimePart::Lock => Self::Locks,
            CallTimePart::Throttle | CallTimePart::Other => Self::Other,
            CallTimePart::Runnable => Self::Runnable,
            CallTimePart::Running => Self::Running,
        }
    }

    /// Returns the group of a cause of waits. A commit counts as the own one: the cause does not say whose it is.
    fn of_cause(cause: &str) -> Self {
        match cause {
            "commit_wait" | "fast_commit" => Self::Commit,
            "data_writeback" | "flush" | "device" => Self::Disk,
            "shadow_buffer" | "transaction_locked" | "checkpoint" => Self::Journal,
            "inode_lock" | "directory_lock" => Self::Locks,
            _ => Self::Other,
        }
    }
}

/// Time of each [`PartGroup`], in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PartGroupTimes {
    ns: [u64; PartGroup::ALL.len()],
}

impl PartGroupTimes {
    /// Sums the parts of a time by group.
    pub fn of(parts: &CallTimeParts) -> Self {
        let mut groups = Self::default();
        for (part, ns) in parts.iter() {
            groups.add(PartGroup::of(part), ns);
        }
        groups
    }

    /// Sums waits for storage by the group of their cause.
    pub(super) fn of_causes<'a>(causes: impl Iterator<Item = (&'a str, u64)>) -> Self {
        let mut groups = Self::default();
        for (cause, ns) in causes {
            groups.add(PartGroup::of_cause(cause), ns);
        }
        groups
    }

    fn add(&mut self, group: PartGroup, ns: u64) {
        let sum = &mut self.ns[group as usize];
        *sum = sum.saturating_add(ns);
    }

    /// Returns the nanoseconds of one group.
    pub fn get(&self, group: PartGroup) -> u64 {
        self.ns[group as usize]
    }

    pub fn sum(&self) -> u64 {
        self.ns.iter().fold(0, |sum, &ns| sum.saturating_add(ns))
    }

    /// Returns the sum of all groups but the time on a processor.
    pub fn lost(&self) -> u64 {
        self.sum().saturating_sub(self.get(PartGroup::Running))
    }

    /// Returns a group's share of the sum; 0 if the sum is 0.
    pub fn share(&self, group: PartGroup) -> f64 {
        self.get(group) as f64 / self.sum().max(1) as f64
    }
}
