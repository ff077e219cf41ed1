//! The trace store: what was written is read back, also after the recorder was killed or a file was
//! damaged.

#![allow(clippy::unwrap_used)]

mod common;
mod damage;
mod schema;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use common::{description, part_files, read, wait_row};
use luc_events::codes::{Family, Flow, RequestFlags, Sequences, Side};
use luc_events::store::{Reader, SEGMENT_ROWS, StoreError, Writer};
use luc_events::tables::{
    BriefWait, Call, ClockSample, Commit, Connection, Data, FileSystem, Handle, Lost, Message,
    Packet, Request, Row, Stack, Summary, Sync, Task, Trace, Wait,
};
use luc_events::{Cause, Cgroup, ConnectionId, Dev, Event, Inode, Pid, StackId, Tgid, Transaction};
use proptest::prelude::*;

/// One row of each table with a distinct value in each column. It is as long as the schema has columns, and a flat list.
fn one_of_each() -> Vec<Event> {
    let (thread, process, cgroup) = (Pid(11), Tgid(12), Cgroup(u64::MAX));
    let (dev, inode, transaction) = (Dev::new(259, 7), Inode(1 << 40), Transaction(u32::MAX));
    vec![
        Sync {
            thread,
            process,
            cgroup,
            dev,
            inode,
            kind: luc_events::codes::SyncKind::Fdatasync,
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
        Commit {
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
            kind: luc_events::codes::CommitKind::Fast,
            handles: 7,
            blocks: 8,
            blocks_logged: 9,
            dropped: 10,
        }
        .into(),
        Handle {
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
        Wait {
            thread,
            process,
            cgroup,
            off_ns: 1,
            woken_ns: 2,
            on_ns: 3,
            state: luc_events::codes::WaitState::Uninterruptible,
            cause: Cause::ShadowBuffer,
            stack: StackId(4),
            waker: Pid(5),
            dev,
            transaction,
        }
        .into(),
        BriefWait {
            thread,
            process,
            cgroup,
            since_ns: 1,
            until_ns: 2,
            cause: Cause::Futex,
            count: 3,
            blocked_ns: 4,
            runnable_ns: 5,
        }
        .into(),
        Call {
            thread,
            process,
            cgroup,
            kind: luc_events::codes::CallKind::Rename,
            enter_ns: 1,
            exit_ns: u64::MAX,
            dev,
            inode,
            bytes: 3,
            errno: 28,
        }
        .into(),
        Request {
            dev,
            sector: 1,
            bytes: 2,
            kind: luc_events::codes::RequestKind::Flush,
            flags: RequestFlags::FUA | RequestFlags::SYNC,
            insert_ns: 3,
            issue_ns: 4,
            complete_ns: 5,
            issuer: thread,
            issuer_process: process,
            errno: 6,
        }
        .into(),
        Data {
            at_ns: 1,
            dev,
            inode,
            thread,
            process,
            cgroup,
            bytes: 2,
            direction: luc_events::codes::Direction::WrittenByFlusher,
        }
        .into(),
        Task {
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
        FileSystem {
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
        Stack {
            at_ns: 1,
            id: StackId(2),
            symbols: "schedule;io_schedule".to_owned(),
        }
        .into(),
        Lost {
            at_ns: 1,
            count: 2,
            place: "wait".to_owned(),
        }
        .into(),
        Summary {
            at_ns: 1,
            interval_ns: 2,
            dev,
            process,
            cgroup,
            what: luc_events::codes::Summarized::Request,
            cause: Cause::Poll,
            log2_ns: 3,
            count: 4,
            total_ns: 5,
        }
        .into(),
        Connection {
            at_ns: 1,
            connection: ConnectionId(2),
            cookie: u64::MAX,
            namespace: inode,
            family: Family::Ipv6,
            local_address: "fd77::1".to_owned(),
            local_port: 3,
            remote_address: "fd77::2".to_owned(),
            remote_port: 65_535,
            side: Side::Server,
            initial_sent: u32::MAX,
            initial_received: 4,
            sequences: Sequences::Counted,
            opened_ns: 5,
            closed_ns: 6,
            opener: thread,
            opener_process: process,
            retransmits: 7,
        }
        .into(),
        Message {
            at_ns: 1,
            thread,
            process,
            connection: ConnectionId(2),
            direction: Flow::Received,
            first_byte: 1 << 40,
            bytes: 3,
        }
        .into(),
        Packet {
            at_ns: 1,
            connection: ConnectionId(2),
            direction: Flow::Received,
            first_byte: 3,
            bytes: 4,
            ack: 1 << 33,
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

#[test]
fn every_column_of_every_table_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(directory.path(), description(0)).unwrap();
    for event in one_of_each() {
        writer.add(event).unwrap();
    }
    writer.finish(description(77)).unwrap();

    let reader = Reader::open(directory.path()).unwrap();
    assert_eq!(reader.trace(), &description(77));
    let mut found: Vec<Event> = Vec::new();
    macro_rules! collect {
        ($($table:ident),+) => {
            $(found.extend(read::<$table>(directory.path()).into_iter().map(Event::from));)+
        };
    }
    collect!(
        Sync,
        Commit,
        Handle,
        Wait,
        BriefWait,
        Call,
        Request,
        Data,
        Task,
        FileSystem,
        Stack,
        Lost,
        Summary,
        Connection,
        Message,
        Packet,
        ClockSample
    );
    assert_eq!(found, one_of_each());
}

#[test]
fn segments_are_merged_into_one_file_per_table_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(directory.path(), description(0)).unwrap();
    for at in 0..100 {
        writer.add(wait_row(at)).unwrap();
        writer.flush().unwrap();
    }
    writer.finish(description(100)).unwrap();
    assert_eq!(
        part_files(directory.path(), "wait"),
        ["wait-000001-000100.parquet"]
    );
    let waits = read::<Wait>(directory.path());
    assert_eq!(waits, (0..100).map(wait_row).collect::<Vec<_>>());
}

#[test]
fn a_full_segment_is_written_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(directory.path(), description(0)).unwrap();
    for at in 0..=SEGMENT_ROWS as u64 {
        writer.add(wait_row(at)).unwrap();
    }
    assert_eq!(read::<Wait>(directory.path()).len(), SEGMENT_ROWS);
}

#[test]
fn what_was_flushed_survives_a_killed_recorder() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(directory.path(), description(0)).unwrap();
    for at in 0..40 {
        writer.add(wait_row(at)).unwrap();
        writer.flush().unwrap();
    }
    writer.add(wait_row(99)).unwrap();
    // Killed here, in the middle of writing the next segment.
    std::mem::forget(writer);
    fs::write(
        directory.path().join(".wait-000041-000041.parquet.tmp"),
        b"PAR1LUC1",
    )
    .unwrap();

    let reader = Reader::open(directory.path()).unwrap();
    assert_eq!(reader.trace().end_ns, 0);
    assert_eq!(read::<Wait>(directory.path()).len(), 40);
}

#[test]
fn a_recorder_killed_while_merging_leaves_no_row_twice() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(directory.path(), description(0)).unwrap();
    for at in 0..3 {
        writer.add(wait_row(at)).unwrap();
        writer.flush().unwrap();
    }
    let kept = directory.path().join("wait-000002-000002.parquet");
    let copy = fs::read(&kept).unwrap();
    writer.finish(description(9)).unwrap();
    fs::write(&kept, copy).unwrap();
    assert_eq!(read::<Wait>(directory.path()).len(), 3);
}

#[test]
fn a_missing_segment_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(directory.path(), description(0)).unwrap();
    for at in 0..3 {
        writer.add(wait_row(at)).unwrap();
        writer.flush().unwrap();
    }
    fs::remove_file(directory.path().join("wait-000002-000002.parquet")).unwrap();
    let error = Reader::open(directory.path())
        .unwrap()
        .rows::<Wait>()
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("segment 2 of table wait is missing"),
        "{error}"
    );
}

#[test]
fn a_directory_is_never_written_over() {
    let directory = tempfile::tempdir().unwrap();
    Writer::create(directory.path(), description(0)).unwrap();
    let error = Writer::create(directory.path(), description(0)).unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
}

#[test]
fn without_a_trace_the_error_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path(), Path::new("/nonexistent/trace")] {
        let error = Reader::open(path).unwrap_err().to_string();
        assert!(
            error.contains("no trace is here") && error.contains("luc record"),
            "{error}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// However late rows come and wherever segments end, the reader gives them in order.
    #[test]
    fn rows_come_back_in_the_order_of_their_times(
        times in prop::collection::vec(0u64..10_000, 1..300),
        flush_every in 1usize..50,
        finish in any::<bool>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(directory.path(), description(0)).unwrap();
        for (index, &at) in times.iter().enumerate() {
            writer.add(wait_row(at)).unwrap();
            if index % flush_every == 0 {
                writer.flush().unwrap();
            }
        }
        if finish {
            writer.finish(description(1)).unwrap();
        } else {
            writer.flush().unwrap();
        }
        let found: Vec<u64> = read::<Wait>(directory.path()).iter().map(Row::time_ns).collect();
        let mut expected = times;
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
    }

    /// Numbers of every size keep their value.
    #[test]
    fn any_numbers_come_back(rows in prop::collection::vec(any::<(u64, u64, u32, u64)>(), 1..200)) {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(directory.path(), description(0)).unwrap();
        let mut expected: Vec<Call> = rows
            .iter()
            .map(|&(exit_ns, inode, thread, bytes)| Call {
                exit_ns,
                inode: Inode(inode),
                thread: Pid(thread),
                bytes,
                enter_ns: bytes ^ exit_ns,
                ..Call::default()
            })
            .collect();
        for row in &expected {
            writer.add(row.clone()).unwrap();
        }
        writer.flush().unwrap();
        expected.sort_by_key(Row::time_ns);
        prop_assert_eq!(read::<Call>(directory.path()), expected);
    }
}

#[test]
fn the_last_description_counts() {
    let directory = tempfile::tempdir().unwrap();
    let writer = Writer::create(directory.path(), description(0)).unwrap();
    assert_eq!(Reader::open(directory.path()).unwrap().trace().end_ns, 0);
    writer
        .finish(Trace {
            at_ns: 500,
            ..description(500)
        })
        .unwrap();
    assert_eq!(Reader::open(directory.path()).unwrap().trace().end_ns, 500);
}

#[test]
fn columns_can_be_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(directory.path(), description(0)).unwrap();
    for at in 0..5_000 {
        writer.add(wait_row(at)).unwrap();
    }
    writer.finish(description(1)).unwrap();
    let reader = Reader::open(directory.path()).unwrap();
    let rows = reader.rows_without::<Wait>(&["cause", "stack"]).unwrap();
    for (at, row) in rows.enumerate() {
        let expected = Wait {
            cause: Cause::default(),
            stack: StackId(0),
            ..wait_row(at as u64)
        };
        assert_eq!(row.unwrap(), expected);
    }
}

#[test]
fn rows_of_equal_times_keep_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(directory.path(), description(0)).unwrap();
    for count in 0..10 {
        let row = Lost {
            at_ns: 7,
            count,
            place: String::new(),
        };
        writer.add(row).unwrap();
        if count % 2 == 1 {
            writer.flush().unwrap();
        }
    }
    let counts: Vec<u64> = read::<Lost>(directory.path())
        .iter()
        .map(|row| row.count)
        .collect();
    assert_eq!(counts, (0..10).collect::<Vec<_>>());
}

#[test]
fn what_root_records_is_for_root_alone() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("a/trace");
    drop(Writer::create(&directory, description(0)).unwrap());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        assert_eq!(mode(&directory), 0o700);
    }
    // A directory that is there keeps what its owner gave it.
    let own = parent.path().join("own");
    fs::create_dir(&own).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    drop(Writer::create(&own, description(0)).unwrap());
    assert_eq!(mode(&own), 0o755);
}
