//! Groups of the parts of a call's time: as few as fit into a line.

use luc_explain::{Part, Parts};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
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

impl Group {
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

    fn of(part: Part) -> Self {
        match part {
            Part::Predecessor => Self::Earlier,
            Part::Start
            | Part::Locking
            | Part::Flushing
            | Part::Logging
            | Part::Done
            | Part::UnknownCommit
            | Part::FastCommit => Self::Commit,
            Part::DataWriteback | Part::Flush | Part::Device => Self::Disk,
            Part::WriteDelay | Part::LockUp | Part::Checkpoint => Self::Journal,
            Part::DirectoryLock | Part::Lock => Self::Locks,
            Part::Throttle | Part::Other => Self::Other,
            Part::Runnable => Self::Runnable,
            Part::Running => Self::Running,
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Groups {
    ns: [u64; Group::ALL.len()],
}

impl Groups {
    /// Sums the parts of a time by group.
    pub fn of(parts: &Parts) -> Self {
        let mut groups = Self::default();
        for (part, ns) in parts.iter() {
            groups.add(Group::of(part), ns);
        }
        groups
    }

    /// Sums waits for storage by the group of their cause.
    pub(super) fn of_causes<'a>(causes: impl Iterator<Item = (&'a str, u64)>) -> Self {
        let mut groups = Self::default();
        for (cause, ns) in causes {
            groups.add(Group::of_cause(cause), ns);
        }
        groups
    }

    fn add(&mut self, group: Group, ns: u64) {
        let sum = &mut self.ns[group as usize];
        *sum = sum.saturating_add(ns);
    }

    /// Returns the nanoseconds of one group.
    pub fn get(&self, group: Group) -> u64 {
        self.ns[group as usize]
    }

    pub fn sum(&self) -> u64 {
        self.ns.iter().fold(0, |sum, &ns| sum.saturating_add(ns))
    }

    /// Returns the sum of all groups but the time on a processor.
    pub fn lost(&self) -> u64 {
        self.sum().saturating_sub(self.get(Group::Running))
    }

    /// Returns a group's share of the sum; 0 if the sum is 0.
    pub fn share(&self, group: Group) -> f64 {
        self.get(group) as f64 / self.sum().max(1) as f64
    }
}
