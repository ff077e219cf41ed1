//! Sequence numbers become offsets: of connections that are older than the trace, and where the numbers wrap around.

use std::io::Read as _;
use std::net::{Shutdown, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use luc_events::event_kinds::{MessageDirection, SequenceSource};

use super::compiled_programs;
use super::planted_exchange::{self, ConnectedPair, some, totals};
use super::trace_checks::RecordedRows;
use super::two_hosts::{SERVER_IPV4, SERVER_IPV6, TwoHosts};
use crate::common::fleet_recording::FleetRecording;

/// Connections that were there before: their sequence numbers follow from what the kernel has counted.
#[test]
fn connections_older_than_the_trace() {
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let before = vec![(1000, 3), (70_000, 123_456)];
    let during = some();
    let idle = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    let pair = ConnectedPair::new(&place, "::", SERVER_IPV6);
    pair.exchange(&before);
    let recording = FleetRecording::start(&["--all"]);
    pair.exchange(&during);
    let recorded = RecordedRows::of(recording);
    let ports = [pair.client_port(), idle.client_port()];
    let ends = ports.map(|port| recorded.ends(place.client.inode(), place.server.inode(), port));
    recorded.check_messages(&ends[0], totals(&before), totals(&during));
    assert!(recorded.check_packets(&ends[0]) > 0);
    recorded.check_messages(&ends[1], [0, 0], [0, 0]);
    for end in ends.iter().flat_map(|ends| [ends.client, ends.server]) {
        assert_eq!(end.sequences, SequenceSource::Counted);
        assert_eq!((end.opened_ns, end.closed_ns), (0, 0));
        assert_eq!(end.opener_process.0, std::process::id());
    }
}

/// Sequence numbers have 32 bits, offsets 64.
#[test]
fn sequence_numbers_wrap_around() {
    const MESSAGES: usize = 40;
    const BYTES: usize = 10_000;
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a directory");
    let program = compiled_programs::compiled("sequence", folder.path());
    let recording = FleetRecording::start(&["--all"]);
    let listener = place.server.within(|| TcpListener::bind(("0.0.0.0", 0)).expect("bound"));
    let port = listener.local_addr().expect("its address").port().to_string();
    // 100,000 bytes before the wrap.
    let initial = (u32::MAX - 100_000).to_string();
    let words = [&program, SERVER_IPV4, &port, &initial, &MESSAGES.to_string(), &BYTES.to_string()];
    let mut client = place.client.command(&words).spawn().expect("the client runs");
    let (server, from) = listener.accept().expect("accepted");
    planted_exchange::receive(&server, MESSAGES * BYTES);
    planted_exchange::send(&server, 1000);
    drop(server);
    assert!(client.wait().expect("it ends").success());
    let recorded = RecordedRows::of(recording);
    let port = u32::from(from.port());
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    assert_eq!(ends.client.initial_sent, u32::MAX - 100_000);
    recorded.check_messages(&ends, [0, 0], [(MESSAGES * BYTES) as u64, 1000]);
    assert!(recorded.check_packets(&ends) > 0);
    assert_eq!(ends.client.opener_process.0, client.id());
}

/// A connection that is in use while recording begins: its counts change while they are read.
#[test]
fn a_connection_that_is_busy_when_recording_begins() {
    const BYTES: usize = 3000;
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let pair = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    let go_on = AtomicBool::new(true);
    let (recording, messages) = thread::scope(|scope| {
        scope.spawn(|| {
            let mut room = [0; 2 * BYTES];
            while (&pair.server).read(&mut room).expect("received") > 0 {}
        });
        let sender = scope.spawn(|| {
            let mut messages = 0_u64;
            while go_on.load(Ordering::Relaxed) {
                planted_exchange::send(&pair.client, BYTES);
                messages += 1;
            }
            pair.client.shutdown(Shutdown::Write).expect("shut down");
            messages
        });
        let recording = FleetRecording::start(&["--all"]);
        thread::sleep(Duration::from_millis(50));
        go_on.store(false, Ordering::Relaxed);
        (recording, sender.join().expect("no failure"))
    });
    let port = pair.client_port();
    let recorded = RecordedRows::of(recording);
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    let sent = recorded.messages_of(ends.client, MessageDirection::Sent);
    let received = recorded.messages_of(ends.server, MessageDirection::Received);
    // From the first row on nothing is missing, and the last byte is that of all that was ever sent.
    for rows in [&sent, &received] {
        let last = rows.last().expect("rows");
        assert_eq!(last.first_byte + last.bytes, messages * BYTES as u64);
        for pair in rows.windows(2) {
            assert_eq!(pair[0].first_byte + pair[0].bytes, pair[1].first_byte, "{pair:?}");
        }
    }
    // Recording may have begun in the middle of a send.
    let first = sent[0].first_byte + sent[0].bytes;
    assert!(first > BYTES as u64 && first.is_multiple_of(BYTES as u64), "{:?}", sent[0]);
    assert!(recorded.check_packets(&ends) > 0);
}
