//! For which client's request each request was made.

use std::collections::BTreeSet;

use luc_fleet_clocks::HostId;

use super::found::Found;

/// No tree of requests is as deep as this.
const DEEPEST: usize = 64;

/// The clients' requests at the top of the trees.
#[derive(Debug)]
pub(super) struct Roots {
    /// Of each node of [`Trees`](super::found::Trees).
    of_nodes: Vec<Option<u32>>,
}

impl Roots {
    pub(super) fn new(found: &Found<'_>) -> Self {
        let (requests, parents) = (&found.requests, &found.trees.parents);
        let servers: BTreeSet<(HostId, u32)> = requests
            .incoming
            .iter()
            .map(|incoming| (incoming.exchange.end.host, incoming.exchange.asked.process))
            .collect();
        // A server's request without a known cause may be made for any.
        let is_of_client = |node: u32| {
            let number = (node as usize).checked_sub(requests.incoming.len());
            let sent = number.and_then(|number| requests.outgoing.get(number));
            sent.is_some_and(|sent| {
                let exchange = &sent.exchange;
                !servers.contains(&(exchange.end.host, exchange.asked.process))
            })
        };
        let root = |node: u32| {
            let above = |node: &u32| parents.get(*node as usize).copied().flatten();
            let top = std::iter::successors(Some(node), above).take(DEEPEST).last();
            top.filter(|&top| above(&top).is_none() && is_of_client(top))
        };
        Self { of_nodes: (0..parents.len()).map(|node| root(node as u32)).collect() }
    }

    /// The client's request that an incoming one was made for; `None`: not known.
    pub(super) fn of(&self, incoming: usize) -> Option<u32> {
        self.of_nodes.get(incoming).copied().flatten()
    }
}
