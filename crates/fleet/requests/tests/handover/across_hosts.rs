//! Edges and trees of simulated servers, across hosts.

use std::collections::HashMap;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    ByteDirection, Connections, EndId, GapKind, MatchedMessages, NumberedForest, UnmatchedRows,
};

use crate::search_service::{CLIENT_HOST, FRONT, FrontEndThreads, SearchService};
use crate::{SECOND, analysed, truth_of_incoming};

#[test]
fn edges_of_all_messages_are_found() {
    let service = SearchService {
        mode: FrontEndThreads::Scatter(4),
        clients: 8,
        back_ends: 3,
        think_ns: 500_000,
        lock_ns: 0,
    };
    let simulation = service.simulate(5, SECOND / 5);
    let connections = Connections::pair(&simulation.ends(), &simulation.messages, &[]);
    let found = MatchedMessages::matched(&connections, &simulation.messages);
    assert_eq!(found.left_out, UnmatchedRows::default());
    // When the trace ends, some bytes are on their way.
    assert!(found.gaps.iter().all(|gap| gap.kind == GapKind::NoReception));
    let mut by_reception: HashMap<(EndId, u64), u64> = HashMap::new();
    for edge in &found.edges {
        assert_eq!(edge.sent.host, edge.from.host);
        let send = simulation.messages.iter().find(|row| {
            row.end() == edge.from
                && row.way == ByteDirection::Sent
                && (row.first_byte..row.first_byte + row.bytes).contains(&edge.first_byte)
        });
        let send = send.expect("the row that sent it");
        assert_eq!((send.thread, send.at_ns), (edge.sent.thread, edge.sent.at_ns));
        *by_reception.entry((edge.to, edge.received.at_ns)).or_default() += edge.bytes;
    }
    let receptions: HashMap<(EndId, u64), u64> = simulation
        .messages
        .iter()
        .filter(|row| row.way == ByteDirection::Received)
        .map(|row| ((row.end(), row.at_ns), row.bytes))
        .collect();
    assert_eq!(by_reception, receptions);
}

#[test]
fn trees_reach_across_hosts() {
    let service = SearchService {
        mode: FrontEndThreads::Scatter(4),
        clients: 4,
        back_ends: 3,
        think_ns: 500_000,
        lock_ns: 0,
    };
    let simulation = service.simulate(7, SECOND / 5);
    let (connections, found) = analysed(&simulation);
    let truth = truth_of_incoming(&simulation, &connections, &found);
    let forest = NumberedForest::new(&found.parents().expect("few nodes")).expect("no cycle");
    let mut whole = 0;
    for (at, outgoing) in found.outgoing.iter().enumerate() {
        if outgoing.exchange.end.host != HostId(CLIENT_HOST as u32)
            || outgoing.exchange.answer.is_none()
        {
            continue;
        }
        let request = simulation.request_at(outgoing.exchange.end, outgoing.exchange.first_byte);
        let below = forest.below((found.incoming.len() + at) as u32);
        let incoming = below.iter().filter(|&&node| (node as usize) < truth.len());
        let hosts: Vec<u32> = incoming
            .map(|&node| {
                assert_eq!(truth[node as usize], request);
                found.incoming[node as usize].exchange.end.host.0
            })
            .collect();
        // The front end, each back end, and the owners again.
        let expected = simulation.truth.values().filter(|&&other| other == request).count() / 2;
        whole += usize::from(hosts.len() == expected);
        assert!(hosts.contains(&(FRONT as u32)));
    }
    let asked = found.outgoing.iter().filter(|outgoing| outgoing.exchange.answer.is_some());
    let asked =
        asked.filter(|outgoing| outgoing.exchange.end.host == HostId(CLIENT_HOST as u32)).count();
    println!("{whole} of {asked} requests have all of their tree");
    assert!(whole * 100 >= asked * 95);
}
