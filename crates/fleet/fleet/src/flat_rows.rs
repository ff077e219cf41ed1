//! Flat rows of edges, requests and critical paths, which `export` writes as tables.
//!
//! Times are of the CLOCK_MONOTONIC of the row's host. A time `global_ns` is of the first host's CLOCK_MONOTONIC;
//! `None`: clocks unknown.

mod global_time;

use std::collections::BTreeMap;

use luc_events::WaitCause;
use luc_fleet_clocks::HostId;
use luc_fleet_requests::{
    CriticalPathPart, EndId, Exchange, MessageEdge, MessageSide, PathPartKind, ThreadId,
};

use crate::explain::{FleetRequests, ForestNode, TopRequest, nodes};
use crate::host_clocks::HomeClocks;
use crate::joined_traces::JoinedTraces;
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

/// Part of a critical path. The parts of a request sum to its time exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathStep {
    pub(crate) request: u32,
    /// Place on the path, from 0.
    pub(crate) step: u32,
    /// Kind: `running`, `runnable`, `blocked`, `network` or `contradictory`.
    pub(crate) part: &'static str,
    pub(crate) host: u32,
    /// Id of the process; `None`: unknown.
    pub(crate) process: Option<u32>,
    /// Id of the thread.
    pub(crate) thread: u32,
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
    /// Error of begin and end due to clocks, ns; `None`: unbounded.
    pub(crate) error_ns: Option<u64>,
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

pub(crate) fn convert_steps(
    placer: &mut TimePlacer<'_>,
    found: &FleetRequests<'_>,
) -> Vec<PathStep> {
    let mut tops: Vec<&TopRequest> = found.all_tops().collect();
    tops.sort_unstable_by_key(|top| top.node);
    let mut steps = Vec::new();
    for top in tops {
        let exchange = &top.exchange;
        let Some(answer) = exchange.answer else {
            continue;
        };
        let home = placer.homes.at(exchange.end.host);
        let place = |event| home.place(event);
        let path = found.paths.critical(&exchange.asked, &answer.last, place);
        let parts = path.parts.iter().zip(0..);
        steps.extend(parts.map(|(part, place)| convert_step(found.joined, top.node, place, part)));
    }
    steps
}

fn convert_step(
    joined: &JoinedTraces,
    request: u32,
    step: u32,
    part: &CriticalPathPart,
) -> PathStep {
    let ThreadId { host, thread } = part.thread;
    let about = joined.host(host);
    let (name, from, error_ns) = match part.kind {
        PathPartKind::Running => ("running", None, Some(0)),
        PathPartKind::Runnable { .. } => ("runnable", None, Some(0)),
        PathPartKind::Blocked => ("blocked", None, Some(0)),
        PathPartKind::Network { from, error_ns, .. } => ("network", Some(from), error_ns),
        PathPartKind::Contradictory => ("contradictory", None, Some(0)),
    };
    PathStep {
        request,
        step,
        part: name,
        host: host.0,
        process: about.process_of(thread),
        thread: thread.id,
        name: about.thread_name(thread),
        cause: joined.part_cause(part).map(WaitCause::name),
        from_host: from.map(|from| from.host.0),
        from_thread: from.map(|from| from.thread.id),
        start_ns: part.begin_ns,
        end_ns: part.end_ns,
        error_ns,
    }
}
