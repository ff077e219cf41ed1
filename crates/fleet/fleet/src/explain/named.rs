//! Which request is which span: names and ids that programs gave their requests.
//!
//! A server's span lies within its request, from the call that reads its first bytes to the one that sends the last of
//! its answer; a client's has the request within it. Where a span fits several requests, the name in their bytes or the
//! other end's port may tell them apart; else it is put to one only if all others have a span that fits them alone. The
//! span of a call is told by those of servers, too: by that for which it was made, and by that which was made for it.

use std::collections::{BTreeMap, HashMap};

use luc_fleet_clocks::HostId;
use luc_fleet_otlp::Span;
use luc_fleet_requests::{Address, Exchange, Requests};
use serde::Serialize;

use crate::joined::Joined;

/// A program may read the clock so much before or after the calls that are recorded.
const SLACK_NS: u64 = 2_000_000;
/// A program that is busy may read it so much later.
const LATE_NS: u64 = 50_000_000;
/// A span that fits more requests is put to none: it would take long to find which.
const MOST_FITTING: usize = 256;

/// The span of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpanName {
    /// What its program calls it.
    pub name: String,
    /// The trace's id in hexadecimal.
    pub trace_id: String,
    /// The span's id in hexadecimal.
    pub span_id: String,
}

/// How many spans are put to a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SpanCounts {
    /// Spans that were read.
    pub spans: u64,
    /// Those that are put to a request.
    pub matched: u64,
    /// Those that fit several.
    pub several: u64,
    /// Those that fit none.
    pub none: u64,
}

/// Spans by what wrote them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SpansReport {
    pub servers: SpanCounts,
    pub clients: SpanCounts,
}

/// The spans of requests, by their places in [`Requests::parents`].
#[derive(Debug, Default)]
pub(crate) struct Named<'a> {
    spans: HashMap<u32, &'a Span>,
    report: SpansReport,
}

impl<'a> Named<'a> {
    pub(super) fn new(joined: &'a Joined, requests: &Requests) -> Self {
        let mut named = Self::default();
        if joined.spans.is_empty() {
            return named;
        }
        let received = requests.incoming.iter().map(|one| &one.exchange);
        let sent = requests.outgoing.iter().map(|one| &one.exchange);
        let first_sent = requests.incoming.len();
        let received = Side::new(joined, true, received.enumerate());
        let sent = sent.enumerate().map(|(at, exchange)| (first_sent + at, exchange));
        let sent = Side::new(joined, false, sent);
        let all = received.fitting_of_all();
        named.report.servers = named.add(all);
        let mut all = sent.fitting_of_all();
        named.narrow(requests, &mut all);
        named.report.clients = named.add(all);
        named
    }

    /// Leaves of the calls that the spans of clients fit those that spans of servers allow.
    fn narrow(&self, requests: &Requests, all: &mut Fitting<'a>) {
        let received = |node: u32| requests.incoming.get(node as usize);
        let servers = self.spans.iter();
        let of_server: HashMap<(u128, u64), u32> =
            servers.clone().map(|(&node, span)| ((span.trace_id, span.span_id), node)).collect();
        // What a server calls its client's span is the call that it received.
        let call_of: HashMap<(u128, u64), u32> = servers
            .filter_map(|(&node, span)| {
                let call = requests.incoming.len() + received(node)?.from?.0;
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

    /// The span of a request, by its place.
    pub(super) fn of(&self, node: u32) -> Option<SpanName> {
        let span = self.spans.get(&node)?;
        Some(SpanName {
            name: span.name.clone(),
            trace_id: span.trace_text(),
            span_id: format!("{:016x}", span.span_id),
        })
    }

    /// `None`: no spans were given.
    pub(super) fn report(&self) -> Option<SpansReport> {
        let given = self.report.servers.spans + self.report.clients.spans > 0;
        given.then_some(self.report)
    }

    /// Puts spans to the requests that they fit alone. Returns how many there are of each kind.
    fn add(&mut self, all: Fitting<'a>) -> SpanCounts {
        let mut counts = SpanCounts { spans: all.spans.len() as u64, ..SpanCounts::default() };
        let (spans, mut fitting): (Vec<&Span>, Vec<Vec<u32>>) = all.spans.into_iter().unzip();
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

/// Spans, and the places of the requests that each fits.
struct Fitting<'a> {
    spans: Vec<(&'a Span, Vec<u32>)>,
    /// Those that fit too many requests, and are here with none.
    too_many: u64,
}

/// The requests of servers, or those of clients, and the spans that may be theirs.
struct Side<'a, 'r> {
    joined: &'a Joined,
    is_server: bool,
    hosts: BTreeMap<HostId, OfHost<'r>>,
}

/// The requests of a host that were answered.
#[derive(Default)]
struct OfHost<'r> {
    /// With their places, by when they began.
    exchanges: Vec<(u32, &'r Exchange)>,
    longest_ns: u64,
}

impl<'a, 'r> Side<'a, 'r> {
    fn new(
        joined: &'a Joined,
        is_server: bool,
        exchanges: impl Iterator<Item = (usize, &'r Exchange)>,
    ) -> Self {
        let mut hosts: BTreeMap<HostId, OfHost<'r>> = BTreeMap::new();
        for (at, exchange) in exchanges {
            let (Ok(node), Some(answer)) = (u32::try_from(at), exchange.answer) else {
                continue;
            };
            let of_host = hosts.entry(exchange.end.host).or_default();
            let time_ns = answer.last.at_ns.saturating_sub(exchange.asked.at_ns);
            of_host.longest_ns = of_host.longest_ns.max(time_ns);
            of_host.exchanges.push((node, exchange));
        }
        for of_host in hosts.values_mut() {
            of_host.exchanges.sort_by_key(|(node, exchange)| (exchange.asked.at_ns, *node));
        }
        Self { joined, is_server, hosts }
    }

    fn spans(&self) -> impl Iterator<Item = &'a Span> {
        let spans = self.joined.spans.iter();
        spans.filter(|span| span.is_server == self.is_server)
    }

    fn fitting_of_all(&self) -> Fitting<'a> {
        let mut too_many = 0;
        let spans = self.spans().map(|span| {
            let nodes = self.fitting(span);
            too_many += u64::from(nodes.is_none());
            (span, nodes.unwrap_or_default())
        });
        Fitting { spans: spans.collect(), too_many }
    }

    /// The requests that a span fits; `None`: too many.
    fn fitting(&self, span: &Span) -> Option<Vec<u32>> {
        // A program that is busy notes late that it has ended. Without a port its own request must be among those that
        // fit, or another one's would be taken for it.
        let late_ns = if span.peer_port.is_some() { SLACK_NS } else { LATE_NS };
        let mut fitting = self.search(span, late_ns, |span, exchange| {
            let (outer, inner) = if self.is_server { (exchange, span) } else { (span, exchange) };
            outer[0] <= inner[0].saturating_add(SLACK_NS)
                && inner[0] <= outer[1].saturating_add(SLACK_NS)
                && inner[1] <= outer[1].saturating_add(late_ns)
        });
        // Of the requests of one connection only one is meanwhile.
        if fitting.is_empty() && span.peer_port.is_some() {
            fitting = self.search(span, LATE_NS, are_mostly_same);
        }
        let token = token_of(span);
        if fitting.iter().any(|(_, one)| one.token == Some(token)) {
            fitting.retain(|(_, one)| one.token == Some(token));
        }
        let is_little = fitting.len() <= MOST_FITTING;
        is_little.then(|| fitting.into_iter().map(|(node, _)| node).collect())
    }

    /// The requests between the same ends as a span for whose begins and ends `fits` says so, of those that begin not
    /// longer than the slack before or after they may.
    fn search(
        &self,
        span: &Span,
        slack_ns: u64,
        fits: impl Fn([u64; 2], [u64; 2]) -> bool,
    ) -> Vec<(u32, &'r Exchange)> {
        let is_its = |host: HostId| {
            let host = self.joined.host(host);
            span.host.as_ref() == Some(&host.trace.host) || span.host.as_ref() == Some(&host.name)
        };
        let is_known = self.hosts.keys().any(|&host| is_its(host));
        let hosts = self.hosts.iter();
        let hosts = hosts.filter(|&(&host, _)| !is_known || is_its(host));
        let mut found = Vec::new();
        for (&host, of_host) in hosts {
            let offset_ns = self.joined.host(host).trace.realtime_offset_ns;
            let (Some(start_ns), Some(end_ns)) =
                (span.start_ns.checked_sub(offset_ns), span.end_ns.checked_sub(offset_ns))
            else {
                continue;
            };
            // When a request begins that may be its.
            let (from_ns, to_ns) = if self.is_server {
                (end_ns.saturating_sub(of_host.longest_ns), start_ns)
            } else {
                (start_ns, end_ns)
            };
            let from_ns = from_ns.saturating_sub(slack_ns);
            let to_ns = to_ns.saturating_add(slack_ns);
            let all = &of_host.exchanges;
            let first = all.partition_point(|(_, exchange)| exchange.asked.at_ns < from_ns);
            let begun = all[first..].iter();
            let begun = begun.take_while(|(_, exchange)| exchange.asked.at_ns <= to_ns);
            let is_its = |&&(_, exchange): &&(u32, &Exchange)| {
                let last_ns = exchange.answer.map_or(0, |answer| answer.last.at_ns);
                fits([start_ns, end_ns], [exchange.asked.at_ns, last_ns])
                    && self.is_between_same(span, exchange)
            };
            found.extend(begun.filter(is_its));
        }
        found
    }

    /// Whether the ends of the connection may be those that the span names.
    fn is_between_same(&self, span: &Span, exchange: &Exchange) -> bool {
        let Some(end) = self.joined.ends.get(&exchange.end) else {
            return false;
        };
        let (local, remote) = match (end.local, end.remote) {
            (Address::Internet(local), Address::Internet(remote)) => (local, remote),
            _ => return span.peer_port.is_none() && span.local_port.is_none(),
        };
        let address = remote.ip().to_canonical();
        span.peer_address.is_none_or(|peer| peer == address)
            && span.peer_port.is_none_or(|port| port == remote.port())
            && span.local_port.is_none_or(|port| port == local.port())
    }
}

/// Whether two times have more than half of either in common.
fn are_mostly_same(one: [u64; 2], other: [u64; 2]) -> bool {
    let length_ns = |[from, to]: [u64; 2]| to.saturating_sub(from);
    let common_ns = length_ns([one[0].max(other[0]), one[1].min(other[1])]);
    let longer_ns = length_ns(one).max(length_ns(other));
    common_ns > longer_ns / 2
}

/// The name that a request of this span has in its bytes, as the recorder knows it: FNV-1a of the trace's id.
fn token_of(span: &Span) -> u64 {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    span.trace_text().bytes().fold(0xcbf2_9ce4_8422_2325, hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_mostly_the_same_that_share_more_than_half_of_both() {
        assert!(are_mostly_same([0, 10], [4, 10]));
        assert!(!are_mostly_same([0, 10], [5, 10]));
        assert!(are_mostly_same([0, 10], [3, 13]));
        assert!(!are_mostly_same([0, 10], [0, 20]));
        assert!(!are_mostly_same([0, 10], [20, 30]));
        assert!(!are_mostly_same([10, 0], [0, 10]));
    }
}
