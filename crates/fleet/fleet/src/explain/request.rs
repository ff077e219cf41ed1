//! One request: all calls that were made for it, and what its time went into.

use std::collections::{BTreeMap, HashMap};

use luc_fleet_clocks::{Event, HostId};
use luc_fleet_requests::{Address, Exchange, Side};
use serde::Serialize;

use super::found::Found;
use super::named::SpanName;
use super::path::{self, PathPart};
use super::ranking::{Ranked, Top};
use super::requests::evidence;
use crate::clocks::Home;
use crate::error::FleetError;
use crate::joined::Joined;
use luc_fleet_counters::EventCount;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestReport {
    /// Which, and how long it took.
    pub request: Ranked,
    /// The request itself, and all that were made for it; each after the one it was made for.
    pub calls: Vec<Call>,
    /// What its time went into, in order. The parts sum to its time.
    pub path: Vec<PathPart>,
    /// What was counted in all parts of it that were on a processor, as far as the traces have counters of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<EventCount>,
}

/// A request in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Call {
    /// How many calls are above it.
    pub depth: usize,
    /// Who asked; `None`: the client's host has no trace.
    pub client: Option<Actor>,
    /// Who was asked; `None`: the server's host has no trace, or its rows were lost.
    pub server: Option<Actor>,
    pub address: String,
    /// How many bytes the request has.
    pub bytes: u64,
    /// When it began, ns after the request at the top; `None` where the clocks are not known.
    pub after_ns: Option<i64>,
    /// By how much that may be off; 0 on the host of the request at the top.
    pub after_error_ns: Option<u64>,
    /// When the server had read its first bytes, ns after the request at the top; `None` where the clocks are not known,
    /// or the server has no trace.
    pub server_after_ns: Option<i64>,
    /// By how much that may be off.
    pub server_after_error_ns: Option<u64>,
    /// The client's time; `None` without an answer or without the client's trace.
    pub time_ns: Option<u64>,
    pub server_time_ns: Option<u64>,
    /// What says that it was made for the one above.
    pub evidence: Option<&'static str>,
    /// What its server calls it, or its client, if spans were given and one fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<SpanName>,
}

/// A thread and its process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Actor {
    pub host: String,
    pub process: String,
    pub process_id: u32,
    pub name: String,
    pub thread: u32,
}

impl Actor {
    fn of(joined: &Joined, side: &Side) -> Self {
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

/// Requests of many numbers: 1 is the slowest.
///
/// # Errors
/// [`FleetError::NoSuchRequest`].
pub(crate) fn reports(
    found: &Found<'_>,
    numbers: impl IntoIterator<Item = usize>,
) -> Result<Vec<RequestReport>, FleetError> {
    let mut homes: BTreeMap<HostId, Home<'_>> = BTreeMap::new();
    let mut reports = Vec::new();
    for number in numbers {
        let top = found.top(number)?;
        let host = top.exchange.end.host;
        let home = homes.entry(host).or_insert_with(|| found.joined.clocks.at_home(host));
        reports.push(report(found, home, top));
    }
    Ok(reports)
}

fn report(found: &Found<'_>, home: &Home<'_>, top: &Top) -> RequestReport {
    let (joined, requests) = (found.joined, &found.requests);
    let parents = &found.trees.parents;
    let mut tree = Tree { joined, home, began_ns: top.exchange.asked.at_ns, calls: Vec::new() };
    let mut call_of: HashMap<u32, usize> = HashMap::new();
    for &node in found.trees.forest.below(top.node) {
        let above = parents[node as usize].and_then(|parent| call_of.get(&parent).copied());
        let at = node as usize;
        let call = match requests.incoming.get(at) {
            Some(incoming) => tree.received(&incoming.exchange, above),
            None => {
                let Some(outgoing) = requests.outgoing.get(at - requests.incoming.len()) else {
                    continue;
                };
                // The one at the top was not made for another.
                let words = outgoing.cause.map(|cause| evidence(cause.evidence));
                tree.sent(&outgoing.exchange, above, words)
            }
        };
        // A server's is read after that of its client, and says more.
        let span = found.named.of(node);
        tree.calls[call].span = span.or_else(|| tree.calls[call].span.take());
        call_of.insert(node, call);
    }
    let path = path::report(joined, home, &found.paths, &top.exchange);
    RequestReport {
        request: top.ranked.clone(),
        calls: tree.calls,
        counted: luc_fleet_counters::sum(path.iter().flat_map(|part| &part.counted)),
        path,
    }
}

/// Calls as they are put together.
struct Tree<'a> {
    joined: &'a Joined,
    home: &'a Home<'a>,
    /// When the request at the top began.
    began_ns: u64,
    calls: Vec<Call>,
}

impl Tree<'_> {
    /// Adds what a server has seen of a request: to what the client has seen of it, if it has none yet.
    fn received(&mut self, exchange: &Exchange, above: Option<usize>) -> usize {
        let server = Some(Actor::of(self.joined, &exchange.asked));
        let time_ns = time_ns(exchange);
        let (after_ns, error_ns) = self.after(exchange);
        if let Some(at) = above
            && let Some(call) = self.calls.get_mut(at)
            && call.server.is_none()
        {
            (call.server, call.server_time_ns) = (server, time_ns);
            (call.server_after_ns, call.server_after_error_ns) = (after_ns, error_ns);
            return at;
        }
        let call = Call {
            server,
            server_time_ns: time_ns,
            server_after_ns: after_ns,
            server_after_error_ns: error_ns,
            ..self.call(exchange, above, |end| end.local)
        };
        self.calls.push(call);
        self.calls.len() - 1
    }

    /// Adds what a client has seen of a request.
    fn sent(
        &mut self,
        exchange: &Exchange,
        above: Option<usize>,
        evidence: Option<&'static str>,
    ) -> usize {
        let call = Call {
            client: Some(Actor::of(self.joined, &exchange.asked)),
            time_ns: time_ns(exchange),
            evidence,
            ..self.call(exchange, above, |end| end.remote)
        };
        self.calls.push(call);
        self.calls.len() - 1
    }

    /// A call of which nothing but its place and begin is known.
    fn call(
        &self,
        exchange: &Exchange,
        above: Option<usize>,
        address: impl Fn(&luc_fleet_requests::End) -> Address,
    ) -> Call {
        let (after_ns, after_error_ns) = self.after(exchange);
        let end = self.joined.ends.get(&exchange.end);
        Call {
            depth: above.map_or(0, |at| self.calls[at].depth + 1),
            client: None,
            server: None,
            address: end.map_or_else(String::new, |end| self.joined.address(address(end))),
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

    /// When an exchange began, after the request at the top, and by how much that may be off, ns.
    fn after(&self, exchange: &Exchange) -> (Option<i64>, Option<u64>) {
        let asked = &exchange.asked;
        let placed = i64::try_from(asked.at_ns).ok().and_then(|at_ns| {
            let host = asked.host;
            self.home.place(Event { host, at_ns })
        });
        let began_ns = i64::try_from(self.began_ns).unwrap_or(i64::MAX);
        let half_ns = placed.and_then(|placed| placed.bounds.half_width_ns());
        let at_ns = placed.and_then(|placed| placed.at_ns);
        (
            at_ns.map(|at_ns| at_ns.saturating_sub(began_ns)),
            half_ns.map(|half_ns| half_ns.ceil() as u64),
        )
    }
}

fn time_ns(exchange: &Exchange) -> Option<u64> {
    let answer = exchange.answer?;
    Some(answer.last.at_ns.saturating_sub(exchange.asked.at_ns))
}
