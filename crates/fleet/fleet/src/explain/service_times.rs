//! Reports how long services took for requests.

use std::collections::BTreeMap;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{EndAddress, NameId, Requests};
use luc_stats::quantile;
use serde::Serialize;

use super::forest_nodes::time_ns;
use crate::endpoint::Endpoint;
use crate::joined_traces::JoinedTraces;

/// Process that answers at a port or a path.
///
/// Times are the server's own. They begin when the call that reads a request's first bytes ends. They end when the call
/// that sends the last bytes of the answer begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServiceTimes {
    pub host: String,
    pub process: String,
    /// Port; 0 for a unix socket.
    pub port: u16,
    /// Path or abstract name of a unix socket.
    pub path: Option<String>,
    pub requests: u64,
    /// Answered requests, which the times are of.
    pub answered: u64,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub max_ns: Option<u64>,
}

/// Port or path at which a service listens, whatever its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ServicePlace {
    port: u16,
    path: Option<NameId>,
}

impl ServicePlace {
    fn of(address: EndAddress) -> Self {
        let (port, path) = match address {
            EndAddress::Internet(address) => (address.port(), None),
            EndAddress::Unix(name) | EndAddress::Pipe(name) => (0, name),
        };
        Self { port, path }
    }
}

impl ServiceTimes {
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        match &self.path {
            Some(path) => Endpoint::Path(path.clone()),
            None => Endpoint::Port(self.port),
        }
    }
}

pub(super) fn report(joined: &JoinedTraces, requests: &Requests) -> Vec<ServiceTimes> {
    let mut all: BTreeMap<(HostId, ServicePlace, String), (u64, Vec<u64>)> = BTreeMap::new();
    for incoming in &requests.incoming {
        let exchange = &incoming.exchange;
        let Some(end) = joined.ends.get(&exchange.end) else {
            continue;
        };
        let asked = exchange.asked;
        let process = joined.host(end.host).process_name(asked.process, asked.at_ns);
        let (count, times_ns) =
            all.entry((end.host, ServicePlace::of(end.local), process)).or_default();
        *count += 1;
        times_ns.extend(time_ns(exchange));
    }
    let service = |((host, place, process), (requests, mut times_ns)): (
        (HostId, ServicePlace, String),
        (u64, Vec<u64>),
    )| {
        times_ns.sort_unstable();
        ServiceTimes {
            host: joined.name(host),
            process,
            port: place.port,
            path: place.path.map(|name| joined.address(EndAddress::Unix(Some(name)))),
            requests,
            answered: times_ns.len() as u64,
            p50_ns: quantile(&times_ns, 0.5),
            p99_ns: quantile(&times_ns, 0.99),
            max_ns: times_ns.last().copied(),
        }
    };
    let mut services: Vec<ServiceTimes> = all.into_iter().map(service).collect();
    services.sort_by_key(|service| std::cmp::Reverse(service.requests));
    services
}
