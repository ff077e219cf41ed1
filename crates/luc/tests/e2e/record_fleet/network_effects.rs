//! Effects of networks on packets: they cut, join and lose them, and translate their addresses.

use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use luc_events::event_kinds::MessageDirection;

use super::compiled_programs::{self, PacketPrograms};
use super::planted_exchange::{ConnectedPair, PlantedExchange, some, totals};
use super::trace_checks::RecordedRows;
use super::two_hosts::{SERVER_IPV4, TwoHosts};
use crate::common::fleet_recording::FleetRecording;

/// Bytes that a sender puts into the kernel at once are cut on their way, and joined.
#[test]
fn large_messages_in_both_directions() {
    const MIB: usize = 1 << 20;
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let messages = vec![(MIB, MIB), (3 * MIB, 10), (10, 2 * MIB)];
    let recording = FleetRecording::start(&["--all"]);
    let pair = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    pair.exchange(&messages);
    // From now on each packet is cut before the device of the bridge, so that the server gets small ones.
    let folder = tempfile::tempdir().expect("a directory");
    let offload = compiled_programs::compiled("offload", folder.path());
    place.between.run(&format!("{offload} to_server cut"));
    // After a while without traffic all packets are kept, until they are many again.
    thread::sleep(Duration::from_millis(600));
    let cut = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    cut.exchange(&messages);
    // And from now on the server's device joins them.
    place.server.run(&format!("{offload} eth0 join"));
    thread::sleep(Duration::from_millis(600));
    let joined = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    joined.exchange(&messages);
    let ports = [&pair, &cut, &joined].map(ConnectedPair::client_port);
    drop((pair, cut, joined));
    let recorded = RecordedRows::of(recording);
    let longest = |end, direction| {
        let rows = recorded.packets_of(end, direction);
        rows.iter().map(|row| row.bytes).max().unwrap_or(0)
    };
    for (port, is_small) in [(ports[0], false), (ports[1], true), (ports[2], false)] {
        let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
        assert!(longest(ends.client, MessageDirection::Sent) > 1500, "{port}");
        let received = longest(ends.server, MessageDirection::Received);
        assert_eq!(received <= 1500, is_small, "{received}");
    }
    for port in ports {
        let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
        recorded.check_messages(&ends, [0, 0], totals(&messages));
        let pairs = recorded.check_packets(&ends);
        assert!(pairs > 0, "both hosts choose the same packets");
    }
}

/// Two hosts between which one of a hundred packets is lost, in both directions.
fn lossy() -> Option<(TwoHosts, PacketPrograms)> {
    let (place, network) = (TwoHosts::new()?, PacketPrograms::new()?);
    for device in ["to_client", "to_server"] {
        network.put(&place.between, device, "ingress", "lossy");
    }
    // Each of some thousand packets may be lost, and not a few large ones.
    place.client.run("ip link set eth0 gso_max_segs 1");
    Some((place, network))
}

/// So much that some of it is lost.
fn much() -> PlantedExchange {
    vec![(4 << 20, 1), (100, 100_000)]
}

#[test]
fn a_network_that_loses_packets() {
    let Some((place, _network)) = lossy() else {
        return;
    };
    let messages = much();
    let (recorded, port) =
        RecordedRows::of_exchange(&["--all"], &place, ["0.0.0.0", SERVER_IPV4], &messages);
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    assert!(ends.client.retransmits > 0, "{:?}", ends.client);
    recorded.check_messages(&ends, [0, 0], totals(&messages));
    assert!(recorded.check_packets(&ends) > 0);
}

/// A socket lives on without a file until its end of the stream, FIN, is acknowledged.
#[test]
fn a_connection_whose_end_is_lost() {
    let Some((place, network)) = lossy() else {
        return;
    };
    let messages = much();
    let recording = FleetRecording::start(&["--all"]);
    let pair = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    pair.exchange(&messages);
    let port = pair.client_port();
    network.put(&place.between, "to_client", "ingress", "lost");
    drop(pair);
    let recorded = RecordedRows::of(recording);
    // The sockets would try for a minute or two to tell each other, and keep their namespaces.
    place.between.run("tc qdisc del dev to_client clsact");
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    assert_eq!(ends.client.closed_ns, 0, "{:?}", ends.client);
    assert!(ends.client.retransmits > 0, "{:?}", ends.client);
    recorded.check_messages(&ends, [0, 0], totals(&messages));
}

/// Addresses and ports are other ones at the two ends; the initial sequence numbers are not.
#[test]
fn a_network_that_translates_addresses() {
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let Some(network) = PacketPrograms::new() else {
        return;
    };
    network.put(&place.between, "to_client", "ingress", "outward");
    network.put(&place.between, "to_client", "egress", "inward");
    // Who asks for the client's second address is answered by the client.
    place.client.run("ip address add 10.77.0.50/32 dev eth0");
    let recording = FleetRecording::start(&["--all"]);
    let listener = place.server.within(|| TcpListener::bind(("0.0.0.0", 7000)).expect("bound"));
    let client =
        place.client.within(|| TcpStream::connect((SERVER_IPV4, 7001)).expect("connected"));
    let (server, _) = listener.accept().expect("accepted");
    let pair = ConnectedPair { client, server };
    let messages = some();
    pair.exchange(&messages);
    let port = pair.client_port();
    drop(pair);
    let recorded = RecordedRows::of(recording);
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    assert_eq!((ends.client.local_address.as_str(), ends.client.remote_port), ("10.77.0.1", 7001));
    assert_eq!((ends.server.remote_address.as_str(), ends.server.local_port), ("10.77.0.50", 7000));
    recorded.check_messages(&ends, [0, 0], totals(&messages));
    assert!(recorded.check_packets(&ends) > 0);
}
