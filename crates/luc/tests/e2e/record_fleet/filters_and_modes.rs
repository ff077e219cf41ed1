//! Scope of a recording: filters, modes, and the clocks.

use std::net::{TcpListener, TcpStream};

use luc_events::event_kinds::MessageDirection;
use luc_events::tables::ClockSample;

use super::planted_exchange::{ConnectedPair, some, totals};
use super::trace_checks::RecordedRows;
use super::two_hosts::{SERVER_IPV4, TwoHosts};
use crate::common;
use crate::common::fleet_recording::FleetRecording;

/// Messages are those of recorded threads; connections and packets everybody's.
#[test]
fn a_filter_leaves_out_messages_only() {
    let Some(place) = TwoHosts::new() else {
        return;
    };
    // The recorded command sends nothing.
    let ends = ["0.0.0.0", SERVER_IPV4];
    let (recorded, port) = RecordedRows::of_exchange(&[], &place, ends, &some());
    assert_eq!(recorded.messages, []);
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    assert!(recorded.check_packets(&ends) > 0);
    assert_eq!(ends.server.opener_process.0, 0);
}

/// Messages of a host to itself are seen at both ends, and say nothing about another host's clock.
#[test]
fn packets_of_the_loopback_device_have_no_rows() {
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let messages = some();
    let recording = FleetRecording::start(&["--all"]);
    let pair = place.server.within(|| {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("bound");
        let to = listener.local_addr().expect("its address");
        let client = TcpStream::connect(to).expect("connected");
        let (server, _) = listener.accept().expect("accepted");
        ConnectedPair { client, server }
    });
    pair.exchange(&messages);
    let port = pair.client_port();
    drop(pair);
    let recorded = RecordedRows::of(recording);
    let namespace = place.server.inode();
    let ends = recorded.ends(namespace, namespace, port);
    recorded.check_messages(&ends, [0, 0], totals(&messages));
    for end in [ends.client, ends.server] {
        for direction in [MessageDirection::Sent, MessageDirection::Received] {
            let packets = recorded.packets_of(end, direction);
            assert!(packets.is_empty(), "{packets:?}");
        }
    }
}

#[test]
fn the_clocks_are_sampled() {
    if !common::is_root() {
        return;
    }
    let recorded = RecordedRows::of(FleetRecording::start(&[]));
    let clocks = &recorded.clocks;
    assert!(clocks.len() >= 2, "one at the beginning, one at the end");
    for pair in clocks.windows(2) {
        assert!(pair[0].at_ns + pair[0].width_ns <= pair[1].at_ns, "{pair:?}");
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
fn sums_have_no_messages() {
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let options = ["--summary", "--all"];
    let ends = ["0.0.0.0", SERVER_IPV4];
    let (recorded, _) = RecordedRows::of_exchange(&options, &place, ends, &some());
    assert_eq!(recorded.messages, []);
    assert_eq!(recorded.packets, []);
    assert!(recorded.connections.is_empty());
}
