//! A workload ready to run: every variable looked up, every reference resolved.

use std::collections::HashMap;
use std::ops::Range;

use super::ast::Mode;
use super::diagnostic::Position;
use super::variables::{Number, Source};

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) filesets: Vec<Files>,
    /// The threads; threads of a process are neighbours.
    pub(super) clients: Vec<Member>,
    pub(super) loops: Vec<Vec<Step>>,
    /// The names of the flowops, in the order of their definition.
    pub(super) names: Vec<String>,
    /// The places of these names.
    pub(super) name_places: HashMap<String, usize>,
    /// Length of the run by the file, s.
    pub(super) seconds: Option<u64>,
    pub(super) mode: Mode,
    /// Events a second; 0: every limit is free.
    pub(super) rate: u64,
    /// Actions before the run, in order.
    pub(super) before: Vec<Before>,
    /// Random variables with a stream of their own.
    pub(super) sources: Vec<Source>,
    /// Semaphores and meeting points: the credit that each begins with (`highwater`).
    pub(super) points: Vec<u64>,
    /// Flowops that remember a number from one call to the next.
    pub(super) memories: usize,
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) steps: usize,
    /// Number of the thread among those with this loop.
    pub(super) rank: usize,
    /// The clients of its process.
    pub(super) process: Range<usize>,
    /// Added to the thread's nice value.
    pub(super) nice: i32,
    /// Best-effort I/O priority, 0 to 7.
    pub(super) io_priority: Option<u32>,
}

#[derive(Debug)]
pub(super) enum Before {
    Create,
    Echo(Text),
    /// Run a command of the shell's.
    System(Position, Text),
    Sleep(u64),
}

/// A text with the values of its variables.
#[derive(Debug)]
pub(super) struct Text(pub(super) Vec<Part>);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    Plain(String),
    /// A variable that is the path of a fileset: where the files really are.
    Directory,
}

/// A file or fileset.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) name: String,
    pub(super) entries: u64,
    /// Directories of no files, to make and remove.
    pub(super) leaf_directories: u64,
    pub(super) size: Number,
    /// Part of the entries that exist at the start, percent.
    pub(super) prealloc: u64,
    /// 0: all in one directory.
    pub(super) dirwidth: u64,
    /// Shape of width and depth in thousandths; 0: none.
    pub(super) dirgamma: u64,
    /// Distribution of the depth; `None`: the width's.
    pub(super) depth: Option<Number>,
    /// A lone file lies in no directory of its own.
    pub(super) alone: bool,
    /// Whether the files may stay in memory once they are made.
    pub(super) cached: bool,
    pub(super) access: Access,
}

/// Access with which the files may be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Both,
    Read,
    Write,
}

/// A step of a loop.
#[derive(Debug)]
pub(super) enum Step {
    Flowop(Box<Flowop>),
    Body { iters: Number, steps: Vec<Step> },
}

impl Step {
    /// Calls `seen` for each flowop of `steps`, also in composites.
    pub(super) fn each<'a>(steps: &'a [Self], seen: &mut impl FnMut(&'a Flowop)) {
        for step in steps {
            match step {
                Self::Flowop(flowop) => seen(flowop),
                Self::Body { steps, .. } => Self::each(steps, seen),
            }
        }
    }

    /// Calls `seen` like [`Step::each`], for changes.
    pub(super) fn each_mut(steps: &mut [Self], seen: &mut impl FnMut(&mut Flowop)) {
        for step in steps {
            match step {
                Self::Flowop(flowop) => seen(flowop),
                Self::Body { steps, .. } => Self::each_mut(steps, seen),
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Open,
    Create,
    Close,
    Delete,
    Stat,
    Fsync,
    FsyncSet,
    Read,
    Write,
    ReadWhole,
    WriteWhole,
    Append,
    AppendRandom,
    MakeDirectory,
    RemoveDirectory,
    ListDirectory,
    AioWrite,
    AioWait,
    Delay,
    /// A pause in microseconds, which Filebench does not have.
    Think,
    Hog,
    Block,
    Wakeup,
    SemaphoreBlock,
    SemaphorePost,
    EventLimit,
    TransferLimit,
    OperationLimit,
    BandwidthLimit,
    FinishOnCount,
    FinishOnBytes,
    Print,
    TestRandom,
}

impl Task {
    /// Returns whether it is an operation of the workload and does not control others.
    pub(super) fn counts(self) -> bool {
        (self as usize) < Self::Delay as usize
    }

    /// Returns whether it counts as a read.
    pub(super) fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWhole)
    }

    /// Returns whether it counts as a write.
    pub(super) fn writes(self) -> bool {
        matches!(
            self,
            Self::Write | Self::WriteWhole | Self::Append | Self::AppendRandom | Self::AioWrite
        )
    }
}

#[derive(Debug)]
pub(super) struct Flowop {
    pub(super) task: Task,
    pub(super) at: Position,
    /// Name of the flowop; in a composite, without that of the composite.
    pub(super) name: String,
    pub(super) operation: usize,
    pub(super) files: Option<usize>,
    /// 0: the default slot.
    pub(super) fd: usize,
    pub(super) srcfd: usize,
    pub(super) iosize: Number,
    pub(super) iters: Number,
    pub(super) value: Number,
    /// 0: the size of the file.
    pub(super) workingset: u64,
    pub(super) random: bool,
    pub(super) direct: bool,
    pub(super) dsync: bool,
    /// The file by its number.
    pub(super) indexed: Option<Number>,
    /// The thread's own next file.
    pub(super) opennext: bool,
    /// No readahead on the file that it opens.
    pub(super) no_readahead: bool,
    /// A post waits for credit.
    pub(super) blocking: bool,
    /// Credit that a semaphore begins with.
    pub(super) highwater: u64,
    pub(super) target: Target,
    /// Own semaphore or meeting point, of the first client with this loop.
    pub(super) point: usize,
    /// Index of its memory, below [`Plan::memories`].
    pub(super) memory: usize,
}

/// Other flowops that a flowop acts on.
#[derive(Debug)]
pub(super) enum Target {
    None,
    /// By name, until all flowops are known.
    Named(Position, String),
    /// Operations of the same thread.
    Operations(Vec<usize>),
    /// Semaphores or meeting points.
    Points(Vec<Range<usize>>),
}
