//! Reports which ends form a connection, and why others have no peer.

use luc_fleet_requests::{ConnectionEnd, PairEvidence, WhyUnpaired};
use serde::Serialize;

use crate::joined_traces::JoinedTraces;

/// Counts of connections, and the ends without a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectionsReport {
    /// Number of ends in all traces.
    pub ends: u64,
    pub paired: PairedByEvidence,
    /// Connections between two hosts.
    pub between_hosts: u64,
    pub unpaired: Vec<UnpairedEnd>,
}

/// Connections by the evidence that pairs their ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PairedByEvidence {
    /// Paired by the host's kernel: unix sockets and pipes.
    pub by_host: u64,
    /// Equal initial sequence numbers of both directions.
    pub by_initial_numbers: u64,
    /// Equal addresses, and sequence numbers that both ends have seen.
    pub by_addresses: u64,
    /// Sequence numbers that both ends have seen, and that chance does not explain.
    pub by_numbers: u64,
}

impl PairedByEvidence {
    #[must_use]
    pub fn all(&self) -> u64 {
        self.by_host + self.by_initial_numbers + self.by_addresses + self.by_numbers
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnpairedEnd {
    pub host: String,
    /// Own address and port.
    pub local: String,
    /// Peer's address and port as this end sees them.
    pub remote: String,
    pub reason: &'static str,
}

pub(super) fn report(joined: &JoinedTraces) -> ConnectionsReport {
    let connections = &joined.connections;
    let mut paired = PairedByEvidence::default();
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
            reason: explain_unpaired(end, *why),
        })
    });
    ConnectionsReport {
        ends: joined.rows.ends.len() as u64,
        paired,
        between_hosts: between_hosts.count() as u64,
        unpaired: unpaired.collect(),
    }
}

fn explain_unpaired(end: &ConnectionEnd, why: WhyUnpaired) -> &'static str {
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
