//! Kinds of what a thread does or waits for while a request waits for it.

use luc_events::Cause;

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
    pub(crate) fn of(cause: Option<Cause>) -> Self {
        match cause {
            None | Some(Cause::Other | Cause::Preempted) => Self::Other,
            Some(
                Cause::CommitWait
                | Cause::ShadowBuffer
                | Cause::TransactionLocked
                | Cause::Checkpoint
                | Cause::FastCommit
                | Cause::Updates,
            ) => Self::Journal,
            Some(Cause::DataWriteback | Cause::Device | Cause::Flush) => Self::Storage,
            Some(Cause::DirtyThrottle | Cause::PageFault) => Self::Memory,
            Some(Cause::InodeLock | Cause::DirectoryLock | Cause::KernelLock | Cause::Futex) => {
                Self::Lock
            }
            Some(Cause::Sleep) => Self::Timer,
            Some(Cause::Poll | Cause::PipeSocket) => Self::Input,
            Some(Cause::Frozen) => Self::Frozen,
            Some(Cause::Stopped) => Self::Stopped,
            Some(Cause::Throttled) => Self::Throttled,
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
