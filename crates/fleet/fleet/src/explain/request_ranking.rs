//! Ranks the requests that are not known to be made for another one, the slowest first.

use luc_fleet_requests::{Exchange, Requests};
use serde::Serialize;

use super::forest_nodes::{ForestNode, nodes};
use super::match_program_spans::{SpanName, SpansByRequest};
use crate::error::FleetError;
use crate::joined_traces::JoinedTraces;
use crate::wait_graph::FleetWaitGraph;

/// Request with its rank by time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RankedRequest {
    /// Rank; 1 is the slowest.
    pub number: usize,
    /// Host whose clock the times are of: the client's, if it has a trace.
    pub host: String,
    /// Process that asked. If the client has no trace: the process that was asked.
    pub process: String,
    /// Address that the request was sent to or received at.
    pub address: String,
    /// Id of the thread that asked, or that read the first bytes.
    pub thread: u32,
    /// Number of the connection in the host's trace.
    pub connection: u64,
    /// Begin, ns after the begin of the host's trace.
    pub began_ns: u64,
    /// Time from the call that sends the first bytes to the call that reads the last of the answer. If the client has
    /// no trace: from the request's arrival at its socket to the server's answer.
    pub time_ns: u64,
    /// Span that a program wrote of the request, if one fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<SpanName>,
}

/// Request at the top of a tree.
#[derive(Debug, Clone)]
pub(crate) struct TopRequest {
    /// Node number of the request ([`Requests::parents`]).
    pub(crate) node: u32,
    pub(crate) exchange: Exchange,
    pub(crate) ranked: RankedRequest,
}

/// Answered requests that are not known to be made for another one, the slowest first.
#[derive(Debug)]
pub(super) struct RequestRanking(Vec<TopRequest>);

impl RequestRanking {
    pub(super) fn new(
        joined: &JoinedTraces,
        requests: &Requests,
        graph: &FleetWaitGraph<'_>,
        named: &SpansByRequest<'_>,
    ) -> Self {
        let tops = nodes(requests).filter(|node| node.is_top);
        let mut tops: Vec<TopRequest> =
            tops.filter_map(|node| describe(joined, graph, node)).collect();
        tops.sort_by_key(|top| (std::cmp::Reverse(top.ranked.time_ns), top.node));
        for (at, top) in tops.iter_mut().enumerate() {
            top.ranked.number = at + 1;
            // The client's span comes before the server's.
            let sent = (top.node as usize).checked_sub(requests.incoming.len());
            let received = sent.and_then(|sent| requests.outgoing.get(sent)?.to);
            let span = named.of(top.node);
            top.ranked.span = span.or_else(|| named.of(u32::try_from(received?.0).ok()?));
        }
        Self(tops)
    }

    pub(super) fn all(&self) -> &[TopRequest] {
        &self.0
    }

    /// Request with this number.
    pub(super) fn get(&self, number: usize) -> Result<&TopRequest, FleetError> {
        let found = number.checked_sub(1).and_then(|at| self.0.get(at));
        found.ok_or(FleetError::NoSuchRequest { number, count: self.0.len() })
    }

    pub(super) fn slowest(&self, count: usize) -> Vec<RankedRequest> {
        self.0.iter().take(count).map(|top| top.ranked.clone()).collect()
    }
}

/// Describes a request; `None` without an answer.
fn describe(
    joined: &JoinedTraces,
    graph: &FleetWaitGraph<'_>,
    ForestNode { id, exchange, is_sent, .. }: ForestNode<'_>,
) -> Option<TopRequest> {
    let asked = exchange.asked;
    let span = graph.time_of(id)?;
    let end = joined.ends.get(&exchange.end)?;
    let host = joined.host(end.host);
    let address = if is_sent { end.remote } else { end.local };
    Some(TopRequest {
        node: id,
        exchange: *exchange,
        ranked: RankedRequest {
            number: 0,
            host: host.name.clone(),
            process: host.process_name(asked.process, asked.at_ns),
            address: joined.address(address),
            thread: asked.thread.id,
            connection: exchange.end.connection,
            began_ns: span.from_ns().saturating_sub(host.trace.start_ns),
            time_ns: span.length_ns(),
            span: None,
        },
    })
}
