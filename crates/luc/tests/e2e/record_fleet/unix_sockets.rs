//! Messages over unix sockets have rows with just their bytes, at both ends. It does not matter who has the sockets,
//! and how old they are.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use luc_events::event_kinds::{ConnectionFamily, MessageDirection, SequenceSource, SocketRole};
use luc_events::tables::{ConnectionMessage, SocketConnection};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, send, sendmsg, socketpair, sockopt::socket_cookie,
};

use super::compiled_programs;
use super::planted_exchange::{PlantedExchange, some, totals};
use super::trace_checks::{BothEnds, RecordedRows};
use crate::common::fleet_recording::FleetRecording;
use crate::common::is_root;

/// The two ends of a connection, by what the kernel calls them.
struct Cookies([u64; 2]);

impl Cookies {
    fn of(client: impl AsFd, server: impl AsFd) -> Self {
        let cookie = |end: BorrowedFd| socket_cookie(end).expect("a socket's number");
        Self([cookie(client.as_fd()), cookie(server.as_fd())])
    }

    /// Their rows, which name each other.
    fn ends<'r>(&self, recorded: &'r RecordedRows) -> BothEnds<'r> {
        let [client, server] = self.0.map(|cookie| {
            let mut found = recorded.connections.values().filter(|row| row.cookie == cookie);
            let end = found.next().expect("a row");
            assert!(found.next().is_none(), "one socket is one end");
            end
        });
        assert_eq!((client.peer, server.peer), (server.connection, client.connection));
        BothEnds { client, server }
    }
}

fn exchange(mut client: &UnixStream, mut server: &UnixStream, messages: &PlantedExchange) {
    thread::scope(|scope| {
        scope.spawn(|| {
            for (request, answer) in messages {
                server.read_exact(&mut vec![0; *request]).expect("received");
                server.write_all(&vec![1; *answer]).expect("sent");
            }
        });
        for (request, answer) in messages {
            client.write_all(&vec![2; *request]).expect("sent");
            client.read_exact(&mut vec![0; *answer]).expect("received");
        }
    });
}

/// Records an exchange on a connection to `listener`, and compares.
fn exchanged(listener: &UnixListener, address: &SocketAddr, name: &str) {
    let messages = some();
    let recording = FleetRecording::start(&["--all"]);
    let client = UnixStream::connect_addr(address).expect("connected");
    let (mut server, _) = listener.accept().expect("accepted");
    let cookies = Cookies::of(&client, &server);
    exchange(&client, &server, &messages);
    drop(client);
    assert_eq!(server.read(&mut [0; 9]).expect("the end"), 0);
    let recorded = RecordedRows::of(recording);

    let ends = cookies.ends(&recorded);
    recorded.check_messages(&ends, [0, 0], totals(&messages));
    let BothEnds { client, server } = ends;
    let addresses =
        |end: &SocketConnection| (end.local_address.clone(), end.remote_address.clone());
    assert_eq!(addresses(client), (String::new(), name.to_owned()));
    assert_eq!(addresses(server), (name.to_owned(), String::new()));
    assert_eq!((client.side, server.side), (SocketRole::Client, SocketRole::Server));
    assert_eq!(client.opener_process.0, std::process::id());
    for end in [client, server] {
        assert_eq!(end.family, ConnectionFamily::Unix);
        assert_eq!(end.sequences, SequenceSource::Seen);
        assert!(end.opened_ns > recorded.start_ns, "{end:?}");
    }
    assert!(client.closed_ns > client.opened_ns, "{client:?}");
    assert_eq!(server.closed_ns, 0, "{server:?}");
}

#[test]
fn messages_over_a_path() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("a socket");
    let listener = UnixListener::bind(&path).expect("bound");
    let address = SocketAddr::from_pathname(&path).expect("an address");
    exchanged(&listener, &address, path.to_str().expect("text"));
}

#[test]
fn messages_over_an_abstract_name() {
    if !is_root() {
        return;
    }
    let name = format!("luc-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("an address");
    let listener = UnixListener::bind_addr(&address).expect("bound");
    exchanged(&listener, &address, &format!("@{name}"));
}

#[test]
fn messages_over_pairs() {
    if !is_root() {
        return;
    }
    let before = UnixStream::pair().expect("a pair");
    let recording = FleetRecording::start(&["--all"]);
    let during = UnixStream::pair().expect("a pair");
    let messages = some();
    exchange(&before.0, &before.1, &messages);
    exchange(&during.0, &during.1, &messages);
    let recorded = RecordedRows::of(recording);
    for (pair, sequences) in [(&before, SequenceSource::Counted), (&during, SequenceSource::Seen)] {
        let ends = Cookies::of(&pair.0, &pair.1).ends(&recorded);
        recorded.check_messages(&ends, [0, 0], totals(&messages));
        for end in [ends.client, ends.server] {
            assert_eq!((end.side, end.sequences), (SocketRole::Unknown, sequences));
            assert_eq!((end.local_address.as_str(), end.remote_address.as_str()), ("", ""));
        }
    }
}

/// Reads `bytes` bytes without ever sleeping, so that the first come back before their sender's call ends.
fn read_awake(mut end: &UnixStream, bytes: usize) {
    let mut missing = vec![0; bytes];
    let mut read = 0;
    while read < bytes {
        match end.read(&mut missing[read..]) {
            Ok(0) => panic!("closed"),
            Ok(count) => read += count,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
        }
    }
}

#[test]
fn pairs_whose_ends_are_met_at_once() {
    if !is_root() {
        return;
    }
    const PAIRS: usize = 300;
    let messages: PlantedExchange = vec![(7, 1), (14, 3), (21, 5)];
    let recording = FleetRecording::start(&["--all"]);
    let pairs: Vec<(UnixStream, UnixStream)> =
        (0..PAIRS).map(|_| UnixStream::pair().expect("a pair")).collect();
    for end in pairs.iter().flat_map(|pair| [&pair.0, &pair.1]) {
        end.set_nonblocking(true).expect("set");
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            for mut server in pairs.iter().map(|pair| &pair.1) {
                for (request, answer) in &messages {
                    read_awake(server, *request);
                    server.write_all(&vec![1; *answer]).expect("sent");
                }
            }
        });
        for mut client in pairs.iter().map(|pair| &pair.0) {
            for (request, answer) in &messages {
                client.write_all(&vec![2; *request]).expect("sent");
                read_awake(client, *answer);
            }
        }
    });
    let recorded = RecordedRows::of(recording);
    for pair in &pairs {
        let ends = Cookies::of(&pair.0, &pair.1).ends(&recorded);
        recorded.check_messages(&ends, [0, 0], totals(&messages));
    }
}

/// Bytes that lie unread when recording begins have been sent before.
#[test]
fn bytes_that_are_older_than_the_trace() {
    if !is_root() {
        return;
    }
    let (mut client, mut server) = UnixStream::pair().expect("a pair");
    client.write_all(&[0; 1000]).expect("sent");
    server.read_exact(&mut [0; 300]).expect("received");
    client.write_all(&[0; 70_000]).expect("sent");
    let recording = FleetRecording::start(&["--all"]);
    client.write_all(&[0; 11]).expect("sent");
    server.read_exact(&mut [0; 700]).expect("received");
    server.read_exact(&mut [0; 70_011]).expect("received");
    exchange(&client, &server, &vec![(5, 6)]);
    let recorded = RecordedRows::of(recording);
    let ends = Cookies::of(&client, &server).ends(&recorded);
    let sent = ranges(&recorded.messages_of(ends.client, MessageDirection::Sent));
    assert_eq!(sent, [(70_700, 11), (70_711, 5)]);
    let received = recorded.messages_of(ends.server, MessageDirection::Received);
    assert_eq!(covered(&received), (0, 70_716));
    assert_eq!(ranges(&recorded.messages_of(ends.client, MessageDirection::Received)), [(0, 6)]);
}

fn ranges(rows: &[&ConnectionMessage]) -> Vec<(u64, u64)> {
    rows.iter().map(|row| (row.first_byte, row.bytes)).collect()
}

/// From where to where rows reach, without a gap or an overlap.
fn covered(rows: &[&ConnectionMessage]) -> (u64, u64) {
    let first = rows.first().expect("rows").first_byte;
    let mut next = first;
    for row in rows {
        assert_eq!(row.first_byte, next, "{rows:?}");
        next += row.bytes;
    }
    (first, next)
}

/// A connection that is in use while recording begins: what is sent and what is received is counted from one byte.
#[test]
fn a_connection_that_is_busy_when_recording_begins() {
    if !is_root() {
        return;
    }
    let (client, server) = UnixStream::pair().expect("a pair");
    let go_on = AtomicBool::new(true);
    // No two successive messages are of one length, so that rows of one offset are of one message only if both are
    // right.
    let length = |number: usize| 1 + number * 31 % 211;
    let recording = thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                match (&server).read_exact(&mut vec![0; length(number)]) {
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                    other => other.expect("received"),
                }
            }
        });
        scope.spawn(|| {
            for number in 0.. {
                if !go_on.load(Ordering::Relaxed) {
                    break;
                }
                (&client).write_all(&vec![0; length(number)]).expect("sent");
                // Now and then the reader has all.
                if number % 16 == 0 {
                    thread::sleep(Duration::from_micros(200));
                }
            }
            client.shutdown(std::net::Shutdown::Write).expect("shut down");
        });
        let recording = FleetRecording::start(&["--all"]);
        thread::sleep(Duration::from_millis(300));
        go_on.store(false, Ordering::Relaxed);
        recording
    });
    let recorded = RecordedRows::of(recording);
    let ends = Cookies::of(&client, &server).ends(&recorded);
    let sent = recorded.messages_of(ends.client, MessageDirection::Sent);
    let received = recorded.messages_of(ends.server, MessageDirection::Received);
    assert_eq!(covered(&sent).1, covered(&received).1);
    let lengths = |rows: &[&ConnectionMessage]| -> Vec<u64> {
        let whole = rows.iter().rev().take(500).map(|row| row.bytes);
        whole.collect()
    };
    assert!(sent.len() >= 500, "{}", sent.len());
    assert_eq!(lengths(&sent), lengths(&received));
}

/// A program that inherits a socket sends on the same connection.
#[test]
fn a_socket_that_two_processes_share() {
    if !is_root() {
        return;
    }
    let (mut client, mut server) = UnixStream::pair().expect("a pair");
    let recording = FleetRecording::start(&["--all"]);
    client.write_all(b"parent").expect("sent");
    let mut child = Command::new("sh")
        .args(["-c", "printf 'from the child'"])
        .stdout(Stdio::from(OwnedFd::from(client.try_clone().expect("cloned"))))
        .spawn()
        .expect("sh runs");
    assert!(child.wait().expect("it ends").success());
    client.write_all(b"parent").expect("sent");
    server.read_exact(&mut [0; 6 + 14 + 6]).expect("received");
    let recorded = RecordedRows::of(recording);
    let ends = Cookies::of(&client, &server).ends(&recorded);
    let sent = recorded.messages_of(ends.client, MessageDirection::Sent);
    assert_eq!(ranges(&sent), [(0, 6), (6, 14), (20, 6)]);
    let processes: Vec<u32> = sent.iter().map(|row| row.process.0).collect();
    let own = std::process::id();
    assert_eq!(processes, [own, child.id(), own]);
}

/// A socket that is passed to another process is the same connection.
#[test]
fn a_socket_that_is_passed_on() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let program = compiled_programs::compiled("passed", folder.path());
    let recording = FleetRecording::start(&["--all"]);
    let (to_child, child_end) = UnixStream::pair().expect("a pair");
    let (mut client, server) = UnixStream::pair().expect("a pair");
    let cookies = Cookies::of(&client, &server);
    client.write_all(b"to whom it may concern").expect("sent");
    let mut child = Command::new(program)
        .stdin(Stdio::from(OwnedFd::from(child_end)))
        .spawn()
        .expect("it runs");
    let passed = [server.as_fd()];
    let mut room = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut room);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&passed)));
    let text = [std::io::IoSlice::new(b"x")];
    sendmsg(&to_child, &text, &mut ancillary, SendFlags::empty()).expect("passed");
    drop(server);
    client.read_exact(&mut [0; 22]).expect("the child's answer");
    assert!(child.wait().expect("it ends").success());
    let recorded = RecordedRows::of(recording);
    let ends = cookies.ends(&recorded);
    recorded_by(&recorded, ends.server, MessageDirection::Received, child.id());
    recorded_by(&recorded, ends.server, MessageDirection::Sent, child.id());
    recorded_by(&recorded, ends.client, MessageDirection::Sent, std::process::id());
}

/// All 22 bytes of a direction are in one row, of this process.
fn recorded_by(
    recorded: &RecordedRows,
    end: &SocketConnection,
    direction: MessageDirection,
    process: u32,
) {
    let rows = recorded.messages_of(end, direction);
    assert_eq!(ranges(&rows), [(0, 22)]);
    assert_eq!(rows[0].process.0, process);
}

/// Packets keep their limits, and what does not fit into a reader's room is gone.
#[test]
fn pairs_that_keep_messages_apart() {
    if !is_root() {
        return;
    }
    let recording = FleetRecording::start(&["--all"]);
    let kinds = [
        (SocketType::SEQPACKET, ConnectionFamily::UnixSeqpacket),
        (SocketType::DGRAM, ConnectionFamily::UnixDatagram),
    ];
    let pairs = kinds.map(|(kind, family)| {
        let pair = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
        (pair.expect("a pair"), family)
    });
    for ((client, server), _) in &pairs {
        let mut room = [0; 100];
        for bytes in [10, 20, 30] {
            send(client, &room[..bytes], SendFlags::empty()).expect("sent");
        }
        for bytes in [10, 20, 30] {
            // A look does not count.
            recv(server, &mut room, RecvFlags::PEEK).expect("seen");
            let (received, _) = recv(server, &mut room, RecvFlags::empty()).expect("received");
            assert_eq!(received, bytes);
        }
    }
    let recorded = RecordedRows::of(recording);
    for ((client, server), family) in &pairs {
        let ends = Cookies::of(client, server).ends(&recorded);
        assert_eq!((ends.client.family, ends.server.family), (*family, *family));
        let whole = [(0, 10), (10, 20), (30, 30)];
        assert_eq!(ranges(&recorded.messages_of(ends.client, MessageDirection::Sent)), whole);
        assert_eq!(ranges(&recorded.messages_of(ends.server, MessageDirection::Received)), whole);
    }
}

/// A socket that takes datagrams of whoever sends them is no end of a connection.
#[test]
fn datagrams_of_many_senders_have_no_rows() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("log");
    let server = UnixDatagram::bind(&path).expect("bound");
    let old = UnixDatagram::unbound().expect("a socket");
    old.connect(&path).expect("connected");
    let recording = FleetRecording::start(&["--all"]);
    let new = UnixDatagram::unbound().expect("a socket");
    new.connect(&path).expect("connected");
    for client in [&old, &new] {
        client.send(&[0; 30]).expect("sent");
        assert_eq!(server.recv(&mut [0; 50]).expect("received"), 30);
    }
    let recorded = RecordedRows::of(recording);
    let sockets = [&server, &old, &new].map(|socket| socket_cookie(socket).expect("a number"));
    let mut rows = recorded.connections.values();
    assert!(rows.all(|row| !sockets.contains(&row.cookie)));
}

/// Looks, failed attempts and the end of a stream move no bytes.
#[test]
fn what_moves_no_bytes_has_no_row() {
    if !is_root() {
        return;
    }
    let recording = FleetRecording::start(&["--all"]);
    let (mut client, mut server) = UnixStream::pair().expect("a pair");
    let cookies = Cookies::of(&client, &server);
    server.set_nonblocking(true).expect("set");
    let error = server.read(&mut [0; 9]).expect_err("nothing has come");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    client.write_all(&[0; 50]).expect("sent");
    recv(&server, &mut [0; 20], RecvFlags::PEEK).expect("seen");
    server.read_exact(&mut [0; 20]).expect("received");
    server.read_exact(&mut [0; 30]).expect("received");
    drop(server);
    assert_eq!(client.read(&mut [0; 9]).expect("the end"), 0);
    let error = client.write(&[0; 9]).expect_err("nobody is there");
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    let recorded = RecordedRows::of(recording);
    let ends = cookies.ends(&recorded);
    recorded.check_messages(&ends, [0, 0], [50, 0]);
    assert_eq!(recorded.messages_of(ends.server, MessageDirection::Received).len(), 2);
    assert!(ends.server.closed_ns > 0);
}
