//! Exchanges between two hosts have rows with just their bytes, whoever sends and however it is read.

use std::io::Read as _;
use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};

use luc_events::event_kinds::{ConnectionFamily, MessageDirection, SequenceSource};

use super::planted_exchange::{self, ConnectedPair, PlantedExchange, some, totals};
use super::trace_checks::RecordedRows;
use super::two_hosts::{SERVER_IPV4, SERVER_IPV6, TwoHosts};
use crate::common::fleet_recording::FleetRecording;

/// Records one exchange, and compares.
fn exchanged(bind: &str, to: &str, family: ConnectionFamily, addresses: [&str; 2]) {
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let messages = some();
    let (recorded, port) = RecordedRows::of_exchange(&["--all"], &place, [bind, to], &messages);

    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    recorded.check_messages(&ends, [0, 0], totals(&messages));
    assert!(recorded.check_packets(&ends) > 0, "{:?}", recorded.packets);
    // A row for each send, whatever its packets.
    let sends = |index: fn(&(usize, usize)) -> usize| {
        messages.iter().filter(|message| index(message) > 0).count()
    };
    let (client, server) = (ends.client, ends.server);
    assert_eq!(recorded.messages_of(client, MessageDirection::Sent).len(), sends(|m| m.0));
    assert_eq!(recorded.messages_of(server, MessageDirection::Sent).len(), sends(|m| m.1));
    for (end, other, [local, remote]) in
        [(client, server, addresses), (server, client, [addresses[1], addresses[0]])]
    {
        assert_eq!(end.family, family, "{end:?}");
        assert_eq!((end.local_address.as_str(), end.remote_address.as_str()), (local, remote));
        assert_eq!(end.local_port, other.remote_port, "{end:?} {other:?}");
        assert_eq!(end.sequences, SequenceSource::Seen);
        assert!(end.opened_ns > 0 && end.opened_ns < end.closed_ns, "{end:?}");
        assert_eq!(end.opener_process.0, std::process::id(), "{end:?}");
        assert_ne!(end.cookie, 0);
    }
    // Whoever is named has a row that says who it is.
    for message in &recorded.messages {
        let known = |task: &luc_events::tables::ThreadInfo| task.thread == message.thread;
        assert!(recorded.tasks.iter().any(known), "{message:?}");
    }
}

#[test]
fn messages_over_ipv4() {
    exchanged("0.0.0.0", SERVER_IPV4, ConnectionFamily::Ipv4, ["10.77.0.1", SERVER_IPV4]);
}

#[test]
fn messages_over_ipv6() {
    exchanged("::", SERVER_IPV6, ConnectionFamily::Ipv6, ["fd77::1", SERVER_IPV6]);
}

#[test]
fn messages_over_ipv4_with_sockets_of_ipv6() {
    let mapped = format!("::ffff:{SERVER_IPV4}");
    exchanged("::", &mapped, ConnectionFamily::Ipv4, ["10.77.0.1", SERVER_IPV4]);
}

#[test]
fn many_messages_on_one_connection() {
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let messages: PlantedExchange =
        (0..2000).map(|number| (1 + number % 90, 1 + number % 700)).collect();
    let (recorded, port) =
        RecordedRows::of_exchange(&["--all"], &place, ["::", SERVER_IPV6], &messages);
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    recorded.check_messages(&ends, [0, 0], totals(&messages));
    for end in [ends.client, ends.server] {
        assert_eq!(recorded.messages_of(end, MessageDirection::Sent).len(), messages.len());
    }
    // Of each kept packet the other host has kept the counterpart, but for where the two thin out differently.
    let sent = recorded.packets_of(ends.client, MessageDirection::Sent).len();
    let pairs = recorded.check_packets(&ends);
    assert!(sent > 10 && pairs > sent / 2, "{sent} sent, {pairs} pairs");
}

/// A processor does not keep the rows that it gathers until it has many.
#[test]
fn a_few_messages_are_in_the_trace_while_recording_goes_on() {
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let recording = FleetRecording::start(&["--all"]);
    let pair = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    pair.exchange(&vec![(11, 13)]);
    let is_there = |bytes| {
        let messages = RecordedRows::messages_so_far(&recording);
        let both = messages.iter().filter(|row| row.bytes == bytes).count();
        both >= 2
    };
    let began = Instant::now();
    while !(is_there(11) && is_there(13)) {
        assert!(began.elapsed() < Duration::from_secs(60), "it has not come");
        thread::sleep(Duration::from_millis(100));
    }
    recording.stop();
}

#[test]
fn short_connections_are_told_apart() {
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let recording = FleetRecording::start(&["--all"]);
    let mut ports = Vec::new();
    for number in 1..=100 {
        let messages = vec![(number, 2 * number)];
        let pair = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
        pair.exchange(&messages);
        ports.push((pair.client_port(), messages));
    }
    let recorded = RecordedRows::of(recording);
    let mut used = std::collections::BTreeSet::new();
    for (port, messages) in &ports {
        // A port can come twice: the exchange's length tells which of them it was.
        if !used.insert(*port) {
            continue;
        }
        if ports.iter().filter(|(other, _)| other == port).count() > 1 {
            continue;
        }
        let ends = recorded.ends(place.client.inode(), place.server.inode(), *port);
        recorded.check_messages(&ends, [0, 0], totals(messages));
    }
    assert!(used.len() > 90);
}

/// Looks, failed attempts and the end of a stream move no bytes.
#[test]
fn what_moves_no_bytes_has_no_row() {
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let recording = FleetRecording::start(&["--all"]);
    let pair = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    pair.server.set_nonblocking(true).expect("set");
    let mut room = [0; 100];
    for _ in 0..10 {
        let error = (&pair.server).read(&mut room).expect_err("nothing has come");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
    pair.server.set_nonblocking(false).expect("set");
    planted_exchange::send(&pair.client, 500);
    assert_eq!(pair.server.peek(&mut room).expect("something has come"), 100);
    for _ in 0..5 {
        planted_exchange::receive(&pair.server, 100);
        let _ = pair.server.set_nonblocking(true);
        let _ = pair.server.peek(&mut room);
        let _ = pair.server.set_nonblocking(false);
    }
    // One end says that it has no more; the other goes on.
    pair.client.shutdown(Shutdown::Write).expect("shut down");
    assert_eq!((&pair.server).read(&mut room).expect("the end"), 0);
    planted_exchange::send(&pair.server, 300);
    planted_exchange::receive(&pair.client, 300);
    assert_eq!((&pair.server).read(&mut room).expect("the end"), 0);
    let port = pair.client_port();
    drop(pair);
    let recorded = RecordedRows::of(recording);
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    recorded.check_messages(&ends, [0, 0], [500, 300]);
    assert_eq!(recorded.messages_of(ends.server, MessageDirection::Received).len(), 5);
}

/// Threads that send on one connection at once wait for room in the middle of their calls.
#[test]
fn threads_that_send_on_one_connection() {
    const THREADS: usize = 4;
    const BYTES: usize = 3_000_000;
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let recording = FleetRecording::start(&["--all"]);
    let pair = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| planted_exchange::send(&pair.client, BYTES));
        }
        planted_exchange::receive(&pair.server, THREADS * BYTES);
    });
    let port = pair.client_port();
    drop(pair);
    let recorded = RecordedRows::of(recording);
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    recorded.check_messages(&ends, [0, 0], [(THREADS * BYTES) as u64, 0]);
    let sent = recorded.messages_of(ends.client, MessageDirection::Sent);
    let threads: std::collections::BTreeSet<u32> = sent.iter().map(|row| row.thread.0).collect();
    assert_eq!(threads.len(), THREADS);
    for thread in threads {
        let of_thread = sent.iter().filter(|row| row.thread.0 == thread);
        assert_eq!(of_thread.map(|row| row.bytes).sum::<u64>(), BYTES as u64);
    }
}
