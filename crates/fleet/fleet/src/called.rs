//! Whom services ask on other hosts, themselves or by way of other services of their host.

use std::collections::{BTreeSet, HashSet};
use std::net::{IpAddr, SocketAddr};

use luc_fleet_requests::{Address, EndId};

use crate::endpoint::Endpoint;
use crate::joined::Joined;

/// The addresses on other hosts to which the processes that answer at these endpoints of one host sent requests. Where
/// they sent some to other processes of their host, those to which these sent requests count, too, and so on.
#[must_use]
pub fn called(joined: &Joined, at: &[Endpoint]) -> BTreeSet<SocketAddr> {
    let requests = joined.requests();
    let own: HashSet<IpAddr> = joined
        .ends
        .values()
        .filter_map(|end| internet(end.local))
        .map(|address| address.ip())
        .collect();
    let mut called = BTreeSet::new();
    let mut endpoints: Vec<Endpoint> = at.to_vec();
    let mut known: HashSet<Endpoint> = HashSet::new();
    while let Some(endpoint) = endpoints.pop() {
        if !known.insert(endpoint.clone()) {
            continue;
        }
        let of = |end: EndId| joined.ends.get(&end);
        let answers: HashSet<u32> = requests
            .incoming
            .iter()
            .map(|incoming| &incoming.exchange)
            .filter(|exchange| {
                of(exchange.end)
                    .is_some_and(|end| joined.endpoint(end.local).as_ref() == Some(&endpoint))
            })
            .map(|exchange| exchange.asked.process)
            .collect();
        let sent = requests.outgoing.iter().map(|outgoing| &outgoing.exchange);
        for exchange in sent.filter(|exchange| answers.contains(&exchange.asked.process)) {
            let Some(remote) = of(exchange.end).map(|end| end.remote) else {
                continue;
            };
            match internet(remote) {
                Some(address) if !own.contains(&address.ip()) && !address.ip().is_loopback() => {
                    called.insert(address);
                }
                _ => endpoints.extend(joined.endpoint(remote)),
            }
        }
    }
    called
}

fn internet(address: Address) -> Option<SocketAddr> {
    match address {
        Address::Internet(address) => Some(address),
        Address::Unix(_) | Address::Pipe(_) => None,
    }
}
