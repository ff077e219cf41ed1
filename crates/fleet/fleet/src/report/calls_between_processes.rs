//! Sums the requests between processes: who calls whom.

use std::collections::BTreeMap;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{EndAddress, EndId, Exchange};
use luc_stats::quantile;

use crate::explain::{FleetRequests, ProcessKey, find_services, time_ns};

/// Node of the map: a process that asks or answers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MapNode {
    /// Processes of one name on a host that answer most requests at one address, or none.
    Process(HostId, String, Option<EndAddress>),
    /// Process at an address that is in no trace.
    At(EndAddress),
    /// Clients in no trace.
    Outside,
}

/// Requests of one node to another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CallsBetweenNodes {
    pub(crate) requests: u64,
    /// Times in order: the client's if it is in a trace, otherwise the server's.
    pub(crate) times_ns: Vec<u64>,
}

impl CallsBetweenNodes {
    fn add(&mut self, exchange: &Exchange) {
        self.requests += 1;
        self.times_ns.extend(time_ns(exchange));
    }

    /// Quantile of the answered requests' times, ns.
    pub(crate) fn time_ns(&self, share: f64) -> Option<u64> {
        quantile(&self.times_ns, share)
    }
}

/// Sums what each node was asked, by all others.
pub(crate) fn sum_received(
    all: &BTreeMap<(MapNode, MapNode), CallsBetweenNodes>,
) -> BTreeMap<MapNode, CallsBetweenNodes> {
    let mut received: BTreeMap<MapNode, CallsBetweenNodes> = BTreeMap::new();
    for ((_, to), calls) in all {
        let sum = received.entry(to.clone()).or_default();
        sum.requests += calls.requests;
        sum.times_ns.extend(&calls.times_ns);
    }
    for calls in received.values_mut() {
        calls.times_ns.sort_unstable();
    }
    received
}

/// Groups all requests by who asked and who answered.
pub(crate) fn sum_calls(
    found: &FleetRequests<'_>,
) -> BTreeMap<(MapNode, MapNode), CallsBetweenNodes> {
    let services = find_services(found.joined, &found.requests);
    let mut processes: BTreeMap<ProcessKey, MapNode> = BTreeMap::new();
    let mut process = |exchange: &Exchange| {
        let key = ProcessKey::of(exchange);
        let node = processes.entry(key).or_insert_with(|| {
            let name = found.joined.host(key.host).process_name(key.id, exchange.asked.at_ns);
            MapNode::Process(key.host, name, services.get(&key).copied())
        });
        node.clone()
    };
    let remote = |end: EndId| found.joined.ends.get(&end).map(|end| end.remote);
    let requests = &found.requests;
    let mut all: BTreeMap<(MapNode, MapNode), CallsBetweenNodes> = BTreeMap::new();
    for sent in &requests.outgoing {
        let to = match sent.to.and_then(|request| requests.incoming.get(request.0)) {
            Some(received) => process(&received.exchange),
            None => remote(sent.exchange.end).map_or(MapNode::Outside, MapNode::At),
        };
        let from = process(&sent.exchange);
        all.entry((from, to)).or_default().add(&sent.exchange);
    }
    for received in requests.incoming.iter().filter(|one| one.from.is_none()) {
        let to = process(&received.exchange);
        all.entry((MapNode::Outside, to)).or_default().add(&received.exchange);
    }
    for calls in all.values_mut() {
        calls.times_ns.sort_unstable();
    }
    all
}
