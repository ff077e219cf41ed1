//! Decodes records of the ring buffer into rows of the tables.

use luc_events::event_kinds::{
    CommitKind, FileCallKind, RequestFlags, RequestKind, SyncKind, WaitState,
};
use luc_events::tables::{
    BlockRequest, BriefWait, FileCall, FsyncCall, JournalCommit, OffCpuWait, ThreadInfo,
};
use luc_events::{Cgroup, Dev, Inode, Pid, StackId, Tgid, Transaction, WaitCause};

use crate::ring_records::{self, COMM};
use crate::syscall_classes::BRIEF_CAUSES;

mod counter;
mod net;

pub(crate) use counter::{CountedEvent, counters};
pub(crate) use net::{address, connection, local, message, packet, token};

pub(crate) fn sync(raw: &ring_records::Sync) -> FsyncCall {
    FsyncCall {
        thread: Pid(raw.thread),
        process: Tgid(raw.process),
        cgroup: Cgroup(raw.cgroup),
        dev: Dev(raw.dev),
        inode: Inode(raw.inode),
        kind: SyncKind::from_code(raw.sync_kind as u8).unwrap_or_default(),
        enter_ns: raw.enter_ns,
        exit_ns: raw.exit_ns,
        file_system_enter_ns: raw.file_system_enter_ns,
        file_system_exit_ns: raw.file_system_exit_ns,
        wanted_enter: Transaction(raw.wanted_enter),
        wanted_exit: Transaction(raw.wanted_exit),
        errno: raw.errno,
        cpu_enter: raw.cpu_enter,
    }
}

pub(crate) fn commit(raw: &ring_records::Commit) -> JournalCommit {
    JournalCommit {
        dev: Dev(raw.dev),
        transaction: Transaction(raw.transaction),
        asked_ns: raw.asked_ns,
        asked_by: Pid(raw.asked_by),
        asked_by_process: Tgid(raw.asked_by_process),
        start_ns: raw.start_ns,
        locking_ns: raw.locking_ns,
        flushing_ns: raw.flushing_ns,
        logging_ns: raw.logging_ns,
        end_ns: raw.end_ns,
        kind: if raw.fast == 0 { CommitKind::Full } else { CommitKind::Fast },
        handles: raw.handles,
        blocks: raw.blocks,
        blocks_logged: raw.blocks_logged,
        dropped: raw.dropped,
    }
}

/// Returns the cause of a wait: by its stack, if one was taken, else by its state and system call.
pub(crate) fn cause(brief: u32, stack: Option<WaitCause>) -> WaitCause {
    stack.unwrap_or_else(|| BRIEF_CAUSES.get(brief as usize).copied().unwrap_or(WaitCause::Other))
}

/// Returns whether a wait of this cause is for the transaction that an fsync around it needs.
fn waits_for_transaction(cause: WaitCause) -> bool {
    matches!(cause, WaitCause::CommitWait | WaitCause::FastCommit)
}

/// Returns whether a wait of this cause is about the file system that the thread uses.
fn is_about_storage(cause: WaitCause) -> bool {
    !matches!(
        cause,
        WaitCause::Preempted
            | WaitCause::Futex
            | WaitCause::Sleep
            | WaitCause::Poll
            | WaitCause::PipeSocket
            | WaitCause::FullPipe
            | WaitCause::Flock
            | WaitCause::FileServer
            | WaitCause::MemoryLimit
            | WaitCause::AsyncIo
            | WaitCause::PageFault
            | WaitCause::Other
    )
}

pub(crate) fn wait(raw: &ring_records::Wait, stack: StackId, cause: WaitCause) -> OffCpuWait {
    OffCpuWait {
        thread: Pid(raw.thread),
        process: Tgid(raw.process),
        cgroup: Cgroup(raw.cgroup),
        off_ns: raw.off_ns,
        woken_ns: raw.woken_ns,
        on_ns: raw.on_ns,
        state: WaitState::from_code(raw.state as u8).unwrap_or(WaitState::Other),
        cause,
        stack,
        waker: Pid(raw.waker),
        dev: if is_about_storage(cause) { Dev(raw.dev) } else { Dev::default() },
        transaction: if waits_for_transaction(cause) {
            Transaction(raw.transaction)
        } else {
            Transaction::default()
        },
        processor: raw.processor,
    }
}

pub(crate) fn brief(raw: &ring_records::Brief) -> impl Iterator<Item = BriefWait> {
    let raw = *raw;
    raw.sums.into_iter().zip(BRIEF_CAUSES).filter(|(sum, _)| sum.count > 0).map(
        move |(sum, cause)| BriefWait {
            thread: Pid(raw.thread),
            process: Tgid(raw.process),
            cgroup: Cgroup(raw.cgroup),
            since_ns: raw.since_ns,
            until_ns: raw.until_ns,
            cause,
            count: sum.count,
            blocked_ns: sum.blocked_ns,
            runnable_ns: sum.runnable_ns,
        },
    )
}

pub(crate) fn call(raw: &ring_records::Call) -> FileCall {
    FileCall {
        thread: Pid(raw.thread),
        process: Tgid(raw.process),
        cgroup: Cgroup(raw.cgroup),
        kind: FileCallKind::from_code(raw.call_kind as u8).unwrap_or_default(),
        enter_ns: raw.enter_ns,
        exit_ns: raw.exit_ns,
        dev: Dev(raw.dev),
        inode: Inode(raw.inode),
        bytes: raw.bytes,
        errno: raw.errno,
    }
}

pub(crate) fn request(raw: &ring_records::Request) -> BlockRequest {
    BlockRequest {
        dev: Dev(raw.dev),
        sector: raw.sector,
        bytes: u64::from(raw.bytes),
        kind: request_kind(raw.command),
        flags: request_flags(raw.command),
        insert_ns: raw.insert_ns,
        issue_ns: raw.issue_ns,
        complete_ns: raw.complete_ns,
        issuer: Pid(raw.issuer),
        issuer_process: Tgid(raw.issuer_process),
        errno: errno_of(raw.status),
    }
}

/// Returns the operation in `cmd_flags` (`enum req_op`).
fn request_kind(command: u32) -> RequestKind {
    match command & 0xff {
        0 => RequestKind::Read,
        1 | 7 | 9 => RequestKind::Write,
        2 => RequestKind::Flush,
        3 | 5 => RequestKind::Discard,
        _ => RequestKind::Other,
    }
}

/// Returns the flags in `cmd_flags` (`enum req_flag_bits`, the same from Linux 5.15 to 6.18).
fn request_flags(command: u32) -> RequestFlags {
    const BITS: [(u32, RequestFlags); 5] = [
        (1 << 11, RequestFlags::SYNC),
        (1 << 12, RequestFlags::META),
        (1 << 17, RequestFlags::FUA),
        (1 << 18, RequestFlags::PREFLUSH),
        (1 << 19, RequestFlags::AHEAD),
    ];
    BITS.into_iter()
        .filter(|(bit, _)| command & bit != 0)
        .fold(RequestFlags::default(), |all, (_, flag)| all | flag)
}

/// A `blk_status_t` as an errno (`blk_errors` in block/blk-core.c); unknown ones are EIO.
fn errno_of(status: u32) -> u32 {
    let errno = match status as u8 {
        0 => 0,
        1 => libc::EOPNOTSUPP,
        2 => libc::ETIMEDOUT,
        3 => libc::ENOSPC,
        4 => libc::ENOLINK,
        5 => libc::EREMOTEIO,
        6 => libc::EBADE,
        7 => libc::ENODATA,
        8 => libc::EILSEQ,
        9 => libc::ENOMEM,
        12 => libc::EAGAIN,
        _ => libc::EIO,
    };
    errno.unsigned_abs()
}

/// Reads the name of a thread, which ends with a zero byte.
pub(crate) fn name(comm: &[u8; COMM]) -> String {
    let length = comm.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&comm[..length.unwrap_or(COMM)]).into_owned()
}

pub(crate) fn task(raw: &ring_records::Task) -> ThreadInfo {
    let (user_ns, system_ns) = processor_times(raw.user_ns, raw.system_ns, raw.runtime_ns);
    ThreadInfo {
        at_ns: raw.at_ns,
        thread: Pid(raw.thread),
        process: Tgid(raw.process),
        parent: Tgid(raw.parent),
        comm: name(&raw.comm),
        cgroup: Cgroup(raw.cgroup),
        start_ns: raw.start_ns,
        exit_ns: if raw.event == ring_records::task_event::EXIT { raw.at_ns } else { 0 },
        user_ns,
        system_ns,
    }
}

/// Splits the exact run time in the proportion of the sampled times, as the kernel's `cputime_adjust`.
fn processor_times(user_ns: u64, system_ns: u64, runtime_ns: u64) -> (u64, u64) {
    let sampled = u128::from(user_ns) + u128::from(system_ns);
    if sampled == 0 {
        return (runtime_ns, 0);
    }
    let system = u128::from(runtime_ns) * u128::from(system_ns) / sampled;
    let system = u64::try_from(system).unwrap_or(runtime_ns);
    (runtime_ns - system, system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_times_add_up_to_the_run_time() {
        assert_eq!(processor_times(30, 10, 100), (75, 25));
        assert_eq!(processor_times(0, 0, 100), (100, 0));
        assert_eq!(processor_times(0, 8, 100), (0, 100));
        assert_eq!(processor_times(u64::MAX, 1, 5), (5, 0));
    }

    #[test]
    fn requests_have_their_operation_and_flags() {
        assert_eq!(request_kind(1 | 1 << 17), RequestKind::Write);
        assert_eq!(request_kind(2), RequestKind::Flush);
        let flags = request_flags(1 | 1 << 17 | 1 << 11);
        assert!(flags.contains(RequestFlags::FUA) && flags.contains(RequestFlags::SYNC));
        assert!(!flags.contains(RequestFlags::PREFLUSH));
    }

    #[test]
    fn statuses_become_errors() {
        assert_eq!(errno_of(0), 0);
        assert_eq!(errno_of(3), libc::ENOSPC as u32);
        assert_eq!(errno_of(10), libc::EIO as u32);
    }

    #[test]
    fn without_a_stack_the_call_tells_the_cause() {
        assert_eq!(cause(1, None), WaitCause::Futex);
        assert_eq!(cause(1, Some(WaitCause::CommitWait)), WaitCause::CommitWait);
        assert_eq!(cause(99, None), WaitCause::Other);
    }
}
