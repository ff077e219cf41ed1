//! Reports one request: all calls that were made for it, and what its time went into.

use std::collections::HashMap;

use luc_fleet_requests::{ConnectionEnd, EndAddress, Exchange, MessageSide};
use serde::Serialize;

use super::fleet_requests::FleetRequests;
use super::forest_nodes::{evidence, time_ns};
use super::match_program_spans::SpanName;
use super::request_path::{self, PathPart};
use super::request_ranking::{RankedRequest, TopRequest};
use crate::counters::EventCount;
use crate::error::FleetError;
use crate::host_clocks::{HomeClock, HomeClocks, error_ns};
use crate::joined_traces::JoinedTraces;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestReport {
    pub request: RankedRequest,
    /// The request itself, then all that were made for it, each after its cause.
    pub calls: Vec<TreeCallReport>,
    /// Parts of its time in order. They sum to the request's time.
    pub path: Vec<PathPart>,
    /// Events counted in all parts on a processor, as far as the traces have counters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<EventCount>,
}

/// Request in a tree of calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TreeCallReport {
    /// Number of calls above it.
    pub depth: usize,
    /// Thread that asked; `None`: the client's host has no trace.
    pub client: Option<CallThread>,
    /// Thread that was asked; `None`: the server's host has no trace, or its rows were lost.
    pub server: Option<CallThread>,
    pub address: String,
    /// Size of the request in bytes.
    pub bytes: u64,
    /// Begin, ns after the begin of the request at the top; `None`: clocks unknown.
    pub after_ns: Option<i64>,
    /// Error of `after_ns`; 0 on the host of the request at the top.
    pub after_error_ns: Option<u64>,
    /// Time at which the server had read the first bytes, ns after the begin of the request at the top. `None`: clocks
    /// unknown, or the server has no trace.
    pub server_after_ns: Option<i64>,
    pub server_after_error_ns: Option<u64>,
    /// Time of the client; `None` without an answer or without the client's trace.
    pub time_ns: Option<u64>,
    pub server_time_ns: Option<u64>,
    /// Evidence that it was made for the call above.
    pub evidence: Option<&'static str>,
    /// Span of the server, otherwise of the client, if one fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<SpanName>,
}

/// Thread and its process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallThread {
    pub host: String,
    pub process: String,
    pub process_id: u32,
    pub name: String,
    pub thread: u32,
}

impl CallThread {
    fn of(joined: &JoinedTraces, side: &MessageSide) -> Self {
        let host = joined.host(side.host);
        Self {
            host: host.name.clone(),
            process: host.process_name(side.process, side.at_ns),
            process_id: side.process,
            name: host.thread_name(side.thread),
            thread: side.thread.id,
        }
    }
}

/// Reports the requests with these numbers; 1 is the slowest.
///
/// # Errors
/// [`FleetError::NoSuchRequest`].
pub(crate) fn reports(
    found: &FleetRequests<'_>,
    numbers: impl IntoIterator<Item = usize>,
) -> Result<Vec<RequestReport>, FleetError> {
    let mut homes = HomeClocks::new(&found.joined.clocks);
    let report = |number| {
        let top = found.top(number)?;
        Ok(report(found, homes.at(top.exchange.end.host), top))
    };
    numbers.into_iter().map(report).collect()
}

fn report(found: &FleetRequests<'_>, home: &HomeClock<'_>, top: &TopRequest) -> RequestReport {
    let (joined, requests) = (found.joined, &found.requests);
    let parents = &found.trees.parents;
    let trace = &joined.host(top.exchange.end.host).trace;
    let began_ns = trace.start_ns.saturating_add(top.ranked.began_ns);
    let mut tree = CallTree { joined, home, began_ns, calls: Vec::new() };
    let mut call_of: HashMap<u32, usize> = HashMap::new();
    for &node in found.trees.forest.below(top.node) {
        let above = parents[node as usize].and_then(|parent| call_of.get(&parent).copied());
        let at = node as usize;
        let call = match requests.incoming.get(at) {
            Some(incoming) => tree.add_received(&incoming.exchange, above),
            None => {
                let Some(outgoing) = requests.outgoing.get(at - requests.incoming.len()) else {
                    continue;
                };
                // The one at the top was not made for another.
                let words = outgoing.cause.map(|cause| evidence(cause.evidence));
                tree.add_sent(&outgoing.exchange, above, words)
            }
        };
        // A server's is read after that of its client, and says more.
        tree.calls[call].span = found.named.of(node).or_else(|| tree.calls[call].span.take());
        call_of.insert(node, call);
    }
    let path = request_path::report(found, home, top.node);
    RequestReport {
        request: top.ranked.clone(),
        calls: tree.calls,
        counted: crate::counters::sum(path.iter().flat_map(|part| &part.counted)),
        path,
    }
}

/// Tree of calls while it is built.
struct CallTree<'a> {
    joined: &'a JoinedTraces,
    home: &'a HomeClock<'a>,
    began_ns: u64,
    calls: Vec<TreeCallReport>,
}

impl CallTree<'_> {
    /// Adds a request as its server saw it: to the client's call, if that has no server yet.
    fn add_received(&mut self, exchange: &Exchange, above: Option<usize>) -> usize {
        let server = Some(CallThread::of(self.joined, &exchange.asked));
        let time_ns = time_ns(exchange);
        let (after_ns, after_error_ns) = self.after(exchange);
        if let Some(at) = above
            && let Some(call) = self.calls.get_mut(at)
            && call.server.is_none()
        {
            (call.server, call.server_time_ns) = (server, time_ns);
            (call.server_after_ns, call.server_after_error_ns) = (after_ns, after_error_ns);
            return at;
        }
        let call = TreeCallReport {
            server,
            server_time_ns: time_ns,
            server_after_ns: after_ns,
            server_after_error_ns: after_error_ns,
            ..self.new_call(exchange, above, |end| end.local)
        };
        self.calls.push(call);
        self.calls.len() - 1
    }

    /// Adds a request as its client saw it.
    fn add_sent(
        &mut self,
        exchange: &Exchange,
        above: Option<usize>,
        evidence: Option<&'static str>,
    ) -> usize {
        let call = TreeCallReport {
            client: Some(CallThread::of(self.joined, &exchange.asked)),
            time_ns: time_ns(exchange),
            evidence,
            ..self.new_call(exchange, above, |end| end.remote)
        };
        self.calls.push(call);
        self.calls.len() - 1
    }

    /// Creates a call with only its place and begin.
    fn new_call(
        &self,
        exchange: &Exchange,
        above: Option<usize>,
        address: impl Fn(&ConnectionEnd) -> EndAddress,
    ) -> TreeCallReport {
        let (after_ns, after_error_ns) = self.after(exchange);
        TreeCallReport {
            depth: above.map_or(0, |at| self.calls[at].depth + 1),
            client: None,
            server: None,
            address: self.joined.end_address(exchange.end, address),
            bytes: exchange.bytes,
            after_ns,
            after_error_ns,
            server_after_ns: None,
            server_after_error_ns: None,
            time_ns: None,
            server_time_ns: None,
            evidence: None,
            span: None,
        }
    }

    /// Begin of an exchange after that of the request at the top, and its error, ns.
    fn after(&self, exchange: &Exchange) -> (Option<i64>, Option<u64>) {
        let Some(placed) = self.home.place_ns(exchange.asked.host, exchange.asked.at_ns) else {
            return (None, None);
        };
        let began_ns = i64::try_from(self.began_ns).unwrap_or(i64::MAX);
        (placed.at_ns.map(|at_ns| at_ns.saturating_sub(began_ns)), error_ns(&placed))
    }
}
