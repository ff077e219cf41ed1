//! Kinds of what a thread does or waits for while a request waits for it.

use luc_events::WaitCause;

/// Kind of what a thread did, or waited for, while a request waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WaitKind {
    /// The thread ran, or kept others from running.
    Computes,
    /// The thread worked for other requests first.
    Queue,
    /// The thread was in fsync or a similar call.
    Fsync,
    /// The thread waited for a journal, outside of fsync and similar calls.
    Journal,
    Storage,
    Memory,
    /// A lock of user space or of the kernel.
    Lock,
    /// The thread slept until a time.
    Timer,
    /// Input from a process that no trace has.
    Input,
    /// The thread's cgroup was frozen.
    Frozen,
    /// A signal or a debugger had stopped the thread.
    Stopped,
    /// The thread's cgroup had used up its quota of processor time.
    Throttled,
    /// A message to the thread was on its way.
    Network,
    /// The thread could run, but no recorded thread had its processor.
    NoProcessor,
    Other,
    Contradictory,
}

impl WaitKind {
    /// Returns the kind of a wait; `None`: the trace does not have the cause.
    pub(crate) fn of(cause: Option<WaitCause>) -> Self {
        match cause {
            None | Some(WaitCause::Other | WaitCause::Preempted) => Self::Other,
            Some(
                WaitCause::CommitWait
                | WaitCause::ShadowBuffer
                | WaitCause::TransactionLocked
                | WaitCause::Checkpoint
                | WaitCause::FastCommit
                | WaitCause::Updates,
            ) => Self::Journal,
            Some(WaitCause::DataWriteback | WaitCause::Device | WaitCause::Flush) => Self::Storage,
            Some(WaitCause::DirtyThrottle | WaitCause::PageFault) => Self::Memory,
            Some(
                WaitCause::InodeLock
                | WaitCause::DirectoryLock
                | WaitCause::KernelLock
                | WaitCause::Futex,
            ) => Self::Lock,
            Some(WaitCause::Sleep) => Self::Timer,
            Some(WaitCause::Poll | WaitCause::PipeSocket) => Self::Input,
            Some(WaitCause::Frozen) => Self::Frozen,
            Some(WaitCause::Stopped) => Self::Stopped,
            Some(WaitCause::Throttled) => Self::Throttled,
        }
    }

    /// Name of the kind in `--json`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Computes => "computes",
            Self::Queue => "queue",
            Self::Fsync => "fsync",
            Self::Journal => "journal",
            Self::Storage => "storage",
            Self::Memory => "memory",
            Self::Lock => "lock",
            Self::Timer => "timer",
            Self::Input => "input",
            Self::Frozen => "frozen",
            Self::Stopped => "stopped",
            Self::Throttled => "throttled",
            Self::Network => "network",
            Self::NoProcessor => "no_processor",
            Self::Other => "other",
            Self::Contradictory => "contradictory",
        }
    }

    /// Words that follow the thread's name in a sentence.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Computes => "computes",
            Self::Queue => "works for other requests first",
            Self::Fsync => "waits until its data are safe (fsync)",
            Self::Journal => "waits for the journal",
            Self::Storage => "waits for the storage device",
            Self::Memory => "waits for memory",
            Self::Lock => "waits for a lock",
            Self::Timer => "sleeps",
            Self::Input => "waits for somebody who is in no trace",
            Self::Frozen => "is frozen",
            Self::Stopped => "is stopped by a signal or a debugger",
            Self::Throttled => "has used up its cgroup's quota of processor time",
            Self::Network => "gets its messages late",
            Self::NoProcessor => {
                "could run, but no thread of the trace has its processor: a limit, or somebody who is not recorded"
            }
            Self::Other => "waits",
            Self::Contradictory => "has rows that contradict each other",
        }
    }
}
