//! Names of requests in the bytes of messages: a hash of each is recorded at both ends, and of nothing else.

use std::io::{IoSlice, IoSliceMut, Read as _, Write as _};

use luc_events::event_kinds::MessageDirection;
use luc_events::store::TraceReader;
use luc_events::tables::RequestToken;

use super::planted_exchange::ConnectedPair;
use super::trace_checks::RecordedRows;
use super::two_hosts::{SERVER_IPV4, TwoHosts};
use crate::common::fleet_recording::FleetRecording;
use crate::common::rows;

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const ID: &str = "req-17";

fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Messages of the client, and the names in them.
fn messages() -> Vec<(String, Option<&'static str>)> {
    let traceparent = format!("traceparent: 00-{TRACE_ID}-00f067aa0ba902b7-01\r\n");
    let id = format!("x-request-id: {ID}\r\n");
    let begin = "GET /search?q=a HTTP/1.1\r\nHost: a\r\n";
    let long = "a".repeat(65);
    let far = format!("Cookie: {}\r\n", "c".repeat(500));
    vec![
        (format!("{begin}{traceparent}\r\n"), Some(TRACE_ID)),
        (format!("POST / HTTP/1.1\r\nTraceParent:00-{TRACE_ID}-1\r\n\r\nbody"), Some(TRACE_ID)),
        (format!("{begin}X-Request-ID:   {ID}\r\nAccept: */*\r\n\r\n"), Some(ID)),
        (format!("{begin}{id}{traceparent}\r\n"), Some(TRACE_ID)),
        (format!("{begin}{traceparent}{id}\r\n"), Some(TRACE_ID)),
        // Neither names nor requests.
        (format!("{begin}\r\n{traceparent}"), None),
        (format!("{begin}Not-{traceparent}X-Request-Identity: {ID}\r\n\r\n"), None),
        (format!("{begin}X-Request-Id: {long}\r\n\r\n"), None),
        (format!("{begin}X-Request-Id:\r\n\r\n"), None),
        (format!("{begin}traceparent: 00-{}\r\n\r\n", &TRACE_ID[..20]), None),
        (format!("{begin}{far}{traceparent}\r\n"), None),
        // It ends before its name does; what the buffer has from before is no part of it.
        (format!("{begin}x-request-id: req"), None),
        (format!("HTTP/1.1 200 OK\r\n{traceparent}\r\n"), None),
        (format!("get / http/1.1\r\n{traceparent}\r\n"), None),
        (traceparent, None),
        ("\u{0}\u{1}\n\n\n".to_owned(), None),
    ]
}

/// Calls by which bytes are sent and received.
#[derive(Debug, Clone, Copy)]
enum Calls {
    Plain,
    /// Calls with several buffers: the first has all but the last two bytes.
    Vectors,
}

fn exchange(pair: &ConnectedPair, calls: Calls) {
    let (mut client, mut server) = (&pair.client, &pair.server);
    // Always the same one, so that it still has what came before.
    let mut buffer = [0; 2_000];
    for (message, _) in messages() {
        let bytes = message.as_bytes();
        let read = match calls {
            Calls::Plain => {
                client.write_all(bytes).expect("sent");
                server.read(&mut buffer)
            }
            Calls::Vectors => {
                let (first, rest) = bytes.split_at(bytes.len() - 2);
                let parts = [IoSlice::new(first), IoSlice::new(rest)];
                let sent = client.write_vectored(&parts).expect("sent");
                assert_eq!(sent, bytes.len());
                let (first, rest) = buffer.split_at_mut(1_500);
                server.read_vectored(&mut [IoSliceMut::new(first), IoSliceMut::new(rest)])
            }
        };
        assert_eq!(read.expect("received"), bytes.len());
    }
}

/// Records with these options how the messages are exchanged, and compares the names at both ends.
fn check(calls: Calls) {
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let recording = FleetRecording::start(&["--all", "--tokens"]);
    let pair = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    exchange(&pair, calls);
    let port = pair.client_port();
    drop(pair);
    let trace = recording.stop();
    let reader = TraceReader::open(&trace.path()).expect("a trace");
    let tokens: Vec<RequestToken> = rows(&reader);
    let recorded = RecordedRows::of_reader(&reader, &trace.text);
    let ends = recorded.ends(place.client.inode(), place.server.inode(), port);
    let mut next = 0;
    let mut expected: Vec<(u64, u64)> = Vec::new();
    for (message, name) in messages() {
        expected.extend(name.map(|name| (next, hash(name))));
        next += message.len() as u64;
    }
    for (end, direction) in
        [(ends.client, MessageDirection::Sent), (ends.server, MessageDirection::Received)]
    {
        let of_end = tokens.iter().filter(|row| row.connection == end.connection);
        let mut found: Vec<(u64, u64)> = of_end
            .map(|row| {
                assert_eq!(row.direction, direction, "{row:?}");
                assert_eq!(row.process.0, std::process::id(), "{row:?}");
                (row.byte, row.token)
            })
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{direction:?} {calls:?}");
    }
}

#[test]
fn names_are_found_in_single_buffers() {
    check(Calls::Plain);
}

#[test]
fn names_are_found_in_vectors() {
    check(Calls::Vectors);
}

#[test]
fn bytes_are_not_looked_at_unless_asked() {
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let recording = FleetRecording::start(&["--all"]);
    let pair = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    exchange(&pair, Calls::Plain);
    drop(pair);
    let trace = recording.stop();
    let tokens: Vec<RequestToken> = rows(&TraceReader::open(&trace.path()).expect("a trace"));
    assert_eq!(tokens, []);
}
