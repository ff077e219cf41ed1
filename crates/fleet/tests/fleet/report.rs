//! Reports of planted traces: a page, a Perfetto trace, spans.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::process::Command;

use luc_events::codes::Flow;
use luc_events::tables::{Connection, Task};
use luc_events::{Cause, Pid, Tgid};
use luc_fleet::report::{Chosen, Report, ReportError, html, otlp, perfetto};
use luc_fleet::{FleetError, Joined, Recorded, Wanted, explain};
use luc_testkit::perfetto::check;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;

use crate::findings::wait;
use crate::planted::{BEGIN_NS, Clock, host, message, talk};

const CLIENT: Clock = Clock {
    offset_ns: 0,
    drift_ppb: 0,
    ntp_ppb: 0,
    jump: None,
};
/// The server's clock is 7 ms ahead.
const SERVER: Clock = Clock {
    offset_ns: 7_000_000,
    ..CLIENT
};
const REQUESTS: i64 = 30;
/// What a page would obey, if it were not escaped.
const HOSTILE: &str = "</script><b x='\">";

/// A client asks a server 30 times; each time the server asks a third one, of which there is no trace, and takes 3 ms,
/// of which it waits 1 ms for its disk. One request takes 5 ms longer.
fn planted() -> [Recorded; 2] {
    let (mut client, mut server) = (host("client", &CLIENT, 3), host("server", &SERVER, 3));
    talk([&mut client, &mut server], [&CLIENT, &SERVER], 1, 3);
    for recorded in [&mut client, &mut server] {
        recorded.trace.processors = 2;
        recorded.trace.realtime_offset_ns = 1_700_000_000_000_000_000;
    }
    server.tasks.push(Task {
        thread: Pid(8),
        process: Tgid(7),
        comm: HOSTILE.to_owned(),
        start_ns: 1,
        ..Task::default()
    });
    server.connections.push(Connection {
        connection: luc_events::ConnectionId(9),
        local_address: "10.0.0.2".to_owned(),
        local_port: 4_000,
        remote_address: "10.0.0.3".to_owned(),
        remote_port: 5_432,
        side: luc_events::codes::Side::Client,
        initial_sent: 77,
        initial_received: 78,
        sequences: luc_events::codes::Sequences::Seen,
        ..Connection::default()
    });
    for number in 0..REQUESTS {
        let us = |us: i64| BEGIN_NS + 500_000_000 + number * 60_000_000 + us * 1_000;
        let (here, there) = (
            |at| CLIENT.monotonic_ns(us(at)),
            |at| SERVER.monotonic_ns(us(at)),
        );
        let slow = if number == 11 { 5_000 } else { 0 };
        let first = |bytes: u64| number as u64 * bytes;
        let row = |at_ns, flow, bytes: u64| message(1, at_ns, flow, first(bytes), bytes);
        client.messages.extend([
            row(here(0), Flow::Sent, 40),
            row(here(3_200 + slow), Flow::Received, 90),
        ]);
        let asleep = [here(10), here(3_180 + slow), here(3_190 + slow)];
        client.waits.push(wait(7, asleep, Cause::PipeSocket, 0));
        server.messages.extend([
            row(there(100), Flow::Received, 40),
            row(there(3_100 + slow), Flow::Sent, 90),
        ]);
        server.messages.extend([
            message(9, there(300), Flow::Sent, first(20), 20),
            message(9, there(900), Flow::Received, first(30), 30),
        ]);
        server.waits.extend([
            wait(
                7,
                [there(310), there(890), there(895)],
                Cause::PipeSocket,
                0,
            ),
            wait(
                7,
                [there(1_000), there(2_000 + slow), there(2_010 + slow)],
                Cause::Device,
                8,
            ),
            wait(
                8,
                [there(1_000), there(1_100), there(1_110)],
                Cause::Futex,
                7,
            ),
        ]);
    }
    for recorded in [&mut client, &mut server] {
        recorded.messages.sort_by_key(|row| row.at_ns);
        recorded.waits.sort_by_key(|row| row.on_ns);
    }
    [client, server]
}

fn joined(hosts: [Recorded; 2]) -> Joined {
    Joined::new(hosts.to_vec()).expect("joined")
}

fn chosen(request: Option<usize>, slowest: usize) -> Chosen {
    Chosen { request, slowest }
}

/// A report as it is written.
fn written(
    joined: &Joined,
    chosen: Chosen,
    write: impl FnOnce(&Report<'_>, &mut Vec<u8>) -> Result<(), ReportError>,
) -> Vec<u8> {
    let report = Report::new(joined, chosen).expect("found");
    let mut out = Vec::new();
    write(&report, &mut out).expect("written");
    out
}

fn page(joined: &Joined) -> String {
    let page = written(joined, chosen(None, 5), |report, out| {
        html::write(report, out)
    });
    String::from_utf8(page).expect("text")
}

/// Panics if an element has no end, or an end no begin.
fn check_elements(page: &str) {
    const WITHOUT_END: [&str; 2] = ["meta", "!doctype"];
    let mut open: Vec<String> = Vec::new();
    let mut rest = page;
    while let Some((_, tail)) = rest.split_once('<') {
        let (tag, tail) = tail.split_once('>').expect("a tag ends");
        assert!(!tag.contains('<'), "{tag}");
        rest = tail;
        let name = tag.split([' ', '/', '\n']).find(|word| !word.is_empty());
        let name = name.expect("a name").to_owned();
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_deref(), Some(name.as_str()), "</{name}>");
        } else if !tag.ends_with('/') && !WITHOUT_END.contains(&name.as_str()) {
            if name == "style" {
                rest = rest.split_once("</style>").expect("it ends").1;
                continue;
            }
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_page_has_what_explain_says() {
    let joined = joined(planted());
    let page = page(&joined);
    check_elements(&page);
    let found = explain(&joined, Wanted::default()).expect("explained");
    let request = found.request.expect("a request");
    // The slowest is the one that was planted.
    assert!(
        request.request.time_ns.abs_diff(8_200_000) < 1_000,
        "{request:?}"
    );
    for text in [
        "Request 1: 8.20 ms of clientd on client",
        "serverd 7 at 10.0.0.2:80 on server: serverd waits for the storage device (device)",
        // Its own time is 3 ms, and 5 ms for the disk.
        "<td class=\"number\">8.20 ms</td>",
        "<td class=\"number\">8 ms</td>",
        "10.0.0.3:5432",
        "in no trace",
        "serverd on server, 10.0.0.2:80</",
        "storage on server",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    // The server's begin has an error bar as wide as the clocks are known.
    let call = &request.calls[0];
    let error_ns = call.server_after_error_ns.expect("bounded");
    assert!((10_000..30_000).contains(&error_ns), "{call:?}");
    let after_ns = call.server_after_ns.expect("known");
    assert!(after_ns.abs_diff(100_000) <= error_ns, "{call:?}");
    let whole = request.request.time_ns as f64;
    let bar = format!(
        "<b style=\"left:{:.3}%;width:{:.3}%\"",
        (after_ns as f64 - error_ns as f64) / whole * 100.0,
        2.0 * error_ns as f64 / whole * 100.0
    );
    assert!(page.contains(&bar), "{bar} is not in {page}");
}

#[test]
fn nothing_in_a_name_is_markup() {
    let mut hosts = planted();
    for (number, recorded) in hosts.iter_mut().enumerate() {
        recorded.name = format!("{HOSTILE}{number}");
        recorded.trace.kernel = HOSTILE.to_owned();
        recorded.trace.filters = HOSTILE.to_owned();
        for task in &mut recorded.tasks {
            task.comm = format!("{HOSTILE}\u{1b}[2J");
        }
        recorded.lost.push(luc_events::tables::Lost {
            place: HOSTILE.to_owned(),
            count: 3,
            ..Default::default()
        });
    }
    let joined = joined(hosts);
    let page = page(&joined);
    check_elements(&page);
    assert!(
        !page.contains("<b x") && !page.contains("</script>"),
        "{page}"
    );
    assert!(!page.contains('\u{1b}'));
    assert!(page.contains("&lt;/script&gt;&lt;b x=&#39;&quot;&gt;"));
    let spans = spans(&otlp_json(&joined));
    let is_plain = |text: &str| !text.contains('\u{1b}');
    assert!(
        spans
            .values()
            .all(|found| is_plain(&found.process) && is_plain(&found.span.name))
    );
    let trace = check(&perfetto_trace(&joined));
    assert!(trace.tracks.values().all(|name| is_plain(name)));
    assert!(trace.slices.iter().all(|slice| is_plain(&slice.1)));
}

fn otlp_json(joined: &Joined) -> Vec<u8> {
    written(joined, chosen(None, 5), |report, out| {
        otlp::write(report, out)
    })
}

fn perfetto_trace(joined: &Joined) -> Vec<u8> {
    written(joined, chosen(None, 5), |report, out| {
        perfetto::write(report, out)
    })
}

/// A span with its resource's host and process.
struct Found {
    host: String,
    process: String,
    span: Span,
}

impl Found {
    fn attribute(&self, key: &str) -> Option<Value> {
        let all = &self.span.attributes;
        let found = all.iter().find(|attribute| attribute.key == key)?;
        found.value.clone()?.value
    }

    fn number(&self, key: &str) -> Option<i64> {
        match self.attribute(key)? {
            Value::IntValue(number) => Some(number),
            other => panic!("{key}: {other:?}"),
        }
    }
}

/// All spans, by their ids. The types are OpenTelemetry's own.
fn spans(json: &[u8]) -> HashMap<Vec<u8>, Found> {
    let request: ExportTraceServiceRequest = serde_json::from_slice(json).expect("decoded");
    let mut all = HashMap::new();
    for of_resource in request.resource_spans {
        let attributes = of_resource.resource.expect("a resource").attributes;
        let text = |key: &str| {
            let found = attributes.iter().find(|attribute| attribute.key == key);
            match found.and_then(|found| found.value.clone()?.value) {
                Some(Value::StringValue(text)) => text,
                other => panic!("{key}: {other:?}"),
            }
        };
        for of_scope in of_resource.scope_spans {
            for span in of_scope.spans {
                assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
                assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
                let found = Found {
                    host: text("host.name"),
                    process: text("service.name"),
                    span: span.clone(),
                };
                assert!(
                    all.insert(span.span_id, found).is_none(),
                    "an id comes twice"
                );
            }
        }
    }
    all
}

#[test]
fn spans_are_the_tree_of_calls_and_the_path() {
    let joined = joined(planted());
    let json = otlp_json(&joined);
    assert_eq!(json, otlp_json(&joined), "ids are the same each time");
    let all = spans(&json);
    let mut traces: BTreeMap<Vec<u8>, Vec<&Found>> = BTreeMap::new();
    for found in all.values() {
        let trace = traces.entry(found.span.trace_id.clone()).or_default();
        trace.push(found);
    }
    assert_eq!(traces.len(), 5);
    for trace in traces.values() {
        let roots: Vec<&&Found> = trace
            .iter()
            .filter(|found| found.span.parent_span_id.is_empty())
            .collect();
        let [root] = roots[..] else {
            panic!("{} roots", roots.len());
        };
        let number = root.number("luc.request.number").expect("a number") as usize;
        let wanted = Wanted {
            request: Some(number),
            rows: false,
        };
        let request = explain(&joined, wanted).expect("explained").request;
        let request = request.expect("a request");
        assert_eq!(
            (root.host.as_str(), root.process.as_str()),
            ("client", "clientd")
        );
        let began_ns = CLIENT.monotonic_ns(BEGIN_NS) + request.request.began_ns;
        let began_ns = began_ns + 1_700_000_000_000_000_000;
        assert_eq!(root.span.start_time_unix_nano, began_ns);
        let end_ns = began_ns + request.request.time_ns;
        assert_eq!(root.span.end_time_unix_nano, end_ns);
        // Client, server, and the client of the third.
        let below = |parent: &Found, kind: i32| -> Vec<&&Found> {
            let is_below = |found: &&&Found| {
                found.span.parent_span_id == parent.span.span_id && found.span.kind == kind
            };
            trace.iter().filter(is_below).collect()
        };
        let servers = below(root, 2);
        let [server] = servers[..] else {
            panic!("{} servers", servers.len());
        };
        assert_eq!(server.host, "server");
        let error_ns = request.calls[0].server_after_error_ns;
        assert_eq!(
            server.number("luc.clock.error_ns"),
            error_ns.map(|ns| ns as i64)
        );
        let thirds = below(server, 3);
        let [third] = thirds[..] else {
            panic!("{} calls of the server", thirds.len());
        };
        assert_eq!(third.number("server.port"), Some(5_432));
        assert_eq!(
            third.attribute("luc.evidence"),
            Some(Value::StringValue("same thread".to_owned()))
        );
        assert_eq!(below(third, 2).len() + below(third, 3).len(), 0);
        // The path is below the root, and its parts follow each other.
        let paths = below(root, 1);
        let [path] = paths[..] else {
            panic!("{} paths", paths.len());
        };
        let mut parts = below(path, 1);
        parts.sort_by_key(|part| part.span.start_time_unix_nano);
        assert_eq!(parts.len(), request.path.len());
        let mut at_ns = began_ns;
        for (part, said) in parts.iter().zip(&request.path) {
            assert_eq!(part.span.start_time_unix_nano, at_ns);
            at_ns = part.span.end_time_unix_nano;
            assert_eq!((&part.host, &part.span.name[..]), (&said.host, said.what));
            assert_eq!(part.number("thread.id"), Some(said.thread.into()));
        }
        assert_eq!(at_ns, end_ns);
        assert_eq!(trace.len(), 4 + parts.len());
    }
    // One alone.
    let one = written(&joined, chosen(Some(2), 5), |report, out| {
        otlp::write(report, out)
    });
    let one = spans(&one);
    assert!(one.keys().all(|id| all.contains_key(id)));
    let traces: std::collections::HashSet<_> =
        one.values().map(|found| &found.span.trace_id).collect();
    assert_eq!(traces.len(), 1);
}

#[test]
fn a_request_that_is_not_there_is_refused() {
    let joined = joined(planted());
    let refused = Report::new(&joined, chosen(Some(31), 5)).expect_err("refused");
    assert!(matches!(
        refused,
        FleetError::NoSuchRequest { number: 31, .. }
    ));
}

#[test]
fn machines_have_threads_and_flows_connect_messages() {
    let joined = joined(planted());
    let found = check(&perfetto_trace(&joined));
    let machines: Vec<&str> = found.machines.values().map(String::as_str).collect();
    assert_eq!(machines, ["all hosts", "client", "server"]);
    let named: Vec<(u64, String, &str, u64, u64)> = found
        .slices
        .iter()
        .map(|(track, name, _, begin_ns, end_ns)| {
            let machine = found.machine_of[track];
            (
                machine,
                found.path(*track),
                name.as_str(),
                *begin_ns,
                *end_ns,
            )
        })
        .collect();
    // The server's clock is 7 ms ahead: the times are the client's.
    let at_ns = |us: i64| CLIENT.monotonic_ns(BEGIN_NS + 500_000_000 + us * 1_000);
    for (machine, track, name, begin_us, end_us) in [
        (0, "client/clientd 7", "asks 10.0.0.2:80", 0, 3_200),
        (0, "server/serverd 7", "answers at 10.0.0.2:80", 100, 3_100),
        (0, "server/serverd 7", "asks 10.0.0.3:5432", 300, 900),
        (1, "clientd", "waits (pipe_socket)", 10, 3_190),
        (1, "clientd", "waits for a processor", 3_180, 3_190),
        (2, "serverd", "waits (device)", 1_000, 2_010),
        (2, "serverd", "on a processor", 895, 1_000),
        (2, HOSTILE, "waits (futex)", 1_000, 1_110),
    ] {
        let near = |a_ns: u64, b_us: i64| a_ns.abs_diff(at_ns(b_us)) < 30_000;
        let is_it = named.iter().any(|slice| {
            (slice.0, slice.1.as_str(), slice.2) == (machine, track, name)
                && near(slice.3, begin_us)
                && near(slice.4, end_us)
        });
        assert!(is_it, "{name} of {track} is not in {named:#?}");
    }
    let path: Vec<_> = named
        .iter()
        .filter(|slice| slice.1 == "critical path of request 1")
        .collect();
    let sum_ns: u64 = path.iter().map(|slice| slice.4 - slice.3).sum();
    assert!(sum_ns.abs_diff(8_200_000) < 1_000, "{path:?}");
    // Each message that both hosts have seen is a flow from its send to its reception.
    assert_eq!(found.flows.len() as i64, 2 * REQUESTS);
    for tracks in found.flows.values() {
        let mut hosts: Vec<String> = tracks.iter().map(|track| found.path(*track)).collect();
        hosts.sort();
        assert_eq!(hosts, ["client/clientd 7", "server/serverd 7"]);
    }
    let mut of_flow: BTreeMap<u64, Vec<_>> = BTreeMap::new();
    for instant in &found.instants {
        for &flow in &instant.flows {
            of_flow.entry(flow).or_default().push(instant);
        }
    }
    for ends in of_flow.values() {
        let sent = ends.iter().find(|end| end.name == "sends").expect("a send");
        let received = ends.iter().find(|end| end.name == "receives");
        let received = received.expect("a reception");
        let error_ns = received.numbers["clock error ns"];
        assert!((10_000..30_000).contains(&error_ns), "{received:?}");
        let way_ns = received.at_ns - sent.at_ns;
        assert!(way_ns.abs_diff(100_000) <= error_ns, "{way_ns}");
        assert_eq!(received.numbers["one-way time ns"], way_ns);
    }
}

#[test]
fn a_browser_shows_the_page() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("page.html");
    fs::write(&path, page(&joined(planted()))).expect("written");
    let shown = Command::new("timeout")
        .args([
            "120",
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
        ])
        .args(["--disable-quic", "--no-first-run", "--disable-sync"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .args(["--enable-logging=stderr", "--dump-dom"])
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("file://{}", path.display()))
        .env("HOME", folder.path())
        .output()
        .expect("timeout runs");
    if shown.status.code() == Some(127) {
        luc_testkit::skipped!("chromium is not installed");
        return;
    }
    let dom = String::from_utf8(shown.stdout).expect("text");
    let message = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(dom.contains("</html>"), "{message}");
    // Neither the style nor anything else was refused.
    assert!(!message.contains("CONSOLE"), "{message}");
    assert!(dom.contains("Request 1: 8.20 ms of clientd on client"));
}
