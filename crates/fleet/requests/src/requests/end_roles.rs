//! Roles of the ends of a connection: which one asks, and which one answers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;

use luc_fleet_clocks::HostId;

use crate::connections::Connections;
use crate::host_rows::{ConnectionEnd, ConnectionOpener, EndAddress, EndId};

/// Role of an end in the exchanges of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndRole {
    /// It opened the connection: its bytes are requests.
    Client,
    /// It accepted the connection: its bytes are answers.
    Server,
}

impl EndRole {
    fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// An address in a network namespace of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct NetworkAddress {
    host: HostId,
    namespace: u64,
    address: EndAddress,
}

impl NetworkAddress {
    /// `None` for an end without an address of its own.
    fn new(end: &ConnectionEnd, address: EndAddress) -> Option<Self> {
        let address = match address {
            EndAddress::Internet(address) => {
                SocketAddr::new(address.ip().to_canonical(), address.port()).into()
            }
            EndAddress::Unix(Some(_)) => address,
            EndAddress::Unix(None) | EndAddress::Pipe(_) => return None,
        };
        Some(Self { host: end.host, namespace: end.namespace, address })
    }
}

type Neighbours = HashMap<NetworkAddress, BTreeSet<NetworkAddress>>;

/// Ends whose rows do not contradict each other, and their roles.
#[derive(Debug)]
pub(super) struct KnownEnds {
    pub(super) by_id: BTreeMap<EndId, ConnectionEnd>,
    /// Roles that are known.
    pub(super) roles: HashMap<EndId, EndRole>,
}

/// Infers the roles of ends.
///
/// The end that called `connect` is the client. If the connection is older than the trace, nobody has seen that. Then
/// an address that accepted other connections, or at which several peers are connected, is a server's.
pub(super) fn infer_roles(ends: &[ConnectionEnd], connections: &Connections) -> KnownEnds {
    // 1. Ends, without those whose rows contradict each other.
    let mut by_id: BTreeMap<EndId, ConnectionEnd> = BTreeMap::new();
    let mut contradictory = BTreeSet::new();
    for &end in ends {
        if *by_id.entry(end.id()).or_insert(end) != end {
            contradictory.insert(end.id());
        }
    }
    by_id.retain(|id, _| !contradictory.contains(id));
    // 2. Addresses that accepted a connection, peers of each local address, and local addresses connected to each peer.
    let mut listening = BTreeSet::new();
    let (mut peers, mut callers) = (Neighbours::new(), Neighbours::new());
    for end in by_id.values() {
        let local = NetworkAddress::new(end, end.local);
        if end.opener == Some(ConnectionOpener::Peer) {
            listening.extend(local);
        }
        let (Some(local), Some(remote)) = (local, NetworkAddress::new(end, end.remote)) else {
            continue;
        };
        peers.entry(local).or_default().insert(remote);
        callers.entry(remote).or_default().insert(local);
    }
    let has_several = |of: &Neighbours, address: Option<NetworkAddress>| {
        address.and_then(|address| of.get(&address)).is_some_and(|all| all.len() > 1)
    };
    // 3. Roles by what each end shows.
    let role_of = |end: &ConnectionEnd| {
        let local = NetworkAddress::new(end, end.local);
        let remote = NetworkAddress::new(end, end.remote);
        match end.opener {
            Some(ConnectionOpener::This) => return Some(EndRole::Client),
            Some(ConnectionOpener::Peer) => return Some(EndRole::Server),
            None if local.is_some_and(|local| listening.contains(&local)) => {
                return Some(EndRole::Server);
            }
            None => {}
        }
        match (has_several(&peers, local), has_several(&callers, remote)) {
            (true, false) => Some(EndRole::Server),
            (false, true) => Some(EndRole::Client),
            _ => None,
        }
    };
    let mut roles: HashMap<EndId, EndRole> =
        by_id.iter().filter_map(|(&id, end)| Some((id, role_of(end)?))).collect();
    // 4. Roles by what the other end shows.
    for pair in &connections.pairs {
        let [a, b] = pair.ends;
        let of_opener =
            pair.client.map(|client| if client == a { EndRole::Client } else { EndRole::Server });
        let found = match (roles.get(&a).copied(), roles.get(&b).copied()) {
            _ if of_opener.is_some() => of_opener,
            (Some(of_a), Some(of_b)) => (of_a != of_b).then_some(of_a),
            (Some(of_a), None) => Some(of_a),
            (None, of_b) => of_b.map(EndRole::other),
        };
        for (end, role) in [(a, found), (b, found.map(EndRole::other))] {
            match role {
                Some(role) => roles.insert(end, role),
                None => roles.remove(&end),
            };
        }
    }
    KnownEnds { by_id, roles }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::{ConnectionPair, PairEvidence};

    fn end(
        host: u32,
        connection: u64,
        local: u16,
        remote: u16,
        opener: Option<ConnectionOpener>,
    ) -> ConnectionEnd {
        let address = |port| SocketAddr::from(([10, 0, 0, 1], port)).into();
        ConnectionEnd {
            host: HostId(host),
            connection,
            namespace: 1,
            local: address(local),
            remote: address(remote),
            peer: None,
            own_isn: None,
            peer_isn: None,
            at_start: None,
            opener,
            opened_ns: None,
            closed_ns: None,
        }
    }

    fn role_of(ends: &[ConnectionEnd], pairs: &[(usize, usize)], which: usize) -> Option<EndRole> {
        let pairs = pairs.iter().map(|&(a, b)| ConnectionPair {
            ends: [ends[a].id(), ends[b].id()],
            client: None,
            shifts: [0, 0],
            evidence: PairEvidence::Addresses,
        });
        let connections = Connections { pairs: pairs.collect(), unpaired: Vec::new() };
        infer_roles(ends, &connections).roles.get(&ends[which].id()).copied()
    }

    #[test]
    fn who_connects_is_the_client() {
        let ends = [
            end(0, 1, 5000, 80, Some(ConnectionOpener::This)),
            end(1, 1, 80, 5000, None),
            end(1, 2, 80, 5001, Some(ConnectionOpener::Peer)),
            // Older than the trace, at the same address as one that was seen to be accepted.
            end(1, 3, 80, 5002, None),
            // Nothing is known of it.
            end(2, 1, 7000, 7001, None),
        ];
        assert_eq!(role_of(&ends, &[], 0), Some(EndRole::Client));
        assert_eq!(role_of(&ends, &[(0, 1)], 1), Some(EndRole::Server));
        assert_eq!(role_of(&ends, &[], 3), Some(EndRole::Server));
        assert_eq!(role_of(&ends, &[], 4), None);
    }

    #[test]
    fn an_address_with_several_peers_is_a_servers() {
        let ends =
            [end(0, 1, 80, 5000, None), end(0, 2, 80, 5001, None), end(1, 1, 5000, 80, None)];
        assert_eq!(role_of(&ends, &[(0, 2)], 0), Some(EndRole::Server));
        assert_eq!(role_of(&ends, &[(0, 2)], 2), Some(EndRole::Client));
        assert_eq!(role_of(&ends, &[], 2), None);
        // From both sides: nobody knows.
        let ends = [
            end(0, 1, 80, 5000, None),
            end(0, 2, 80, 5001, None),
            end(1, 1, 5000, 80, None),
            end(1, 2, 5000, 81, None),
        ];
        assert_eq!(role_of(&ends, &[(0, 2)], 0), None);
    }

    #[test]
    fn rows_that_contradict_each_other_have_no_role() {
        let ends = [
            end(0, 1, 80, 5000, Some(ConnectionOpener::Peer)),
            end(0, 1, 80, 5000, Some(ConnectionOpener::This)),
        ];
        assert_eq!(role_of(&ends, &[], 0), None);
    }
}
