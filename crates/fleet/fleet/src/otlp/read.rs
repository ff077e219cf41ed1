//! Spans that programs wrote of their requests: OpenTelemetry's OTLP in JSON, as a collector's file exporter writes it,
//! and as Tempo, Jaeger and SDKs give spans away.
//!
//! Source: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>, and the semantic conventions for the
//! attributes, in their present names and those before.

mod message;

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use message::{Attributes, Group, Kind};
use serde_json::Value;

/// A longer name is cut.
const MOST_NAME: usize = 120;
/// So many of the latest processes are looked through for that of a span that stands alone.
const MOST_PROCESSES: usize = 64;

/// A span of a server or a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub trace_id: u128,
    pub span_id: u64,
    /// That of the span for which it was made; 0: none.
    pub parent_id: u64,
    /// What its program calls it, without what steers a terminal.
    pub name: String,
    /// Whether a server wrote it; else a client did.
    pub is_server: bool,
    pub host: Option<String>,
    /// The other end's address.
    pub peer_address: Option<IpAddr>,
    /// The other end's port.
    pub peer_port: Option<u16>,
    /// The server's own port.
    pub local_port: Option<u16>,
    /// When it began, CLOCK_REALTIME of its host, ns since 1970.
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Span {
    /// The trace's id as 32 digits.
    #[must_use]
    pub fn trace_text(&self) -> String {
        format!("{:032x}", self.trace_id)
    }
}

/// Why spans cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SpanError {
    #[error("{path}: cannot open it: {reason}", path = .path.display())]
    Open { path: PathBuf, reason: std::io::Error },
    /// The file, or what is in it.
    #[error("{path}: cannot read it: {reason}", path = .path.display())]
    Io { path: PathBuf, reason: std::io::Error },
    /// What is in it.
    #[error(
        "{path}: no spans: {reason}; give what a collector's file exporter writes (OTLP in JSON), or answers of Tempo or \
         Jaeger",
        path = .path.display()
    )]
    Read { path: PathBuf, reason: String },
}

/// What a file has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spans {
    /// Its spans of servers and clients.
    pub spans: Vec<Span>,
    /// What is in it and could not be read, or that nothing is in it, in one line.
    pub left_out: Option<String>,
}

/// Reads the spans of a file, as [`parse`].
///
/// # Errors
/// [`SpanError`].
pub fn read_spans(path: &Path) -> Result<Spans, SpanError> {
    let path = || path.to_path_buf();
    let mut file = File::open(path()).map_err(|reason| SpanError::Open { path: path(), reason })?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|reason| SpanError::Io { path: path(), reason })?;
    let mut found = parse(&bytes).map_err(|reason| SpanError::Read { path: path(), reason })?;
    let about = |said: String| format!("{}: {said}", path().display());
    found.left_out = found.left_out.map(about);
    Ok(found)
}

/// What cannot be read.
#[derive(Debug, Default)]
struct Unread {
    /// Spans that are there.
    all: usize,
    /// Of these, those that cannot be read.
    spans: usize,
    /// Pieces that are no JSON, and documents of no known form.
    documents: usize,
    reason: Option<String>,
}

impl Unread {
    fn note(&mut self, reason: impl ToString) {
        self.reason.get_or_insert_with(|| reason.to_string());
    }

    /// In one line; `None`: all was read, and there was something.
    fn said(&self) -> Option<String> {
        let Self { all, spans, documents, .. } = self;
        let plural = |number: &usize| if *number == 1 { "" } else { "s" };
        let mut parts = Vec::new();
        if *spans > 0 {
            parts.push(format!("{spans} of {all} span{}", plural(all)));
        }
        if *documents > 0 {
            parts.push(format!("{documents} document{}", plural(documents)));
        }
        match (&self.reason, all) {
            (Some(reason), _) => {
                let first = luc_units::plain(reason);
                Some(format!("not read: {} ({first})", parts.join(" and ")))
            }
            (None, 0) => Some("it has no spans".to_owned()),
            (None, _) => None,
        }
    }
}

/// The spans of servers and clients in any number of documents, one after the other: OTLP's requests, Tempo's and
/// Jaeger's answers, spans as SDKs print them. Of spans of one process that are below one another only that is kept which
/// is nearest to the network: of a server's the outermost, of a client's the innermost. What cannot be read is left out.
///
/// # Errors
/// Why nothing of it can be read.
pub fn parse(bytes: &[u8]) -> Result<Spans, String> {
    let mut unread = Unread::default();
    let mut groups: Vec<Group> = Vec::new();
    let mut is_known = bytes.trim_ascii().is_empty();
    for document in documents(bytes) {
        let found = document.and_then(|document| {
            message::groups(&document)
                .ok_or_else(|| "a document has none of resourceSpans, batches and data".to_owned())
        });
        match found {
            Ok(found) => {
                is_known = true;
                add(&mut groups, found);
            }
            Err(reason) => {
                unread.documents += 1;
                unread.note(reason);
            }
        }
    }
    let mut spans = Vec::new();
    for group in groups {
        let mut all = Vec::new();
        unread.all += group.spans.len();
        for span in group.spans {
            match span {
                Ok(span) => all.push(span),
                Err(reason) => {
                    unread.spans += 1;
                    unread.note(reason);
                }
            }
        }
        spans.extend(nearest(&all).map(|span| of_message(span, group.host.as_deref())));
    }
    let is_nothing_read = unread.all == unread.spans;
    match &unread.reason {
        Some(reason) if !is_known || is_nothing_read => Err(luc_units::plain(reason)),
        _ => Ok(Spans { spans, left_out: unread.said() }),
    }
}

/// Adds processes; where each span is a document, those of one process are put together.
fn add(groups: &mut Vec<Group>, found: Vec<Group>) {
    for group in found {
        let is_same =
            |other: &&mut Group| other.process.is_some() && other.process == group.process;
        match groups.iter_mut().rev().take(MOST_PROCESSES).find(is_same) {
            Some(other) => other.spans.extend(group.spans),
            None => groups.push(group),
        }
    }
}

/// The JSON values in a text. After one that is broken, as the last line of a writer that was killed, the next line that
/// begins a value is tried.
fn documents(bytes: &[u8]) -> impl Iterator<Item = Result<Value, String>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
        let value = values.next()?;
        let end = values.byte_offset();
        match value {
            Ok(value) => {
                rest = &rest[end..];
                Some(Ok(value))
            }
            Err(error) => {
                let start = rest.len() - rest.trim_ascii_start().len();
                let lines = rest[start..].windows(2);
                let next =
                    lines.enumerate().find(|(_, two)| two[0] == b'\n' && b"{[".contains(&two[1]));
                rest = next.map_or(&[], |(at, _)| &rest[start + at + 1..]);
                Some(Err(error.to_string()))
            }
        }
    })
}

/// Of spans of one process those that are nearest to the network.
fn nearest(all: &[message::Span]) -> impl Iterator<Item = &message::Span> {
    let of = |kind: Kind| all.iter().filter(move |span| span.kind == kind);
    let servers: HashSet<_> = of(Kind::Server).map(|span| (span.trace_id, span.span_id)).collect();
    let above_clients: HashSet<_> =
        of(Kind::Client).map(|span| (span.trace_id, span.parent_id)).collect();
    all.iter().filter(move |span| match span.kind {
        Kind::Server => !servers.contains(&(span.trace_id, span.parent_id)),
        Kind::Client => !above_clients.contains(&(span.trace_id, span.span_id)),
        Kind::Other => false,
    })
}

fn of_message(span: &message::Span, host: Option<&str>) -> Span {
    let is_server = span.kind == Kind::Server;
    let attributes = &span.attributes;
    let (peer, peer_port): (&[&str], &[&str]) = if is_server {
        (
            &["network.peer.address", "net.sock.peer.addr"],
            &["network.peer.port", "net.sock.peer.port", "net.peer.port"],
        )
    } else {
        (
            &["network.peer.address", "net.sock.peer.addr", "server.address"],
            &["network.peer.port", "net.sock.peer.port", "server.port", "net.peer.port"],
        )
    };
    let mut name = span.name.clone();
    // Where no framework told its route, a name is the method alone.
    if is_server
        && !name.contains('/')
        && let Some(path) = attributes.text(&["http.route", "url.path", "http.target"])
    {
        name = format!("{name} {path}");
    }
    let name: String = name.chars().take(MOST_NAME).collect();
    Span {
        trace_id: span.trace_id,
        span_id: span.span_id,
        parent_id: span.parent_id,
        name: luc_units::plain(&name),
        is_server,
        host: host.map(str::to_owned),
        peer_address: address(attributes, peer),
        peer_port: attributes.port(peer_port),
        local_port: attributes
            .port(&["network.local.port", "net.sock.host.port"])
            .filter(|_| is_server),
        start_ns: span.start_ns,
        end_ns: span.end_ns,
    }
}

/// A name in place of an address says nothing.
fn address(attributes: &Attributes, keys: &[&str]) -> Option<IpAddr> {
    let address: IpAddr = attributes.text(keys)?.parse().ok()?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<Span> {
        let found = parse(text.as_bytes()).expect("read");
        assert_eq!(found.left_out, None);
        found.spans
    }

    const SPANS: &str = r#"{"resourceSpans": [{
        "resource": {"attributes": [{"key": "host.name", "value": {"stringValue": "web"}}]},
        "scopeSpans": [{"scope": {"name": "x"}, "spans": [
            {"traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "EEE19B7EC3C1B174", "name": "GET /\u001b[2J",
             "kind": 2, "startTimeUnixNano": "1544712660000000000", "endTimeUnixNano": "1544712661000000000",
             "attributes": [{"key": "network.peer.address", "value": {"stringValue": "::ffff:10.0.0.1"}},
                            {"key": "network.peer.port", "value": {"intValue": "5001"}},
                            {"key": "url.path", "value": {"stringValue": "/never"}},
                            {"key": "other", "value": {"arrayValue": {"values": [{"boolValue": true}]}}}]},
            {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b175",
             "parentSpanId": "eee19b7ec3c1b174", "name": "inner", "kind": "SPAN_KIND_SERVER",
             "startTimeUnixNano": 1, "endTimeUnixNano": 2},
            {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b176",
             "parentSpanId": "eee19b7ec3c1b175", "name": "retry", "kind": 3,
             "startTimeUnixNano": "1", "endTimeUnixNano": "2", "attributes": [
                {"key": "server.address", "value": {"stringValue": "db.example"}},
                {"key": "server.port", "value": {"intValue": 5432}}]},
            {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b177",
             "parentSpanId": "eee19b7ec3c1b176", "name": "SELECT", "kind": 3, "attributes": [],
             "startTimeUnixNano": "1", "endTimeUnixNano": "2"},
            {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b178", "name": "work", "kind": 1,
             "startTimeUnixNano": "1", "endTimeUnixNano": "2"}]}]}]}
        {"resourceSpans": []}
        {}"#;

    #[test]
    fn spans_of_servers_and_clients_are_read() {
        let spans = parsed(SPANS);
        let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, [luc_units::plain("GET /\x1b[2J").as_str(), "SELECT"]);
        let server = &spans[0];
        assert!(server.is_server);
        assert_eq!(server.trace_text(), "5b8efff798038103d269b633813fc60c");
        assert_eq!(server.span_id, 0xeee1_9b7e_c3c1_b174);
        assert_eq!(server.host.as_deref(), Some("web"));
        assert_eq!(server.peer_address, "10.0.0.1".parse().ok());
        assert_eq!(server.peer_port, Some(5001));
        assert_eq!(server.end_ns - server.start_ns, 1_000_000_000);
        assert_eq!(spans[1].parent_id, 0xeee1_9b7e_c3c1_b176);
    }

    #[test]
    fn a_method_alone_has_the_path_beside_it() {
        let text = r#"{"resourceSpans": [{"scopeSpans": [{"spans": [
            {"traceId": "1", "spanId": "1", "name": "GET", "kind": 2,
             "startTimeUnixNano": "1", "endTimeUnixNano": "2",
             "attributes": [{"key": "url.path", "value": {"stringValue": "/search"}}]}]}]}]}"#;
        assert_eq!(parsed(text)[0].name, "GET /search");
    }

    /// The same two spans in the forms that others have.
    #[test]
    fn other_forms_are_read() {
        let tempo = r#"{"batches": [{"resource": {"attributes": [{"key": "host.name", "value": {"stringValue": "web"}}]},
            "instrumentationLibrarySpans": [{"spans": [
            {"traceId": "W47/95gDgQPSabYzgT/GDA==", "spanId": "7uGbfsPBsXQ=", "parentSpanId": null, "name": "GET /",
             "kind": "SPAN_KIND_SERVER", "startTimeUnixNano": "1544712660000001000", "endTimeUnixNano": "1544712660000003000",
             "attributes": [{"key": "net.peer.port", "value": {"intValue": "5001"}}]}]}]}]}"#;
        let answer = format!(r#"{{"trace": {}}}"#, tempo.replace("batches", "resourceSpans"));
        let snake = r#"[{"resource_spans": [{"resource": {"attributes": [{"key": "host.name", "value": {"string_value": "web"}}]},
            "scope_spans": [{"spans": [
            {"trace_id": "5b8efff798038103d269b633813fc60c", "span_id": "eee19b7ec3c1b174", "parent_span_id": "", "name": "GET /",
             "kind": 2, "start_time_unix_nano": 1544712660000001000, "end_time_unix_nano": "1544712660000003000",
             "attributes": [{"key": "net.peer.port", "value": {"int_value": 5001}}]}]}]}]}]"#;
        let jaeger = r#"{"data": [{"traceID": "5b8efff798038103d269b633813fc60c", "spans": [
            {"traceID": "5b8efff798038103d269b633813fc60c", "spanID": "eee19b7ec3c1b174", "operationName": "GET /",
             "references": [], "startTime": 1544712660000001, "duration": 2, "processID": "p1",
             "tags": [{"key": "span.kind", "type": "string", "value": "server"},
                      {"key": "net.peer.port", "type": "int64", "value": 5001}]},
            {"traceID": "5b8efff798038103d269b633813fc60c", "spanID": "eee19b7ec3c1b175", "operationName": "inner",
             "references": [{"refType": "CHILD_OF", "spanID": "eee19b7ec3c1b174"}], "startTime": 1544712660000001,
             "duration": 1, "processID": "p1", "tags": [{"key": "span.kind", "value": "server"}]}],
            "processes": {"p1": {"serviceName": "x", "tags": [{"key": "hostname", "value": "web"}]}}}]}"#;
        let console = r#"{
    "name": "GET /",
    "context": {"trace_id": "0x5b8efff798038103d269b633813fc60c", "span_id": "0xeee19b7ec3c1b174", "trace_state": "[]"},
    "kind": "SpanKind.SERVER",
    "parent_id": null,
    "start_time": "2018-12-13T14:51:00.000001Z",
    "end_time": "2018-12-13T14:51:00.000003Z",
    "attributes": {"net.peer.port": 5001},
    "resource": {"attributes": {"host.name": "web"}}
}
{
    "name": "inner",
    "context": {"trace_id": "0x5b8efff798038103d269b633813fc60c", "span_id": "0xeee19b7ec3c1b175"},
    "kind": "SpanKind.SERVER",
    "parent_id": "0xeee19b7ec3c1b174",
    "start_time": "2018-12-13T14:51:00.000001Z",
    "end_time": "2018-12-13T14:51:00.000003Z",
    "resource": {"attributes": {"host.name": "web"}}
}"#;
        for text in [tempo, &answer, snake, jaeger, console] {
            let spans = parsed(text);
            let [span] = &spans[..] else {
                panic!("{text}: {spans:?}");
            };
            assert_eq!(span.trace_text(), "5b8efff798038103d269b633813fc60c", "{text}");
            assert_eq!((span.span_id, span.parent_id), (0xeee1_9b7e_c3c1_b174, 0));
            assert_eq!((span.name.as_str(), span.host.as_deref()), ("GET /", Some("web")));
            assert_eq!(span.peer_port, Some(5001));
            let times = (1_544_712_660_000_001_000, 1_544_712_660_000_003_000);
            assert_eq!((span.start_ns, span.end_ns), times);
        }
    }

    #[test]
    fn what_cannot_be_read_is_left_out_and_said() {
        let span = |id: &str, end: &str| {
            format!(
                r#"{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{{"traceId": "1", "spanId": "{id}", "kind": 2, "name": "x",
                "startTimeUnixNano": "1" {end}}}]}}]}}]}}"#
            )
            .replace('\n', " ")
        };
        let ended = r#", "endTimeUnixNano": "2""#;
        let (whole, open) = (span("1", ended), span("2", ""));
        let cut = &whole[..whole.len() - 9];
        for (text, read, said) in [
            (format!("{whole}\n{open}\n"), 1, "not read: 1 of 2 spans (it has no end)"),
            (format!("{whole}\n{cut}"), 1, "not read: 1 document (EOF"),
            (format!("{whole}\n{cut}\n{whole}\n"), 2, "not read: 1 document ("),
            (
                format!("{whole}\n{{\"logs\": []}}"),
                1,
                "not read: 1 document (a document has none of resourceSpans",
            ),
            (r#"{"batches": []}"#.to_owned(), 0, "it has no spans"),
            (String::new(), 0, "it has no spans"),
        ] {
            let found = parse(text.as_bytes()).expect("read");
            assert_eq!(found.spans.len(), read, "{text}");
            let left_out = found.left_out.unwrap_or_default();
            assert!(left_out.starts_with(said), "{text}: {left_out}");
        }
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for text in [
            "x",
            "{",
            r#"{"resourceLogs": []}"#,
            r#"{"resourceSpans": 3}"#,
            r#"{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "xyz"}]}]}]}"#,
            r#"{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "00", "spanId": "00",
                "startTimeUnixNano": "-1"}]}]}]}"#,
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
