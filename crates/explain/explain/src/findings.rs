//! Findings, remedies and warnings.

mod actors;
mod contention;
mod find_problems;
mod finding_inputs;
mod lost_time;
mod main_occupation;

use luc_events::Dev;
use serde::Serialize;

pub(crate) use find_problems::{find, ranked};

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
    /// Threads are ready to run, but others have the processor.
    ProcessorBound,
    /// Signals or a debugger stop threads.
    Stopped,
    /// Somebody freezes the cgroup of tasks, as `luc throttle` does to give others their turn.
    Frozen,
    /// The tasks' cgroup has used up its quota of processor time.
    Throttled,
    /// Threads wait for another one that has a lock, outside of files.
    Lock,
    /// Threads that have work sleep.
    Timer,
    /// Threads wait for pages of memory.
    PageFaults,
    /// Threads wait until another one reads from a full pipe.
    FullPipe,
    /// Threads wait for whoever serves a file system.
    FileServer,
    /// Threads wait until the kernel has freed memory.
    MemoryLimit,
    /// A limit or a scheduler holds requests back from the disk.
    HeldBack,
    /// The file system has no jbd2 journal, and its own log or data takes the time.
    OtherLog,
    /// The device takes the time, for the caller's own work.
    DeviceBound,
    /// Little time goes into files and disks.
    NotStorage,
}

impl FindingKind {
    /// Returns the finding's name in reports.
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
            Self::Stopped => "stopped",
            Self::Frozen => "frozen",
            Self::Throttled => "throttled",
            Self::Lock => "lock",
            Self::Timer => "timer",
            Self::PageFaults => "page_faults",
            Self::FullPipe => "full_pipe",
            Self::FileServer => "file_server",
            Self::MemoryLimit => "memory_limit",
            Self::HeldBack => "held_back",
            Self::OtherLog => "other_log",
            Self::DeviceBound => "device_bound",
            Self::NotStorage => "not_storage",
        }
    }

    /// Returns whether this is a limit of files and disks rather than something to cure.
    pub(crate) fn is_limit(self) -> bool {
        matches!(self, Self::DeviceBound | Self::OtherLog | Self::FastCommitBound)
    }

    /// Returns whether this is about calls on files, or about disks.
    pub(crate) fn is_on_files(self) -> bool {
        !matches!(
            self,
            Self::ProcessorBound
                | Self::Stopped
                | Self::Frozen
                | Self::Throttled
                | Self::Lock
                | Self::Timer
                | Self::PageFaults
                | Self::FullPipe
                | Self::MemoryLimit
                | Self::NotStorage
        )
    }
}

/// Unit of a finding's figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureUnit {
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
pub struct FindingFigure {
    pub what: &'static str,
    pub value: f64,
    pub unit: FigureUnit,
}

#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub kind: FindingKind,
    pub sentence: String,
    /// The file system; `None` if it is about all.
    pub dev: Option<Dev>,
    /// Thread time lost to it, in nanoseconds.
    pub cost_ns: u64,
    /// `cost_ns` over the working time of all recorded threads.
    pub share: f64,
    /// Actor that lost most, if any.
    pub victim: Option<Actor>,
    /// Owner of the work, if it was another's.
    pub culprit: Option<Actor>,
    pub evidence: Vec<FindingFigure>,
}

/// A way to cure a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RemedyKind {
    /// `luc run`: the fsync gate.
    Gate,
    /// Copy-out by the kernel module.
    CopyOut,
    FastCommit,
    Lazytime,
    /// A separate file system for the culprit or the victim.
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
    /// Instruction in one sentence.
    pub sentence: String,
    pub against: FindingKind,
    pub dev: Option<Dev>,
    /// Predicted gain in throughput of the calls concerned, as a fraction; `None` if the trace does not show it.
    pub predicted_gain: Option<f64>,
    /// Basis of the prediction, or the reason why there is none.
    pub basis: &'static str,
}

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
    /// The file system; `None` if it is about all.
    pub dev: Option<Dev>,
    pub sentence: String,
}
