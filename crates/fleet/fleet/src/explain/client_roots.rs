//! Finds the client's request at the top of each tree of requests.

use super::fleet_requests::FleetRequests;
use super::forest_nodes::{ProcessKey, servers};

/// Maximum depth of a tree of requests.
const MAX_DEPTH: usize = 64;

/// Clients' requests at the top of the trees.
#[derive(Debug)]
pub(super) struct ClientRoots {
    /// Root of each node of [`RequestTrees`](super::fleet_requests::RequestTrees).
    of_nodes: Vec<Option<u32>>,
}

impl ClientRoots {
    pub(super) fn new(found: &FleetRequests<'_>) -> Self {
        let (requests, parents) = (&found.requests, &found.trees.parents);
        let servers = servers(requests);
        // A server's request without a known cause may be made for any.
        let is_of_client = |node: u32| {
            let number = (node as usize).checked_sub(requests.incoming.len());
            let sent = number.and_then(|number| requests.outgoing.get(number));
            sent.is_some_and(|sent| !servers.contains(&ProcessKey::of(&sent.exchange)))
        };
        let root = |node: u32| {
            let above = |node: &u32| parents.get(*node as usize).copied().flatten();
            let top = std::iter::successors(Some(node), above).take(MAX_DEPTH).last();
            top.filter(|&top| above(&top).is_none() && is_of_client(top))
        };
        Self { of_nodes: (0..parents.len()).map(|node| root(node as u32)).collect() }
    }

    /// Client's request that an incoming one was made for; `None`: unknown.
    pub(super) fn of(&self, incoming: usize) -> Option<u32> {
        self.of_nodes.get(incoming).copied().flatten()
    }
}
