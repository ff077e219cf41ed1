//! Random splits, forged rows, other names and orders.

use std::collections::BTreeSet;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    ByteDirection, ConnectionEnd, Connections, EndId, GapKind, MatchedMessages, MessageEdge,
    MessageRow, MessageSide, SequenceAtStart, ThreadIdentity,
};
use luc_stats::seeded_random;
use proptest::prelude::*;
use rand::RngExt;

use crate::planted_connections::plant;
use crate::{KINDS, expected, fleet, rows, shuffle};

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
        let mut random = seeded_random::stream(12, seed);
        let planted = plant(&mut random, [3, 1], [1, 2], 40_000, KINDS[kind]);
        let mut messages = rows(&mut random, &planted, 0, bytes);
        messages.extend(rows(&mut random, &planted, 1, bytes / 3));
        if fin {
            messages.extend(planted.row(1, 0, planted.passed(0) + bytes, 1, 1, 1));
        }
        messages.retain(|_| !random.random_bool(lost));
        let again: Vec<MessageRow> = messages.iter().filter(|_| random.random_bool(twice)).copied().collect();
        messages.extend(again);
        shuffle(&mut random, &mut messages);
        let connections = Connections::pair(&planted.ends, &messages, &[]);
        if connections.pairs.is_empty() {
            // Of traces that began at different times, the rows that both have may be lost.
            prop_assert!(lost > 0.0 && KINDS[kind].is_old != [false, false]);
            return Ok(());
        }
        let found = MatchedMessages::matched(&connections, &messages);
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
        let planted = plant(&mut seeded_random::stream(13, 1), [0, 1], [1, 2], 40_000, KINDS[kind]);
        let messages: Vec<MessageRow> = rows
            .into_iter()
            .map(|(is_server, is_received, first_byte, bytes, thread)| MessageRow {
                host: planted.ends[usize::from(is_server)].host,
                at_ns: first_byte,
                thread: ThreadIdentity { id: thread, start_ns: 0 },
                process: 0,
                connection: planted.ends[usize::from(is_server)].connection,
                way: if is_received { ByteDirection::Received } else { ByteDirection::Sent },
                first_byte,
                bytes,
                token: None,
            })
            .collect();
        let connections = Connections::pair(&planted.ends, &messages, &[]);
        let found = MatchedMessages::matched(&connections, &messages);
        let edges: BTreeSet<MessageEdge> = found.edges.iter().copied().collect();
        prop_assert_eq!(edges, expected(&planted, &messages).into_iter().collect::<BTreeSet<_>>());
        // Each byte of each row is on an edge, in a gap, or in a row that is left out.
        let left_out = found.left_out;
        let distinct: BTreeSet<&MessageRow> = messages.iter().filter(|row| row.bytes > 0).collect();
        let beyond = |row: &&&MessageRow| row.first_byte.checked_add(row.bytes).is_none();
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
        let planted = plant(&mut seeded_random::stream(14, 1), [0, 1], [1, 2], 40_000, KINDS[2]);
        let ends: Vec<ConnectionEnd> = numbers
            .iter()
            .enumerate()
            .map(|(at, &(host, own_isn, peer_isn, start, is_client))| ConnectionEnd {
                host: HostId(host),
                connection: at as u64 % 20,
                own_isn,
                peer_isn,
                at_start: start.map(|(snd_nxt, read)| SequenceAtStart { snd_nxt, rcv_nxt: read, copied_seq: read }),
                ..planted.ends[usize::from(is_client)]
            })
            .collect();
        let row = MessageRow {
            host: HostId(reach.4), at_ns: 0, thread: ThreadIdentity { id: 0, start_ns: 0 }, process: 0, connection: 3,
            way: ByteDirection::Sent, first_byte: reach.2, bytes: reach.3, token: None,
        };
        let found = Connections::pair(&ends, &[row], &[]);
        let all: BTreeSet<EndId> = ends.iter().map(ConnectionEnd::id).collect();
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
        let edges = MatchedMessages::matched(&before, &messages);
        // Any one-to-one map: multiplication by an odd number.
        let rename = |host: HostId| HostId((host.0 + 1).wrapping_mul(names | 1));
        let rename_end = |end: EndId| EndId { host: rename(end.host), ..end };
        let mut random = seeded_random::stream(15, seed);
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
            sent: MessageSide { host: rename(edge.sent.host), ..edge.sent },
            received: MessageSide { host: rename(edge.received.host), ..edge.received },
            ..*edge
        }).collect();
        let again = MatchedMessages::matched(&after, &messages);
        prop_assert_eq!(renamed, again.edges.into_iter().collect::<BTreeSet<_>>());
        prop_assert_eq!(edges.left_out, again.left_out);
    }
}
