//! Lists each edge, request and wait, for programs.

use luc_fleet_requests::{EngagedTimes, MessageEdge, MessageSide};
use serde::Serialize;

use super::fleet_requests::FleetRequests;
use super::forest_nodes::{ForestNode, nodes};
use super::idle_threads::{self, AwaitedRow};
use super::match_program_spans::SpanName;
use crate::joined_traces::JoinedTraces;

/// All edges, requests and waits. Times are of the CLOCK_MONOTONIC of the row's host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplanationRows {
    pub edges: Vec<EdgeRow>,
    /// All received requests, then all sent ones. A request's number is its place here.
    pub requests: Vec<RequestRow>,
    /// Waits for input, a lock or another thread.
    pub waits: Vec<AwaitedRow>,
}

/// Bytes of one send that one reception took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EdgeRow {
    pub from: String,
    pub to: String,
    /// Offset of the first byte, as the sender's table `message` counts; 0 is the first of the direction.
    pub first_byte: u64,
    pub bytes: u64,
    pub sent: SideRow,
    pub received: SideRow,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SideRow {
    pub host: String,
    pub process: u32,
    pub thread: u32,
    /// Begin of the call that sends, or end of the call that receives.
    pub at_ns: u64,
}

/// Request as one of its ends saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestRow {
    /// Whether this end sent the request; otherwise it received it.
    pub is_sent: bool,
    pub local: String,
    pub remote: String,
    /// Offset of the request's first byte, as this end's table `message` counts.
    pub first_byte: u64,
    pub bytes: u64,
    /// Thread that sent or read the first bytes.
    pub asked: SideRow,
    /// Time at which the last bytes of the answer were sent or read; `None` without an answer.
    pub answered_ns: Option<u64>,
    /// Number of a related request. For a received one: the same request as its client sent it. For a sent one: the
    /// received request that it was made for.
    pub made_for: Option<u32>,
    /// Evidence for `made_for` of a sent request.
    pub evidence: Option<&'static str>,
    /// Span that the end's program wrote of the request, if one fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<SpanName>,
}

pub(super) fn report(found: &FleetRequests<'_>, engaged: &EngagedTimes) -> ExplanationRows {
    let joined = found.joined;
    let request = |(node, made_for): (ForestNode<'_>, &Option<u32>)| {
        let ForestNode { id, exchange, is_sent, evidence, .. } = node;
        RequestRow {
            is_sent,
            local: joined.end_address(exchange.end, |end| end.local),
            remote: joined.end_address(exchange.end, |end| end.remote),
            first_byte: joined.trace_offset(exchange.end, exchange.first_byte),
            bytes: exchange.bytes,
            asked: side(joined, &exchange.asked),
            answered_ns: exchange.answer.map(|answer| answer.last.at_ns),
            made_for: *made_for,
            evidence,
            span: found.named.of(id),
        }
    };
    let edge = |edge: &MessageEdge| EdgeRow {
        from: joined.end_address(edge.from, |end| end.local),
        to: joined.end_address(edge.to, |end| end.local),
        first_byte: joined.trace_offset(edge.from, edge.first_byte),
        bytes: edge.bytes,
        sent: side(joined, &edge.sent),
        received: side(joined, &edge.received),
    };
    ExplanationRows {
        edges: found.messages.edges.iter().map(edge).collect(),
        requests: nodes(&found.requests).zip(&found.trees.parents).map(request).collect(),
        waits: idle_threads::rows(found, engaged),
    }
}

fn side(joined: &JoinedTraces, side: &MessageSide) -> SideRow {
    SideRow {
        host: joined.name(side.host),
        process: side.process,
        thread: side.thread.id,
        at_ns: side.at_ns,
    }
}
