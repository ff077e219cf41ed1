//! Flat rows of edges, requests and parts of their time, which `export` writes as tables.
//!
//! Times are of the CLOCK_MONOTONIC of the row's host. A time `global_ns` is of the first host's CLOCK_MONOTONIC;
//! `None`: clocks unknown.

mod global_time;

use std::collections::BTreeMap;

use luc_events::WaitCause;
use luc_fleet_clocks::HostId;
use luc_fleet_requests::{EndId, Exchange, MessageEdge, MessageSide};
use luc_waits::{RootKind, RootPart};

use crate::explain::{FleetRequests, ForestNode, TopRequest, nodes};
use crate::host_clocks::HomeClocks;
use crate::joined_traces::JoinedTraces;
use crate::wait_graph::host_of;
pub(crate) use global_time::{ClockLine, HostClock, host_clocks};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EdgeSide {
    pub(crate) host: u32,
    pub(crate) process: u32,
    pub(crate) thread: u32,
    /// Number of the connection in the host's trace.
    pub(crate) connection: u64,
    /// Begin of the call that sends, or end of the call that receives, ns.
    pub(crate) at_ns: u64,
    /// `at_ns` on the first host's clock.
    pub(crate) global_ns: Option<i64>,
}

/// Bytes of one send that one reception took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlatEdge {
    pub(crate) from: EdgeSide,
    pub(crate) to: EdgeSide,
    /// Offset of the first byte, as the sender's table `message` counts.
    pub(crate) first_byte: u64,
    pub(crate) bytes: u64,
    /// Time from the send to the reception, ns.
    pub(crate) latency_ns: Option<i64>,
    /// Guaranteed minimum of the latency, ns.
    pub(crate) low_ns: Option<i64>,
    /// Guaranteed maximum of the latency, ns.
    pub(crate) high_ns: Option<i64>,
}

/// Request as one of its ends saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestNode {
    pub(crate) id: u32,
    /// Parent of the request. For a received one: the same request as its client sent it. For a sent one: the received
    /// request that it was made for.
    pub(crate) parent: Option<u32>,
    /// Request at the top of the tree.
    pub(crate) root: u32,
    /// Number in pre-order. The request and all below it have the numbers from `pre` to `last`.
    pub(crate) pre: u32,
    /// Greatest number in pre-order of all below it.
    pub(crate) last: u32,
    pub(crate) post: u32,
    /// Rank by time, as `explain --request` takes it; 1 is the slowest. `None`: it has no answer, or is made for
    /// another one.
    pub(crate) number: Option<u32>,
    /// Whether this end sent the request; otherwise it received it.
    pub(crate) is_sent: bool,
    pub(crate) host: u32,
    pub(crate) process: u32,
    /// Thread that sent or read the first bytes.
    pub(crate) thread: u32,
    /// Number of the connection in the host's trace.
    pub(crate) connection: u64,
    pub(crate) local: String,
    pub(crate) remote: String,
    pub(crate) bytes: u64,
    /// Time at which the first bytes were sent or read, ns.
    pub(crate) start_ns: u64,
    /// Time at which the last bytes of the answer were read or sent, ns; `None` without an answer.
    pub(crate) end_ns: Option<u64>,
    /// Begin on the first host's clock.
    pub(crate) start_global_ns: Option<i64>,
    /// Evidence that a sent request was made for its parent.
    pub(crate) evidence: Option<&'static str>,
}

/// Part of a request's time by the root of the waits. The parts of a request sum to its time exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathStep {
    pub(crate) request: u32,
    /// Place in the request's time, from 0.
    pub(crate) step: u32,
    /// Kind of the root.
    pub(crate) kind: &'static str,
    pub(crate) host: u32,
    /// Service of the thread; the address of a server that no trace has.
    pub(crate) service: String,
    /// Id of the process; `None`: unknown.
    pub(crate) process: Option<u32>,
    /// Id of the thread; `None`: unknown.
    pub(crate) thread: Option<u32>,
    pub(crate) name: String,
    /// Cause of a wait, as the table `wait` names it.
    pub(crate) cause: Option<&'static str>,
    /// Host of a message's sender.
    pub(crate) from_host: Option<u32>,
    /// Thread of a message's sender.
    pub(crate) from_thread: Option<u32>,
    /// Begin on the clock of the request's host, ns.
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

/// Places times of all hosts on the clocks of others.
pub(crate) struct TimePlacer<'a> {
    joined: &'a JoinedTraces,
    homes: HomeClocks<'a>,
}

impl<'a> TimePlacer<'a> {
    pub(crate) fn new(joined: &'a JoinedTraces) -> Self {
        Self { joined, homes: HomeClocks::new(&joined.clocks) }
    }

    fn global_ns(&mut self, host: HostId, at_ns: u64) -> Option<i64> {
        self.homes.at(HostId(0)).place_ns(host, at_ns)?.at_ns
    }

    fn side(&mut self, end: EndId, side: &MessageSide) -> EdgeSide {
        EdgeSide {
            host: side.host.0,
            process: side.process,
            thread: side.thread.id,
            connection: end.connection,
            at_ns: side.at_ns,
            global_ns: self.global_ns(side.host, side.at_ns),
        }
    }
}

pub(crate) fn convert_edges(
    placer: &mut TimePlacer<'_>,
    found: &FleetRequests<'_>,
) -> Vec<FlatEdge> {
    found.messages.edges.iter().map(|edge| convert_edge(placer, edge)).collect()
}

fn convert_edge(placer: &mut TimePlacer<'_>, edge: &MessageEdge) -> FlatEdge {
    let placed = placer.homes.at(edge.sent.host).place_ns(edge.received.host, edge.received.at_ns);
    let since_ns = |at_ns: i64| at_ns.saturating_sub_unsigned(edge.sent.at_ns);
    FlatEdge {
        from: placer.side(edge.from, &edge.sent),
        to: placer.side(edge.to, &edge.received),
        first_byte: placer.joined.trace_offset(edge.from, edge.first_byte),
        bytes: edge.bytes,
        latency_ns: placed.and_then(|placed| placed.at_ns).map(since_ns),
        low_ns: placed.and_then(|placed| placed.bounds.low_ns()).map(since_ns),
        high_ns: placed.and_then(|placed| placed.bounds.high_ns()).map(since_ns),
    }
}

pub(crate) fn convert_requests(
    placer: &mut TimePlacer<'_>,
    found: &FleetRequests<'_>,
) -> Vec<RequestNode> {
    let (joined, forest) = (found.joined, &found.trees.forest);
    let numbers: BTreeMap<u32, usize> =
        found.all_tops().map(|top| (top.node, top.ranked.number)).collect();
    let mut rows: Vec<RequestNode> = Vec::with_capacity(found.trees.parents.len());
    for (ForestNode { id, exchange, is_sent, evidence, .. }, parent) in
        nodes(&found.requests).zip(&found.trees.parents)
    {
        let Exchange { end, asked, .. } = exchange;
        let range = forest.subtree(id);
        rows.push(RequestNode {
            id,
            parent: *parent,
            root: id,
            pre: range.start,
            last: range.end.saturating_sub(1),
            post: forest.post(id).unwrap_or_default(),
            number: numbers.get(&id).and_then(|&number| u32::try_from(number).ok()),
            is_sent,
            host: end.host.0,
            process: asked.process,
            thread: asked.thread.id,
            connection: end.connection,
            local: joined.end_address(*end, |end| end.local),
            remote: joined.end_address(*end, |end| end.remote),
            bytes: exchange.bytes,
            start_ns: asked.at_ns,
            end_ns: exchange.answer.map(|answer| answer.last.at_ns),
            start_global_ns: placer.global_ns(asked.host, asked.at_ns),
            evidence,
        });
    }
    // In pre-order, parents come first.
    let tops: Vec<u32> = rows.iter().filter(|row| row.parent.is_none()).map(|row| row.id).collect();
    for top in tops {
        for &below in forest.below(top) {
            rows[below as usize].root = top;
        }
    }
    rows
}

pub(crate) fn convert_steps(found: &FleetRequests<'_>) -> Vec<PathStep> {
    let mut tops: Vec<&TopRequest> = found.all_tops().collect();
    tops.sort_unstable_by_key(|top| top.node);
    let mut steps = Vec::new();
    for top in tops {
        let (Some(roots), Some(span)) =
            (found.graph.roots_of(top.node), found.graph.time_of(top.node))
        else {
            continue;
        };
        let mut start_ns = span.from_ns();
        for (part, step) in roots.parts.iter().zip(0..) {
            let end_ns = start_ns.saturating_add(part.span.length_ns());
            steps.push(convert_step(found, top.node, step, [start_ns, end_ns], part));
            start_ns = end_ns;
        }
    }
    steps
}

fn convert_step(
    found: &FleetRequests<'_>,
    request: u32,
    step: u32,
    [start_ns, end_ns]: [u64; 2],
    part: &RootPart,
) -> PathStep {
    let thread = part.thread.map(|thread| found.graph.thread(thread));
    let host = thread.map_or(host_of(part.clock), |thread| thread.host);
    let about = found.joined.host(host);
    let is_message = matches!(part.root.kind, RootKind::Network | RootKind::HeldBack);
    let from = part.other.filter(|_| is_message).map(|from| found.graph.thread(from));
    let [service, _] = found.graph.names_of(&part.root);
    PathStep {
        request,
        step,
        kind: part.root.kind.name(),
        host: host.0,
        service: luc_units::plain(service),
        process: thread.and_then(|thread| about.process_of(thread.thread)),
        thread: thread.map(|thread| thread.thread.id),
        name: thread.map_or_else(String::new, |thread| about.thread_name(thread.thread)),
        cause: part.cause.map(WaitCause::name),
        from_host: from.map(|from| from.host.0),
        from_thread: from.map(|from| from.thread.id),
        start_ns,
        end_ns,
    }
}
