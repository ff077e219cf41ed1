//! Each edge and each request, for programs.

use luc_fleet_requests::{EndId, Engaged, Exchange, MessageEdge, Side};
use serde::Serialize;

use super::found::Found;
use super::idle::{self, WaitRow};
use super::named::SpanName;
use super::requests::evidence;
use crate::joined::Joined;

/// All edges, requests and waits. Times are of each host's CLOCK_MONOTONIC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rows {
    pub edges: Vec<EdgeRow>,
    /// The requests: first those that were received, then those that were sent. Their places are their numbers.
    pub requests: Vec<RequestRow>,
    /// Waits for input, a lock or another thread.
    pub waits: Vec<WaitRow>,
}

/// Bytes of one send that one reception took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EdgeRow {
    pub from: String,
    pub to: String,
    /// The first of the bytes, as the sender's table `message` counts them: 0 is the first of the direction.
    pub first_byte: u64,
    pub bytes: u64,
    pub sent: SideRow,
    pub received: SideRow,
}

/// One side of an edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SideRow {
    pub host: String,
    pub process: u32,
    pub thread: u32,
    /// When: of what was sent the begin of the call, of what was received its end.
    pub at_ns: u64,
}

/// A request, as one of its ends has seen it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestRow {
    /// Whether this end has sent it; else it has received it.
    pub is_sent: bool,
    pub local: String,
    pub remote: String,
    /// The request's first byte, as this end's table `message` counts them.
    pub first_byte: u64,
    /// How many it has.
    pub bytes: u64,
    /// Who sent or read its first bytes.
    pub asked: SideRow,
    /// When the last bytes of the answer were sent or read; `None` without an answer.
    pub answered_ns: Option<u64>,
    /// Of one that was received, the number of the same request, as its client has sent it. Of one that was sent, the
    /// number of the received one that it was made for.
    pub made_for: Option<u32>,
    /// What says so, of one that was sent.
    pub evidence: Option<&'static str>,
    /// What its end's program calls it, if spans were given and one fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<SpanName>,
}

pub(super) fn report(found: &Found<'_>, engaged: &Engaged) -> Rows {
    let joined = found.joined;
    let received = found.requests.incoming.iter();
    let received = received.map(|incoming| (&incoming.exchange, false, None));
    let sent = found.requests.outgoing.iter().map(|outgoing| {
        let words = outgoing.cause.map(|cause| evidence(cause.evidence));
        (&outgoing.exchange, true, words)
    });
    let rows = received.chain(sent).zip(&found.trees.parents);
    let rows = (0..).zip(rows);
    let rows = rows.map(|(node, ((exchange, is_sent, evidence), made_for))| RequestRow {
        evidence,
        made_for: *made_for,
        span: found.named.of(node),
        ..request(joined, exchange, is_sent)
    });
    let edges = found.messages.edges.iter();
    Rows {
        edges: edges.map(|found| edge(joined, found)).collect(),
        requests: rows.collect(),
        waits: idle::rows(found, engaged),
    }
}

fn request(joined: &Joined, exchange: &Exchange, is_sent: bool) -> RequestRow {
    RequestRow {
        is_sent,
        local: local(joined, exchange.end),
        remote: joined
            .ends
            .get(&exchange.end)
            .map_or_else(String::new, |end| joined.address(end.remote)),
        first_byte: first_byte(joined, exchange.end, exchange.first_byte),
        bytes: exchange.bytes,
        asked: side(joined, &exchange.asked),
        answered_ns: exchange.answer.map(|answer| answer.last.at_ns),
        made_for: None,
        evidence: None,
        span: None,
    }
}

fn edge(joined: &Joined, edge: &MessageEdge) -> EdgeRow {
    EdgeRow {
        from: local(joined, edge.from),
        to: local(joined, edge.to),
        first_byte: first_byte(joined, edge.from, edge.first_byte),
        bytes: edge.bytes,
        sent: side(joined, &edge.sent),
        received: side(joined, &edge.received),
    }
}

/// The core counts from the initial sequence number, where that is known.
fn first_byte(joined: &Joined, end: EndId, first_byte: u64) -> u64 {
    let end = joined.ends.get(&end);
    let is_known = end.is_some_and(|end| end.own_isn.is_some());
    first_byte.saturating_sub(u64::from(is_known))
}

fn local(joined: &Joined, end: EndId) -> String {
    let end = joined.ends.get(&end);
    end.map_or_else(String::new, |end| joined.address(end.local))
}

fn side(joined: &Joined, side: &Side) -> SideRow {
    SideRow {
        host: joined.name(side.host),
        process: side.process,
        thread: side.thread.id,
        at_ns: side.at_ns,
    }
}
