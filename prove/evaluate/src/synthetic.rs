//! A generated trace of any length: 64 callers of fsync and 16 writers. Most events are waits, as in real traces.

use std::path::Path;

use luc_events::event_kinds::{FileCallKind, SyncKind, WaitState};
use luc_events::store::{StoreError, TraceWriter};
use luc_events::tables::{
    FileCall, FsyncCall, JournalCommit, JournalHandle, OffCpuWait, TraceDescription,
};
use luc_events::{Cgroup, Dev, Inode, Pid, Tgid, TraceEvent, Transaction, WaitCause};

const CALLERS: u64 = 64;
const COMMIT_NS: u64 = 12_000_000;
const DEV: Dev = Dev(8 << 20 | 1);

fn wait(number: u64, off_ns: u64, on_ns: u64, cause: WaitCause) -> TraceEvent {
    OffCpuWait {
        thread: Pid(1_000 + number as u32),
        process: Tgid(1_000 + number as u32 / 8),
        cgroup: Cgroup(5),
        off_ns,
        woken_ns: on_ns - 10_000,
        on_ns,
        state: WaitState::Uninterruptible,
        cause,
        ..OffCpuWait::default()
    }
    .into()
}

/// Adds one commit, the fsyncs of half of the callers, and writes. Each fsync has waits for data and commit, and some
/// others before it.
fn commit(number: u64, events: &mut Vec<TraceEvent>) {
    let start_ns = 1_000_000 + number * COMMIT_NS;
    let end_ns = start_ns + COMMIT_NS - 50_000;
    let transaction = Transaction(100 + number as u32);
    for caller in (0..CALLERS).filter(|caller| caller % 2 == number % 2) {
        let enter_ns = start_ns.saturating_sub(COMMIT_NS) + 500_000 + caller * 20_000;
        for turn in 0..8 {
            let at_ns = enter_ns - 400_000 + turn * 40_000;
            events.push(wait(caller, at_ns, at_ns + 30_000, WaitCause::DirectoryLock));
        }
        events.push(wait(caller, enter_ns + 1_000, enter_ns + 400_000, WaitCause::DataWriteback));
        let on_ns = end_ns + 20_000 + caller * 1_000;
        events.push(wait(caller, enter_ns + 410_000, on_ns, WaitCause::CommitWait));
        let (thread, process) = (Pid(1_000 + caller as u32), Tgid(1_000 + caller as u32 / 8));
        events.push(
            JournalHandle {
                at_ns: start_ns,
                dev: DEV,
                transaction,
                thread,
                process,
                count: 3,
                dirtied: 7,
                ..JournalHandle::default()
            }
            .into(),
        );
        events.push(
            FsyncCall {
                thread,
                process,
                cgroup: Cgroup(5),
                dev: DEV,
                inode: Inode(caller),
                kind: SyncKind::Fsync,
                enter_ns,
                exit_ns: on_ns + 2_000,
                wanted_enter: transaction,
                wanted_exit: transaction,
                ..FsyncCall::default()
            }
            .into(),
        );
    }
    for writer in 0..64 {
        let exit_ns = start_ns + writer * 100_000;
        events.push(
            FileCall {
                thread: Pid(3_000 + writer as u32 % 16),
                process: Tgid(3_000),
                cgroup: Cgroup(6),
                kind: FileCallKind::Write,
                enter_ns: exit_ns - 5_000,
                exit_ns,
                dev: DEV,
                bytes: 4_096,
                ..FileCall::default()
            }
            .into(),
        );
    }
    events.push(
        JournalCommit {
            dev: DEV,
            transaction,
            start_ns,
            locking_ns: start_ns,
            flushing_ns: start_ns + 10_000,
            logging_ns: start_ns + 50_000,
            end_ns,
            handles: 96,
            ..JournalCommit::default()
        }
        .into(),
    );
}

/// Writes a trace of `commits`, some 450 events each, into a new directory. Returns the number of its events.
///
/// # Errors
/// [`StoreError`]: it cannot be written.
pub fn write(directory: &Path, commits: u64) -> Result<u64, StoreError> {
    let description = TraceDescription {
        end_ns: (commits + 1) * COMMIT_NS,
        processors: 2,
        ..TraceDescription::default()
    };
    let mut writer = TraceWriter::create(directory, description.clone())?;
    let (mut count, mut events) = (0, Vec::new());
    for number in 0..commits {
        commit(number, &mut events);
        count += events.len() as u64;
        for event in events.drain(..) {
            writer.add(event)?;
        }
    }
    writer.finish(description)?;
    Ok(count)
}
