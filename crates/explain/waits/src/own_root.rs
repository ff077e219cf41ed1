//! Waits that have their root in themselves: no thread ended them whose work it was.

use luc_events::WaitCause;

use crate::wait_root::RootKind;

/// Returns the root of time in which something outside kept a thread from running.
pub(crate) fn kept_from_running(cause: WaitCause) -> Option<RootKind> {
    match cause {
        WaitCause::Stopped => Some(RootKind::Stopped),
        WaitCause::Throttled => Some(RootKind::Throttled),
        WaitCause::Frozen => Some(RootKind::Frozen),
        _ => None,
    }
}

/// Returns the root of a wait that has it in itself. `None`: who ended the wait is to be followed.
pub(crate) fn own_root(cause: WaitCause, is_in_sync: bool) -> Option<RootKind> {
    match cause {
        WaitCause::Stopped | WaitCause::Throttled | WaitCause::Frozen => kept_from_running(cause),
        _ if is_in_sync => Some(RootKind::Fsync),
        WaitCause::CommitWait
        | WaitCause::ShadowBuffer
        | WaitCause::TransactionLocked
        | WaitCause::Checkpoint
        | WaitCause::FastCommit
        | WaitCause::Updates => Some(RootKind::Journal),
        WaitCause::DataWriteback | WaitCause::Device | WaitCause::Flush | WaitCause::HeldBack => {
            Some(RootKind::Device)
        }
        WaitCause::DirtyThrottle | WaitCause::PageFault | WaitCause::MemoryLimit => {
            Some(RootKind::Memory)
        }
        WaitCause::Preempted => Some(RootKind::Processor),
        WaitCause::Other
        | WaitCause::InodeLock
        | WaitCause::DirectoryLock
        | WaitCause::KernelLock
        | WaitCause::Futex
        | WaitCause::Sleep
        | WaitCause::Poll
        | WaitCause::PipeSocket
        | WaitCause::Flock
        | WaitCause::FullPipe
        | WaitCause::FileServer
        | WaitCause::AsyncIo => None,
    }
}
