//! Which ends are one connection, and why others have no peer.

use luc_fleet_requests::{End, PairEvidence, WhyUnpaired};
use serde::Serialize;

use crate::joined::Joined;

/// How many ends have a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectionsReport {
    /// Ends in all traces.
    pub ends: u64,
    /// Connections whose two ends are known.
    pub paired: Paired,
    /// Those of them that are between two hosts.
    pub between_hosts: u64,
    /// The ends without a peer.
    pub unpaired: Vec<UnpairedEnd>,
}

/// Connections by what says that two ends belong together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Paired {
    /// The host's kernel: unix sockets.
    pub by_host: u64,
    /// Both initial sequence numbers.
    pub by_initial_numbers: u64,
    /// Addresses, and numbers that both have seen.
    pub by_addresses: u64,
    /// Numbers that both have seen, which chance does not explain.
    pub by_numbers: u64,
}

impl Paired {
    #[must_use]
    pub fn all(&self) -> u64 {
        self.by_host + self.by_initial_numbers + self.by_addresses + self.by_numbers
    }
}

/// An end without a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnpairedEnd {
    pub host: String,
    /// Its address and port.
    pub local: String,
    /// The peer's, as it sees them.
    pub remote: String,
    pub reason: &'static str,
}

pub(super) fn report(joined: &Joined) -> ConnectionsReport {
    let connections = &joined.connections;
    let mut paired = Paired::default();
    for pair in &connections.pairs {
        *match pair.evidence {
            PairEvidence::Host => &mut paired.by_host,
            PairEvidence::InitialNumbers => &mut paired.by_initial_numbers,
            PairEvidence::Addresses => &mut paired.by_addresses,
            PairEvidence::Numbers => &mut paired.by_numbers,
        } += 1;
    }
    let between_hosts =
        connections.pairs.iter().filter(|pair| pair.ends[0].host != pair.ends[1].host);
    let unpaired = connections.unpaired.iter().filter_map(|(id, why)| {
        let end = joined.ends.get(id)?;
        Some(UnpairedEnd {
            host: joined.name(end.host),
            local: joined.address(end.local),
            remote: joined.address(end.remote),
            reason: reason(end, *why),
        })
    });
    ConnectionsReport {
        ends: joined.rows.ends.len() as u64,
        paired,
        between_hosts: between_hosts.count() as u64,
        unpaired: unpaired.collect(),
    }
}

fn reason(end: &End, why: WhyUnpaired) -> &'static str {
    let has_numbers = end.local.is_within_host() || end.own_isn.is_some() || end.at_start.is_some();
    match why {
        WhyUnpaired::NoPeer if !has_numbers => {
            "older than the trace, and its numbers are not known"
        }
        WhyUnpaired::NoPeer => "no trace has the other end",
        WhyUnpaired::Ambiguous => "several ends fit",
        WhyUnpaired::Worn => "an end fits, but its numbers say too little",
        WhyUnpaired::Contradictory => "its rows contradict each other",
    }
}
