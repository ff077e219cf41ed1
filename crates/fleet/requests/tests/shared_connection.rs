//! Two threads of a client share a connection, whose server takes one request after the other.

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    ByteDirection, CallId, ConnectionEnd, ConnectionOpener, Connections, FleetWaits, MessageRow,
    RequestId, Requests, ThreadIdentity,
};

const CLIENT: u32 = 0;
const SERVER: u32 = 1;
const REQUESTS: u64 = 20;
const ASKED: u64 = 40;
const ANSWER: u64 = 90;

fn end(host: u32, ports: [u16; 2], isns: [u32; 2], opener: ConnectionOpener) -> ConnectionEnd {
    let address = |port| std::net::SocketAddr::from(([10, 0, 0, 1], port)).into();
    ConnectionEnd {
        host: HostId(host),
        connection: 1,
        namespace: 1,
        local: address(ports[0]),
        remote: address(ports[1]),
        peer: None,
        own_isn: Some(isns[0]),
        peer_isn: Some(isns[1]),
        at_start: None,
        opener: Some(opener),
        opened_ns: None,
        closed_ns: None,
    }
}

fn row(host: u32, thread: u32, at_ns: u64, way: ByteDirection, place: (u64, u64)) -> MessageRow {
    let (number, bytes) = place;
    MessageRow {
        host: HostId(host),
        at_ns,
        thread: ThreadIdentity { id: thread, start_ns: 0 },
        process: thread / 10,
        connection: 1,
        way,
        first_byte: 1 + number * bytes,
        bytes,
        token: None,
    }
}

/// Returns rows of requests that are sent 300 ns before the server begins with them. Each takes 200 ns, so two are
/// always under way. Threads 11 and 12 ask, 13 reads all answers.
fn story() -> Vec<MessageRow> {
    let mut rows = Vec::new();
    for number in 0..REQUESTS {
        let begun_ns = 10_000 + 200 * number;
        let asks = 11 + (number % 2) as u32;
        rows.extend([
            row(CLIENT, asks, begun_ns - 300, ByteDirection::Sent, (number, ASKED)),
            row(SERVER, 29, begun_ns, ByteDirection::Received, (number, ASKED)),
            row(SERVER, 29, begun_ns + 150, ByteDirection::Sent, (number, ANSWER)),
            row(CLIENT, 13, begun_ns + 160, ByteDirection::Received, (number, ANSWER)),
        ]);
    }
    rows
}

#[test]
fn each_thread_has_its_own_requests_and_answers() {
    let ends = [
        end(CLIENT, [5_000, 80], [7, 9], ConnectionOpener::This),
        end(SERVER, [80, 5_000], [9, 7], ConnectionOpener::Peer),
    ];
    let rows = story();
    let connections = Connections::pair(&ends, &rows, &[]);
    assert_eq!(connections.pairs.len(), 1);
    let found = Requests::find(&ends, &connections, &rows, &FleetWaits::default(), |_| true);
    assert_eq!(found.outgoing.len() as u64, REQUESTS);
    assert_eq!(found.incoming.len() as u64, REQUESTS);
    for (number, sent) in found.outgoing.iter().enumerate() {
        let begun_ns = 10_000 + 200 * number as u64;
        let exchange = &sent.exchange;
        assert_eq!(exchange.asked.thread.id, 11 + (number % 2) as u32);
        assert_eq!(exchange.asked.at_ns, begun_ns - 300);
        let answer = exchange.answer.expect("answered");
        assert_eq!(answer.last.at_ns, begun_ns + 160);
        assert_eq!(sent.to, Some(RequestId(number)));
        assert_eq!(found.incoming[number].from, Some(CallId(number)));
    }
}

#[test]
fn without_the_server_they_are_one_as_before() {
    let ends = [end(CLIENT, [5_000, 80], [7, 9], ConnectionOpener::This)];
    let rows: Vec<MessageRow> =
        story().into_iter().filter(|row| row.host == HostId(CLIENT)).collect();
    let connections = Connections::pair(&ends, &rows, &[]);
    let found = Requests::find(&ends, &connections, &rows, &FleetWaits::default(), |_| true);
    assert!((found.outgoing.len() as u64) < REQUESTS);
}

/// The client is a server itself: each of its threads asks for a request of its own. Without the other server's trace
/// the causes of the shared connection's requests are not known.
#[test]
fn requests_of_several_threads_in_one_are_put_to_none() {
    let server_end = |connection: u64, port: u16| ConnectionEnd {
        connection,
        ..end(CLIENT, [90, port], [1, 2], ConnectionOpener::Peer)
    };
    let ends = [
        end(CLIENT, [5_000, 80], [7, 9], ConnectionOpener::This),
        server_end(11, 6_011),
        server_end(12, 6_012),
    ];
    let mut rows: Vec<MessageRow> =
        story().into_iter().filter(|row| row.host == HostId(CLIENT)).collect();
    // Threads 11 and 12 have one long request each.
    for thread in [11, 12] {
        for (at_ns, way) in [(9_000, ByteDirection::Received), (90_000, ByteDirection::Sent)] {
            let row = row(CLIENT, thread, at_ns, way, (0, 10));
            rows.push(MessageRow { connection: u64::from(thread), ..row });
        }
    }
    let connections = Connections::pair(&ends, &rows, &[]);
    let found = Requests::find(&ends, &connections, &rows, &FleetWaits::default(), |_| true);
    assert_eq!(found.incoming.len(), 2);
    assert!(!found.outgoing.is_empty());
    for sent in &found.outgoing {
        // One that thread 11 or 12 sent alone is put to that thread's request.
        let asked = &sent.exchange;
        let is_mixed = asked.bytes > ASKED;
        assert_eq!(sent.cause.is_none(), is_mixed, "{sent:?}");
    }
    assert!(found.outgoing.iter().any(|sent| sent.cause.is_none()));
}

/// Returns rows of a server that reads one request after the other, and whose two workers answer in another order. Each
/// asks a third host in between. Only the bytes tell the request of an answer.
fn mixed() -> (Vec<ConnectionEnd>, Vec<MessageRow>) {
    let client_end = |connection: u64, port: u16| ConnectionEnd {
        connection,
        ..end(SERVER, [port, 90], [1, 2], ConnectionOpener::This)
    };
    let ends = vec![
        end(CLIENT, [5_000, 80], [7, 9], ConnectionOpener::This),
        end(SERVER, [80, 5_000], [9, 7], ConnectionOpener::Peer),
        client_end(21, 6_021),
        client_end(22, 6_022),
    ];
    let mut rows = Vec::new();
    for round in 0..REQUESTS / 2 {
        let begun_ns = 10_000 + 1_000 * round;
        for (place, at_ns) in [(0, begun_ns), (1, begun_ns + 100)] {
            let number = 2 * round + place;
            let asks = 11 + place as u32;
            rows.extend([
                row(CLIENT, asks, at_ns - 50, ByteDirection::Sent, (number, ASKED)),
                row(SERVER, 29, at_ns, ByteDirection::Received, (number, ASKED)),
            ]);
        }
        // The second request's worker is the first one to answer.
        for (place, at_ns) in [(1, begun_ns + 500), (0, begun_ns + 700)] {
            let worker = 21 + place as u32;
            let call = |at_ns, way| MessageRow {
                connection: u64::from(worker),
                ..row(SERVER, worker, at_ns, way, (round, ASKED))
            };
            let number = 2 * round + 1 - place;
            rows.extend([
                call(at_ns - 100, ByteDirection::Sent),
                call(at_ns - 50, ByteDirection::Received),
                row(SERVER, worker, at_ns, ByteDirection::Sent, (number, ANSWER)),
                row(CLIENT, 13, at_ns + 50, ByteDirection::Received, (number, ANSWER)),
            ]);
        }
    }
    (ends, rows)
}

#[test]
fn what_is_answered_in_another_order_is_put_to_none() {
    let (mut ends, mut rows) = mixed();
    for has_client in [true, false] {
        if !has_client {
            ends.retain(|end| end.host == HostId(SERVER));
            rows.retain(|row| row.host == HostId(SERVER));
        }
        let connections = Connections::pair(&ends, &rows, &[]);
        let found = Requests::find(&ends, &connections, &rows, &FleetWaits::default(), |_| true);
        let calls = found.outgoing.iter().filter(|sent| sent.exchange.end.host == HostId(SERVER));
        let causes: Vec<_> = calls.map(|sent| sent.cause).collect();
        assert_eq!(causes, vec![None; REQUESTS as usize]);
    }
}
