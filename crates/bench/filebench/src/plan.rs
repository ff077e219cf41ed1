//! A workload ready to run: every variable looked up, every reference resolved.

use std::collections::HashMap;
use std::ops::Range;

use super::ast::RunEndRule;
use super::diagnostic::TextPosition;
use super::drawn_numbers::{RandomSource, WorkloadNumber};

/// Workload file with every variable and reference resolved, ready to run.
#[derive(Debug)]
pub(super) struct WorkloadPlan {
    pub(super) filesets: Vec<PlannedFileset>,
    /// The threads; threads of a process are neighbours.
    pub(super) clients: Vec<ClientPlan>,
    pub(super) loops: Vec<Vec<LoopStep>>,
    /// The names of the flowops, in the order of their definition.
    pub(super) names: Vec<String>,
    /// The places of these names.
    pub(super) name_places: HashMap<String, usize>,
    /// Length of the run by the file, s.
    pub(super) seconds: Option<u64>,
    pub(super) mode: RunEndRule,
    /// Events a second; 0: every limit is free.
    pub(super) rate: u64,
    /// Actions before the run, in order.
    pub(super) before: Vec<SetupAction>,
    /// Random variables with a stream of their own.
    pub(super) sources: Vec<RandomSource>,
    /// Semaphores and meeting points: the credit that each begins with (`highwater`).
    pub(super) points: Vec<u64>,
    /// Flowops that remember a number from one call to the next.
    pub(super) memories: usize,
}

/// Client of a run: its loop, its process and its priorities.
#[derive(Debug)]
pub(super) struct ClientPlan {
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

/// Action of a workload file that takes place before its run.
#[derive(Debug)]
pub(super) enum SetupAction {
    Create,
    Echo(PlanText),
    /// Run a command of the shell's.
    System(TextPosition, PlanText),
    Sleep(u64),
}

/// A text with the values of its variables.
#[derive(Debug)]
pub(super) struct PlanText(pub(super) Vec<TextPart>);

/// Part of a [`PlanText`]: plain text, or the run's directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TextPart {
    Plain(String),
    /// A variable that is the path of a fileset: where the files really are.
    Directory,
}

/// A file or fileset.
#[derive(Debug)]
pub(super) struct PlannedFileset {
    pub(super) name: String,
    pub(super) entries: u64,
    /// Directories of no files, to make and remove.
    pub(super) leaf_directories: u64,
    pub(super) size: WorkloadNumber,
    /// Part of the entries that exist at the start, percent.
    pub(super) prealloc: u64,
    /// 0: all in one directory.
    pub(super) dirwidth: u64,
    /// Shape of width and depth in thousandths; 0: none.
    pub(super) dirgamma: u64,
    /// Distribution of the depth; `None`: the width's.
    pub(super) depth: Option<WorkloadNumber>,
    /// A lone file lies in no directory of its own.
    pub(super) alone: bool,
    /// Whether the files may stay in memory once they are made.
    pub(super) cached: bool,
    pub(super) access: FileAccess,
}

/// Access with which the files may be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileAccess {
    Both,
    Read,
    Write,
}

/// A step of a loop.
#[derive(Debug)]
pub(super) enum LoopStep {
    Flowop(Box<PlannedFlowop>),
    Body { iters: WorkloadNumber, steps: Vec<LoopStep> },
}

impl LoopStep {
    /// Calls `seen` for each flowop of `steps`, also in composites.
    pub(super) fn each<'a>(steps: &'a [Self], seen: &mut impl FnMut(&'a PlannedFlowop)) {
        for step in steps {
            match step {
                Self::Flowop(flowop) => seen(flowop),
                Self::Body { steps, .. } => Self::each(steps, seen),
            }
        }
    }

    /// Calls `seen` like [`LoopStep::each`], for changes.
    pub(super) fn each_mut(steps: &mut [Self], seen: &mut impl FnMut(&mut PlannedFlowop)) {
        for step in steps {
            match step {
                Self::Flowop(flowop) => seen(flowop),
                Self::Body { steps, .. } => Self::each_mut(steps, seen),
            }
        }
    }
}

/// Kind of operation that a flowop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowopKind {
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

impl FlowopKind {
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

/// Flowop with its files, sizes and target resolved.
#[derive(Debug)]
pub(super) struct PlannedFlowop {
    pub(super) task: FlowopKind,
    pub(super) at: TextPosition,
    /// Name of the flowop; in a composite, without that of the composite.
    pub(super) name: String,
    pub(super) operation: usize,
    pub(super) files: Option<usize>,
    /// 0: the default slot.
    pub(super) fd: usize,
    pub(super) srcfd: usize,
    pub(super) iosize: WorkloadNumber,
    pub(super) iters: WorkloadNumber,
    pub(super) value: WorkloadNumber,
    /// 0: the size of the file.
    pub(super) workingset: u64,
    pub(super) random: bool,
    pub(super) direct: bool,
    pub(super) dsync: bool,
    /// The file by its number.
    pub(super) indexed: Option<WorkloadNumber>,
    /// The thread's own next file.
    pub(super) opennext: bool,
    /// No readahead on the file that it opens.
    pub(super) no_readahead: bool,
    /// A post waits for credit.
    pub(super) blocking: bool,
    /// Credit that a semaphore begins with.
    pub(super) highwater: u64,
    pub(super) target: FlowopTarget,
    /// Own semaphore or meeting point, of the first client with this loop.
    pub(super) point: usize,
    /// Index of its memory, below [`WorkloadPlan::memories`].
    pub(super) memory: usize,
}

/// Other flowops that a flowop acts on.
#[derive(Debug)]
pub(super) enum FlowopTarget {
    None,
    /// By name, until all flowops are known.
    Named(TextPosition, String),
    /// Operations of the same thread.
    Operations(Vec<usize>),
    /// Semaphores or meeting points.
    Points(Vec<Range<usize>>),
}
