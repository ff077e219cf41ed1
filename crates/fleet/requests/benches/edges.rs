//! Times of edges, requests and trees on one core: `cargo bench -p luc-fleet-requests`.

#[expect(dead_code, reason = "the tests use all of it")]
#[path = "../tests/handover/search_service.rs"]
mod search_service;
#[expect(dead_code, reason = "the tests use all of it")]
#[path = "../tests/handover/server_simulation.rs"]
mod server_simulation;

use std::hint::black_box;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    ByteDirection, ConnectionEnd, Connections, FleetWaits, MatchedMessages, MessageRow,
    NumberedForest, Requests, SubtreeSums, ThreadIdentity,
};
use luc_stats::seeded_random;
use rand::RngExt;
use search_service::{FrontEndThreads, SearchService};

const NODES: u32 = 1_000_000;
const CONNECTIONS: u64 = 1_000;
const MESSAGES: u64 = 500;

/// The least time of five runs: what else runs here only adds.
fn best<T>(mut run: impl FnMut() -> T) -> Duration {
    let times = (0..5).map(|_| {
        let begin = Instant::now();
        black_box(run());
        begin.elapsed()
    });
    times.min().unwrap_or_default()
}

fn trees() {
    let mut random = seeded_random::stream(1, 0);
    let shapes: [(&str, Vec<Option<u32>>); 3] = [
        ("a chain", (0..NODES).map(|node| node.checked_sub(1)).collect()),
        (
            "random parents before their children",
            (0..NODES).map(|node| (node > 0).then(|| random.random_range(0..node))).collect(),
        ),
        (
            "requests of 11 nodes, shuffled",
            (0..NODES).fold(vec![None; NODES as usize], |mut parents, node| {
                let parent = (node % 11 > 0).then(|| scattered(node - node % 11));
                parents[scattered(node) as usize] = parent;
                parents
            }),
        ),
    ];
    let values: Vec<u64> = (0..u64::from(NODES)).collect();
    for (name, parents) in shapes {
        let forest = NumberedForest::new(&parents).expect("a forest");
        println!(
            "tree of {NODES} nodes, {name}: numbered in {:?}, sums over every subtree in {:?}",
            best(|| NumberedForest::new(&parents)),
            best(|| {
                let sums = SubtreeSums::new(&forest, &values).expect("a value for each");
                (0..NODES).fold(0_u128, |all, node| all.wrapping_add(sums.subtree(node)))
            })
        );
    }
}

/// Another place for each node: 7,919 has no divisor in common with the number of nodes.
fn scattered(node: u32) -> u32 {
    (u64::from(node) * 7_919 % u64::from(NODES)) as u32
}

fn messages() {
    let address = |port| SocketAddr::from(([10, 0, 0, 1], port)).into();
    let (mut ends, mut rows) = (Vec::new(), Vec::new());
    let mut random = seeded_random::stream(2, 0);
    for connection in 0..CONNECTIONS {
        let isn: [u32; 2] = [random.random(), random.random()];
        for side in [0, 1] {
            ends.push(ConnectionEnd {
                host: HostId(side as u32),
                connection,
                namespace: 1,
                local: address(side as u16),
                remote: address(1 - side as u16),
                peer: None,
                own_isn: Some(isn[side]),
                peer_isn: Some(isn[1 - side]),
                at_start: None,
                opener: None,
                opened_ns: None,
                closed_ns: None,
            });
        }
        for at in 0..MESSAGES {
            rows.extend([ByteDirection::Sent, ByteDirection::Received].map(|way| MessageRow {
                host: HostId(u32::from(way == ByteDirection::Received)),
                at_ns: at,
                thread: ThreadIdentity { id: 1, start_ns: 0 },
                process: 1,
                connection,
                way,
                first_byte: at * 700 + 1,
                bytes: 700,
                token: None,
            }));
        }
    }
    let connections = Connections::pair(&ends, &rows, &[]);
    assert_eq!(connections.pairs.len() as u64, CONNECTIONS);
    let time = best(|| MatchedMessages::matched(&connections, &rows));
    println!(
        "messages: {} rows matched in {time:?}, {:.1} million rows/s",
        rows.len(),
        rows.len() as f64 / time.as_secs_f64() * 1e-6
    );
    let time = best(|| Connections::pair(&ends, &rows, &[]));
    println!(
        "connections: {} ends paired in {time:?}, with a look at {} rows",
        ends.len(),
        rows.len()
    );
}

/// Requests of simulated servers: 16 clients of a pool of 4 workers and 3 back ends for 20 s.
fn requests() {
    let service = SearchService {
        mode: FrontEndThreads::Scatter(4),
        clients: 16,
        back_ends: 3,
        think_ns: 500_000,
        lock_ns: 0,
    };
    let simulation = service.simulate(1, 20_000_000_000);
    let (ends, messages) = (simulation.ends(), &simulation.messages);
    let waits = &FleetWaits::of(&simulation.waits).expect("few");
    let connections = Connections::pair(&ends, messages, &[]);
    let rows = messages.len() + simulation.waits.len();
    let time = best(|| Requests::find(&ends, &connections, messages, waits, |_| true));
    println!(
        "requests: {rows} messages and waits in {time:?}, {:.1} million rows/s",
        rows as f64 / time.as_secs_f64() * 1e-6
    );
}

fn main() {
    trees();
    messages();
    requests();
}
