//! `luc record --fleet` end to end: planted exchanges between network namespaces are compared with the rows of the
//! trace, byte for byte. Needs root, iproute2 and BTF; skipped, with the reason, where they are missing.

#[path = "../common/mod.rs"]
mod common;
mod guests;
mod place;
mod programs;
mod talk;
mod trace;

use std::io::Read as _;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use luc_events::codes::{Family, Flow, Sequences};
use luc_events::tables::ClockSample;

use place::{Place, SERVER_IPV4, SERVER_IPV6};
use programs::Network;
use talk::{Exchange, Pair, totals};
use trace::Recording;

/// Small and larger messages, and one way only.
fn some() -> Exchange {
    vec![(1, 1), (100, 3000), (70_000, 5), (17, 0), (0, 40_000)]
}

/// Records one exchange, and compares.
fn exchanged(bind: &str, to: &str, family: Family, addresses: [&str; 2]) {
    let Some(place) = Place::new() else {
        return;
    };
    let messages = some();
    let recording = Recording::start(&["--all"]);
    let pair = Pair::new(&place, bind, to);
    pair.exchange(&messages);
    let port = pair.client_port();
    drop(pair);
    let recorded = recording.stop();

    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    recorded.check_messages(&ends, [0, 0], totals(&messages));
    assert!(recorded.check_packets(&ends) > 0, "{:?}", recorded.packets);
    // A row for each send, whatever its packets.
    let sends = |index: fn(&(usize, usize)) -> usize| {
        messages.iter().filter(|message| index(message) > 0).count()
    };
    let (client, server) = (ends.client, ends.server);
    assert_eq!(
        recorded.messages_of(client, Flow::Sent).len(),
        sends(|m| m.0)
    );
    assert_eq!(
        recorded.messages_of(server, Flow::Sent).len(),
        sends(|m| m.1)
    );
    for (end, other, [local, remote]) in [
        (client, server, addresses),
        (server, client, [addresses[1], addresses[0]]),
    ] {
        assert_eq!(end.family, family, "{end:?}");
        assert_eq!(
            (end.local_address.as_str(), end.remote_address.as_str()),
            (local, remote)
        );
        assert_eq!(end.local_port, other.remote_port, "{end:?} {other:?}");
        assert_eq!(end.sequences, Sequences::Seen);
        assert!(
            end.opened_ns > 0 && end.opened_ns < end.closed_ns,
            "{end:?}"
        );
        assert_eq!(end.opener_process.0, std::process::id(), "{end:?}");
        assert_ne!(end.cookie, 0);
        assert_eq!(end.retransmits, 0);
    }
    // Whoever is named has a row that says who it is.
    for message in &recorded.messages {
        let known = |task: &luc_events::tables::Task| task.thread == message.thread;
        assert!(recorded.tasks.iter().any(known), "{message:?}");
    }
}

#[test]
fn messages_over_ipv4() {
    exchanged(
        "0.0.0.0",
        SERVER_IPV4,
        Family::Ipv4,
        ["10.77.0.1", SERVER_IPV4],
    );
}

#[test]
fn messages_over_ipv6() {
    exchanged("::", SERVER_IPV6, Family::Ipv6, ["fd77::1", SERVER_IPV6]);
}

#[test]
fn messages_over_ipv4_with_sockets_of_ipv6() {
    let mapped = format!("::ffff:{SERVER_IPV4}");
    exchanged("::", &mapped, Family::Ipv4, ["10.77.0.1", SERVER_IPV4]);
}

/// What a sender puts into the kernel at once is cut on its way, and joined.
#[test]
fn large_messages_in_both_directions() {
    const MIB: usize = 1 << 20;
    let Some(place) = Place::new() else {
        return;
    };
    let messages = vec![(MIB, MIB), (3 * MIB, 10), (10, 2 * MIB)];
    let recording = Recording::start(&["--all"]);
    let pair = Pair::new(&place, "0.0.0.0", SERVER_IPV4);
    pair.exchange(&messages);
    // From now on each packet is cut before the device of the bridge, so that the server gets small ones.
    let folder = tempfile::tempdir().expect("a directory");
    let offload = programs::compiled("offload", folder.path());
    place.between.run(&format!("{offload} to_server cut"));
    // After a while without traffic all packets are kept, until they are many again.
    thread::sleep(Duration::from_millis(600));
    let cut = Pair::new(&place, "0.0.0.0", SERVER_IPV4);
    cut.exchange(&messages);
    // And from now on the server's device joins them.
    place.server.run(&format!("{offload} eth0 join"));
    thread::sleep(Duration::from_millis(600));
    let joined = Pair::new(&place, "0.0.0.0", SERVER_IPV4);
    joined.exchange(&messages);
    let ports = [&pair, &cut, &joined].map(Pair::client_port);
    drop((pair, cut, joined));
    let recorded = recording.stop();
    let longest = |end, direction| {
        let rows = recorded.packets_of(end, direction);
        rows.iter().map(|row| row.bytes).max().unwrap_or(0)
    };
    for (port, is_small) in [(ports[0], false), (ports[1], true), (ports[2], false)] {
        let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
        assert!(longest(ends.client, Flow::Sent) > 1500, "{port}");
        let received = longest(ends.server, Flow::Received);
        assert_eq!(received <= 1500, is_small, "{received}");
    }
    for port in ports {
        let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
        recorded.check_messages(&ends, [0, 0], totals(&messages));
        let pairs = recorded.check_packets(&ends);
        assert!(pairs > 0, "both hosts choose the same packets");
    }
}

#[test]
fn many_messages_on_one_connection() {
    let Some(place) = Place::new() else {
        return;
    };
    let messages: Exchange = (0..2000)
        .map(|number| (1 + number % 90, 1 + number % 700))
        .collect();
    let recording = Recording::start(&["--all"]);
    let pair = Pair::new(&place, "::", SERVER_IPV6);
    pair.exchange(&messages);
    let port = pair.client_port();
    drop(pair);
    let recorded = recording.stop();
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    recorded.check_messages(&ends, [0, 0], totals(&messages));
    for end in [ends.client, ends.server] {
        assert_eq!(recorded.messages_of(end, Flow::Sent).len(), messages.len());
    }
    // Of each kept packet the other host has kept the counterpart, but for where the two thin out differently.
    let sent = recorded.packets_of(ends.client, Flow::Sent).len();
    let pairs = recorded.check_packets(&ends);
    assert!(sent > 10 && pairs > sent / 2, "{sent} sent, {pairs} pairs");
}

#[test]
fn short_connections_are_told_apart() {
    let Some(place) = Place::new() else {
        return;
    };
    let recording = Recording::start(&["--all"]);
    let mut ports = Vec::new();
    for number in 1..=100 {
        let messages = vec![(number, 2 * number)];
        let pair = Pair::new(&place, "0.0.0.0", SERVER_IPV4);
        pair.exchange(&messages);
        ports.push((pair.client_port(), messages));
    }
    let recorded = recording.stop();
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

/// Connections that were there before: their sequence numbers follow from what the kernel has counted.
#[test]
fn connections_older_than_the_trace() {
    let Some(place) = Place::new() else {
        return;
    };
    let before = vec![(1000, 3), (70_000, 123_456)];
    let during = some();
    let idle = Pair::new(&place, "0.0.0.0", SERVER_IPV4);
    let pair = Pair::new(&place, "::", SERVER_IPV6);
    pair.exchange(&before);
    let recording = Recording::start(&["--all"]);
    pair.exchange(&during);
    let recorded = recording.stop();
    let ports = [pair.client_port(), idle.client_port()];
    let ends = ports.map(|port| recorded.ends(place.client.inode(), place.server.inode(), port));
    recorded.check_messages(&ends[0], totals(&before), totals(&during));
    assert!(recorded.check_packets(&ends[0]) > 0);
    recorded.check_messages(&ends[1], [0, 0], [0, 0]);
    for end in ends.iter().flat_map(|ends| [ends.client, ends.server]) {
        assert_eq!(end.sequences, Sequences::Counted);
        assert_eq!((end.opened_ns, end.closed_ns), (0, 0));
        assert_eq!(end.opener_process.0, std::process::id());
    }
}

/// Sequence numbers have 32 bits, offsets 64.
#[test]
fn sequence_numbers_wrap_around() {
    const MESSAGES: usize = 40;
    const BYTES: usize = 10_000;
    let Some(place) = Place::new() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a directory");
    let program = programs::compiled("sequence", folder.path());
    let recording = Recording::start(&["--all"]);
    let listener = place
        .server
        .within(|| TcpListener::bind(("0.0.0.0", 0)).expect("bound"));
    let port = listener
        .local_addr()
        .expect("its address")
        .port()
        .to_string();
    // 100,000 bytes before the wrap.
    let initial = (u32::MAX - 100_000).to_string();
    let words = [
        &program,
        SERVER_IPV4,
        &port,
        &initial,
        &MESSAGES.to_string(),
        &BYTES.to_string(),
    ];
    let mut client = place
        .client
        .command(&words)
        .spawn()
        .expect("the client runs");
    let (server, from) = listener.accept().expect("accepted");
    talk::receive(&server, MESSAGES * BYTES);
    talk::send(&server, 1000);
    drop(server);
    assert!(client.wait().expect("it ends").success());
    let recorded = recording.stop();
    let port = u32::from(from.port());
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    assert_eq!(ends.client.initial_sent, u32::MAX - 100_000);
    recorded.check_messages(&ends, [0, 0], [(MESSAGES * BYTES) as u64, 1000]);
    assert!(recorded.check_packets(&ends) > 0);
    assert_eq!(ends.client.opener_process.0, client.id());
}

#[test]
fn a_network_that_loses_packets() {
    const BYTES: usize = 4 << 20;
    let Some(place) = Place::new() else {
        return;
    };
    let Some(network) = Network::new() else {
        return;
    };
    for device in ["to_client", "to_server"] {
        network.put(&place.between, device, "ingress", "lossy");
    }
    // Each of some thousand packets may be lost, and not a few large ones.
    place.client.run("ip link set eth0 gso_max_segs 1");
    let recording = Recording::start(&["--all"]);
    let pair = Pair::new(&place, "0.0.0.0", SERVER_IPV4);
    let messages = vec![(BYTES, 1), (100, 100_000)];
    pair.exchange(&messages);
    let port = pair.client_port();
    drop(pair);
    let recorded = recording.stop();
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    assert!(ends.client.retransmits > 0, "{:?}", ends.client);
    recorded.check_messages(&ends, [0, 0], totals(&messages));
    assert!(recorded.check_packets(&ends) > 0);
}

/// Addresses and ports are other ones at the two ends; the initial sequence numbers are not.
#[test]
fn a_network_that_translates_addresses() {
    let Some(place) = Place::new() else {
        return;
    };
    let Some(network) = Network::new() else {
        return;
    };
    network.put(&place.between, "to_client", "ingress", "outward");
    network.put(&place.between, "to_client", "egress", "inward");
    // Who asks for the client's second address is answered by the client.
    place.client.run("ip address add 10.77.0.50/32 dev eth0");
    let recording = Recording::start(&["--all"]);
    let listener = place
        .server
        .within(|| TcpListener::bind(("0.0.0.0", 7000)).expect("bound"));
    let client = place
        .client
        .within(|| TcpStream::connect((SERVER_IPV4, 7001)).expect("connected"));
    let (server, _) = listener.accept().expect("accepted");
    let pair = Pair { client, server };
    let messages = some();
    pair.exchange(&messages);
    let port = pair.client_port();
    drop(pair);
    let recorded = recording.stop();
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    assert_eq!(
        (ends.client.local_address.as_str(), ends.client.remote_port),
        ("10.77.0.1", 7001)
    );
    assert_eq!(
        (ends.server.remote_address.as_str(), ends.server.local_port),
        ("10.77.0.50", 7000)
    );
    recorded.check_messages(&ends, [0, 0], totals(&messages));
    assert!(recorded.check_packets(&ends) > 0);
}

/// Looks, failed attempts and the end of a stream move no bytes.
#[test]
fn what_moves_no_bytes_has_no_row() {
    let Some(place) = Place::new() else {
        return;
    };
    let recording = Recording::start(&["--all"]);
    let pair = Pair::new(&place, "0.0.0.0", SERVER_IPV4);
    pair.server.set_nonblocking(true).expect("set");
    let mut room = [0; 100];
    for _ in 0..10 {
        let error = (&pair.server)
            .read(&mut room)
            .expect_err("nothing has come");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
    pair.server.set_nonblocking(false).expect("set");
    talk::send(&pair.client, 500);
    assert_eq!(
        pair.server.peek(&mut room).expect("something has come"),
        100
    );
    for _ in 0..5 {
        talk::receive(&pair.server, 100);
        let _ = pair.server.set_nonblocking(true);
        let _ = pair.server.peek(&mut room);
        let _ = pair.server.set_nonblocking(false);
    }
    // One end says that it has no more; the other goes on.
    pair.client.shutdown(Shutdown::Write).expect("shut down");
    assert_eq!((&pair.server).read(&mut room).expect("the end"), 0);
    talk::send(&pair.server, 300);
    talk::receive(&pair.client, 300);
    assert_eq!((&pair.server).read(&mut room).expect("the end"), 0);
    let port = pair.client_port();
    drop(pair);
    let recorded = recording.stop();
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    recorded.check_messages(&ends, [0, 0], [500, 300]);
    assert_eq!(recorded.messages_of(ends.server, Flow::Received).len(), 5);
}

/// Threads that send on one connection at once wait for room in the middle of their calls.
#[test]
fn threads_that_send_on_one_connection() {
    const THREADS: usize = 4;
    const BYTES: usize = 3_000_000;
    let Some(place) = Place::new() else {
        return;
    };
    let recording = Recording::start(&["--all"]);
    let pair = Pair::new(&place, "0.0.0.0", SERVER_IPV4);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| talk::send(&pair.client, BYTES));
        }
        talk::receive(&pair.server, THREADS * BYTES);
    });
    let port = pair.client_port();
    drop(pair);
    let recorded = recording.stop();
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    recorded.check_messages(&ends, [0, 0], [(THREADS * BYTES) as u64, 0]);
    let sent = recorded.messages_of(ends.client, Flow::Sent);
    let threads: std::collections::BTreeSet<u32> = sent.iter().map(|row| row.thread.0).collect();
    assert_eq!(threads.len(), THREADS);
    for thread in threads {
        let of_thread = sent.iter().filter(|row| row.thread.0 == thread);
        assert_eq!(of_thread.map(|row| row.bytes).sum::<u64>(), BYTES as u64);
    }
}

/// Messages are those of recorded threads; connections and packets everybody's.
#[test]
fn a_filter_leaves_out_messages_only() {
    let Some(place) = Place::new() else {
        return;
    };
    // The recorded command sends nothing.
    let recording = Recording::start(&[]);
    let pair = Pair::new(&place, "0.0.0.0", SERVER_IPV4);
    pair.exchange(&some());
    let port = pair.client_port();
    drop(pair);
    let recorded = recording.stop();
    assert_eq!(recorded.messages, []);
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    assert!(recorded.check_packets(&ends) > 0);
    assert_eq!(ends.server.opener_process.0, 0);
}

#[test]
fn the_clocks_are_sampled() {
    if !common::is_root() {
        return;
    }
    let recorded = Recording::start(&[]).stop();
    let clocks = &recorded.clocks;
    assert!(clocks.len() >= 2, "one at the beginning, one at the end");
    for pair in clocks.windows(2) {
        assert!(
            pair[0].at_ns + pair[0].width_ns <= pair[1].at_ns,
            "{pair:?}"
        );
        assert!(pair[0].raw_ns < pair[1].raw_ns, "{pair:?}");
        let passed =
            |clock: fn(&ClockSample) -> u64| clock(&pair[1]).abs_diff(clock(&pair[0])) as f64;
        // NTP changes the rate by a thousandth at most.
        let (monotonic, raw) = (passed(|row| row.at_ns), passed(|row| row.raw_ns));
        let slack = (pair[0].width_ns + pair[1].width_ns) as f64 + raw / 1000.0;
        assert!((monotonic - raw).abs() <= slack, "{pair:?}");
    }
}

#[test]
fn counts_once_a_second_have_no_messages() {
    let words = ["record", "--fleet", "--summary", "--", "true"];
    let output = Command::new(common::LUC)
        .args(words)
        .output()
        .expect("luc runs");
    let message = common::refusal(&output);
    assert!(message.contains("--summary"), "{message}");
}

/// A connection that is in use while recording begins: its counts change while they are read.
#[test]
fn a_connection_that_is_busy_when_recording_begins() {
    const BYTES: usize = 3000;
    let Some(place) = Place::new() else {
        return;
    };
    let pair = Pair::new(&place, "0.0.0.0", SERVER_IPV4);
    let go_on = AtomicBool::new(true);
    let (recording, messages) = thread::scope(|scope| {
        scope.spawn(|| {
            let mut room = [0; 2 * BYTES];
            while (&pair.server).read(&mut room).expect("received") > 0 {}
        });
        let sender = scope.spawn(|| {
            let mut messages = 0_u64;
            while go_on.load(Ordering::Relaxed) {
                talk::send(&pair.client, BYTES);
                messages += 1;
            }
            pair.client.shutdown(Shutdown::Write).expect("shut down");
            messages
        });
        let recording = Recording::start(&["--all"]);
        thread::sleep(Duration::from_millis(50));
        go_on.store(false, Ordering::Relaxed);
        (recording, sender.join().expect("no failure"))
    });
    let port = pair.client_port();
    let recorded = recording.stop();
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    let sent = recorded.messages_of(ends.client, Flow::Sent);
    let received = recorded.messages_of(ends.server, Flow::Received);
    // From the first row on nothing is missing, and the last byte is that of all that was ever sent.
    for rows in [&sent, &received] {
        let last = rows.last().expect("rows");
        assert_eq!(last.first_byte + last.bytes, messages * BYTES as u64);
        for pair in rows.windows(2) {
            assert_eq!(
                pair[0].first_byte + pair[0].bytes,
                pair[1].first_byte,
                "{pair:?}"
            );
        }
    }
    // Recording may have begun in the middle of a send.
    let first = sent[0].first_byte + sent[0].bytes;
    assert!(
        first > BYTES as u64 && first % BYTES as u64 == 0,
        "{:?}",
        sent[0]
    );
    assert!(recorded.check_packets(&ends) > 0);
}
