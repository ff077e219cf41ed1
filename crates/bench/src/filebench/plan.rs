//! A workload ready to run: every variable looked up, every reference resolved.

use super::variables::Number;

/// The workload.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) filesets: Vec<Files>,
    /// One per client: which flowops it loops over.
    pub(super) clients: Vec<usize>,
    /// The distinct loops.
    pub(super) loops: Vec<Vec<Flowop>>,
    /// The names of the flowops, in the order of their definition.
    pub(super) names: Vec<String>,
    /// What the file says about the run's length, s.
    pub(super) seconds: Option<u64>,
}

/// A file or fileset.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) name: String,
    pub(super) entries: u64,
    pub(super) size: Number,
    /// Part of the entries that exist at the start, percent.
    pub(super) prealloc: u64,
    /// 0: all in one directory.
    pub(super) dirwidth: u64,
    /// Shape of width and depth in thousandths; 0: none.
    pub(super) dirgamma: u64,
    /// A lone file lies in no directory of its own.
    pub(super) alone: bool,
    pub(super) access: Access,
}

/// How the files may be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Both,
    Read,
    Write,
}

/// What a flowop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Open,
    Create,
    Close,
    Delete,
    Stat,
    Fsync,
    Read,
    Write,
    ReadWhole,
    WriteWhole,
    Append,
    AppendRandom,
    Delay,
    Hog,
    /// A limit without a rate: always free.
    Free,
}

impl Task {
    /// Whether it is an operation of the workload, not one that controls it.
    pub(super) fn counts(self) -> bool {
        !matches!(self, Self::Delay | Self::Hog | Self::Free)
    }
}

/// A flowop.
#[derive(Debug)]
pub(super) struct Flowop {
    pub(super) task: Task,
    /// Index into [`Plan::names`].
    pub(super) operation: usize,
    /// Index into [`Plan::filesets`].
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
}
