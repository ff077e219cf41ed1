//! Tests spans of OpenTelemetry, matched with requests of planted traces.

use std::fs;

use luc_events::ConnectionId;
use luc_events::event_kinds::MessageDirection;
use luc_events::tables::RequestToken;
use luc_fleet::report::{ReportSelection, ReportSource, otlp};
use luc_fleet::{ExplanationOptions, JoinedTraces, RecordedHost, explain, parse_spans};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};

use crate::planted_hosts::{BEGIN_NS, PlantedClock, host, message, talk};
use crate::refusals::write;
use crate::run_luc_fleet::{fleet, refusal_of, text, text_of};

const REAL_NS: i64 = 1_700_000_000_000_000_000;
/// A trace id, and its FNV-1a.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const TOKEN: u64 = 0xb878_f5fd_59bc_5892;

/// Request of a server on a connection; its begin and end in us after the begin of the trace.
struct Asked {
    connection: u32,
    us: [i64; 2],
}

/// Two that overlap: the short one is within the long one.
const OVERLAPPING: [Asked; 2] =
    [Asked { connection: 1, us: [0, 30_000] }, Asked { connection: 2, us: [10_000, 18_000] }];

fn server(asked: &[Asked]) -> RecordedHost {
    let clock = PlantedClock::default();
    let (mut client, mut server) = (host("client", &clock, 1), host("web", &clock, 1));
    for number in [1, 2] {
        talk([&mut client, &mut server], [&clock, &clock], number, 1);
    }
    server.trace.realtime_offset_ns = (REAL_NS - clock.monotonic_ns(BEGIN_NS) as i64) as u64;
    for one in asked {
        let at = |us: i64| clock.monotonic_ns(BEGIN_NS + us * 1_000);
        let [from, to] = one.us.map(at);
        server.messages.push(message(one.connection, from, MessageDirection::Received, 0, 40));
        server.messages.push(message(one.connection, to, MessageDirection::Sent, 0, 90));
    }
    server.messages.sort_by_key(|row| row.at_ns);
    server
}

/// Span of a server; its begin and end in us after the begin of the trace, and the client's port.
fn span(number: u8, us: [i64; 2], port: Option<u16>) -> Span {
    let [start, end] = us.map(|us| (REAL_NS + us * 1_000) as u64);
    let port = port.map(|port| KeyValue {
        key: "network.peer.port".to_owned(),
        value: Some(AnyValue { value: Some(Value::IntValue(port.into())) }),
        ..KeyValue::default()
    });
    let trace = u128::from_str_radix(TRACE, 16).expect("hexadecimal");
    Span {
        trace_id: trace.to_be_bytes().to_vec(),
        span_id: vec![1, 2, 3, 4, 5, 6, 7, number],
        name: format!("GET /{number}"),
        kind: SpanKind::Server.into(),
        start_time_unix_nano: start,
        end_time_unix_nano: end,
        attributes: port.into_iter().collect(),
        ..Span::default()
    }
}

/// Encodes spans as an exporter does.
fn json(spans: Vec<Span>) -> Vec<u8> {
    let host = KeyValue {
        key: "host.name".to_owned(),
        value: Some(AnyValue { value: Some(Value::StringValue("web".to_owned())) }),
        ..KeyValue::default()
    };
    let of_process = ResourceSpans {
        resource: Some(Resource { attributes: vec![host], ..Resource::default() }),
        scope_spans: vec![ScopeSpans { spans, ..ScopeSpans::default() }],
        ..ResourceSpans::default()
    };
    serde_json::to_vec(&ExportTraceServiceRequest { resource_spans: vec![of_process] })
        .expect("written")
}

fn joined(server: RecordedHost, spans: Vec<Span>) -> JoinedTraces {
    let spans = parse_spans(json(spans).as_slice()).expect("read").spans;
    JoinedTraces::new(vec![server]).expect("joined").with_spans(spans)
}

/// The names of requests, the slowest first, and how many spans are put to one, fit several, and fit none.
fn named(server: RecordedHost, spans: Vec<Span>) -> (Vec<Option<String>>, [u64; 3]) {
    let found = explain(&joined(server, spans), ExplanationOptions::default()).expect("explained");
    let counts = found.requests.spans.expect("given").servers;
    let names = found.slowest.into_iter().map(|request| request.span.map(|span| span.name));
    (names.collect(), [counts.matched, counts.several, counts.none])
}

fn name(number: u8) -> Option<String> {
    Some(format!("GET /{number}"))
}

#[test]
fn a_span_is_put_to_the_request_that_it_lies_in() {
    let long = span(1, [200, 29_900], None);
    let short = span(2, [10_100, 17_900], None);
    let (names, counts) = named(server(&OVERLAPPING), vec![short.clone(), long]);
    assert_eq!(names, [name(1), name(2)]);
    assert_eq!(counts, [2, 0, 0]);
    // Alone it fits both, and nothing tells which.
    let (names, counts) = named(server(&OVERLAPPING), vec![short]);
    assert_eq!(names, [None, None]);
    assert_eq!(counts, [0, 1, 0]);
}

#[test]
fn a_port_or_a_name_in_the_bytes_tells_requests_apart() {
    let (names, counts) = named(server(&OVERLAPPING), vec![span(2, [10_100, 17_900], Some(5_002))]);
    assert_eq!((names, counts), (vec![None, name(2)], [1, 0, 0]));
    let mut with_name = server(&OVERLAPPING);
    with_name.tokens.push(RequestToken {
        connection: ConnectionId(2),
        direction: MessageDirection::Received,
        byte: 20,
        token: TOKEN,
        ..RequestToken::default()
    });
    let (names, counts) = named(with_name, vec![span(2, [10_100, 17_900], None)]);
    assert_eq!((names, counts), (vec![None, name(2)], [1, 0, 0]));
}

#[test]
fn a_busy_program_s_span_may_end_late() {
    let late = |port| vec![span(2, [10_100, 24_000], port)];
    let (names, _) = named(server(&OVERLAPPING), late(Some(5_002)));
    assert_eq!(names, [None, name(2)]);
    // Without the port it is not taken for the other one's, which has it within itself.
    let (names, counts) = named(server(&OVERLAPPING), late(None));
    assert_eq!((names, counts), (vec![None, None], [0, 1, 0]));
}

#[test]
fn a_call_is_told_by_the_span_of_its_server() {
    let clock = PlantedClock::default();
    let (mut client, mut web) = (host("client", &clock, 1), server(&[]));
    let mut other = host("web", &clock, 1);
    for number in [1, 2] {
        talk([&mut client, &mut other], [&clock, &clock], number, 1);
    }
    client.trace.realtime_offset_ns = web.trace.realtime_offset_ns;
    web.messages = server(&OVERLAPPING).messages;
    // The client asks 1 ms before the server has read it.
    for one in &web.messages {
        let (flow, at_ns) = match one.direction {
            MessageDirection::Received => (MessageDirection::Sent, one.at_ns - 1_000_000),
            MessageDirection::Sent => (MessageDirection::Received, one.at_ns + 1_000_000),
        };
        let row = message(one.connection.0, at_ns, flow, one.first_byte, one.bytes);
        client.messages.push(row);
    }
    client.messages.sort_by_key(|row| row.at_ns);
    let of_client = |number: u8| Span {
        kind: SpanKind::Client.into(),
        span_id: vec![9, 0, 0, 0, 0, 0, 0, number],
        name: format!("call {number}"),
        ..span(number, [-2_000, 40_000], None)
    };
    let of_server = |number: u8, us, port| Span {
        parent_span_id: vec![9, 0, 0, 0, 0, 0, 0, number],
        ..span(number, us, port)
    };
    let names = |spans: Vec<Span>| {
        let spans = parse_spans(json(spans).as_slice()).expect("read").spans;
        let joined = JoinedTraces::new(vec![client.clone(), web.clone()]).expect("joined");
        let found =
            explain(&joined.with_spans(spans), ExplanationOptions::default()).expect("explained");
        let names = found.slowest.into_iter();
        let names: Vec<String> = names.filter_map(|one| Some(one.span?.name)).collect();
        (names, found.requests.spans.expect("given").clients.matched)
    };
    // Each fits both calls.
    let clients = vec![of_client(1), of_client(2)];
    assert_eq!(names(clients.clone()), (vec![], 0));
    let servers =
        [of_server(1, [200, 29_900], Some(5_001)), of_server(2, [10_100, 17_900], Some(5_002))];
    let all = [clients, servers.to_vec()].concat();
    let both = vec!["call 1".to_owned(), "call 2".to_owned()];
    assert_eq!(names(all), (both, 2));
}

#[test]
fn a_span_that_fits_no_request_is_put_to_none() {
    let outside = span(1, [50_000, 60_000], None);
    let other_port = span(2, [200, 29_900], Some(5_009));
    let (names, counts) = named(server(&OVERLAPPING), vec![outside, other_port]);
    assert_eq!((names, counts), (vec![None, None], [0, 0, 2]));
    // Of two that fit one request nobody knows which is its.
    let twice = vec![span(1, [200, 29_900], Some(5_001)), span(2, [300, 29_800], Some(5_001))];
    let (names, counts) = named(server(&OVERLAPPING), twice);
    assert_eq!((names, counts), (vec![None, None], [0, 2, 0]));
}

#[test]
fn spans_for_opentelemetry_are_below_the_program_s_own() {
    let joined = joined(server(&OVERLAPPING), vec![span(1, [200, 29_900], Some(5_001))]);
    let chosen = ReportSelection { request: Some(1), slowest: 1 };
    let mut out = Vec::new();
    otlp::write(&ReportSource::new(&joined, chosen).expect("found"), &mut out).expect("written");
    let request: ExportTraceServiceRequest = serde_json::from_slice(&out).expect("decoded");
    let all = request.resource_spans.into_iter();
    let all: Vec<Span> = all.flat_map(|one| one.scope_spans).flat_map(|one| one.spans).collect();
    let trace = u128::from_str_radix(TRACE, 16).expect("hexadecimal");
    assert!(all.iter().all(|span| span.trace_id == trace.to_be_bytes()));
    let below: Vec<&Span> =
        all.iter().filter(|span| span.parent_span_id == [1, 2, 3, 4, 5, 6, 7, 1]).collect();
    assert_eq!(below.len(), 1, "{all:?}");
    assert_eq!(below[0].kind(), SpanKind::Server);
}

#[test]
fn spans_come_from_files() {
    let folder = tempfile::tempdir().expect("a directory");
    write(folder.path(), "web", &server(&OVERLAPPING));
    let file = folder.path().join("spans.json");
    let spans = json(vec![span(1, [200, 29_900], Some(5_001))]);
    fs::write(&file, &spans).expect("written");
    let web = folder.path().join("web");
    let explain = |file: &str| {
        let file = folder.path().join(file);
        fleet(&["explain", text(&web), "--spans", text(&file)])
    };
    let said = text_of(explain("spans.json"));
    assert!(said.contains("1 of 1 spans of servers are put to a request"));
    assert!(said.contains(&format!("GET /1 (trace {TRACE})")), "{said}");
    fs::write(&file, &spans[..spans.len() / 2]).expect("written");
    for (file, reason) in [("spans.json", "no spans: EOF"), ("none", "cannot open")] {
        let line = refusal_of(explain(file));
        assert!(line.contains(reason), "{line}");
    }
}
