//! Tests rows that the core needs in another form than the trace has.

use luc_events::event_kinds::{MessageDirection, SequenceSource};
use luc_events::tables::LostEvents;
use luc_fleet::text::ResultText;
use luc_fleet::{FleetExplanation, JoinedTraces, RecordedHost, fit};

use crate::planted_hosts::{
    BEGIN_NS, PlantedConnection, TRUE_CLOCK, explained, host, message, talk,
};

/// Two hosts with one connection, on which the client asks 10 times.
fn asked(base: [u64; 2]) -> [RecordedHost; 2] {
    let (mut client, mut server) = (host("client", &TRUE_CLOCK, 2), host("server", &TRUE_CLOCK, 2));
    talk([&mut client, &mut server], [&TRUE_CLOCK, &TRUE_CLOCK], 1, 2);
    for number in 0..10 {
        let at = |ms: i64| {
            TRUE_CLOCK.monotonic_ns(BEGIN_NS + 500_000_000 + number * 20_000_000 + ms * 1_000_000)
        };
        let first = |way: usize, bytes: u64| base[way] + number as u64 * bytes;
        client.messages.push(message(1, at(0), MessageDirection::Sent, first(0, 40), 40));
        server.messages.push(message(1, at(1), MessageDirection::Received, first(0, 40), 40));
        server.messages.push(message(1, at(4), MessageDirection::Sent, first(1, 90), 90));
        client.messages.push(message(1, at(5), MessageDirection::Received, first(1, 90), 90));
    }
    [client, server]
}

fn check(found: &FleetExplanation) {
    assert_eq!(found.connections.paired.all(), 1);
    assert_eq!((found.messages.edges, found.messages.bytes_on_edges), (20, 1300));
    assert!(found.messages.gaps.is_empty(), "{:?}", found.messages);
    assert_eq!((found.requests.incoming_answered, found.requests.outgoing_with_server), (10, 10));
    assert_eq!(found.services[0].process, "serverd");
    assert_eq!(found.services[0].p50_ns, Some(3_000_000));
    assert_eq!(found.slowest.len(), 10);
    assert_eq!(found.slowest[0].time_ns, 5_000_000);
    let request = found.request.as_ref().expect("a request");
    assert_eq!(request.path.iter().map(|part| part.time_ns).sum::<u64>(), 5_000_000);
}

#[test]
fn offsets_of_known_connections_count_from_the_first_byte() {
    let found = explained(asked([0, 0]));
    assert_eq!(found.connections.paired.by_initial_numbers, 1);
    check(&found);
    let way = found.one_way.iter().find(|way| way.from == "client").expect("a way");
    let error = way.error.expect("an error");
    let off_ns = (way.p50_ns.expect("a time") - 1_000_000).abs();
    assert!(off_ns as f64 <= error.max_ns && error.max_ns < 25_000.0, "{way:?}");
}

/// Offsets then begin with the sequence number, which may be just before it comes round.
#[test]
fn offsets_of_older_connections_begin_with_the_sequence_number() {
    for base in [[5_000, 9_000], [u64::from(u32::MAX) - 100, 1 << 31]] {
        let mut hosts = asked(base);
        for host in &mut hosts {
            let row = &mut host.connections[0];
            row.sequences = SequenceSource::Unknown;
            (row.initial_sent, row.initial_received) = (0, 0);
        }
        let found = explained(hosts.clone());
        assert_eq!(found.connections.paired.by_addresses, 1);
        assert_eq!(found.messages.edges, 20);
        assert_eq!(found.requests.incoming_answered, 10);
        // What their packets' offsets are is not sure, so the clocks rest on nothing.
        assert_eq!(found.left_out.uncertain_packets, 8_000);
        assert!(found.clocks.is_empty());
        assert_eq!(found.unrelated.len(), 2);
        // The trace of one host began later.
        hosts[1].messages.drain(..4);
        let found = explained(hosts);
        assert_eq!((found.connections.paired.by_addresses, found.messages.edges), (1, 16));
    }
}

/// The byte after the initial sequence number is the first.
#[test]
fn an_older_end_is_paired_with_one_whose_numbers_are_known() {
    let [client, mut server] = asked([0, 0]);
    let row = &mut server.connections[0];
    // Both come round after some messages, or at the first.
    let [back, there] =
        [row.initial_sent, row.initial_received].map(|initial| u64::from(initial) + 1);
    row.sequences = SequenceSource::Unknown;
    (row.initial_sent, row.initial_received) = (0, 0);
    for message in &mut server.messages {
        message.first_byte += match message.direction {
            MessageDirection::Sent => back,
            MessageDirection::Received => there,
        };
    }
    server.messages.drain(..2);
    let found = explained([client, server]);
    assert_eq!(found.connections.paired.by_addresses, 1);
    assert_eq!((found.messages.edges, found.messages.bytes_on_edges), (18, 1170));
    assert!(found.requests.incoming_with_client == 9, "{:?}", found.requests);
}

#[test]
fn packets_beside_lost_ones_say_nothing_of_clocks() {
    let mut hosts = asked([0, 0]);
    hosts[0].lost.push(LostEvents {
        at_ns: TRUE_CLOCK.monotonic_ns(BEGIN_NS + 1_000_000_000),
        count: 3,
        place: "packet".to_owned(),
    });
    let joined = JoinedTraces::new(hosts.to_vec()).expect("joined");
    let found = fit(&joined).expect("a fit");
    assert!((1_999..=2_001).contains(&found.left_out.packets_beside_lost_ones), "{found:?}");
    assert_eq!(found.hosts[0].lost["packet"], 3);
    assert!(found.pairs[0].offset.is_some());
}

#[test]
fn rows_without_their_connection_are_counted() {
    let [mut client, mut server] = asked([0, 0]);
    client.connections.clear();
    // They are of other bytes than the messages.
    server.packets.clear();
    let found = explained([client, server]);
    assert_eq!(found.left_out.without_connection, 20 + 4_000);
    assert_eq!(found.connections.paired.all(), 0);
    assert_eq!(found.connections.unpaired[0].reason, "no trace has the other end");
    assert_eq!(found.messages.left_out.unpaired, 20);
    // The server's own times are there.
    assert_eq!(found.services[0].answered, 10);
    let request = found.request.expect("a request");
    assert_eq!(request.request.time_ns, 3_000_000);
    assert!(request.calls[0].client.is_none() && request.calls[0].server.is_some());
}

#[test]
fn damaged_addresses_and_times_are_counted() {
    let [mut client, mut server] = asked([0, 0]);
    let mut extra = PlantedConnection::new(&mut client, &mut server, 2);
    client.connections[1].local_address = "nowhere".to_owned();
    server.connections[1].local_port = 70_000;
    extra.packet((&mut client, u64::MAX), (&mut server, 5), 0, 1);
    client.messages.push(message(1, u64::MAX, MessageDirection::Sent, 400, 1));
    client.messages.push(message(1, 5, MessageDirection::Sent, u64::MAX, 1));
    let found = explained([client, server]);
    assert_eq!(found.left_out.unreadable_connections, 2);
    assert_eq!(found.left_out.out_of_range, 3);
    check(&found);
}

#[test]
fn what_limits_a_trace_is_said() {
    let mut hosts = asked([0, 0]);
    hosts[1].trace.end_ns = 0;
    hosts[0].trace.filters = "process 7".to_owned();
    let found = explained(hosts);
    assert!(found.hosts[0].is_complete && !found.hosts[1].is_complete);
    // Its clock samples say how long it is.
    assert_eq!(found.hosts[1].length_ns, 2_000_000_000);
    let text = ResultText { what: &found, colours: false }.to_string();
    assert!(text.contains("server: the trace has no end"), "{text}");
    assert!(text.contains("client: messages and waits are those of process 7 only"), "{text}");
    check(&found);
}
