//! Promises of pairs of ends and of messages, on planted connections, random splits and forged rows.

mod plain_matching;
mod planted_connections;
mod random_splits;

use std::collections::BTreeSet;
use std::net::SocketAddr;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    ByteDirection, ByteGap, ConnectionEnd, Connections, EndAddress, EndId, GapKind,
    MatchedMessages, MessageEdge, MessageRow, MessageSide, PairEvidence, WhyUnpaired,
};
use luc_stats::seeded_random;
use planted_connections::{PlantedEnds, PlantedKind, plant};
use rand::RngExt;

/// New, older at both ends, and older at one; each with NAT and without.
const KINDS: [PlantedKind; 8] = [
    kind(false, false, false),
    kind(false, false, true),
    kind(true, true, false),
    kind(true, true, true),
    kind(true, false, false),
    kind(false, true, false),
    kind(true, false, true),
    kind(false, true, true),
];

const fn kind(client_is_old: bool, server_is_old: bool, is_nat: bool) -> PlantedKind {
    PlantedKind { is_old: [client_is_old, server_is_old], is_nat }
}

/// Cuts a stream into rows at random, as `(first, bytes)`.
fn cuts(random: &mut impl rand::Rng, bytes: u64) -> Vec<(u64, u64)> {
    let (mut first, mut cuts) = (0, Vec::new());
    while first < bytes {
        let length = random.random_range(1..=(bytes - first).min(3000));
        cuts.push((first, length));
        first += length;
    }
    cuts
}

/// Returns both sides' rows of a direction.
fn rows(
    random: &mut impl rand::Rng,
    planted: &PlantedEnds,
    sender: usize,
    bytes: u64,
) -> Vec<MessageRow> {
    let mut rows = Vec::new();
    let bytes = planted.passed(sender) + bytes;
    for side in [sender, 1 - sender] {
        for (at, (first, length)) in cuts(random, bytes).into_iter().enumerate() {
            let thread = random.random_range(1..4);
            let at_ns = 1000 * at as u64 + first;
            rows.extend(planted.row(side, sender, first, length, thread, at_ns));
        }
    }
    rows
}

fn shuffle<T>(random: &mut impl rand::Rng, all: &mut [T]) {
    for at in (1..all.len()).rev() {
        all.swap(at, random.random_range(0..=at));
    }
}

/// Plants 300 connections of 6 hosts, of all kinds: those of one client port reconnect with the same four numbers.
fn fleet(seed: u64) -> (Vec<PlantedEnds>, Vec<ConnectionEnd>, Vec<MessageRow>) {
    let mut random = seeded_random::stream(7, seed);
    let (mut planted, mut messages) = (Vec::new(), Vec::new());
    for at in 0..300_u64 {
        let kind = KINDS[random.random_range(0..KINDS.len())];
        let hosts = [random.random_range(0..6), random.random_range(0..6)];
        // A connection that is older than the trace has its four numbers for itself.
        let is_new = kind.is_old == [false, false];
        let port = if is_new { 40_000 } else { 41_000 + at as u16 };
        let one = plant(&mut random, hosts, [2 * at, 2 * at + 1], port, kind);
        for sender in [0, 1] {
            let bytes = random.random_range(0..9000);
            messages.extend(rows(&mut random, &one, sender, bytes));
        }
        planted.push(one);
    }
    let mut ends: Vec<ConnectionEnd> = planted.iter().flat_map(|planted| planted.ends).collect();
    shuffle(&mut random, &mut ends);
    shuffle(&mut random, &mut messages);
    (planted, ends, messages)
}

#[test]
fn all_planted_connections_and_edges_are_found_and_no_others() {
    for seed in 0..4 {
        let (planted, ends, messages) = fleet(seed);
        let connections = Connections::pair(&ends, &messages, &[]);
        let truth: BTreeSet<[EndId; 2]> = planted.iter().map(PlantedEnds::ids).collect();
        let found: BTreeSet<[EndId; 2]> = connections.pairs.iter().map(|pair| pair.ends).collect();
        assert_eq!(found, truth, "seed {seed}: {:?}", connections.unpaired);
        assert!(connections.unpaired.is_empty());
        for evidence in
            [PairEvidence::InitialNumbers, PairEvidence::Addresses, PairEvidence::Numbers]
        {
            assert!(connections.pairs.iter().any(|pair| pair.evidence == evidence));
        }
        let found = MatchedMessages::matched(&connections, &messages);
        let expected: BTreeSet<MessageEdge> =
            planted.iter().flat_map(|planted| expected(planted, &messages)).collect();
        assert_eq!(found.edges.len(), expected.len());
        assert_eq!(found.edges.iter().copied().collect::<BTreeSet<_>>(), expected);
        assert!(found.gaps.iter().all(is_before_the_trace), "{:?}", found.gaps);
    }
}

/// Checks bytes that only one end has seen, as the ends are traced from different moments on.
fn is_before_the_trace(gap: &ByteGap) -> bool {
    matches!(gap.kind, GapKind::NoSend | GapKind::NoReception) && gap.first_byte < 20_000
}

/// Finds all edges of a connection by the plain algorithm.
fn expected(planted: &PlantedEnds, messages: &[MessageRow]) -> Vec<MessageEdge> {
    let of = |side: usize, way| -> Vec<MessageRow> {
        let rows = messages.iter().filter(|row| row.end() == planted.ends[side].id());
        rows.filter(|row| row.way == way).copied().collect()
    };
    let mut edges = Vec::new();
    for sender in [0, 1] {
        let (sends, receptions) =
            (of(sender, ByteDirection::Sent), of(1 - sender, ByteDirection::Received));
        for (send, reception, range) in
            plain_matching::edges(&sends, &receptions, planted.shift(sender))
        {
            let side = |row: &MessageRow| MessageSide {
                host: row.host,
                thread: row.thread,
                process: row.process,
                at_ns: row.at_ns,
            };
            edges.push(MessageEdge {
                from: sends[send].end(),
                to: receptions[reception].end(),
                first_byte: range.0 as u64,
                bytes: (range.1 - range.0) as u64,
                sent: side(&sends[send]),
                received: side(&receptions[reception]),
            });
        }
    }
    edges
}

#[test]
fn ends_that_fit_several_are_left_unpaired() {
    let mut random = seeded_random::stream(8, 0);
    let kind = KINDS[2];
    // Two hosts with the same private addresses and, by accident, the same numbers.
    let one = plant(&mut random, [0, 1], [1, 2], 40_000, kind);
    let mut copy = one.ends[0];
    copy.host = HostId(2);
    let mut rows = one.whole();
    let copied = rows.clone().into_iter().filter(|row| row.end() == one.ends[0].id());
    rows.extend(copied.map(|row| MessageRow { host: copy.host, ..row }));
    let pair = |ends: &[ConnectionEnd]| Connections::pair(ends, &rows, &[]);
    let found = pair(&[one.ends[0], one.ends[1], copy]);
    assert!(found.pairs.is_empty());
    assert!(found.unpaired.iter().all(|(_, why)| *why == WhyUnpaired::Ambiguous));
    assert_eq!(found.unpaired.len(), 3);
    // With numbers of its own the copy is out.
    let numbers = copy.at_start.as_mut().expect("an old one");
    numbers.snd_nxt = numbers.snd_nxt.wrapping_add(1 << 30);
    let found = pair(&[one.ends[0], one.ends[1], copy]);
    assert_eq!(found.pairs.len(), 1);
    assert_eq!(found.unpaired, [(copy.id(), WhyUnpaired::NoPeer)]);
    // Rows of one number that contradict each other say nothing.
    let other = ConnectionEnd { closed_ns: Some(5), ..one.ends[0] };
    let found = pair(&[one.ends[0], one.ends[1], other]);
    let contradictory = (one.ends[0].id(), WhyUnpaired::Contradictory);
    assert_eq!(found.unpaired, [contradictory, (one.ends[1].id(), WhyUnpaired::NoPeer)]);
    // The same row twice is one.
    assert_eq!(pair(&[one.ends[0], one.ends[1], one.ends[0]]).pairs.len(), 1);
}

#[test]
fn loopback_is_of_one_namespace() {
    let mut one = plant(&mut seeded_random::stream(9, 0), [0, 1], [1, 2], 40_000, KINDS[2]);
    for end in &mut one.ends {
        let moved = |address, ip: &str| match address {
            EndAddress::Internet(address) => {
                SocketAddr::new(ip.parse().expect("an address"), address.port()).into()
            }
            other => other,
        };
        end.local = moved(end.local, "127.0.0.1");
        end.remote = moved(end.remote, "::ffff:127.0.0.1");
    }
    let evidence = |one: &PlantedEnds| {
        let found = Connections::pair(&one.ends, &one.whole(), &[]);
        found.pairs.first().map(|pair| pair.evidence)
    };
    // On two hosts the addresses do not say that they are of one connection; the numbers do.
    assert_eq!(evidence(&one), Some(PairEvidence::Numbers));
    one.ends[1].host = one.ends[0].host;
    assert_eq!(evidence(&one), Some(PairEvidence::Addresses));
    one.ends[1].namespace = 2;
    assert_eq!(evidence(&one), Some(PairEvidence::Numbers));
}

#[test]
fn too_many_bytes_wear_numbers_out() {
    let mut random = seeded_random::stream(10, 0);
    for (bytes, evidence) in [(100_000_000, Some(PairEvidence::Addresses)), (1_u64 << 31, None)] {
        let one = plant(&mut random, [0, 1], [1, 2], 40_000, KINDS[2]);
        let rows: Vec<MessageRow> = [0, 1]
            .into_iter()
            .flat_map(|sender| {
                [0, 1].map(|side| {
                    one.row(side, sender, one.passed(sender), bytes, 1, 0).expect("in the trace")
                })
            })
            .collect();
        let found = Connections::pair(&one.ends, &rows, &[]);
        assert_eq!(found.pairs.first().map(|pair| pair.evidence), evidence);
        if evidence.is_none() {
            assert!(found.unpaired.iter().all(|(_, why)| *why == WhyUnpaired::Worn));
        }
    }
    // A connection whose begin was seen goes on for ever.
    let one = plant(&mut random, [0, 1], [1, 2], 40_000, KINDS[0]);
    let first = 1 << 40;
    let row = |side, first| one.row(side, 0, first, 10, 1, first).expect("in the trace");
    let rows = [row(0, first), row(1, first + 5)];
    let connections = Connections::pair(&one.ends, &rows, &[]);
    let found = MatchedMessages::matched(&connections, &rows);
    assert_eq!(found.edges.iter().map(|edge| edge.bytes).collect::<Vec<_>>(), [5]);
    assert_eq!(connections.pairs[0].shifts, [0, 0]);
    assert_eq!(connections.pairs[0].client, Some(one.ends[0].id()));
    assert_eq!(one.ends[0].own_isn, Some(one.isn(0)));
}

#[test]
fn a_fin_is_no_loss() {
    let mut random = seeded_random::stream(11, 0);
    let one = plant(&mut random, [0, 1], [1, 2], 40_000, KINDS[0]);
    let kinds = |rows: &[MessageRow]| {
        let connections = Connections::pair(&one.ends, rows, &[]);
        let found = MatchedMessages::matched(&connections, rows);
        let gaps = found.gaps.iter().map(|gap| (gap.kind, gap.bytes));
        (found.edges.len(), gaps.collect::<Vec<_>>())
    };
    let row = |side, first, bytes| one.row(side, 0, first, bytes, 1, first).expect("in the trace");
    let sent = [row(0, 0, 100), row(0, 100, 50)];
    let with = |received: &[(u64, u64)]| {
        let rows = received.iter().map(|&(first, bytes)| row(1, first, bytes));
        sent.iter().copied().chain(rows).collect::<Vec<_>>()
    };
    // Read with the last bytes, alone, and not at all.
    assert_eq!(kinds(&with(&[(0, 151)])), (2, vec![(GapKind::Fin, 1)]));
    assert_eq!(kinds(&with(&[(0, 150), (150, 1)])), (2, vec![(GapKind::Fin, 1)]));
    assert_eq!(kinds(&with(&[(0, 150)])), (2, vec![]));
    assert_eq!(kinds(&with(&[(0, 120)])), (2, vec![(GapKind::NoReception, 30)]));
    assert_eq!(kinds(&with(&[(0, 152)])), (2, vec![(GapKind::NoSend, 2)]));
    assert_eq!(
        kinds(&with(&[(0, 60), (90, 60), (140, 10)])),
        (3, vec![(GapKind::NoReception, 30), (GapKind::SeveralReceptions, 10)])
    );
}
