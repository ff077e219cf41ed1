//! A small trace with rows in all tables, and files sealed anew after they were changed.

use std::fs;

use luc_events::event_kinds::{FileCallKind, ConnectionFamily, SyncKind, WaitState};
use luc_events::store::{SCHEMA_VERSION, TraceWriter};
use luc_events::tables::{
    BriefWait, FileCall, ClockSample, JournalCommit, SocketConnection, FileData, ExchangeSum, MountedFileSystem, JournalHandle, LostEvents,
    ConnectionMessage, TcpPacket, BlockRequest, KernelStack, SummaryCount, FsyncCall, ThreadInfo, TraceDescription, OffCpuWait,
};
use luc_events::{WaitCause, Cgroup, ConnectionId, Dev, Inode, Pid, StackId, Tgid, Transaction};

const ROUNDS: u64 = 40;
const ROUND_NS: u64 = 12_000_000;
const DEV: Dev = Dev(8 << 20 | 1);

/// The files of a trace, by name.
pub(crate) struct PristineTrace {
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

impl PristineTrace {
    pub(crate) fn write() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("trace");
        let description = |end_ns| TraceDescription {
            at_ns: end_ns,
            schema_version: SCHEMA_VERSION,
            processors: 2,
            mode: "events".to_owned(),
            end_ns,
            ..TraceDescription::default()
        };
        let mut writer = TraceWriter::create(&path, description(0)).expect("a new trace");
        for round in 0..ROUNDS {
            add(&mut writer, round);
            // Several row groups in a file.
            if round % 20 == 19 {
                writer.flush().expect("a segment is written");
            }
        }
        writer.finish(description((ROUNDS + 1) * ROUND_NS)).expect("the trace is finished");
        let entries = fs::read_dir(&path).expect("the trace");
        let mut files: Vec<(String, Vec<u8>)> = entries
            .map(|entry| {
                let entry = entry.expect("a file");
                let bytes = fs::read(entry.path()).expect("a readable file");
                (entry.file_name().to_string_lossy().into_owned(), bytes)
            })
            .collect();
        files.sort();
        Self { files }
    }
}

/// A row of each table. It is a flat list: most rows share times and ids.
fn add(writer: &mut TraceWriter, round: u64) {
    let start_ns = 1_000_000 + round * ROUND_NS;
    let end_ns = start_ns + 10_000_000;
    let (thread, process, cgroup) = (Pid(100 + round as u32 % 4), Tgid(100), Cgroup(5));
    let transaction = Transaction(10 + round as u32);
    let mut send = |event: luc_events::TraceEvent| writer.add(event).expect("a row is kept");
    send(
        MountedFileSystem { dev: DEV, at_ns: start_ns, block_bytes: 4096, ..MountedFileSystem::default() }.into(),
    );
    send(ThreadInfo { at_ns: start_ns, thread, process, cgroup, ..ThreadInfo::default() }.into());
    send(KernelStack { at_ns: start_ns, id: StackId(1), symbols: "a;b".to_owned() }.into());
    send(
        JournalHandle {
            at_ns: start_ns,
            dev: DEV,
            transaction,
            thread,
            process,
            cgroup,
            count: 2,
            dirtied: 3,
            ..JournalHandle::default()
        }
        .into(),
    );
    send(
        FileData {
            at_ns: end_ns,
            dev: DEV,
            inode: Inode(7),
            thread,
            process,
            cgroup,
            bytes: 4096,
            ..FileData::default()
        }
        .into(),
    );
    send(
        OffCpuWait {
            thread,
            process,
            cgroup,
            off_ns: start_ns,
            woken_ns: end_ns,
            on_ns: end_ns + 5_000,
            state: WaitState::Uninterruptible,
            cause: WaitCause::CommitWait,
            dev: DEV,
            transaction,
            ..OffCpuWait::default()
        }
        .into(),
    );
    send(BriefWait { thread, process, cgroup, ..BriefWait::default() }.into());
    send(
        BlockRequest {
            dev: DEV,
            issue_ns: start_ns,
            complete_ns: end_ns,
            bytes: 4096,
            ..BlockRequest::default()
        }
        .into(),
    );
    send(
        FileCall {
            thread,
            process,
            cgroup,
            kind: FileCallKind::Write,
            enter_ns: start_ns - 9_000,
            exit_ns: start_ns - 1_000,
            dev: DEV,
            ..FileCall::default()
        }
        .into(),
    );
    send(
        JournalCommit {
            dev: DEV,
            transaction,
            start_ns,
            locking_ns: start_ns,
            flushing_ns: start_ns + 10_000,
            logging_ns: start_ns + 50_000,
            end_ns,
            handles: 2,
            ..JournalCommit::default()
        }
        .into(),
    );
    send(
        FsyncCall {
            thread,
            process,
            cgroup,
            dev: DEV,
            inode: Inode(7),
            kind: SyncKind::Fsync,
            enter_ns: start_ns - 500,
            exit_ns: end_ns + 6_000,
            wanted_enter: transaction,
            wanted_exit: transaction,
            ..FsyncCall::default()
        }
        .into(),
    );
    send(
        ConnectionMessage {
            at_ns: start_ns,
            thread,
            process,
            connection: ConnectionId(1),
            first_byte: round * 100,
            bytes: 100,
            ..ConnectionMessage::default()
        }
        .into(),
    );
    send(
        TcpPacket {
            at_ns: start_ns + 1_000,
            connection: ConnectionId(1),
            first_byte: round * 100,
            bytes: 100,
            ack: round * 50,
            ..TcpPacket::default()
        }
        .into(),
    );
    send(
        ExchangeSum {
            at_ns: start_ns,
            interval_ns: ROUND_NS,
            program: "server".to_owned(),
            port: 80,
            peer: "10.0.0.2".to_owned(),
            at_least_ns: round << 10,
            count: 2,
            total_ns: round << 12,
            ..ExchangeSum::default()
        }
        .into(),
    );
    send(
        ClockSample {
            at_ns: start_ns,
            width_ns: 100,
            raw_ns: start_ns + 40,
            ..ClockSample::default()
        }
        .into(),
    );
    if round == 0 {
        send(
            SocketConnection {
                at_ns: start_ns,
                connection: ConnectionId(1),
                local_address: "10.0.0.1".to_owned(),
                remote_address: "10.0.0.2".to_owned(),
                ..SocketConnection::default()
            }
            .into(),
        );
        for (connection, peer) in [(2, 3), (3, 2)] {
            send(
                SocketConnection {
                    at_ns: start_ns,
                    connection: ConnectionId(connection),
                    family: ConnectionFamily::Unix,
                    remote_address: "/run/a".to_owned(),
                    peer: ConnectionId(peer),
                    ..SocketConnection::default()
                }
                .into(),
            );
        }
        send(LostEvents { at_ns: end_ns, count: 1, place: "wait".to_owned() }.into());
        send(
            SummaryCount {
                at_ns: end_ns,
                dev: DEV,
                process,
                count: 1,
                total_ns: 5,
                ..SummaryCount::default()
            }
            .into(),
        );
    }
}

/// Makes the checksums of a file's head and footer right, whatever they are of.
pub(crate) fn seal(bytes: &mut [u8]) {
    let Some(offset) = bytes.get(8..16).and_then(|found| found.try_into().ok()) else {
        return;
    };
    let footer = usize::try_from(u64::from_le_bytes(offset)).ok();
    let Some(crc) = footer.and_then(|from| bytes.get(from..)).map(crc32fast::hash) else {
        return;
    };
    if let Some(place) = bytes.get_mut(16..20) {
        place.copy_from_slice(&crc.to_le_bytes());
    }
    let head = crc32fast::hash(&bytes[4..20]);
    if let Some(place) = bytes.get_mut(20..24) {
        place.copy_from_slice(&head.to_le_bytes());
    }
}
