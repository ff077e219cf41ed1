//! Matches spans with requests, for the names and ids that programs gave their requests.
//!
//! A server's span lies within its request: from the call that reads the first bytes to the call that sends the last of
//! the answer. A client's span contains its request. If a span fits several requests, the token in their bytes or the
//! other end's port may tell them apart. Otherwise it is matched only if every other request has a span that fits it
//! alone. A client span is also matched through its parent server span and its child server span.

use std::collections::{BTreeMap, HashMap};

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{EndAddress, Exchange, Requests};
use serde::Serialize;

use super::forest_nodes::{ForestNode, nodes, time_ns};
use crate::joined_traces::JoinedTraces;
use crate::otlp::ProgramSpan;

/// Time by which a program may read the clock before or after the recorded calls.
const SLACK_NS: u64 = 2_000_000;
/// Time by which a busy program may read the clock late.
const BUSY_SLACK_NS: u64 = 50_000_000;
/// Maximum number of requests that a span may fit. A span that fits more is not matched, as that would take long.
const MAX_FITTING: usize = 256;

/// Span of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpanName {
    /// Name that the program gave the request.
    pub name: String,
    /// Trace id in hexadecimal.
    pub trace_id: String,
    /// Span id in hexadecimal.
    pub span_id: String,
}

/// Numbers of spans, by how they fit requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MatchedSpanCounts {
    pub spans: u64,
    /// Spans that are matched with a request.
    pub matched: u64,
    /// Spans that fit several requests.
    pub several: u64,
    /// Spans that fit no request.
    pub none: u64,
}

/// Span counts by the side that wrote the spans.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SpansReport {
    pub servers: MatchedSpanCounts,
    pub clients: MatchedSpanCounts,
}

/// Spans of requests, by the requests' node numbers ([`Requests::parents`]).
#[derive(Debug, Default)]
pub(crate) struct SpansByRequest<'a> {
    spans: HashMap<u32, &'a ProgramSpan>,
    report: SpansReport,
}

impl<'a> SpansByRequest<'a> {
    pub(super) fn new(joined: &'a JoinedTraces, requests: &Requests) -> Self {
        let mut named = Self::default();
        if joined.spans.is_empty() {
            return named;
        }
        named.report.servers = named.add(SpanMatcher::new(joined, true, requests).match_all());
        let mut of_clients = SpanMatcher::new(joined, false, requests).match_all();
        named.narrow(requests, &mut of_clients);
        named.report.clients = named.add(of_clients);
        named
    }

    /// Removes calls that the spans of servers rule out from those that clients' spans fit.
    fn narrow(&self, requests: &Requests, all: &mut Fitting<'a>) {
        let servers = self.spans.iter();
        let of_server: HashMap<(u128, u64), u32> =
            servers.clone().map(|(&node, span)| ((span.trace_id, span.span_id), node)).collect();
        // The parent of a server's span is the span of the call that the server received.
        let call_of: HashMap<(u128, u64), u32> = servers
            .filter_map(|(&node, span)| {
                let received = requests.incoming.get(node as usize)?;
                let call = requests.incoming.len() + received.from?.0;
                Some(((span.trace_id, span.parent_id), u32::try_from(call).ok()?))
            })
            .collect();
        for (span, nodes) in &mut all.spans {
            if let Some(&call) = call_of.get(&(span.trace_id, span.span_id)) {
                nodes.retain(|&node| node == call);
                continue;
            }
            let Some(&server) = of_server.get(&(span.trace_id, span.parent_id)) else {
                continue;
            };
            let is_its = |&node: &u32| {
                let sent = (node as usize).checked_sub(requests.incoming.len());
                let cause = sent.and_then(|sent| requests.outgoing.get(sent)?.cause);
                cause.is_some_and(|cause| cause.request.0 == server as usize)
            };
            if nodes.iter().any(is_its) {
                nodes.retain(is_its);
            }
        }
    }

    /// Span of the request with this node number.
    pub(super) fn of(&self, node: u32) -> Option<SpanName> {
        let span = self.spans.get(&node)?;
        Some(SpanName {
            name: span.name.clone(),
            trace_id: span.trace_text(),
            span_id: format!("{:016x}", span.span_id),
        })
    }

    /// Span counts; `None`: no spans were given.
    pub(super) fn report(&self) -> Option<SpansReport> {
        let given = self.report.servers.spans + self.report.clients.spans > 0;
        given.then_some(self.report)
    }

    /// Matches spans with requests that they fit alone. Returns the counts.
    fn add(&mut self, all: Fitting<'a>) -> MatchedSpanCounts {
        let mut counts =
            MatchedSpanCounts { spans: all.spans.len() as u64, ..MatchedSpanCounts::default() };
        let (spans, mut fitting): (Vec<&ProgramSpan>, Vec<Vec<u32>>) =
            all.spans.into_iter().unzip();
        let none = fitting.iter().filter(|nodes| nodes.is_empty()).count();
        counts.none = none as u64 - all.too_many;
        let mut of_node: HashMap<u32, Vec<usize>> = HashMap::new();
        for (at, nodes) in fitting.iter().enumerate() {
            for &node in nodes {
                of_node.entry(node).or_default().push(at);
            }
        }
        let is_single = |nodes: &Vec<u32>| nodes.len() == 1;
        let mut single: Vec<usize> =
            (0..spans.len()).filter(|&at| is_single(&fitting[at])).collect();
        while let Some(at) = single.pop() {
            // Another one may have had it meanwhile.
            let Some(&node) = fitting[at].first().filter(|_| is_single(&fitting[at])) else {
                continue;
            };
            let others = &of_node[&node];
            // A request has one span: of two that fit no other one it is not known which.
            let has_rival = |&other: &usize| other != at && is_single(&fitting[other]);
            if self.spans.contains_key(&node) || others.iter().any(has_rival) {
                continue;
            }
            self.spans.insert(node, spans[at]);
            counts.matched += 1;
            for &other in others {
                if other != at {
                    fitting[other].retain(|&left| left != node);
                    if is_single(&fitting[other]) {
                        single.push(other);
                    }
                }
            }
        }
        counts.several = counts.spans - counts.matched - counts.none;
        counts
    }
}

/// Spans, and the nodes of the requests that each fits.
#[derive(Default)]
struct Fitting<'a> {
    spans: Vec<(&'a ProgramSpan, Vec<u32>)>,
    /// Number of spans that fit too many requests. Their node lists are empty.
    too_many: u64,
}

/// Matches the spans of one side, servers or clients, with the requests that this side saw.
struct SpanMatcher<'a, 'r> {
    joined: &'a JoinedTraces,
    is_server: bool,
    hosts: BTreeMap<HostId, HostRequests<'r>>,
}

/// Answered requests of one host.
#[derive(Default)]
struct HostRequests<'r> {
    /// Node numbers and requests, in order of their begin.
    exchanges: Vec<(u32, &'r Exchange)>,
    longest_ns: u64,
}

impl<'a, 'r> SpanMatcher<'a, 'r> {
    fn new(joined: &'a JoinedTraces, is_server: bool, requests: &'r Requests) -> Self {
        let mut hosts: BTreeMap<HostId, HostRequests<'r>> = BTreeMap::new();
        for ForestNode { id, exchange, .. } in
            nodes(requests).filter(|node| node.is_sent != is_server)
        {
            let Some(time_ns) = time_ns(exchange) else { continue };
            let requests = hosts.entry(exchange.end.host).or_default();
            requests.longest_ns = requests.longest_ns.max(time_ns);
            requests.exchanges.push((id, exchange));
        }
        for requests in hosts.values_mut() {
            requests.exchanges.sort_by_key(|(node, exchange)| (exchange.asked.at_ns, *node));
        }
        Self { joined, is_server, hosts }
    }

    fn match_all(&self) -> Fitting<'a> {
        let mut fitting = Fitting::default();
        for span in self.joined.spans.iter().filter(|span| span.is_server == self.is_server) {
            let nodes = self.find_fitting(span);
            fitting.too_many += u64::from(nodes.is_none());
            fitting.spans.push((span, nodes.unwrap_or_default()));
        }
        fitting
    }

    /// Finds the requests that a span fits; `None`: too many.
    fn find_fitting(&self, span: &ProgramSpan) -> Option<Vec<u32>> {
        // A busy program notes its end late. Without a port, the span's own request must be among those that fit, or
        // another one would be taken for it.
        let late_ns = if span.peer_port.is_some() { SLACK_NS } else { BUSY_SLACK_NS };
        let mut fitting = self.search(span, late_ns, |span, exchange| {
            let (outer, inner) = if self.is_server { (exchange, span) } else { (span, exchange) };
            outer[0] <= inner[0].saturating_add(SLACK_NS)
                && inner[0] <= outer[1].saturating_add(SLACK_NS)
                && inner[1] <= outer[1].saturating_add(late_ns)
        });
        // Of the requests of one connection only one is meanwhile.
        if fitting.is_empty() && span.peer_port.is_some() {
            fitting = self.search(span, BUSY_SLACK_NS, overlap_mostly);
        }
        let token = compute_token(span);
        if fitting.iter().any(|(_, one)| one.token == Some(token)) {
            fitting.retain(|(_, one)| one.token == Some(token));
        }
        (fitting.len() <= MAX_FITTING).then(|| fitting.into_iter().map(|(node, _)| node).collect())
    }

    /// Finds requests between the ends that the span names, for whose times `fits` holds. `slack_ns` widens the window
    /// in which they may begin.
    fn search(
        &self,
        span: &ProgramSpan,
        slack_ns: u64,
        fits: impl Fn([u64; 2], [u64; 2]) -> bool,
    ) -> Vec<(u32, &'r Exchange)> {
        let is_its = |host: HostId| {
            let host = self.joined.host(host);
            span.host.as_ref() == Some(&host.trace.host) || span.host.as_ref() == Some(&host.name)
        };
        let is_known = self.hosts.keys().any(|&host| is_its(host));
        let mut found = Vec::new();
        for (&host, requests) in self.hosts.iter().filter(|&(&host, _)| !is_known || is_its(host)) {
            let offset_ns = self.joined.host(host).trace.realtime_offset_ns;
            let (Some(start_ns), Some(end_ns)) =
                (span.start_ns.checked_sub(offset_ns), span.end_ns.checked_sub(offset_ns))
            else {
                continue;
            };
            // Window in which a matching request begins.
            let (from_ns, to_ns) = if self.is_server {
                (end_ns.saturating_sub(requests.longest_ns), start_ns)
            } else {
                (start_ns, end_ns)
            };
            let from_ns = from_ns.saturating_sub(slack_ns);
            let to_ns = to_ns.saturating_add(slack_ns);
            let all = &requests.exchanges;
            let first = all.partition_point(|(_, exchange)| exchange.asked.at_ns < from_ns);
            let begun = all[first..].iter().take_while(|(_, one)| one.asked.at_ns <= to_ns);
            let is_its = |&&(_, exchange): &&(u32, &Exchange)| {
                let last_ns = exchange.answer.map_or(0, |answer| answer.last.at_ns);
                fits([start_ns, end_ns], [exchange.asked.at_ns, last_ns])
                    && self.is_between_same(span, exchange)
            };
            found.extend(begun.filter(is_its));
        }
        found
    }

    /// Whether the connection's ends may be those that the span names.
    fn is_between_same(&self, span: &ProgramSpan, exchange: &Exchange) -> bool {
        let Some(end) = self.joined.ends.get(&exchange.end) else {
            return false;
        };
        let (local, remote) = match (end.local, end.remote) {
            (EndAddress::Internet(local), EndAddress::Internet(remote)) => (local, remote),
            _ => return span.peer_port.is_none() && span.local_port.is_none(),
        };
        let address = remote.ip().to_canonical();
        span.peer_address.is_none_or(|peer| peer == address)
            && span.peer_port.is_none_or(|port| port == remote.port())
            && span.local_port.is_none_or(|port| port == local.port())
    }
}

/// Whether two intervals share more than half of the longer one.
fn overlap_mostly(one: [u64; 2], other: [u64; 2]) -> bool {
    let length_ns = |[from, to]: [u64; 2]| to.saturating_sub(from);
    let common_ns = length_ns([one[0].max(other[0]), one[1].min(other[1])]);
    let longer_ns = length_ns(one).max(length_ns(other));
    common_ns > longer_ns / 2
}

/// Computes the token that a request of this span has in its bytes, as the recorder does: FNV-1a of the trace id.
fn compute_token(span: &ProgramSpan) -> u64 {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    span.trace_text().bytes().fold(0xcbf2_9ce4_8422_2325, hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_mostly_the_same_that_share_more_than_half_of_both() {
        assert!(overlap_mostly([0, 10], [4, 10]));
        assert!(!overlap_mostly([0, 10], [5, 10]));
        assert!(overlap_mostly([0, 10], [3, 13]));
        assert!(!overlap_mostly([0, 10], [0, 20]));
        assert!(!overlap_mostly([0, 10], [20, 30]));
        assert!(!overlap_mostly([10, 0], [0, 10]));
    }
}
