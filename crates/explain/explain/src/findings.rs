//! What was found, what would help, and what to beware of.

mod actors;
mod contention;
mod figures;
mod find;
mod kept;
mod storage;

use luc_events::Dev;
use serde::Serialize;

pub(crate) use find::{find, ranked};

use crate::actor::Actor;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// fsyncs wait for commits that do not serve them (the paper's file synchronization delay).
    SynchronizationBound,
    /// Writes wait for buffers that a commit is writing (the paper's file write delay).
    WriteDelayBound,
    /// Calls wait for a transaction that takes no more handles.
    LockUp,
    /// Tasks make a disk move between them, so that it serves all of them slowly.
    DiskContention,
    /// Commits are slow because of another process' data.
    SomeoneElsesData,
    /// Calls wait for space in the journal.
    CheckpointPressure,
    /// Calls wait for a directory's lock.
    DirectoryLock,
    /// Calls wait for an inode's or another lock of the kernel.
    FileLock,
    /// Writers are slowed down by the kernel, as too much data is dirty.
    DirtyThrottling,
    /// Time goes into fast commits, one after the other.
    FastCommitBound,
    /// Callers are runnable, but do not run.
    ProcessorBound,
    /// Somebody freezes the cgroup of tasks, as `luc throttle` does to give others their turn.
    Frozen,
    /// The cgroup of tasks has used up its quota of processor time.
    Throttled,
    /// The file system has no jbd2 journal, and its own log or data takes the time.
    OtherLog,
    /// The device takes the time, for the caller's own work.
    DeviceBound,
    /// Little time goes into files and disks.
    NotStorage,
}

impl FindingKind {
    /// The finding's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::SynchronizationBound => "synchronization_bound",
            Self::WriteDelayBound => "write_delay_bound",
            Self::LockUp => "lock_up",
            Self::DiskContention => "disk_contention",
            Self::SomeoneElsesData => "someone_elses_data",
            Self::CheckpointPressure => "checkpoint_pressure",
            Self::DirectoryLock => "directory_lock",
            Self::FileLock => "file_lock",
            Self::DirtyThrottling => "dirty_throttling",
            Self::FastCommitBound => "fast_commit_bound",
            Self::ProcessorBound => "processor_bound",
            Self::Frozen => "frozen",
            Self::Throttled => "throttled",
            Self::OtherLog => "other_log",
            Self::DeviceBound => "device_bound",
            Self::NotStorage => "not_storage",
        }
    }

    /// What a finding's share is a part of, in words after "of".
    pub fn share_of(self) -> &'static str {
        match self {
            Self::Frozen | Self::Throttled => "all their thread time",
            Self::NotStorage => "that not idle",
            _ => "that in calls",
        }
    }

    /// Whether this describes a limit rather than something to cure.
    pub(crate) fn is_limit(self) -> bool {
        matches!(
            self,
            Self::DeviceBound
                | Self::NotStorage
                | Self::OtherLog
                | Self::FastCommitBound
                | Self::Frozen
                | Self::Throttled
        )
    }
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Ns,
    /// A fraction of 1.
    Share,
    /// A number of things.
    Count,
    PerSecond,
    Bytes,
}

/// A figure that a finding rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// What it is, in words.
    pub what: &'static str,
    pub value: f64,
    pub unit: Unit,
}

#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub kind: FindingKind,
    pub sentence: String,
    /// On which file system; none if it is about all.
    pub dev: Option<Dev>,
    /// Thread time lost to it, in nanoseconds.
    pub cost_ns: u64,
    /// `cost_ns` over the time spent in file-system calls; of "not storage", the share of time that is not; of
    /// "frozen" and "throttled", over all thread time of the processes that are.
    pub share: f64,
    /// Who lost most, if it is about someone.
    pub victim: Option<Actor>,
    /// Whose work it was, if it was another's.
    pub culprit: Option<Actor>,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
}

/// What to do about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RemedyKind {
    /// `luc run`: the fsync gate.
    Gate,
    /// The kernel module's copy-out.
    CopyOut,
    FastCommit,
    /// The mount option lazytime.
    Lazytime,
    /// A file system of its own for the culprit or the victim.
    OwnFileSystem,
    LargerJournal,
    /// Several directories instead of one.
    MoreDirectories,
    /// `luc throttle`: tasks that take turns at the disk.
    Turns,
    ReadAhead,
    /// A faster device, or one that does not need flushes.
    FasterDevice,
}

/// A remedy that loses no data.
#[derive(Clone, Debug, Serialize)]
pub struct Remedy {
    pub kind: RemedyKind,
    /// What to do, in one sentence.
    pub sentence: String,
    pub against: FindingKind,
    /// On which file system.
    pub dev: Option<Dev>,
    /// Predicted gain in throughput of the calls concerned, as a fraction; none if the trace cannot tell.
    pub predicted_gain: Option<f64>,
    /// How the prediction comes about, or why there is none.
    pub basis: &'static str,
}

/// Why caution is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// An option in use loses acknowledged data in a power cut.
    LosesData,
    /// An option in use, or a remedy, may lose data on some kernels.
    MayLoseData,
    /// Often advised against what was found here, and loses data.
    FolkAdvice,
    /// The trace is incomplete.
    Incomplete,
}

#[derive(Clone, Debug, Serialize)]
pub struct Warning {
    pub kind: WarningKind,
    /// On which file system; none if it is about all.
    pub dev: Option<Dev>,
    pub sentence: String,
}
