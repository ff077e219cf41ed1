//! Finds whom services ask on other hosts, directly or through other services of their host.

use std::collections::{BTreeSet, HashSet};
use std::net::{IpAddr, SocketAddr};

use luc_fleet_requests::{EndAddress, EndId};

use crate::endpoint::Endpoint;
use crate::joined_traces::JoinedTraces;

/// Addresses on other hosts to which the processes that answer at these endpoints of one host sent requests. If they
/// asked other processes of their host, the requests of these count, too, and so on.
#[must_use]
pub fn called(joined: &JoinedTraces, at: &[Endpoint]) -> BTreeSet<SocketAddr> {
    let requests = joined.requests();
    let own: HashSet<IpAddr> = joined
        .ends
        .values()
        .filter_map(|end| internet_address(end.local))
        .map(|address| address.ip())
        .collect();
    let mut called = BTreeSet::new();
    let mut endpoints: Vec<Endpoint> = at.to_vec();
    let mut known: HashSet<Endpoint> = HashSet::new();
    while let Some(endpoint) = endpoints.pop() {
        if !known.insert(endpoint.clone()) {
            continue;
        }
        let find_end = |end: EndId| joined.ends.get(&end);
        let answers: HashSet<u32> = requests
            .incoming
            .iter()
            .map(|incoming| &incoming.exchange)
            .filter(|exchange| {
                let answers_at = find_end(exchange.end).and_then(|end| joined.endpoint(end.local));
                answers_at.as_ref() == Some(&endpoint)
            })
            .map(|exchange| exchange.asked.process)
            .collect();
        let sent = requests.outgoing.iter().map(|outgoing| &outgoing.exchange);
        for exchange in sent.filter(|exchange| answers.contains(&exchange.asked.process)) {
            let Some(remote) = find_end(exchange.end).map(|end| end.remote) else {
                continue;
            };
            match internet_address(remote) {
                Some(address) if !own.contains(&address.ip()) && !address.ip().is_loopback() => {
                    called.insert(address);
                }
                _ => endpoints.extend(joined.endpoint(remote)),
            }
        }
    }
    called
}

fn internet_address(address: EndAddress) -> Option<SocketAddr> {
    match address {
        EndAddress::Internet(address) => Some(address),
        EndAddress::Unix(_) | EndAddress::Pipe(_) => None,
    }
}
