//! How long services took for requests.

use std::collections::BTreeMap;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{Address, NameId, Requests};
use luc_stats::quantile;
use serde::Serialize;

use crate::endpoint::Endpoint;
use crate::joined::Joined;

/// A process that answers at a port or a path.
///
/// A request's time is the server's own: from the end of the call that reads its first bytes to the begin of the call
/// that sends the last bytes of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Service {
    pub host: String,
    pub process: String,
    /// Its port; 0 of a unix socket.
    pub port: u16,
    /// The path or abstract name of its unix socket.
    pub path: Option<String>,
    /// Requests that it received.
    pub requests: u64,
    /// Those that it answered: the times are theirs.
    pub answered: u64,
    /// The median time, ns.
    pub p50_ns: Option<u64>,
    /// The time below which 99 of 100 are, ns.
    pub p99_ns: Option<u64>,
    pub max_ns: Option<u64>,
}

/// Where a service listens, whatever its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    port: u16,
    path: Option<NameId>,
}

impl Place {
    fn of(address: Address) -> Self {
        let (port, path) = match address {
            Address::Internet(address) => (address.port(), None),
            Address::Unix(name) | Address::Pipe(name) => (0, name),
        };
        Self { port, path }
    }
}

impl Service {
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        match &self.path {
            Some(path) => Endpoint::Path(path.clone()),
            None => Endpoint::Port(self.port),
        }
    }
}

pub(super) fn report(joined: &Joined, requests: &Requests) -> Vec<Service> {
    let mut all: BTreeMap<(HostId, Place, String), (u64, Vec<u64>)> = BTreeMap::new();
    for incoming in &requests.incoming {
        let exchange = &incoming.exchange;
        let Some(end) = joined.ends.get(&exchange.end) else {
            continue;
        };
        let asked = exchange.asked;
        let process = joined.host(end.host).process_name(asked.process, asked.at_ns);
        let (count, times_ns) = all.entry((end.host, Place::of(end.local), process)).or_default();
        *count += 1;
        if let Some(answer) = exchange.answer {
            times_ns.push(answer.last.at_ns.saturating_sub(asked.at_ns));
        }
    }
    let service = |((host, place, process), (requests, mut times_ns)): (
        (HostId, Place, String),
        (u64, Vec<u64>),
    )| {
        times_ns.sort_unstable();
        Service {
            host: joined.name(host),
            process,
            port: place.port,
            path: place.path.map(|name| joined.address(Address::Unix(Some(name)))),
            requests,
            answered: times_ns.len() as u64,
            p50_ns: quantile(&times_ns, 0.5),
            p99_ns: quantile(&times_ns, 0.99),
            max_ns: times_ns.last().copied(),
        }
    };
    let mut services: Vec<Service> = all.into_iter().map(service).collect();
    services.sort_by_key(|service| std::cmp::Reverse(service.requests));
    services
}
