//! Who calls whom: processes, and the requests between them.

use std::collections::BTreeMap;

use luc_fleet_clocks::HostId;
use luc_fleet_requests::{Address, EndId, Exchange};
use luc_stats::quantile;

use crate::explain::{Found, services};

/// A place that asks or answers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Processes of one name on a host that answer most requests at one address, or none.
    Process(HostId, String, Option<Address>),
    /// Who is at an address, and in no trace.
    At(Address),
    /// Clients that are in no trace.
    Outside,
}

/// The requests of one place to another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) requests: u64,
    /// As long as the client waited, or, where it is in no trace, as long as the server took; in order.
    pub(crate) times_ns: Vec<u64>,
}

impl Calls {
    fn add(&mut self, exchange: &Exchange) {
        self.requests += 1;
        if let Some(answer) = exchange.answer {
            let time_ns = answer.last.at_ns.saturating_sub(exchange.asked.at_ns);
            self.times_ns.push(time_ns);
        }
    }

    /// The time below which this share of the answered ones is, ns.
    pub(crate) fn time_ns(&self, share: f64) -> Option<u64> {
        quantile(&self.times_ns, share)
    }
}

/// What each place was asked, by whomever.
pub(crate) fn received(all: &BTreeMap<(Place, Place), Calls>) -> BTreeMap<Place, Calls> {
    let mut received: BTreeMap<Place, Calls> = BTreeMap::new();
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

/// All requests by who asked and who answered.
pub(crate) fn calls(found: &Found<'_>) -> BTreeMap<(Place, Place), Calls> {
    let services = services(found.joined, &found.requests);
    let mut places: BTreeMap<(HostId, u32), Place> = BTreeMap::new();
    let mut process = |exchange: &Exchange| {
        let asked = &exchange.asked;
        let id = (asked.host, asked.process);
        let place = places.entry(id).or_insert_with(|| {
            let name = found.joined.host(asked.host);
            let name = name.process_name(asked.process, asked.at_ns);
            Place::Process(asked.host, name, services.get(&id).copied())
        });
        place.clone()
    };
    let remote = |end: EndId| found.joined.ends.get(&end).map(|end| end.remote);
    let requests = &found.requests;
    let mut all: BTreeMap<(Place, Place), Calls> = BTreeMap::new();
    for sent in &requests.outgoing {
        let to = sent.to.and_then(|request| requests.incoming.get(request.0));
        let to = match to {
            Some(received) => process(&received.exchange),
            None => remote(sent.exchange.end).map_or(Place::Outside, Place::At),
        };
        let from = process(&sent.exchange);
        all.entry((from, to)).or_default().add(&sent.exchange);
    }
    for received in requests.incoming.iter().filter(|one| one.from.is_none()) {
        let to = process(&received.exchange);
        all.entry((Place::Outside, to)).or_default().add(&received.exchange);
    }
    for calls in all.values_mut() {
        calls.times_ns.sort_unstable();
    }
    all
}
