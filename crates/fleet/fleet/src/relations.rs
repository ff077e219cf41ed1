//! What was found in the traces of many hosts as flat rows, for engines that ask questions of their own.
//!
//! Times are of the CLOCK_MONOTONIC of the host whose row it is. A time `global_ns` is of the first host's
//! CLOCK_MONOTONIC; `None` where the clocks are not known.

mod global;

use std::collections::BTreeMap;

use luc_events::Cause;
use luc_fleet_clocks::{Event, HostId, Placed};
use luc_fleet_requests::{EndId, Exchange, MessageEdge, Part, PartKind, Side, ThreadId};

use crate::clocks::Home;
use crate::error::FleetError;
use crate::explain::{Found, Top, evidence};
use crate::joined::Joined;
pub use global::{GlobalTimes, Knot, global_times};

/// Edges, requests and critical paths. Hosts are numbered in the order of the traces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relations {
    pub hosts: Vec<String>,
    /// Sends and receptions that have bytes in common.
    pub edges: Vec<Edge>,
    /// Requests, in the order of their ids.
    pub requests: Vec<RequestNode>,
    /// What the time of each answered request that is not known to be made for another one went into.
    pub steps: Vec<PathStep>,
}

/// Which of [`Relations`] are wanted; the others stay empty. Those of many requests take more memory than the traces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WantedRelations {
    pub edges: bool,
    pub requests: bool,
    pub steps: bool,
}

/// One side of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeSide {
    pub host: u32,
    pub process: u32,
    pub thread: u32,
    /// The connection's number in the host's trace.
    pub connection: u64,
    /// When, ns: of what was sent the begin of the call, of what was received its end.
    pub at_ns: u64,
    /// The same on the first host's clock.
    pub global_ns: Option<i64>,
}

/// Bytes of one send that one reception took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    pub from: EdgeSide,
    pub to: EdgeSide,
    /// The first of them, as the sender's table `message` counts them.
    pub first_byte: u64,
    pub bytes: u64,
    /// From the send to the reception, ns.
    pub latency_ns: Option<i64>,
    /// It is guaranteed to be no less, ns.
    pub low_ns: Option<i64>,
    /// It is guaranteed to be no more, ns.
    pub high_ns: Option<i64>,
}

/// A request, as one of its ends has seen it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestNode {
    pub id: u32,
    /// Of one that was received, the same request as its client has sent it. Of one that was sent, the received one
    /// that it was made for.
    pub parent: Option<u32>,
    /// The one at the top of its tree.
    pub root: u32,
    /// Its number in pre-order. All below it, and itself, have those from `pre` to `last`.
    pub pre: u32,
    /// The greatest number in pre-order of all below it.
    pub last: u32,
    /// Its number in post-order.
    pub post: u32,
    /// Its number in the order of times, as `explain --request` takes it: 1 is the slowest; `None`: it has no answer, or is made for another one.
    pub number: Option<u32>,
    /// Whether this end has sent it; else it has received it.
    pub is_sent: bool,
    pub host: u32,
    pub process: u32,
    /// The thread that sent or read its first bytes.
    pub thread: u32,
    /// The connection's number in the host's trace.
    pub connection: u64,
    pub local: String,
    pub remote: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// When its first bytes were sent or read, ns.
    pub start_ns: u64,
    /// When the last bytes of the answer were read or sent, ns; `None` without an answer.
    pub end_ns: Option<u64>,
    /// The begin on the first host's clock.
    pub start_global_ns: Option<i64>,
    /// What says that it was made for its parent, of one that was sent.
    pub evidence: Option<&'static str>,
}

/// A part of a critical path. The parts of a request sum to its time exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathStep {
    pub request: u32,
    /// Its place on the path, from 0.
    pub step: u32,
    /// What it was: `running`, `runnable`, `blocked`, `network` or `contradictory`.
    pub part: &'static str,
    pub host: u32,
    /// Whose process, by its id; `None`: not known.
    pub process: Option<u32>,
    /// Whose thread, by its id.
    pub thread: u32,
    pub name: String,
    /// Of a wait: its cause, as the table `wait` names it.
    pub cause: Option<&'static str>,
    /// Of a message, the sender's host.
    pub from_host: Option<u32>,
    /// Of a message, the sender's thread.
    pub from_thread: Option<u32>,
    /// When it began, ns, on the clock of the host that has the request.
    pub start_ns: u64,
    pub end_ns: u64,
    /// By how much both may be off, as the clocks of hosts are known to that only, ns; `None`: not bounded.
    pub error_ns: Option<u64>,
}

/// What was found in the rows of all hosts.
///
/// # Errors
/// [`FleetError::Tree`].
pub fn relations(joined: &Joined, wanted: WantedRelations) -> Result<Relations, FleetError> {
    let found = Found::new(joined)?;
    let mut homes = Homes { joined, of_hosts: BTreeMap::new() };
    let mut relations = Relations {
        hosts: joined.hosts.iter().map(|host| host.name.clone()).collect(),
        ..Relations::default()
    };
    if wanted.edges {
        let edges = found.messages.edges.iter();
        relations.edges = edges.map(|found| edge(&mut homes, found)).collect();
    }
    if wanted.requests {
        relations.requests = requests(&mut homes, &found);
    }
    if wanted.steps {
        relations.steps = steps(&mut homes, &found);
    }
    Ok(relations)
}

/// All clocks on those of hosts that were asked for.
struct Homes<'a> {
    joined: &'a Joined,
    of_hosts: BTreeMap<HostId, Home<'a>>,
}

impl<'a> Homes<'a> {
    fn of(&mut self, host: HostId) -> &Home<'a> {
        let clocks = &self.joined.clocks;
        let home = self.of_hosts.entry(host);
        home.or_insert_with(|| clocks.at_home(host))
    }

    /// When something happened on a host's clock, on that of `home`.
    fn place(&mut self, home: HostId, host: HostId, at_ns: u64) -> Option<Placed> {
        let at_ns = i64::try_from(at_ns).ok()?;
        self.of(home).place(Event { host, at_ns })
    }

    fn global_ns(&mut self, host: HostId, at_ns: u64) -> Option<i64> {
        self.place(HostId(0), host, at_ns)?.at_ns
    }

    fn side(&mut self, end: EndId, side: &Side) -> EdgeSide {
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

fn edge(homes: &mut Homes<'_>, edge: &MessageEdge) -> Edge {
    let placed = homes.place(edge.sent.host, edge.received.host, edge.received.at_ns);
    let since_ns = |at_ns: i64| at_ns.saturating_sub_unsigned(edge.sent.at_ns);
    let end = homes.joined.ends.get(&edge.from);
    // The core counts from the initial sequence number, where that is known.
    let is_known = end.is_some_and(|end| end.own_isn.is_some());
    Edge {
        from: homes.side(edge.from, &edge.sent),
        to: homes.side(edge.to, &edge.received),
        first_byte: edge.first_byte.saturating_sub(u64::from(is_known)),
        bytes: edge.bytes,
        latency_ns: placed.and_then(|placed| placed.at_ns).map(since_ns),
        low_ns: placed.and_then(|placed| placed.bounds.low_ns()).map(since_ns),
        high_ns: placed.and_then(|placed| placed.bounds.high_ns()).map(since_ns),
    }
}

fn requests(homes: &mut Homes<'_>, found: &Found<'_>) -> Vec<RequestNode> {
    let (joined, forest) = (found.joined, &found.trees.forest);
    let numbers: BTreeMap<u32, usize> =
        found.all_tops().map(|top| (top.node(), top.ranked().number)).collect();
    let received = found.requests.incoming.iter();
    let received = received.map(|incoming| (&incoming.exchange, false, None));
    let sent = found.requests.outgoing.iter().map(|outgoing| {
        let words = outgoing.cause.map(|cause| evidence(cause.evidence));
        (&outgoing.exchange, true, words)
    });
    let mut nodes: Vec<RequestNode> = Vec::with_capacity(found.trees.parents.len());
    for (id, (exchange, is_sent, evidence)) in received.chain(sent).enumerate() {
        let node = id as u32;
        let Exchange { end, asked, .. } = exchange;
        let range = forest.subtree(node);
        let [local, remote] = joined.ends.get(end).map_or_else(Default::default, |end| {
            [end.local, end.remote].map(|address| joined.address(address))
        });
        nodes.push(RequestNode {
            id: node,
            parent: found.trees.parents[id],
            root: node,
            pre: range.start,
            last: range.end.saturating_sub(1),
            post: forest.post(node).unwrap_or_default(),
            number: numbers.get(&node).and_then(|&number| u32::try_from(number).ok()),
            is_sent,
            host: end.host.0,
            process: asked.process,
            thread: asked.thread.id,
            connection: end.connection,
            local,
            remote,
            bytes: exchange.bytes,
            start_ns: asked.at_ns,
            end_ns: exchange.answer.map(|answer| answer.last.at_ns),
            start_global_ns: homes.global_ns(asked.host, asked.at_ns),
            evidence,
        });
    }
    // In pre-order what is above comes first.
    let tops = (0..nodes.len()).filter(|&node| nodes[node].parent.is_none());
    let tops: Vec<u32> = tops.map(|node| node as u32).collect();
    for top in tops {
        for &below in forest.below(top) {
            nodes[below as usize].root = top;
        }
    }
    nodes
}

fn steps(homes: &mut Homes<'_>, found: &Found<'_>) -> Vec<PathStep> {
    let mut tops: Vec<&Top> = found.all_tops().collect();
    tops.sort_unstable_by_key(|top| top.node());
    let mut steps = Vec::new();
    for top in tops {
        let exchange = top.exchange();
        let Some(answer) = exchange.answer else {
            continue;
        };
        let home = homes.of(exchange.end.host);
        let place = |event| home.place(event);
        let path = found.paths.critical(&exchange.asked, &answer.last, place);
        let parts = path.parts.iter().zip(0..);
        steps.extend(parts.map(|(part, place)| step(found.joined, top.node(), place, part)));
    }
    steps
}

fn step(joined: &Joined, request: u32, step: u32, part: &Part) -> PathStep {
    let ThreadId { host, thread } = part.thread;
    let about = joined.host(host);
    let cause = part
        .wait_off_ns
        .filter(|_| part.kind == PartKind::Blocked)
        .and_then(|off_ns| joined.cause(part.thread, off_ns));
    let (name, from, error_ns) = match part.kind {
        PartKind::Running => ("running", None, Some(0)),
        PartKind::Runnable { .. } => ("runnable", None, Some(0)),
        PartKind::Blocked => ("blocked", None, Some(0)),
        PartKind::Network { from, error_ns, .. } => ("network", Some(from), error_ns),
        PartKind::Contradictory => ("contradictory", None, Some(0)),
    };
    PathStep {
        request,
        step,
        part: name,
        host: host.0,
        process: about.process_of(thread),
        thread: thread.id,
        name: about.thread_name(thread),
        cause: cause.map(Cause::name),
        from_host: from.map(|from| from.host.0),
        from_thread: from.map(|from| from.thread.id),
        start_ns: part.begin_ns,
        end_ns: part.end_ns,
        error_ns,
    }
}
