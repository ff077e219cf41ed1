//! Spans that programs wrote of their requests: OpenTelemetry's OTLP in JSON, as a collector's file exporter writes it.
//!
//! Source: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>, and the semantic conventions for the
//! attributes, in their present names and those before.

mod message;

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use message::{Attributes, Request};

/// A longer name is cut.
const MOST_NAME: usize = 120;

/// A span of a server or a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The trace's id.
    pub trace_id: u128,
    /// Its own.
    pub span_id: u64,
    /// That of the span for which it was made; 0: none.
    pub parent_id: u64,
    /// What its program calls it, without what steers a terminal.
    pub name: String,
    /// Whether a server wrote it; else a client did.
    pub is_server: bool,
    /// The host's name.
    pub host: Option<String>,
    /// The other end's address.
    pub peer_address: Option<IpAddr>,
    /// The other end's port.
    pub peer_port: Option<u16>,
    /// The server's own port.
    pub local_port: Option<u16>,
    /// When it began, CLOCK_REALTIME of its host, ns since 1970.
    pub start_ns: u64,
    /// When it ended.
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
    /// The file.
    #[error("{path}: cannot open it: {reason}", path = .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: std::io::Error,
    },
    /// What is in it.
    #[error("{path}: no spans of OTLP in JSON: {reason}; give what a collector's file exporter writes", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: serde_json::Error,
    },
}

/// Reads the spans of a file: any number of `ExportTraceServiceRequest`s, one after the other.
///
/// # Errors
/// [`SpanError`].
pub fn read_spans(path: &Path) -> Result<Vec<Span>, SpanError> {
    let file = File::open(path).map_err(|reason| SpanError::Open {
        path: path.to_path_buf(),
        reason,
    })?;
    parse_spans(BufReader::new(file)).map_err(|reason| SpanError::Read {
        path: path.to_path_buf(),
        reason,
    })
}

/// The spans of servers and clients in such requests. Of spans of one process that are below one another only that is
/// kept which is nearest to the network: of a server's the outermost, of a client's the innermost.
///
/// # Errors
/// What JSON or OTLP does not allow.
pub fn parse_spans(from: impl Read) -> Result<Vec<Span>, serde_json::Error> {
    let mut spans = Vec::new();
    for request in serde_json::Deserializer::from_reader(from).into_iter::<Request>() {
        for of_process in request?.resource_spans {
            let host = of_process.resource.attributes.text(&["host.name"]);
            let all: Vec<message::Span> = of_process
                .scope_spans
                .into_iter()
                .flat_map(|scope| scope.spans)
                .collect();
            let servers: HashSet<_> = all
                .iter()
                .filter(|span| span.kind.is_server())
                .map(|span| (span.trace_id.0, span.span_id.0))
                .collect();
            let above_clients: HashSet<_> = all
                .iter()
                .filter(|span| span.kind.is_client())
                .map(|span| (span.trace_id.0, span.parent_span_id.0))
                .collect();
            let is_nearest = |span: &&message::Span| {
                if span.kind.is_server() {
                    !servers.contains(&(span.trace_id.0, span.parent_span_id.0))
                } else {
                    !above_clients.contains(&(span.trace_id.0, span.span_id.0))
                }
            };
            let of_network = all
                .iter()
                .filter(|span| span.kind.is_server() || span.kind.is_client());
            let made = of_network.filter(is_nearest);
            spans.extend(made.map(|span| of_message(span, host.as_deref())));
        }
    }
    Ok(spans)
}

fn of_message(span: &message::Span, host: Option<&str>) -> Span {
    let is_server = span.kind.is_server();
    let attributes = &span.attributes;
    let (peer, peer_port): (&[&str], &[&str]) = if is_server {
        (
            &["network.peer.address", "net.sock.peer.addr"],
            &["network.peer.port", "net.sock.peer.port", "net.peer.port"],
        )
    } else {
        (
            &[
                "network.peer.address",
                "net.sock.peer.addr",
                "server.address",
            ],
            &[
                "network.peer.port",
                "net.sock.peer.port",
                "server.port",
                "net.peer.port",
            ],
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
        trace_id: span.trace_id.0,
        span_id: span.span_id.0,
        parent_id: span.parent_span_id.0,
        name: luc_units::plain(&name),
        is_server,
        host: host.map(str::to_owned),
        peer_address: address(attributes, peer),
        peer_port: attributes.port(peer_port),
        local_port: attributes
            .port(&["network.local.port", "net.sock.host.port"])
            .filter(|_| is_server),
        start_ns: span.start_time_unix_nano.0,
        end_ns: span.end_time_unix_nano.0,
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
        parse_spans(text.as_bytes()).expect("read")
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

    #[test]
    fn what_is_no_span_is_refused() {
        for text in [
            "x",
            "{",
            r#"{"resourceSpans": 3}"#,
            r#"{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "xyz"}]}]}]}"#,
            r#"{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "00", "spanId": "00",
                "startTimeUnixNano": "-1"}]}]}]}"#,
        ] {
            assert!(parse_spans(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(parsed(""), []);
    }
}
