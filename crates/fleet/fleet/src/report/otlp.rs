//! Writes requests as spans for OpenTelemetry: the JSON of an `ExportTraceServiceRequest`.
//!
//! Each request is a trace. Each call in it is a client span, with a server span below it. What its time went into is
//! a span below the request's span, and the parts are below that. All times are of CLOCK_REALTIME of the request's host. Times
//! of other hosts are placed on its clock, and an attribute has their error. If the program wrote a span of the
//! request, the first span is below that one, in the same trace.
//!
//! Source: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

mod ids;

use std::collections::BTreeMap;
use std::io::Write;

use crate::explain::{CallThread, PathPart, RequestReport, TreeCallReport};
use crate::otlp::otlp_messages::{
    OtlpAttribute, OtlpRequest, OtlpResource, OtlpScope, OtlpSpan, OtlpSpanKind, ResourceSpans,
    ScopeSpans,
};
use crate::report::{ReportError, ReportSource};
use ids::RequestIds;

/// Name of an unknown process in the semantic conventions.
const UNKNOWN_SERVICE: &str = "unknown_service";

/// Writes the chosen requests.
///
/// # Errors
/// [`ReportError::Fleet`] if no request has the number; [`ReportError::Output`].
pub fn write(report: &ReportSource<'_>, mut out: impl Write) -> Result<(), ReportError> {
    let mut spans = OwnedSpans::default();
    for request in report.requests()? {
        let home = report.found.home(request.request.number)?;
        let trace = &report.found.joined.host(home).trace;
        let monotonic_ns = trace.start_ns.saturating_add(request.request.began_ns);
        let began_ns = monotonic_ns.saturating_add(trace.realtime_offset_ns);
        spans.add(&request, began_ns);
    }
    serde_json::to_writer(&mut out, &spans.request()).map_err(std::io::Error::from)?;
    Ok(out.flush()?)
}

/// Process that spans belong to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SpanOwner {
    host: String,
    process: String,
    id: Option<u32>,
}

impl SpanOwner {
    fn of(actor: &CallThread) -> Self {
        Self {
            host: actor.host.clone(),
            process: actor.process.clone(),
            id: Some(actor.process_id),
        }
    }
}

/// OwnedSpans by their owners.
#[derive(Debug, Default)]
struct OwnedSpans(BTreeMap<SpanOwner, Vec<OtlpSpan>>);

/// Request that is being turned into spans.
struct RequestTrace<'a> {
    ids: RequestIds,
    /// Begin, ns since 1970.
    began_ns: u64,
    request: &'a RequestReport,
}

impl OwnedSpans {
    /// Adds a request that began at `began_ns`, ns since 1970.
    fn add(&mut self, request: &RequestReport, began_ns: u64) {
        let trace =
            RequestTrace { ids: RequestIds::of(&request.request, began_ns), began_ns, request };
        // Parent span of the next calls at each depth.
        let mut above: Vec<String> = Vec::new();
        for (at, call) in request.calls.iter().enumerate() {
            above.truncate(call.depth);
            let id = self.add_call(&trace, at, call, above.last());
            above.push(id);
        }
        if let Some(root) = trace.root() {
            self.add_path(&trace, root);
        }
    }

    /// Adds a call's spans. Returns the parent of the calls that were made for it.
    fn add_call(
        &mut self,
        trace: &RequestTrace<'_>,
        at: usize,
        call: &TreeCallReport,
        above: Option<&String>,
    ) -> String {
        let mut above = above.cloned();
        for (is_server, actor, placed, time_ns) in [
            (false, &call.client, (call.after_ns, call.after_error_ns), call.time_ns),
            (
                true,
                &call.server,
                (call.server_after_ns, call.server_after_error_ns),
                call.server_time_ns,
            ),
        ] {
            let Some(actor) = actor else { continue };
            let (after_ns, error_ns) = placed;
            let begin_ns = trace.began_ns.saturating_add_signed(after_ns.unwrap_or(0));
            let mut attributes = thread_attributes(&actor.name, actor.thread);
            attributes.extend(peer_attributes(&call.address));
            attributes.push(OtlpAttribute::number("luc.request.bytes", call.bytes));
            if at == 0 {
                let number = trace.request.request.number as u64;
                attributes.push(OtlpAttribute::number("luc.request.number", number));
            }
            if let Some(evidence) = call.evidence.filter(|_| !is_server) {
                attributes.push(OtlpAttribute::text("luc.evidence", evidence));
            }
            if time_ns.is_none() {
                attributes.push(OtlpAttribute::flag("luc.answered", false));
            }
            if after_ns.is_none() {
                attributes.push(OtlpAttribute::flag("luc.clock.known", false));
            }
            attributes.extend(error_ns.map(|ns| OtlpAttribute::number("luc.clock.error_ns", ns)));
            let id = trace.ids.span(if is_server { "server" } else { "client" }, at);
            let span = OtlpSpan {
                trace_id: trace.ids.trace(),
                span_id: id.clone(),
                parent_span_id: above.take().or_else(|| trace.outside().filter(|_| at == 0)),
                name: format!("{} {}", actor.process, call.address),
                kind: if is_server { OtlpSpanKind::Server } else { OtlpSpanKind::Client },
                start_time_unix_nano: begin_ns.to_string(),
                end_time_unix_nano: begin_ns.saturating_add(time_ns.unwrap_or(0)).to_string(),
                attributes,
            };
            self.0.entry(SpanOwner::of(actor)).or_default().push(span);
            above = Some(id);
        }
        above.unwrap_or_default()
    }

    /// Adds what the time went into, below the span of the request.
    fn add_path(&mut self, trace: &RequestTrace<'_>, root: &CallThread) {
        let request = &trace.request.request;
        let is_sent = trace.request.calls.first().is_some_and(|call| call.client.is_some());
        let whole = trace.ids.span("path", 0);
        let span = OtlpSpan {
            trace_id: trace.ids.trace(),
            span_id: whole.clone(),
            parent_span_id: Some(trace.ids.span(if is_sent { "client" } else { "server" }, 0)),
            name: "roots of waits".to_owned(),
            kind: OtlpSpanKind::Internal,
            start_time_unix_nano: trace.began_ns.to_string(),
            end_time_unix_nano: trace.began_ns.saturating_add(request.time_ns).to_string(),
            attributes: Vec::new(),
        };
        self.0.entry(SpanOwner::of(root)).or_default().push(span);
        for (at, part) in trace.request.path.iter().enumerate() {
            let owner = SpanOwner {
                host: part.host.clone(),
                process: part.process.clone().unwrap_or_else(|| match part.service.as_str() {
                    "" => UNKNOWN_SERVICE.to_owned(),
                    service => service.to_owned(),
                }),
                id: part.process_id,
            };
            let span = trace.build_part(at, part, &whole);
            self.0.entry(owner).or_default().push(span);
        }
    }

    fn request(self) -> OtlpRequest {
        let of_owner = |(owner, spans): (SpanOwner, Vec<OtlpSpan>)| {
            let mut attributes = vec![
                OtlpAttribute::text("host.name", owner.host),
                OtlpAttribute::text("service.name", owner.process),
            ];
            attributes.extend(owner.id.map(|id| OtlpAttribute::number("process.pid", id.into())));
            ResourceSpans {
                resource: OtlpResource { attributes },
                scope_spans: vec![ScopeSpans {
                    scope: OtlpScope { name: "luc-fleet", version: env!("CARGO_PKG_VERSION") },
                    spans,
                }],
            }
        };
        OtlpRequest { resource_spans: self.0.into_iter().map(of_owner).collect() }
    }
}

impl RequestTrace<'_> {
    /// Id of the program's own span of the request, if known.
    fn outside(&self) -> Option<String> {
        Some(self.request.request.span.as_ref()?.span_id.clone())
    }

    /// Thread that the request began at.
    fn root(&self) -> Option<&CallThread> {
        let call = self.request.calls.first()?;
        call.client.as_ref().or(call.server.as_ref())
    }

    fn build_part(&self, at: usize, part: &PathPart, whole: &str) -> OtlpSpan {
        let begin_ns = self.began_ns.saturating_add(part.after_ns);
        let mut attributes = vec![OtlpAttribute::text("luc.root", part.kind)];
        attributes.extend(part.thread.into_iter().flat_map(|id| thread_attributes(&part.name, id)));
        if let Some(waiter) = &part.waiter {
            attributes.push(OtlpAttribute::text("luc.waiter", waiter.clone()));
        }
        if let Some(cause) = part.cause {
            attributes.push(OtlpAttribute::text("luc.wait.cause", cause));
        }
        if let Some(from) = &part.from {
            attributes.push(OtlpAttribute::text("luc.message.from", from.clone()));
        }
        if let Some(brief_ns) = part.brief_waits_ns {
            attributes.push(OtlpAttribute::number("luc.brief_waits_ns", brief_ns));
        }
        match part.error_ns {
            Some(0) => {}
            Some(error_ns) => {
                attributes.push(OtlpAttribute::number("luc.clock.error_ns", error_ns))
            }
            None => attributes.push(OtlpAttribute::flag("luc.clock.known", false)),
        }
        OtlpSpan {
            trace_id: self.ids.trace(),
            span_id: self.ids.span("part", at),
            parent_span_id: Some(whole.to_owned()),
            name: part.what.to_owned(),
            kind: OtlpSpanKind::Internal,
            start_time_unix_nano: begin_ns.to_string(),
            end_time_unix_nano: begin_ns.saturating_add(part.time_ns).to_string(),
            attributes,
        }
    }
}

fn thread_attributes(name: &str, id: u32) -> Vec<OtlpAttribute> {
    vec![
        OtlpAttribute::number("thread.id", id.into()),
        OtlpAttribute::text("thread.name", name.to_owned()),
    ]
}

/// Attributes for the server's address, as in the semantic conventions.
fn peer_attributes(address: &str) -> Vec<OtlpAttribute> {
    match address.parse::<std::net::SocketAddr>() {
        Ok(address) => vec![
            OtlpAttribute::text("server.address", address.ip().to_string()),
            OtlpAttribute::number("server.port", address.port().into()),
        ],
        Err(_) if address.is_empty() => Vec::new(),
        // A unix socket's path.
        Err(_) => vec![OtlpAttribute::text("server.address", address.to_owned())],
    }
}
