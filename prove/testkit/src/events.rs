//! Random events for tests of trace readers: a few threads on a few devices, in any order, with any names.

use luc_events::event_kinds::{CommitKind, DataDirection, FileCallKind, SyncKind, WaitState};
use luc_events::tables::{
    BlockRequest, FileCall, FileData, FsyncCall, JournalCommit, JournalHandle, MountedFileSystem,
    OffCpuWait, ThreadInfo,
};
use luc_events::{Cgroup, Dev, Inode, Pid, Tgid, TraceEvent, Transaction, WaitCause};
use proptest::prelude::*;

/// Names that do harm unless they are escaped.
pub const NAMES: [&str; 8] = [
    "imap",
    "",
    "</script><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "a\nb\\\"{}",
    "\u{202e}\u{1b}[31m\u{0}",
    "'-->]]>&amp;",
    "ünïcödé ✓ 漢字",
];

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0u64..2_000_000_000, 1 => Just(0), 1 => any::<u64>()]
}

/// Draws a row of any table. The tuple is flat: rows share times and ids.
fn event() -> impl Strategy<Value = TraceEvent> {
    let ids = (0u32..4, 0u32..3, 0u64..2, 0u32..3, 0u32..6);
    let times = [time(), time(), time(), time()];
    let more = (any::<[u8; 2]>(), 0u64..1 << 22, prop::sample::select(&NAMES[..]));
    (0u8..9, ids, times, any::<bool>(), more).prop_map(|(table, ids, times, plausible, more)| {
        let (thread, process, cgroup, dev, transaction) = ids;
        let (thread, process, cgroup) = (Pid(thread), Tgid(process), Cgroup(cgroup));
        let (dev, transaction) = (Dev(dev), Transaction(transaction));
        let (codes, bytes, name) = more;
        let mut times = times;
        if plausible {
            times.sort_unstable();
        }
        let [first, second, third, last] = times;
        let code = |count: usize| usize::from(codes[0]) % count;
        match table {
            0 | 1 => FsyncCall {
                thread,
                process,
                cgroup,
                dev,
                kind: SyncKind::ALL[code(SyncKind::ALL.len())],
                enter_ns: first,
                exit_ns: last,
                wanted_enter: transaction,
                wanted_exit: Transaction(u32::from(codes[1] % 8)),
                ..FsyncCall::default()
            }
            .into(),
            2 => JournalCommit {
                dev,
                transaction,
                start_ns: first,
                locking_ns: first,
                flushing_ns: second,
                logging_ns: third,
                end_ns: last,
                asked_by: thread,
                asked_by_process: process,
                kind: CommitKind::ALL[code(2)],
                ..JournalCommit::default()
            }
            .into(),
            3 => JournalHandle {
                at_ns: last,
                dev,
                transaction,
                thread,
                process,
                cgroup,
                count: 1,
                dirtied: u32::from(codes[1]),
                total_ns: first,
                ..JournalHandle::default()
            }
            .into(),
            4 => OffCpuWait {
                thread,
                process,
                cgroup,
                off_ns: first,
                woken_ns: second,
                on_ns: last,
                state: WaitState::ALL[usize::from(codes[1]) % WaitState::ALL.len()],
                cause: WaitCause::ALL[code(WaitCause::ALL.len())],
                processor: u32::from(codes[0]),
                ..OffCpuWait::default()
            }
            .into(),
            5 => FileCall {
                thread,
                process,
                cgroup,
                dev,
                kind: FileCallKind::ALL[code(FileCallKind::ALL.len())],
                enter_ns: first,
                exit_ns: last,
                bytes,
                ..FileCall::default()
            }
            .into(),
            6 => FileData {
                at_ns: last,
                dev,
                inode: Inode(u64::from(codes[1] % 4)),
                thread,
                process,
                cgroup,
                bytes,
                direction: DataDirection::ALL[code(DataDirection::ALL.len())],
            }
            .into(),
            7 if codes[1] % 2 == 0 => MountedFileSystem {
                at_ns: last,
                dev,
                kind: name.to_owned(),
                mount_point: format!("/{name}"),
                options: name.to_owned(),
                journal_blocks: bytes,
                block_bytes: 4_096,
                ..MountedFileSystem::default()
            }
            .into(),
            7 => BlockRequest {
                dev,
                bytes,
                insert_ns: first,
                issue_ns: second,
                complete_ns: last,
                ..BlockRequest::default()
            }
            .into(),
            _ => ThreadInfo {
                at_ns: last,
                thread,
                process,
                cgroup,
                start_ns: first,
                exit_ns: if codes[1] % 3 == 0 { second } else { 0 },
                user_ns: third,
                comm: name.to_owned(),
                ..ThreadInfo::default()
            }
            .into(),
        }
    })
}

/// Draws events, sorted or not.
pub fn events() -> impl Strategy<Value = Vec<TraceEvent>> {
    (prop::collection::vec(event(), 0..250), any::<bool>()).prop_map(|(mut events, sort)| {
        if sort {
            events.sort_by_key(TraceEvent::time_ns);
        }
        events
    })
}
