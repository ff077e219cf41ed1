//! A small trace with rows in all tables, and files sealed anew after they were changed.

use std::fs;

use luc_events::codes::{CallKind, Family, SyncKind, WaitState};
use luc_events::store::{SCHEMA_VERSION, Writer};
use luc_events::tables::{
    BriefWait, Call, ClockSample, Commit, Connection, Data, ExchangeSum, FileSystem, Handle, Lost,
    Message, Packet, Request, Stack, Summary, Sync, Task, Trace, Wait,
};
use luc_events::{Cause, Cgroup, ConnectionId, Dev, Inode, Pid, StackId, Tgid, Transaction};

const ROUNDS: u64 = 40;
const ROUND_NS: u64 = 12_000_000;
const DEV: Dev = Dev(8 << 20 | 1);

/// The files of a trace, by name.
pub(crate) struct Pristine {
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

impl Pristine {
    pub(crate) fn write() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("trace");
        let description = |end_ns| Trace {
            at_ns: end_ns,
            schema_version: SCHEMA_VERSION,
            processors: 2,
            mode: "events".to_owned(),
            end_ns,
            ..Trace::default()
        };
        let mut writer = Writer::create(&path, description(0)).expect("a new trace");
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
fn add(writer: &mut Writer, round: u64) {
    let start_ns = 1_000_000 + round * ROUND_NS;
    let end_ns = start_ns + 10_000_000;
    let (thread, process, cgroup) = (Pid(100 + round as u32 % 4), Tgid(100), Cgroup(5));
    let transaction = Transaction(10 + round as u32);
    let mut send = |event: luc_events::Event| writer.add(event).expect("a row is kept");
    send(
        FileSystem { dev: DEV, at_ns: start_ns, block_bytes: 4096, ..FileSystem::default() }.into(),
    );
    send(Task { at_ns: start_ns, thread, process, cgroup, ..Task::default() }.into());
    send(Stack { at_ns: start_ns, id: StackId(1), symbols: "a;b".to_owned() }.into());
    send(
        Handle {
            at_ns: start_ns,
            dev: DEV,
            transaction,
            thread,
            process,
            cgroup,
            count: 2,
            dirtied: 3,
            ..Handle::default()
        }
        .into(),
    );
    send(
        Data {
            at_ns: end_ns,
            dev: DEV,
            inode: Inode(7),
            thread,
            process,
            cgroup,
            bytes: 4096,
            ..Data::default()
        }
        .into(),
    );
    send(
        Wait {
            thread,
            process,
            cgroup,
            off_ns: start_ns,
            woken_ns: end_ns,
            on_ns: end_ns + 5_000,
            state: WaitState::Uninterruptible,
            cause: Cause::CommitWait,
            dev: DEV,
            transaction,
            ..Wait::default()
        }
        .into(),
    );
    send(BriefWait { thread, process, cgroup, ..BriefWait::default() }.into());
    send(
        Request {
            dev: DEV,
            issue_ns: start_ns,
            complete_ns: end_ns,
            bytes: 4096,
            ..Request::default()
        }
        .into(),
    );
    send(
        Call {
            thread,
            process,
            cgroup,
            kind: CallKind::Write,
            enter_ns: start_ns - 9_000,
            exit_ns: start_ns - 1_000,
            dev: DEV,
            ..Call::default()
        }
        .into(),
    );
    send(
        Commit {
            dev: DEV,
            transaction,
            start_ns,
            locking_ns: start_ns,
            flushing_ns: start_ns + 10_000,
            logging_ns: start_ns + 50_000,
            end_ns,
            handles: 2,
            ..Commit::default()
        }
        .into(),
    );
    send(
        Sync {
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
            ..Sync::default()
        }
        .into(),
    );
    send(
        Message {
            at_ns: start_ns,
            thread,
            process,
            connection: ConnectionId(1),
            first_byte: round * 100,
            bytes: 100,
            ..Message::default()
        }
        .into(),
    );
    send(
        Packet {
            at_ns: start_ns + 1_000,
            connection: ConnectionId(1),
            first_byte: round * 100,
            bytes: 100,
            ack: round * 50,
            ..Packet::default()
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
            Connection {
                at_ns: start_ns,
                connection: ConnectionId(1),
                local_address: "10.0.0.1".to_owned(),
                remote_address: "10.0.0.2".to_owned(),
                ..Connection::default()
            }
            .into(),
        );
        for (connection, peer) in [(2, 3), (3, 2)] {
            send(
                Connection {
                    at_ns: start_ns,
                    connection: ConnectionId(connection),
                    family: Family::Unix,
                    remote_address: "/run/a".to_owned(),
                    peer: ConnectionId(peer),
                    ..Connection::default()
                }
                .into(),
            );
        }
        send(Lost { at_ns: end_ns, count: 1, place: "wait".to_owned() }.into());
        send(
            Summary {
                at_ns: end_ns,
                dev: DEV,
                process,
                count: 1,
                total_ns: 5,
                ..Summary::default()
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
