//! Every column keeps its value, and those that are not asked for are left out.

use std::path::Path;

use luc_events::event_kinds::{
    ConnectionFamily, CounterMode, MessageDirection, RequestFlags, SequenceSource, SocketRole,
};
use luc_events::store::{TraceReader, TraceWriter};
use luc_events::tables::{
    AsleepThread, BlockRequest, BriefWait, ClockSample, ConnectionMessage, ExchangeSum, FileCall,
    FileData, FsyncCall, HardwareCount, JournalCommit, JournalHandle, KernelStack, LostEvents,
    MountedFileSystem, OffCpuWait, ProcessProgram, RequestToken, SocketConnection, SummaryCount,
    TableRow, TcpPacket, ThreadInfo, ThreadStart, TraceDescription,
};
use luc_events::{
    Cgroup, ConnectionId, Dev, Inode, Pid, StackId, TableVisitor, Tgid, TraceEvent, Transaction,
    WaitCause, visit_tables,
};
use proptest::prelude::*;

use super::store_fixtures::{description, read, wait_row};

/// Makes a row of each table with a distinct value in each column. It is as long as the schema has columns, and a flat
/// list.
fn one_of_each() -> Vec<TraceEvent> {
    let (thread, process, cgroup) = (Pid(11), Tgid(12), Cgroup(u64::MAX));
    let (dev, inode, transaction) = (Dev::new(259, 7), Inode(1 << 40), Transaction(u32::MAX));
    vec![
        FsyncCall {
            thread,
            process,
            cgroup,
            dev,
            inode,
            kind: luc_events::event_kinds::SyncKind::Fdatasync,
            enter_ns: 1,
            exit_ns: 9,
            file_system_enter_ns: 2,
            file_system_exit_ns: 8,
            wanted_enter: transaction,
            wanted_exit: Transaction(1),
            errno: 5,
            cpu_enter: 3,
        }
        .into(),
        JournalCommit {
            dev,
            transaction,
            asked_ns: 1,
            asked_by: thread,
            asked_by_process: process,
            start_ns: 2,
            locking_ns: 3,
            flushing_ns: 4,
            logging_ns: 5,
            end_ns: 6,
            kind: luc_events::event_kinds::CommitKind::Fast,
            handles: 7,
            blocks: 8,
            blocks_logged: 9,
            dropped: 10,
        }
        .into(),
        JournalHandle {
            at_ns: 1,
            dev,
            transaction,
            thread,
            process,
            cgroup,
            kind: 2,
            line: 3,
            count: 4,
            requested: 5,
            dirtied: 6,
            total_ns: 7,
        }
        .into(),
        OffCpuWait {
            thread,
            process,
            cgroup,
            off_ns: 1,
            woken_ns: 2,
            on_ns: 3,
            state: luc_events::event_kinds::WaitState::Uninterruptible,
            cause: WaitCause::ShadowBuffer,
            stack: StackId(4),
            waker: Pid(5),
            dev,
            transaction,
            processor: 6,
        }
        .into(),
        BriefWait {
            thread,
            process,
            cgroup,
            since_ns: 1,
            until_ns: 2,
            cause: WaitCause::Futex,
            count: 3,
            blocked_ns: 4,
            runnable_ns: 5,
        }
        .into(),
        AsleepThread {
            at_ns: 1,
            thread,
            process,
            cgroup,
            since_ns: 2,
            state: luc_events::event_kinds::WaitState::Uninterruptible,
            cause: WaitCause::Futex,
            stack: StackId(3),
            call: luc_events::tables::NO_CALL,
            argument: u64::MAX,
            connection: ConnectionId(4),
            holder: Pid(5),
        }
        .into(),
        FileCall {
            thread,
            process,
            cgroup,
            kind: luc_events::event_kinds::FileCallKind::Rename,
            enter_ns: 1,
            exit_ns: u64::MAX,
            dev,
            inode,
            bytes: 3,
            errno: 28,
        }
        .into(),
        BlockRequest {
            dev,
            sector: 1,
            bytes: 2,
            kind: luc_events::event_kinds::RequestKind::Flush,
            flags: RequestFlags::FUA | RequestFlags::SYNC,
            insert_ns: 3,
            issue_ns: 4,
            complete_ns: 5,
            issuer: thread,
            issuer_process: process,
            errno: 6,
        }
        .into(),
        FileData {
            at_ns: 1,
            dev,
            inode,
            thread,
            process,
            cgroup,
            bytes: 2,
            direction: luc_events::event_kinds::DataDirection::WrittenByFlusher,
        }
        .into(),
        ThreadInfo {
            at_ns: 1,
            thread,
            process,
            parent: Tgid(2),
            comm: "jbd2/überlang".to_owned(),
            cgroup,
            start_ns: 3,
            exit_ns: 4,
            user_ns: 5,
            system_ns: 6,
        }
        .into(),
        ThreadStart {
            at_ns: 1,
            thread,
            process,
            start_ns: 2,
            creator: Pid(3),
            routine: "work".to_owned(),
            module: "/usr/sbin/served".to_owned(),
        }
        .into(),
        ProcessProgram {
            at_ns: 1,
            process,
            path: "/usr/bin/python3".to_owned(),
            script: "app.py".to_owned(),
        }
        .into(),
        HardwareCount {
            at_ns: 251,
            since_ns: 250,
            thread: Pid(252),
            process: Tgid(253),
            cgroup: Cgroup(254),
            event: "instructions".to_owned(),
            mode: CounterMode::Kernel,
            value: u64::MAX,
            enabled_ns: 1 << 33,
            running_ns: 256,
        }
        .into(),
        MountedFileSystem {
            at_ns: 1,
            dev,
            disk: Dev::new(8, 0),
            kind: "ext4".to_owned(),
            mount_point: "/srv/a b".to_owned(),
            options: "rw,data=ordered".to_owned(),
            journal_dev: dev,
            journal_blocks: 2,
            block_bytes: 4096,
            fast_commit: true,
        }
        .into(),
        KernelStack { at_ns: 1, id: StackId(2), symbols: "schedule;io_schedule".to_owned() }.into(),
        LostEvents { at_ns: 1, count: 2, place: "wait".to_owned() }.into(),
        SummaryCount {
            at_ns: 1,
            interval_ns: 2,
            dev,
            process,
            cgroup,
            what: luc_events::event_kinds::SummarizedKind::Request,
            cause: WaitCause::Poll,
            log2_ns: 3,
            count: 4,
            total_ns: 5,
        }
        .into(),
        SocketConnection {
            at_ns: 1,
            connection: ConnectionId(2),
            cookie: u64::MAX,
            namespace: inode,
            family: ConnectionFamily::Ipv6,
            local_address: "fd77::1".to_owned(),
            local_port: 3,
            remote_address: "fd77::2".to_owned(),
            remote_port: 65_535,
            side: SocketRole::Server,
            initial_sent: u32::MAX,
            initial_received: 4,
            sequences: SequenceSource::Counted,
            opened_ns: 5,
            closed_ns: 6,
            opener: thread,
            opener_process: process,
            retransmits: 7,
            peer: ConnectionId(8),
        }
        .into(),
        ConnectionMessage {
            at_ns: 1,
            thread,
            process,
            connection: ConnectionId(2),
            direction: MessageDirection::Received,
            first_byte: 1 << 40,
            bytes: 3,
        }
        .into(),
        TcpPacket {
            at_ns: 1,
            connection: ConnectionId(2),
            direction: MessageDirection::Received,
            first_byte: 3,
            bytes: 4,
            ack: 1 << 33,
        }
        .into(),
        RequestToken {
            at_ns: 231,
            thread: Pid(232),
            process: Tgid(233),
            connection: ConnectionId(234),
            direction: MessageDirection::Received,
            byte: 1 << 34,
            token: u64::MAX,
        }
        .into(),
        ExchangeSum {
            at_ns: 241,
            interval_ns: 242,
            cgroup: Cgroup(243),
            program: "redis-server".to_owned(),
            side: SocketRole::Server,
            namespace: Inode(244),
            port: 245,
            peer: "10.0.0.9".to_owned(),
            at_least_ns: 246,
            count: 247,
            total_ns: 248,
        }
        .into(),
        ClockSample {
            at_ns: 1,
            width_ns: 2,
            raw_ns: 3,
            boottime_ns: 4,
            realtime_ns: u64::MAX,
            rate_ppb: i64::MIN,
            slew_ns: -5,
        }
        .into(),
    ]
}

/// Rows of all tables in a directory.
struct Found<'a> {
    directory: &'a Path,
    rows: Vec<TraceEvent>,
}

impl TableVisitor for Found<'_> {
    fn visit<T: TableRow + Into<TraceEvent>>(&mut self) {
        let rows = read::<T>(self.directory);
        self.rows.extend(rows.into_iter().map(Into::into));
    }
}

#[test]
fn every_column_of_every_table_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(directory.path(), description(0)).unwrap();
    for event in one_of_each() {
        writer.add(event).unwrap();
    }
    writer.finish(description(77)).unwrap();

    let reader = TraceReader::open(directory.path()).unwrap();
    assert_eq!(reader.trace(), &description(77));
    let mut found = Found { directory: directory.path(), rows: Vec::new() };
    visit_tables(&mut found);
    let expected: Vec<TraceEvent> =
        one_of_each().into_iter().chain([description(0).into(), description(77).into()]).collect();
    assert_eq!(found.rows, expected);
}

/// Tables that [`one_of_each`] has no row of.
struct Missing(Vec<&'static str>);

impl TableVisitor for Missing {
    fn visit<T: TableRow + Into<TraceEvent>>(&mut self) {
        let is_there = one_of_each().iter().any(|row| row.table() == T::TABLE);
        // That of the trace's description has rows of its own.
        if !is_there && T::TABLE != TraceDescription::TABLE {
            self.0.push(T::TABLE);
        }
    }
}

#[test]
fn no_table_is_left_out() {
    let mut missing = Missing(Vec::new());
    visit_tables(&mut missing);
    assert_eq!(missing.0, Vec::<&str>::new());
}

#[test]
fn columns_can_be_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(directory.path(), description(0)).unwrap();
    for at in 0..5_000 {
        writer.add(wait_row(at)).unwrap();
    }
    writer.finish(description(1)).unwrap();
    let reader = TraceReader::open(directory.path()).unwrap();
    let rows = reader.rows_without::<OffCpuWait>(&["cause", "stack"]).unwrap();
    for (at, row) in rows.enumerate() {
        let expected =
            OffCpuWait { cause: WaitCause::default(), stack: StackId(0), ..wait_row(at as u64) };
        assert_eq!(row.unwrap(), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Numbers of every size keep their value.
    #[test]
    fn any_numbers_come_back(rows in prop::collection::vec(any::<(u64, u64, u32, u64)>(), 1..200)) {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = TraceWriter::create(directory.path(), description(0)).unwrap();
        let mut expected: Vec<FileCall> = rows
            .iter()
            .map(|&(exit_ns, inode, thread, bytes)| FileCall {
                exit_ns,
                inode: Inode(inode),
                thread: Pid(thread),
                bytes,
                enter_ns: bytes ^ exit_ns,
                ..FileCall::default()
            })
            .collect();
        for row in &expected {
            writer.add(row.clone()).unwrap();
        }
        writer.flush().unwrap();
        expected.sort_by_key(TableRow::time_ns);
        prop_assert_eq!(read::<FileCall>(directory.path()), expected);
    }
}
