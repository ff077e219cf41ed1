//! Packets of simulated connections as bounds of the clocks' offset: none is ever broken.

use std::net::SocketAddr;

use luc_fleet_clocks::{FitOptions, HostId, PairPoints, fit};
use luc_fleet_requests::{ByteDirection, ConnectionEnd, Connections, PacketRow, clock_points};
use luc_stats::seeded_random;
use proptest::prelude::*;
use rand::{Rng, RngExt};

/// B's clock less A's, ns, and its rate, ns/s.
const OFFSET_NS: i64 = 7_000_000_123;
const DRIFT: i64 = 20_000;
const LEAST_DELAY_NS: u64 = 10_000;

fn on_b(true_ns: u64) -> u64 {
    let true_ns = true_ns as i64;
    (true_ns + OFFSET_NS + true_ns / 1000 * DRIFT / 1_000_000) as u64
}

fn ends(hosts: [u32; 2]) -> [ConnectionEnd; 2] {
    let address = |port| SocketAddr::from(([10, 0, 0, 1], port)).into();
    [0, 1].map(|side| ConnectionEnd {
        host: HostId(hosts[side]),
        connection: 5,
        namespace: 1,
        local: address(side as u16),
        remote: address(1 - side as u16),
        peer: None,
        own_isn: Some([100, 200][side]),
        peer_isn: Some([200, 100][side]),
        at_start: None,
        opener: None,
        opened_ns: None,
        closed_ns: None,
    })
}

/// Properties of a simulated network.
#[derive(Debug, Clone, Copy)]
struct Network {
    lost: f64,
    /// Sent again although it has arrived.
    spurious: f64,
    /// Put together with the next one at the receiver.
    merged: f64,
    /// Rows of receptions that the recorder has lost.
    missing: f64,
}

/// Packets of both directions, with acknowledgements, in any order. Host 0 is A.
fn packets(random: &mut impl Rng, count: u64, network: Network) -> Vec<PacketRow> {
    let mut rows = Vec::new();
    for sender in [0_u32, 1] {
        let row = |host: u32, true_ns: u64, way, first_byte, bytes, ack| PacketRow {
            host: HostId(host),
            at_ns: if host == 0 { true_ns } else { on_b(true_ns) },
            connection: 5,
            way,
            first_byte,
            bytes,
            ack,
        };
        let (mut now_ns, mut first, mut last_reception) = (1_000_000, 1, 0);
        let mut merging: Option<(u64, u64)> = None;
        for _ in 0..count {
            now_ns += random.random_range(1_000..3_000_000);
            let bytes = random.random_range(1..5000);
            let mut sent_ns = now_ns;
            loop {
                rows.push(row(sender, sent_ns, ByteDirection::Sent, first, bytes, 1));
                let is_lost = random.random_bool(network.lost);
                let is_again = is_lost || random.random_bool(network.spurious);
                if !is_lost {
                    let delay_ns = LEAST_DELAY_NS + random.random_range(0..100_000);
                    let at_ns = (sent_ns + delay_ns).max(last_reception + 1);
                    last_reception = at_ns;
                    // Bytes that wait for the next packet are received with it.
                    let from = merging.take().filter(|&(from, end)| end == first && from < first);
                    let from = from.map_or(first, |(from, _)| from);
                    if !is_again && random.random_bool(network.merged) {
                        merging = Some((from, first + bytes));
                    } else if !random.random_bool(network.missing) {
                        rows.push(row(
                            1 - sender,
                            at_ns,
                            ByteDirection::Received,
                            from,
                            first + bytes - from,
                            1,
                        ));
                    }
                    if !is_again {
                        let ack_ns = at_ns + random.random_range(0..50_000);
                        let ack = first + bytes;
                        rows.push(row(1 - sender, ack_ns, ByteDirection::Sent, 1, 0, ack));
                        let back_ns = ack_ns + LEAST_DELAY_NS + random.random_range(0..50_000);
                        rows.push(row(sender, back_ns, ByteDirection::Received, 1, 0, ack));
                    }
                }
                if !is_again {
                    break;
                }
                sent_ns += random.random_range(200_000..5_000_000);
            }
            first += bytes;
        }
    }
    for at in (1..rows.len()).rev() {
        rows.swap(at, random.random_range(0..=at));
    }
    rows
}

fn points(rows: &[PacketRow]) -> PairPoints {
    let connections = Connections::pair(&ends([0, 1]), &[], rows);
    let mut all = clock_points(&connections, rows, |_, at_ns| (at_ns, 0)).expect("times in range");
    all.remove(&(HostId(0), HostId(1))).expect("a pair of hosts")
}

/// Whether no bound is broken.
fn hold(points: &PairPoints) -> bool {
    let truth = |at_ns: i64| on_b(at_ns as u64) as i64 - at_ns;
    let least = LEAST_DELAY_NS as i64 - 10;
    let forward =
        points.forward.iter().all(|point| point.offset_ns() >= truth(point.at_ns()) + least);
    let backward =
        points.backward.iter().all(|point| point.offset_ns() <= truth(point.at_ns()) - least);
    forward && backward
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_bound_is_broken(seed in any::<u64>(), lost in 0.0_f64..0.3, spurious in 0.0_f64..0.3,
                          merged in 0.0_f64..0.6, missing in 0.0_f64..0.5) {
        let network = Network { lost, spurious, merged, missing };
        let rows = packets(&mut seeded_random::stream(41, seed), 200, network);
        let points = points(&rows);
        prop_assert!(hold(&points));
        prop_assert!(!points.forward.is_empty() && !points.backward.is_empty());
    }

    #[test]
    fn forged_packets_never_panic(seed in any::<u64>(), edits in prop::collection::vec(
        (0_u8..6, any::<usize>(), prop_oneof![any::<u64>(), Just(u64::MAX), 0_u64..100]), 1..20)) {
        let network = Network { lost: 0.1, spurious: 0.1, merged: 0.1, missing: 0.1 };
        let mut rows = packets(&mut seeded_random::stream(42, seed), 20, network);
        for (what, place, number) in edits {
            let place = place % rows.len();
            let row = &mut rows[place];
            match what {
                0 => row.at_ns = number,
                1 => row.first_byte = number,
                2 => row.bytes = number,
                3 => row.ack = number,
                4 => row.way = ByteDirection::Sent,
                _ => row.connection = number,
            }
        }
        let connections = Connections::pair(&ends([0, 1]), &[], &rows);
        let found = clock_points(&connections, &rows, |_, at_ns| (at_ns, 0));
        if let Ok(all) = found {
            prop_assert!(all.len() <= 1);
        } else {
            prop_assert!(rows.iter().any(|row| row.at_ns > i64::MAX as u64 / 4));
        }
    }
}

#[test]
fn the_fit_has_the_truth() {
    let network = Network { lost: 0.01, spurious: 0.01, merged: 0.2, missing: 0.01 };
    let rows = packets(&mut seeded_random::stream(43, 0), 3000, network);
    let points = points(&rows);
    let found = fit(&points, &FitOptions::default()).expect("a fit");
    assert!(found.jumps().is_empty());
    let (first, last) = found.span_ns();
    for at_ns in (first..last).step_by(100_000_000) {
        let known = found.at(at_ns);
        let truth = on_b(at_ns as u64) as i64 - at_ns;
        assert!(known.bounds.contains(truth), "{at_ns} {known:?}");
        assert!(known.bounds.half_width_ns().is_some_and(|half| half < 40_000.0), "{known:?}");
    }
}

#[test]
fn acknowledgements_bound_the_other_side() {
    // A sends, B only acknowledges: the second of two alike is no clock point.
    let row = |host, at_ns, way, first_byte, bytes, ack| PacketRow {
        host: HostId(host),
        at_ns,
        connection: 5,
        way,
        first_byte,
        bytes,
        ack,
    };
    let mut rows = vec![
        row(0, 1_000, ByteDirection::Sent, 1, 100, 1),
        row(1, 51_000, ByteDirection::Received, 1, 100, 1),
        row(1, 52_000, ByteDirection::Sent, 1, 0, 101),
        row(0, 3_000, ByteDirection::Received, 1, 0, 101),
    ];
    let offsets = |rows: &[PacketRow]| {
        let points = points(rows);
        let plain = |all: &[luc_fleet_clocks::OffsetPoint]| {
            all.iter().map(|point| point.offset_ns()).collect::<Vec<_>>()
        };
        (plain(&points.forward), plain(&points.backward))
    };
    assert_eq!(offsets(&rows), (vec![50_000], vec![49_000]));
    rows.push(row(1, 60_000, ByteDirection::Sent, 1, 0, 101));
    assert_eq!(offsets(&rows), (vec![50_000], vec![]));
    // Both ends on one host say nothing.
    let connections = Connections::pair(&ends([0, 0]), &[], &rows);
    let found = clock_points(&connections, &rows, |_, at_ns| (at_ns, 0)).expect("times in range");
    assert!(found.is_empty());
}
