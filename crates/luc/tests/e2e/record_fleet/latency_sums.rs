//! `luc record --fleet --summary`: how long requests took, in sums. Each planted exchange is counted once, at both
//! ends, and nothing else is. Its time is at least the time that the server slept.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use luc_events::event_kinds::SocketRole;
use luc_events::ring;
use luc_events::store::TraceReader;
use luc_events::tables::ExchangeSum;
use serde_json::Value;

use super::planted_exchange::{ConnectedPair, receive, send};
use super::two_hosts::{SERVER_IPV4, SERVER_IPV6, TwoHosts};
use crate::common;
use crate::common::fleet_recording::FleetRecording;

const OPTIONS: [&str; 2] = ["--summary", "--all"];
/// Sums of everybody have those of other tests, too: the one that has peers for all of the sums runs alone.
static FEW_PEERS: RwLock<()> = RwLock::new(());
const EXCHANGES: u64 = 20;
/// Time that the server sleeps before each answer.
const SLEEP: Duration = Duration::from_millis(2);

/// Figures of one end of a connection, from its sums.
#[derive(Debug, Default, PartialEq)]
struct Counted {
    count: u64,
    total_ns: u64,
    /// The shortest time of the lowest step.
    least_ns: u64,
    peers: Vec<String>,
}

/// The sums of one side of a service in a namespace.
fn counted(rows: &[ExchangeSum], place: &TwoHosts, side: SocketRole, port: u32) -> Counted {
    let host = match side {
        SocketRole::Client => &place.client,
        _ => &place.server,
    };
    let rows =
        rows.iter().filter(|row| (row.namespace, row.side, row.port) == (host.inode(), side, port));
    let mut found = Counted { least_ns: u64::MAX, ..Counted::default() };
    for row in rows {
        assert!(row.total_ns >= row.at_least_ns * row.count, "{row:?}");
        assert!(row.interval_ns > 0 && !row.program.is_empty(), "{row:?}");
        found.count += row.count;
        found.total_ns += row.total_ns;
        found.least_ns = found.least_ns.min(row.at_least_ns);
        if !found.peers.contains(&row.peer) {
            found.peers.push(row.peer.clone());
        }
    }
    found
}

fn rows(recording: FleetRecording) -> Vec<ExchangeSum> {
    let trace = recording.stop();
    common::rows(&TraceReader::open(&trace.path()).expect("a trace"))
}

/// Asks and answers, and sleeps in between.
fn ask(pair: &ConnectedPair, times: u64) {
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..times {
                receive(&pair.server, 100);
                thread::sleep(SLEEP);
                send(&pair.server, 3000);
            }
        });
        for _ in 0..times {
            send(&pair.client, 100);
            receive(&pair.client, 3000);
        }
    });
}

fn port(pair: &ConnectedPair) -> u32 {
    u32::from(pair.server.local_addr().expect("its address").port())
}

/// Both ends of a connection have counted these exchanges.
fn check(rows: &[ExchangeSum], place: &TwoHosts, port: u32, times: u64) {
    let server = counted(rows, place, SocketRole::Server, port);
    let client = counted(rows, place, SocketRole::Client, port);
    assert_eq!((server.count, client.count), (times, times), "{rows:?}");
    let slept_ns = SLEEP.as_nanos() as u64;
    assert!(server.total_ns >= times * slept_ns, "{server:?}");
    // A step is at most a quarter of its shortest time long.
    assert!(server.least_ns * 5 / 4 >= slept_ns, "{server:?}");
    // The server's part is within the client's.
    assert!(client.total_ns >= server.total_ns, "{client:?} {server:?}");
}

#[test]
fn each_exchange_is_counted_once_at_both_ends() {
    let _shared = FEW_PEERS.read().unwrap_or_else(PoisonError::into_inner);
    let Some(place) = TwoHosts::new() else {
        return;
    };
    for (bind, to) in [("0.0.0.0", SERVER_IPV4), ("::", SERVER_IPV6)] {
        let older = ConnectedPair::new(&place, bind, to);
        ask(&older, 3);
        let recording = FleetRecording::start(&OPTIONS);
        let pair = ConnectedPair::new(&place, bind, to);
        ask(&pair, EXCHANGES);
        ask(&older, EXCHANGES);
        let (new, old) = (port(&pair), port(&older));
        let rows = rows(recording);
        check(&rows, &place, new, EXCHANGES);
        check(&rows, &place, old, EXCHANGES);
        assert_eq!(counted(&rows, &place, SocketRole::Client, new).peers, [to]);
    }
}

/// A greeting of the server answers nothing, and two requests without an answer between them are one.
#[test]
fn turns_are_counted_not_messages() {
    let _shared = FEW_PEERS.read().unwrap_or_else(PoisonError::into_inner);
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let recording = FleetRecording::start(&OPTIONS);
    let pair = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    send(&pair.server, 10);
    receive(&pair.client, 10);
    for _ in 0..2 {
        send(&pair.client, 100);
        receive(&pair.server, 100);
    }
    for _ in 0..3 {
        send(&pair.server, 1000);
        receive(&pair.client, 1000);
    }
    // Nobody answers this one.
    send(&pair.client, 100);
    receive(&pair.server, 100);
    let port = port(&pair);
    let rows = rows(recording);
    for side in [SocketRole::Server, SocketRole::Client] {
        let found = counted(&rows, &place, side, port);
        assert_eq!(found.count, 1, "{side:?} {rows:?}");
    }
}

/// Peers beyond those that have sums of their own are counted together.
#[test]
fn many_peers_are_all_counted() {
    const PEERS: u64 = 3200;
    const OWN_PEERS: usize = 3072;
    let _alone = FEW_PEERS.write().unwrap_or_else(PoisonError::into_inner);
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let recording = FleetRecording::start(&OPTIONS);
    let port = place.server.within(|| {
        let listener = TcpListener::bind(("0.0.0.0", 0)).expect("bound");
        let port = listener.local_addr().expect("its address").port();
        for peer in 0..PEERS {
            // All of 127.0.0.0/8 is this host.
            let to = Ipv4Addr::new(127, 1, (peer / 250) as u8, (peer % 250 + 1) as u8);
            let client = TcpStream::connect((to, port)).expect("connected");
            let (server, _) = listener.accept().expect("accepted");
            let pair = ConnectedPair { client, server };
            send(&pair.client, 1);
            receive(&pair.server, 1);
            send(&pair.server, 1);
            receive(&pair.client, 1);
        }
        port
    });
    let rows = rows(recording);
    let asked: Vec<&ExchangeSum> = rows
        .iter()
        .filter(|row| (row.side, row.port) == (SocketRole::Client, u32::from(port)))
        .collect();
    assert_eq!(asked.iter().map(|row| row.count).sum::<u64>(), PEERS);
    let together: Vec<_> = asked.iter().filter(|row| row.peer.is_empty()).collect();
    let alone = asked.len() - together.len();
    assert!(!together.is_empty() && alone <= OWN_PEERS, "{alone}");
    // Other programs have a few.
    assert!(alone > OWN_PEERS / 2, "{alone}");
}

/// Exchanges are those of recorded processes.
#[test]
fn a_filter_leaves_out_exchanges() {
    let _shared = FEW_PEERS.read().unwrap_or_else(PoisonError::into_inner);
    let Some(place) = TwoHosts::new() else {
        return;
    };
    // The recorded command sends nothing.
    let recording = FleetRecording::start(&OPTIONS[..1]);
    let pair = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    ask(&pair, 3);
    assert_eq!(rows(recording), []);
}

/// Of a ring `luc explain` shows all segments of the last recorder, and counts nothing twice.
#[test]
fn a_ring_is_explained_as_one_trace() {
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let _shared = FEW_PEERS.read().unwrap_or_else(PoisonError::into_inner);
    let options = [&OPTIONS[..], &["--ring", "5m", "--segment", "5s"]].concat();
    let recording = FleetRecording::start(&options);
    let pair = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    ask(&pair, EXCHANGES);
    common::until("two segments are there", || {
        ask(&pair, 1);
        ring::names(&recording.path()).is_ok_and(|names| names.len() >= 2)
    });
    ask(&pair, EXCHANGES);
    let port = port(&pair);
    let trace = recording.stop();
    let segments = ring::segments(&trace.path()).expect("a ring");
    let counted: u64 = segments
        .iter()
        .flat_map(|segment| {
            common::rows::<ExchangeSum>(&TraceReader::open(&segment.path).expect("a segment"))
        })
        .filter(|row| (row.side, row.port) == (SocketRole::Server, port))
        .map(|row| row.count)
        .sum();
    assert!(counted > 2 * EXCHANGES, "{counted}");
    let output = Command::new(common::LUC)
        .args(["explain", "--json"])
        .arg(trace.path())
        .output()
        .expect("luc runs");
    assert!(output.status.success(), "{}", common::stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let services = report["services"].as_array().expect("services");
    let own: Vec<u64> = services
        .iter()
        .filter(|one| one["side"] == "server" && one["port"] == port)
        .filter_map(|one| one["latency"]["count"].as_u64())
        .collect();
    assert_eq!(own, [counted]);
}

#[test]
fn the_report_shows_services() {
    let _shared = FEW_PEERS.read().unwrap_or_else(PoisonError::into_inner);
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let recording = FleetRecording::start(&OPTIONS);
    let pair = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    ask(&pair, EXCHANGES);
    let port = port(&pair);
    let trace = recording.stop();
    let output = Command::new(common::LUC).arg("explain").arg(trace.path()).output();
    let output = output.expect("luc runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("How long requests took"), "{text}");
    let line = text.lines().find(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.contains(&"client") && words.contains(&port.to_string().as_str())
    });
    assert!(line.is_some_and(|line| line.contains(SERVER_IPV4)), "{text}");
}
