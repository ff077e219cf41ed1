//! Connections within a host: unix sockets and pipes, whose ends name each other.

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    ByteDirection, ConnectionEnd, ConnectionOpener, Connections, EndAddress, EndId, FleetWaits,
    GapKind, MatchedMessages, MessageRow, NameId, PairEvidence, RequestId, Requests,
    ThreadIdentity, WhyUnpaired,
};

const NAMED: EndAddress = EndAddress::Unix(Some(NameId(0)));
const PLAIN: EndAddress = EndAddress::Unix(None);

fn end(host: u32, connection: u64, peer: u64, addresses: [EndAddress; 2]) -> ConnectionEnd {
    ConnectionEnd {
        host: HostId(host),
        connection,
        namespace: 1,
        local: addresses[0],
        remote: addresses[1],
        peer: Some(peer),
        own_isn: None,
        peer_isn: None,
        at_start: None,
        opener: match (addresses[0] == NAMED, addresses[1] == NAMED) {
            (true, false) => Some(ConnectionOpener::Peer),
            (false, true) => Some(ConnectionOpener::This),
            _ => None,
        },
        opened_ns: None,
        closed_ns: None,
    }
}

fn row(
    connection: u64,
    thread: u32,
    at_ns: u64,
    way: ByteDirection,
    range: [u64; 2],
) -> MessageRow {
    MessageRow {
        host: HostId(1),
        at_ns,
        thread: ThreadIdentity { id: thread, start_ns: 0 },
        process: thread,
        connection,
        way,
        first_byte: range[0],
        bytes: range[1],
        token: None,
    }
}

fn id(connection: u64) -> EndId {
    EndId { host: HostId(1), connection }
}

#[test]
fn ends_that_name_each_other_are_one_connection() {
    let ends = [
        end(1, 1, 2, [PLAIN, NAMED]),
        end(1, 2, 1, [NAMED, PLAIN]),
        // The same numbers on another host are other ends.
        end(2, 1, 2, [PLAIN, NAMED]),
        // One that does not name it back, and one that is its own.
        end(1, 3, 1, [PLAIN, PLAIN]),
        end(1, 4, 4, [PLAIN, PLAIN]),
    ];
    let found = Connections::pair(&ends, &[], &[]);
    let [pair] = &found.pairs[..] else {
        panic!("{found:?}");
    };
    assert_eq!((pair.ends, pair.shifts), ([id(1), id(2)], [0, 0]));
    assert_eq!((pair.client, pair.evidence), (Some(id(1)), PairEvidence::Host));
    let reasons: Vec<WhyUnpaired> = found.unpaired.iter().map(|(_, why)| *why).collect();
    assert_eq!(reasons.len(), 3);
    assert!(reasons.iter().all(|why| matches!(why, WhyUnpaired::NoPeer | WhyUnpaired::Ambiguous)));
}

#[test]
fn requests_need_a_name_and_a_pipe_has_none() {
    let ends = [
        end(1, 1, 2, [PLAIN, NAMED]),
        end(1, 2, 1, [NAMED, PLAIN]),
        end(1, 3, 4, [PLAIN, PLAIN]),
        end(1, 4, 3, [PLAIN, PLAIN]),
        end(1, 5, 6, [EndAddress::Pipe(None), EndAddress::Pipe(None)]),
        end(1, 6, 5, [EndAddress::Pipe(None), EndAddress::Pipe(None)]),
    ];
    let mut rows = Vec::new();
    for (at, [a, b]) in [[1, 2], [3, 4]].into_iter().enumerate() {
        let at_ns = 1000 * at as u64;
        rows.extend([
            row(a, 10, at_ns + 1, ByteDirection::Sent, [0, 30]),
            row(b, 20, at_ns + 2, ByteDirection::Received, [0, 30]),
            row(b, 20, at_ns + 3, ByteDirection::Sent, [0, 1]),
            row(a, 10, at_ns + 4, ByteDirection::Received, [0, 1]),
        ]);
    }
    // A single byte at the end that nobody was seen to send is no end of a stream here.
    rows.extend([
        row(6, 30, 5000, ByteDirection::Sent, [0, 9]),
        row(5, 40, 5001, ByteDirection::Received, [0, 10]),
    ]);
    let connections = Connections::pair(&ends, &rows, &[]);
    let messages = MatchedMessages::matched(&connections, &rows);
    assert_eq!(messages.edges.len(), 5);
    let gaps: Vec<(EndId, GapKind)> =
        messages.gaps.iter().map(|gap| (gap.from, gap.kind)).collect();
    assert_eq!(gaps, [(id(6), GapKind::NoSend)]);
    let requests = Requests::find(&ends, &connections, &rows, &FleetWaits::default(), |_| true);
    assert_eq!(requests.incoming.len(), 1);
    assert_eq!(requests.incoming[0].exchange.end, id(2));
    assert_eq!(requests.outgoing[0].to, Some(RequestId(0)));
    // The answer of one byte is no end of a stream.
    let answers = [requests.incoming[0].exchange.answer, requests.outgoing[0].exchange.answer];
    assert!(answers.iter().all(Option::is_some), "{answers:?}");
    assert_eq!(requests.without_role, [id(3), id(4)]);
}
