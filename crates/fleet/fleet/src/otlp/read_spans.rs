//! Reads spans that programs wrote of their requests: OTLP in JSON, as a collector's file exporter writes it, and the
//! forms of Tempo, Jaeger and SDKs.
//!
//! Source: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>, and the semantic conventions for the
//! attributes, with their present and their former names.

mod span_formats;

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;
use span_formats::{ProcessSpans, ReadSpanKind, SpanAttributes};

/// Maximum length of a name in characters; longer ones are cut.
const MAX_NAME_CHARS: usize = 120;
/// Number of latest processes in which the process of a span is searched if each span is a document.
const MAX_RECENT_PROCESSES: usize = 64;

/// Span of a server or a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramSpan {
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

impl ProgramSpan {
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
pub struct ProgramSpans {
    /// Spans of servers and clients.
    pub spans: Vec<ProgramSpan>,
    /// Line on what could not be read, or that there are no spans.
    pub left_out: Option<String>,
}

/// Reads the spans of a file like [`parse`].
///
/// # Errors
/// [`SpanError`].
pub fn read_spans(path: &Path) -> Result<ProgramSpans, SpanError> {
    let path = || path.to_path_buf();
    let mut file = File::open(path()).map_err(|reason| SpanError::Open { path: path(), reason })?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|reason| SpanError::Io { path: path(), reason })?;
    let ProgramSpans { spans, left_out } =
        parse(&bytes).map_err(|reason| SpanError::Read { path: path(), reason })?;
    let left_out = left_out.map(|line| format!("{}: {line}", path().display()));
    Ok(ProgramSpans { spans, left_out })
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
pub fn parse(bytes: &[u8]) -> Result<ProgramSpans, String> {
    let mut unread = Unread::default();
    let mut groups: Vec<ProcessSpans> = Vec::new();
    let mut is_known = bytes.trim_ascii().is_empty();
    for document in documents(bytes) {
        let found = document.and_then(|document| {
            span_formats::read_document(&document)
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
        _ => Ok(ProgramSpans { spans, left_out: unread.describe() }),
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
fn select_nearest(
    all: &[span_formats::ParsedSpan],
) -> impl Iterator<Item = &span_formats::ParsedSpan> {
    let of = |kind: ReadSpanKind| all.iter().filter(move |span| span.kind == kind);
    let servers: HashSet<_> =
        of(ReadSpanKind::Server).map(|span| (span.trace_id, span.span_id)).collect();
    let above_clients: HashSet<_> =
        of(ReadSpanKind::Client).map(|span| (span.trace_id, span.parent_id)).collect();
    all.iter().filter(move |span| match span.kind {
        ReadSpanKind::Server => !servers.contains(&(span.trace_id, span.parent_id)),
        ReadSpanKind::Client => !above_clients.contains(&(span.trace_id, span.span_id)),
        ReadSpanKind::Other => false,
    })
}

fn convert_span(span: &span_formats::ParsedSpan, host: Option<&str>) -> ProgramSpan {
    let is_server = span.kind == ReadSpanKind::Server;
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
    ProgramSpan {
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
fn parse_address(attributes: &SpanAttributes, keys: &[&str]) -> Option<IpAddr> {
    Some(attributes.text(keys)?.parse::<IpAddr>().ok()?.to_canonical())
}

#[cfg(test)]
mod tests;
