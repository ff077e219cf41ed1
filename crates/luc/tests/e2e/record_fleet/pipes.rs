//! With `--pipes`, what goes through pipes and FIFOs has rows that have just its bytes, at both ends.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;

use luc_events::ConnectionId;
use luc_events::event_kinds::{ConnectionFamily, MessageDirection, SequenceSource};
use luc_events::tables::ConnectionMessage;
use rustix::fs::fstat;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

use super::trace_checks::RecordedRows;
use crate::common::fleet_recording::FleetRecording;
use crate::common::is_root;

fn pipe() -> (File, File) {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    (File::from(reader), File::from(writer))
}

/// The rows of what was written into a pipe and read from it, by its inode.
fn rows(recorded: &RecordedRows, end: impl AsFd) -> [Vec<(u64, u64)>; 2] {
    let inode = fstat(end).expect("its inode").st_ino;
    let is_own = |row: &&_| {
        let row: &luc_events::tables::SocketConnection = row;
        row.family == ConnectionFamily::Pipe && row.cookie == inode
    };
    let ends: Vec<_> = recorded.connections.values().filter(is_own).collect();
    let [reader, writer] = ends[..] else {
        panic!("a pipe has two ends: {ends:?}");
    };
    assert_eq!((reader.peer, writer.peer), (writer.connection, reader.connection));
    assert!(recorded.messages_of(reader, MessageDirection::Sent).is_empty());
    assert!(recorded.messages_of(writer, MessageDirection::Received).is_empty());
    let sent = recorded.messages_of(writer, MessageDirection::Sent);
    let received = recorded.messages_of(reader, MessageDirection::Received);
    for sent in &sent {
        let of_send = sent.first_byte..sent.first_byte + sent.bytes;
        let mut took = received.iter().filter(|row| of_send.contains(&row.first_byte));
        assert!(took.all(|row| sent.at_ns <= row.at_ns), "{sent:?} {received:?}");
    }
    [sent, received].map(|rows| rows.iter().map(|row| (row.first_byte, row.bytes)).collect())
}

#[test]
fn each_byte_of_a_pipe_is_counted_at_both_ends() {
    if !is_root() {
        return;
    }
    let (mut old_reader, mut old_writer) = pipe();
    old_writer.write_all(&[0; 5000]).expect("written");
    old_reader.read_exact(&mut [0; 100]).expect("read");
    let recording = FleetRecording::start(&["--all", "--pipes"]);
    let (mut reader, mut writer) = pipe();
    let (mut last_reader, last_writer) = pipe();
    old_writer.write_all(&[0; 7]).expect("written");
    old_reader.read_exact(&mut [0; 4907]).expect("read");
    old_writer.write_all(&[0; 8]).expect("written");
    old_reader.read_exact(&mut [0; 8]).expect("read");
    thread::scope(|scope| {
        scope.spawn(|| writer.write_all(&[0; 200_000]).expect("written"));
        reader.read_exact(&mut vec![0; 200_000]).expect("read");
    });
    writer.write_all(&[0; 60]).expect("written");
    let moved = splice(&reader, None, &last_writer, None, 40, SpliceFlags::empty());
    assert_eq!(moved.expect("moved"), 40);
    last_reader.read_exact(&mut [0; 40]).expect("read");
    let recorded = RecordedRows::of(recording);

    let [sent, received] = rows(&recorded, &old_reader);
    assert_eq!(sent, [(4900, 7), (4907, 8)]);
    assert_eq!(received, [(0, 4907), (4907, 8)]);
    let [sent, received] = rows(&recorded, &reader);
    assert_eq!(sent, [(0, 200_000), (200_000, 60)]);
    assert_eq!(received.last(), Some(&(200_000, 40)));
    let mut next = 0;
    for (first, bytes) in received {
        assert_eq!(first, next);
        next += bytes;
    }
    assert_eq!(rows(&recorded, &last_writer), [[(0, 40)], [(0, 40)]]);
}

#[test]
fn a_fifo_has_a_name() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("a fifo");
    let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
    assert!(made.success());
    let recording = FleetRecording::start(&["--all", "--pipes"]);
    let mut both = OpenOptions::new().read(true).write(true).open(&path).expect("opened");
    both.write_all(b"some text").expect("written");
    both.read_exact(&mut [0; 9]).expect("read");
    let recorded = RecordedRows::of(recording);
    assert_eq!(rows(&recorded, &both), [[(0, 9)], [(0, 9)]]);
    let named = recorded.connections.values().filter(|row| row.local_address == "a fifo");
    for end in named {
        assert_eq!((end.family, end.sequences), (ConnectionFamily::Pipe, SequenceSource::Seen));
    }
}

/// Programs of a shell that are joined by a pipe: the bytes that one has written the other has read.
#[test]
fn what_a_shell_joins() {
    if !is_root() {
        return;
    }
    let recording = FleetRecording::start(&["--all", "--pipes"]);
    let mut shell = Command::new("sh")
        .args(["-c", "head -c 300000 /dev/zero | wc -c > /dev/null"])
        .spawn()
        .expect("sh runs");
    assert!(shell.wait().expect("it ends").success());
    let recorded = RecordedRows::of(recording);
    let name = |message: &ConnectionMessage| {
        let is_own = |task: &&luc_events::tables::ThreadInfo| task.thread == message.thread;
        let last = recorded.tasks.iter().rfind(is_own);
        last.map_or("", |task| task.comm.as_str()).to_owned()
    };
    let mut sums: BTreeMap<(ConnectionId, String), u64> = BTreeMap::new();
    for message in &recorded.messages {
        *sums.entry((message.connection, name(message))).or_default() += message.bytes;
    }
    let joined = recorded.connections.values().filter(|row| {
        let sum = |connection, name: &str| sums.get(&(connection, name.to_owned()));
        row.family == ConnectionFamily::Pipe
            && sum(row.connection, "head") == Some(&300_000)
            && sum(row.peer, "wc") == Some(&300_000)
    });
    let closed: Vec<bool> = joined.map(|row| row.closed_ns > 0).collect();
    assert_eq!(closed, [true], "{sums:?}");
}

#[test]
fn without_the_option_pipes_have_no_rows() {
    if !is_root() {
        return;
    }
    let recording = FleetRecording::start(&["--all"]);
    let (mut reader, mut writer) = pipe();
    writer.write_all(&[0; 10]).expect("written");
    reader.read_exact(&mut [0; 10]).expect("read");
    let recorded = RecordedRows::of(recording);
    let mut families = recorded.connections.values().map(|row| row.family);
    assert!(families.all(|family| family != ConnectionFamily::Pipe));
}
