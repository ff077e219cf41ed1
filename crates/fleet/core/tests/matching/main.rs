//! What is promised of pairs of ends and of messages, on planted connections, random splits and forged rows.

mod plain;
mod planted;

use std::collections::BTreeSet;

use luc_fleet_core::{
    AtStart, Connections, End, EndId, Gap, GapKind, HostId, Message, MessageEdge, Messages,
    PairEvidence, Side, Thread, Way, WhyUnpaired,
};
use luc_stats::random;
use planted::{Kind, Planted, plant};
use proptest::prelude::*;
use rand::RngExt;

/// New, older at both ends, and older at one; each with NAT and without.
const KINDS: [Kind; 8] = [
    kind(false, false, false),
    kind(false, false, true),
    kind(true, true, false),
    kind(true, true, true),
    kind(true, false, false),
    kind(false, true, false),
    kind(true, false, true),
    kind(false, true, true),
];

const fn kind(client_is_old: bool, server_is_old: bool, is_nat: bool) -> Kind {
    Kind {
        is_old: [client_is_old, server_is_old],
        is_nat,
    }
}

/// Rows of a stream cut at random for each side, as `(first, bytes)`.
fn cuts(random: &mut impl rand::Rng, bytes: u64) -> Vec<(u64, u64)> {
    let (mut first, mut cuts) = (0, Vec::new());
    while first < bytes {
        let length = random.random_range(1..=(bytes - first).min(3000));
        cuts.push((first, length));
        first += length;
    }
    cuts
}

/// Both sides' rows of a direction.
fn rows(random: &mut impl rand::Rng, planted: &Planted, sender: usize, bytes: u64) -> Vec<Message> {
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

/// 300 connections of 6 hosts, of all kinds: those of one client port reconnect with the same four numbers.
fn fleet(seed: u64) -> (Vec<Planted>, Vec<End>, Vec<Message>) {
    let mut random = random::stream(7, seed);
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
    let mut ends: Vec<End> = planted.iter().flat_map(|planted| planted.ends).collect();
    shuffle(&mut random, &mut ends);
    shuffle(&mut random, &mut messages);
    (planted, ends, messages)
}

#[test]
fn all_planted_connections_and_edges_are_found_and_no_others() {
    for seed in 0..4 {
        let (planted, ends, messages) = fleet(seed);
        let connections = Connections::pair(&ends, &messages, &[]);
        let truth: BTreeSet<[EndId; 2]> = planted.iter().map(Planted::ids).collect();
        let found: BTreeSet<[EndId; 2]> = connections.pairs.iter().map(|pair| pair.ends).collect();
        assert_eq!(found, truth, "seed {seed}: {:?}", connections.unpaired);
        assert!(connections.unpaired.is_empty());
        for evidence in [
            PairEvidence::InitialNumbers,
            PairEvidence::Addresses,
            PairEvidence::Numbers,
        ] {
            assert!(
                connections
                    .pairs
                    .iter()
                    .any(|pair| pair.evidence == evidence)
            );
        }
        let found = Messages::matched(&connections, &messages);
        let expected: BTreeSet<MessageEdge> = planted
            .iter()
            .flat_map(|planted| expected(planted, &messages))
            .collect();
        assert_eq!(found.edges.len(), expected.len());
        assert_eq!(
            found.edges.iter().copied().collect::<BTreeSet<_>>(),
            expected
        );
        assert!(
            found.gaps.iter().all(is_before_the_trace),
            "{:?}",
            found.gaps
        );
    }
}

/// Of connections whose ends are traced from different moments on: bytes that only one end has seen.
fn is_before_the_trace(gap: &Gap) -> bool {
    matches!(gap.kind, GapKind::NoSend | GapKind::NoReception) && gap.first_byte < 20_000
}

/// All edges of a connection by the plain algorithm.
fn expected(planted: &Planted, messages: &[Message]) -> Vec<MessageEdge> {
    let of = |side: usize, way| -> Vec<Message> {
        let rows = messages
            .iter()
            .filter(|row| row.end() == planted.ends[side].id());
        rows.filter(|row| row.way == way).copied().collect()
    };
    let mut edges = Vec::new();
    for sender in [0, 1] {
        let (sends, receptions) = (of(sender, Way::Sent), of(1 - sender, Way::Received));
        for (send, reception, range) in plain::edges(&sends, &receptions, planted.shift(sender)) {
            let side = |row: &Message| Side {
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
    let mut random = random::stream(8, 0);
    let kind = KINDS[2];
    // Two hosts with the same private addresses and, by accident, the same numbers.
    let one = plant(&mut random, [0, 1], [1, 2], 40_000, kind);
    let mut copy = one.ends[0];
    copy.host = HostId(2);
    let mut rows = one.whole();
    let copied = rows
        .clone()
        .into_iter()
        .filter(|row| row.end() == one.ends[0].id());
    rows.extend(copied.map(|row| Message {
        host: copy.host,
        ..row
    }));
    let pair = |ends: &[End]| Connections::pair(ends, &rows, &[]);
    let found = pair(&[one.ends[0], one.ends[1], copy]);
    assert!(found.pairs.is_empty());
    assert!(
        found
            .unpaired
            .iter()
            .all(|(_, why)| *why == WhyUnpaired::Ambiguous)
    );
    assert_eq!(found.unpaired.len(), 3);
    // With numbers of its own the copy is out.
    let numbers = copy.at_start.as_mut().expect("an old one");
    numbers.snd_nxt = numbers.snd_nxt.wrapping_add(1 << 30);
    let found = pair(&[one.ends[0], one.ends[1], copy]);
    assert_eq!(found.pairs.len(), 1);
    assert_eq!(found.unpaired, [(copy.id(), WhyUnpaired::NoPeer)]);
    // Rows of one number that contradict each other say nothing.
    let other = End {
        closed_ns: Some(5),
        ..one.ends[0]
    };
    let found = pair(&[one.ends[0], one.ends[1], other]);
    let contradictory = (one.ends[0].id(), WhyUnpaired::Contradictory);
    assert_eq!(
        found.unpaired,
        [contradictory, (one.ends[1].id(), WhyUnpaired::NoPeer)]
    );
    // The same row twice is one.
    assert_eq!(
        pair(&[one.ends[0], one.ends[1], one.ends[0]]).pairs.len(),
        1
    );
}

#[test]
fn loopback_is_of_one_namespace() {
    let mut one = plant(&mut random::stream(9, 0), [0, 1], [1, 2], 40_000, KINDS[2]);
    for end in &mut one.ends {
        end.local.set_ip("127.0.0.1".parse().expect("an address"));
        end.remote
            .set_ip("::ffff:127.0.0.1".parse().expect("an address"));
    }
    let evidence = |one: &Planted| {
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
    let mut random = random::stream(10, 0);
    for (bytes, evidence) in [
        (100_000_000, Some(PairEvidence::Addresses)),
        (1_u64 << 31, None),
    ] {
        let one = plant(&mut random, [0, 1], [1, 2], 40_000, KINDS[2]);
        let rows: Vec<Message> = [0, 1]
            .into_iter()
            .flat_map(|sender| {
                [0, 1].map(|side| {
                    one.row(side, sender, one.passed(sender), bytes, 1, 0)
                        .expect("in the trace")
                })
            })
            .collect();
        let found = Connections::pair(&one.ends, &rows, &[]);
        assert_eq!(found.pairs.first().map(|pair| pair.evidence), evidence);
        if evidence.is_none() {
            assert!(
                found
                    .unpaired
                    .iter()
                    .all(|(_, why)| *why == WhyUnpaired::Worn)
            );
        }
    }
    // A connection whose begin was seen goes on for ever.
    let one = plant(&mut random, [0, 1], [1, 2], 40_000, KINDS[0]);
    let first = 1 << 40;
    let row = |side, first| one.row(side, 0, first, 10, 1, first).expect("in the trace");
    let rows = [row(0, first), row(1, first + 5)];
    let connections = Connections::pair(&one.ends, &rows, &[]);
    let found = Messages::matched(&connections, &rows);
    assert_eq!(
        found
            .edges
            .iter()
            .map(|edge| edge.bytes)
            .collect::<Vec<_>>(),
        [5]
    );
    assert_eq!(connections.pairs[0].shifts, [0, 0]);
    assert_eq!(connections.pairs[0].client, Some(one.ends[0].id()));
    assert_eq!(one.ends[0].own_isn, Some(one.isn(0)));
}

#[test]
fn a_fin_is_no_loss() {
    let mut random = random::stream(11, 0);
    let one = plant(&mut random, [0, 1], [1, 2], 40_000, KINDS[0]);
    let kinds = |rows: &[Message]| {
        let connections = Connections::pair(&one.ends, rows, &[]);
        let found = Messages::matched(&connections, rows);
        let gaps = found.gaps.iter().map(|gap| (gap.kind, gap.bytes));
        (found.edges.len(), gaps.collect::<Vec<_>>())
    };
    let row = |side, first, bytes| {
        one.row(side, 0, first, bytes, 1, first)
            .expect("in the trace")
    };
    let sent = [row(0, 0, 100), row(0, 100, 50)];
    let with = |received: &[(u64, u64)]| {
        let rows = received.iter().map(|&(first, bytes)| row(1, first, bytes));
        sent.iter().copied().chain(rows).collect::<Vec<_>>()
    };
    // Read with the last bytes, alone, and not at all.
    assert_eq!(kinds(&with(&[(0, 151)])), (2, vec![(GapKind::Fin, 1)]));
    assert_eq!(
        kinds(&with(&[(0, 150), (150, 1)])),
        (2, vec![(GapKind::Fin, 1)])
    );
    assert_eq!(kinds(&with(&[(0, 150)])), (2, vec![]));
    assert_eq!(
        kinds(&with(&[(0, 120)])),
        (2, vec![(GapKind::NoReception, 30)])
    );
    assert_eq!(kinds(&with(&[(0, 152)])), (2, vec![(GapKind::NoSend, 2)]));
    assert_eq!(
        kinds(&with(&[(0, 60), (90, 60), (140, 10)])),
        (
            3,
            vec![(GapKind::NoReception, 30), (GapKind::SeveralReceptions, 10)]
        )
    );
}

/// A row of one of two ends, near another often enough to overlap.
fn any_row() -> impl Strategy<Value = (bool, bool, u64, u64, u32)> {
    let number = || prop_oneof![8 => 0_u64..60, 1 => Just(u64::MAX), 1 => (u64::MAX - 60)..u64::MAX, 1 => any::<u64>()];
    (any::<bool>(), any::<bool>(), number(), number(), 0_u32..3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn edges_are_those_of_the_plain_algorithm(seed in any::<u64>(), kind in 0..KINDS.len(), bytes in 0_u64..20_000,
                                              lost in prop_oneof![Just(0.0), 0.0_f64..0.5], twice in 0.0_f64..0.3, fin in any::<bool>()) {
        let mut random = random::stream(12, seed);
        let planted = plant(&mut random, [3, 1], [1, 2], 40_000, KINDS[kind]);
        let mut messages = rows(&mut random, &planted, 0, bytes);
        messages.extend(rows(&mut random, &planted, 1, bytes / 3));
        if fin {
            messages.extend(planted.row(1, 0, planted.passed(0) + bytes, 1, 1, 1));
        }
        messages.retain(|_| !random.random_bool(lost));
        let again: Vec<Message> = messages.iter().filter(|_| random.random_bool(twice)).copied().collect();
        messages.extend(again);
        shuffle(&mut random, &mut messages);
        let connections = Connections::pair(&planted.ends, &messages, &[]);
        prop_assert_eq!(connections.pairs.len(), 1);
        let found = Messages::matched(&connections, &messages);
        let edges: BTreeSet<MessageEdge> = found.edges.iter().copied().collect();
        prop_assert_eq!(edges.len(), found.edges.len());
        prop_assert_eq!(edges, expected(&planted, &messages).into_iter().collect::<BTreeSet<_>>());
        if KINDS[kind].is_old == [false, false] && bytes > 0 {
            // With all rows, only a FIN is on no edge; without some, some bytes are not.
            let missing: u64 = found.gaps.iter().filter(|gap| gap.kind != GapKind::Fin).map(|gap| gap.bytes).sum();
            let is_whole = found.edges.iter().map(|edge| edge.bytes).sum::<u64>() == planted.total(bytes);
            prop_assert!(!is_whole || missing == 0);
            prop_assert!(lost > 0.0 || is_whole);
        }
    }

    #[test]
    fn forged_rows_make_no_wrong_edge(rows in prop::collection::vec(any_row(), 0..40), kind in 0..2_usize) {
        let planted = plant(&mut random::stream(13, 1), [0, 1], [1, 2], 40_000, KINDS[kind]);
        let messages: Vec<Message> = rows
            .into_iter()
            .map(|(is_server, is_received, first_byte, bytes, thread)| Message {
                host: planted.ends[usize::from(is_server)].host,
                at_ns: first_byte,
                thread: Thread { id: thread, start_ns: 0 },
                process: 0,
                connection: planted.ends[usize::from(is_server)].connection,
                way: if is_received { Way::Received } else { Way::Sent },
                first_byte,
                bytes,
                token: None,
            })
            .collect();
        let connections = Connections::pair(&planted.ends, &messages, &[]);
        let found = Messages::matched(&connections, &messages);
        let edges: BTreeSet<MessageEdge> = found.edges.iter().copied().collect();
        prop_assert_eq!(edges, expected(&planted, &messages).into_iter().collect::<BTreeSet<_>>());
        // Each byte of each row is on an edge, in a gap, or in a row that is left out.
        let left_out = found.left_out;
        let distinct: BTreeSet<&Message> = messages.iter().filter(|row| row.bytes > 0).collect();
        let beyond = |row: &&&Message| row.first_byte.checked_add(row.bytes).is_none();
        let all_beyond = messages.iter().filter(|row| row.bytes > 0).filter(|row| beyond(&row)).count();
        prop_assert_eq!(left_out.beyond, all_beyond as u64);
        prop_assert_eq!(left_out.empty, messages.iter().filter(|row| row.bytes == 0).count() as u64);
        let kept = distinct.iter().filter(|row| !beyond(row)).count();
        prop_assert_eq!(
            messages.len() as u64 - left_out.beyond - left_out.empty - left_out.duplicates,
            kept as u64
        );
    }

    #[test]
    fn forged_ends_make_no_wrong_pair(
        numbers in prop::collection::vec((0_u32..4, prop::option::of(0_u32..5), prop::option::of(0_u32..5),
                                          prop::option::of((0_u32..9, 0_u32..9)), any::<bool>()), 0..30),
        reach in any_row(),
    ) {
        let planted = plant(&mut random::stream(14, 1), [0, 1], [1, 2], 40_000, KINDS[2]);
        let ends: Vec<End> = numbers
            .iter()
            .enumerate()
            .map(|(at, &(host, own_isn, peer_isn, start, is_client))| End {
                host: HostId(host),
                connection: at as u64 % 20,
                own_isn,
                peer_isn,
                at_start: start.map(|(snd_nxt, read)| AtStart { snd_nxt, rcv_nxt: read, copied_seq: read }),
                ..planted.ends[usize::from(is_client)]
            })
            .collect();
        let row = Message {
            host: HostId(reach.4), at_ns: 0, thread: Thread { id: 0, start_ns: 0 }, process: 0, connection: 3,
            way: Way::Sent, first_byte: reach.2, bytes: reach.3, token: None,
        };
        let found = Connections::pair(&ends, &[row], &[]);
        let all: BTreeSet<EndId> = ends.iter().map(End::id).collect();
        let mut listed: Vec<EndId> = found.pairs.iter().flat_map(|pair| pair.ends).collect();
        listed.extend(found.unpaired.iter().map(|(end, _)| *end));
        prop_assert_eq!(listed.len(), all.len());
        prop_assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), all);
        let numbers = |id: EndId| ends.iter().find(|end| end.id() == id).map(|end| (end.own_isn, end.peer_isn));
        for pair in &found.pairs {
            let [(own, peer), (their_own, their_peer)] = pair.ends.map(|id| numbers(id).expect("an end"));
            let agree = |a: Option<u32>, b: Option<u32>| a.is_none() || b.is_none() || a == b;
            prop_assert!(agree(own, their_peer) && agree(peer, their_own));
        }
    }

}

proptest! {
    // A fleet at a time.
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn neither_names_of_hosts_nor_the_order_of_rows_matter(seed in any::<u64>(), names in any::<u32>()) {
        let (_, mut ends, mut messages) = fleet(seed % 5);
        messages.truncate(4000);
        let before = Connections::pair(&ends, &messages, &[]);
        let edges = Messages::matched(&before, &messages);
        // Any one-to-one map: multiplication by an odd number.
        let rename = |host: HostId| HostId((host.0 + 1).wrapping_mul(names | 1));
        let rename_end = |end: EndId| EndId { host: rename(end.host), ..end };
        let mut random = random::stream(15, seed);
        shuffle(&mut random, &mut ends);
        shuffle(&mut random, &mut messages);
        ends.iter_mut().for_each(|end| end.host = rename(end.host));
        messages.iter_mut().for_each(|row| row.host = rename(row.host));
        let after = Connections::pair(&ends, &messages, &[]);
        let pairs = |connections: &Connections, rename: &dyn Fn(EndId) -> EndId| -> BTreeSet<_> {
            connections.pairs.iter().map(|pair| {
                let mut ends = [(rename(pair.ends[0]), pair.shifts[0]), (rename(pair.ends[1]), pair.shifts[1])];
                ends.sort_unstable();
                (ends, pair.client.map(rename), pair.evidence)
            }).collect()
        };
        prop_assert_eq!(pairs(&before, &rename_end), pairs(&after, &|end| end));
        let renamed: BTreeSet<MessageEdge> = edges.edges.iter().map(|edge| MessageEdge {
            from: rename_end(edge.from),
            to: rename_end(edge.to),
            sent: Side { host: rename(edge.sent.host), ..edge.sent },
            received: Side { host: rename(edge.received.host), ..edge.received },
            ..*edge
        }).collect();
        let again = Messages::matched(&after, &messages);
        prop_assert_eq!(renamed, again.edges.into_iter().collect::<BTreeSet<_>>());
        prop_assert_eq!(edges.left_out, again.left_out);
    }
}
