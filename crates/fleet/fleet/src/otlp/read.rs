//! Reads spans that programs wrote of their requests: OTLP in JSON, as a collector's file exporter writes it, and the
//! forms of Tempo, Jaeger and SDKs.
//!
//! Source: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>, and the semantic conventions for the
//! attributes, with their present and their former names.

mod message;

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use message::{Attributes, ProcessSpans, SpanKind};
use serde_json::Value;

/// Maximum length of a name in characters; longer ones are cut.
const MAX_NAME_CHARS: usize = 120;
/// Number of latest processes in which the process of a span is searched if each span is a document.
const MAX_RECENT_PROCESSES: usize = 64;

/// Span of a server or a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub trace_id: u128,
    pub span_id: u64,
    /// Span id of the parent; 0: none.
    pub parent_id: u64,
    /// Name without control characters.
    pub name: String,
    /// Whether a server wrote it; otherwise a client did.
    pub is_server: bool,
    pub host: Option<String>,
    pub peer_address: Option<IpAddr>,
    pub peer_port: Option<u16>,
    /// Port of the server itself.
    pub local_port: Option<u16>,
    /// Begin, CLOCK_REALTIME of its host, ns since 1970.
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Span {
    /// Formats the trace id as 32 digits.
    #[must_use]
    pub fn trace_text(&self) -> String {
        format!("{:032x}", self.trace_id)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SpanError {
    #[error("{path}: cannot open it: {reason}", path = .path.display())]
    Open { path: PathBuf, reason: std::io::Error },
    #[error("{path}: cannot read it: {reason}", path = .path.display())]
    Io { path: PathBuf, reason: std::io::Error },
    #[error(
        "{path}: no spans: {reason}; give what a collector's file exporter writes (OTLP in JSON), or answers of Tempo or \
         Jaeger",
        path = .path.display()
    )]
    Read { path: PathBuf, reason: String },
}

/// Result of reading spans.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spans {
    /// Spans of servers and clients.
    pub spans: Vec<Span>,
    /// Line on what could not be read, or that there are no spans.
    pub left_out: Option<String>,
}

/// Reads the spans of a file like [`parse`].
///
/// # Errors
/// [`SpanError`].
pub fn read_spans(path: &Path) -> Result<Spans, SpanError> {
    let path = || path.to_path_buf();
    let mut file = File::open(path()).map_err(|reason| SpanError::Open { path: path(), reason })?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|reason| SpanError::Io { path: path(), reason })?;
    let Spans { spans, left_out } =
        parse(&bytes).map_err(|reason| SpanError::Read { path: path(), reason })?;
    let left_out = left_out.map(|line| format!("{}: {line}", path().display()));
    Ok(Spans { spans, left_out })
}

/// Counts of what cannot be read.
#[derive(Debug, Default)]
struct Unread {
    /// Number of all spans.
    all: usize,
    /// Number of spans that cannot be read.
    spans: usize,
    /// Number of pieces that are no JSON, and of documents of no known form.
    documents: usize,
    reason: Option<String>,
}

impl Unread {
    fn note(&mut self, reason: impl ToString) {
        self.reason.get_or_insert_with(|| reason.to_string());
    }

    /// Describes them in one line; `None`: all spans were read, and there were some.
    fn describe(&self) -> Option<String> {
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

/// Reads the spans of servers and clients in any number of concatenated documents: OTLP's requests, answers of Tempo
/// and Jaeger, spans as SDKs print them. Of nested spans of one process only the nearest to the network stays: the
/// outermost of a server, the innermost of a client. What cannot be read is left out.
///
/// # Errors
/// Reason why nothing can be read.
pub fn parse(bytes: &[u8]) -> Result<Spans, String> {
    let mut unread = Unread::default();
    let mut groups: Vec<ProcessSpans> = Vec::new();
    let mut is_known = bytes.trim_ascii().is_empty();
    for document in documents(bytes) {
        let found = document.and_then(|document| {
            message::read_document(&document)
                .ok_or_else(|| "a document has none of resourceSpans, batches and data".to_owned())
        });
        match found {
            Ok(found) => {
                is_known = true;
                merge(&mut groups, found);
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
        spans.extend(select_nearest(&all).map(|span| convert_span(span, group.host.as_deref())));
    }
    let is_nothing_read = unread.all == unread.spans;
    match &unread.reason {
        Some(reason) if !is_known || is_nothing_read => Err(luc_units::plain(reason)),
        _ => Ok(Spans { spans, left_out: unread.describe() }),
    }
}

/// Adds processes. If each span is a document, spans of one process are merged.
fn merge(groups: &mut Vec<ProcessSpans>, found: Vec<ProcessSpans>) {
    for group in found {
        let is_same =
            |other: &&mut ProcessSpans| other.process.is_some() && other.process == group.process;
        match groups.iter_mut().rev().take(MAX_RECENT_PROCESSES).find(is_same) {
            Some(other) => other.spans.extend(group.spans),
            None => groups.push(group),
        }
    }
}

/// Iterates over the JSON values in a text. A writer that was killed leaves a broken value. After one, it goes on at
/// the next line that begins a value.
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

/// Selects the spans of one process that are nearest to the network.
fn select_nearest(all: &[message::RawSpan]) -> impl Iterator<Item = &message::RawSpan> {
    let of = |kind: SpanKind| all.iter().filter(move |span| span.kind == kind);
    let servers: HashSet<_> =
        of(SpanKind::Server).map(|span| (span.trace_id, span.span_id)).collect();
    let above_clients: HashSet<_> =
        of(SpanKind::Client).map(|span| (span.trace_id, span.parent_id)).collect();
    all.iter().filter(move |span| match span.kind {
        SpanKind::Server => !servers.contains(&(span.trace_id, span.parent_id)),
        SpanKind::Client => !above_clients.contains(&(span.trace_id, span.span_id)),
        SpanKind::Other => false,
    })
}

fn convert_span(span: &message::RawSpan, host: Option<&str>) -> Span {
    let is_server = span.kind == SpanKind::Server;
    let attributes = &span.attributes;
    let peer = ["network.peer.address", "net.sock.peer.addr", "server.address"];
    let (peer, peer_port): (&[&str], &[&str]) = if is_server {
        (&peer[..2], &["network.peer.port", "net.sock.peer.port", "net.peer.port"])
    } else {
        (&peer, &["network.peer.port", "net.sock.peer.port", "server.port", "net.peer.port"])
    };
    let mut name = span.name.clone();
    // If no framework knows its route, a name is only the method.
    if is_server
        && !name.contains('/')
        && let Some(path) = attributes.text(&["http.route", "url.path", "http.target"])
    {
        name = format!("{name} {path}");
    }
    let name: String = name.chars().take(MAX_NAME_CHARS).collect();
    Span {
        trace_id: span.trace_id,
        span_id: span.span_id,
        parent_id: span.parent_id,
        name: luc_units::plain(&name),
        is_server,
        host: host.map(str::to_owned),
        peer_address: parse_address(attributes, peer),
        peer_port: attributes.port(peer_port),
        local_port: attributes
            .port(&["network.local.port", "net.sock.host.port"])
            .filter(|_| is_server),
        start_ns: span.start_ns,
        end_ns: span.end_ns,
    }
}

/// Parses an address; a host name in its place is ignored.
fn parse_address(attributes: &Attributes, keys: &[&str]) -> Option<IpAddr> {
    Some(attributes.text(keys)?.parse::<IpAddr>().ok()?.to_canonical())
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

    /// Two spans in the forms of other writers.
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
