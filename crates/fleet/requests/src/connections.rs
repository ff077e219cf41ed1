//! Connections: pairs of ends.

mod find_peers;
mod sequence_window;

use std::collections::{BTreeMap, HashMap};

use crate::host_rows::{
    ByteDirection, ConnectionEnd, ConnectionOpener, EndId, MessageRow, PacketRow,
};
use find_peers::{KnownEnd, KnownId, PeerSearchResult};

/// Evidence that two ends are one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PairEvidence {
    /// The host's kernel: of connections within a host.
    Host,
    /// Both initial sequence numbers, 64 bits that NAT and proxies of layer 4 keep.
    InitialNumbers,
    /// Each has the other's address, and may have received what the other sent.
    Addresses,
    /// Each may have received what the other sent, and chance does not explain that.
    Numbers,
}

/// A connection whose two ends are known, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionPair {
    pub ends: [EndId; 2],
    /// The end that opened it, where either has seen that.
    pub client: Option<EndId>,
    /// By end: its offset of a byte that it sent, less the other end's offset of that byte. 0 if both count from the
    /// initial sequence number.
    pub shifts: [i64; 2],
    pub evidence: PairEvidence,
}

/// Reason why an end has no peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WhyUnpaired {
    /// No other end fits: the peer's host has no trace.
    NoPeer,
    /// Several ends fit, or one fits that fits several.
    Ambiguous,
    /// One fits, but after too many bytes. Its sequence numbers came round, or are likely to overlap by chance.
    Worn,
    /// Rows of this end contradict each other.
    Contradictory,
}

/// The connections of many hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connections {
    /// Connections whose ends are both known, in order.
    pub pairs: Vec<ConnectionPair>,
    /// Ends without a known peer, in order.
    pub unpaired: Vec<(EndId, WhyUnpaired)>,
}

impl Connections {
    /// Pairs the ends that many hosts have recorded; both ends may be on one host. Messages and packets show the
    /// numbers of ends that are older than the trace. Nothing is guessed: where several ends fit, none is taken.
    ///
    /// Connections within a host name their other ends. The others are tried in three steps.
    ///
    /// 1. Both initial sequence numbers, exchanged, are the connection's identity.
    /// 2. Of ends that lack one, the addresses are each other's, and the numbers of both directions fit. The numbers
    ///    that one end sent since its trace began, and those that the other received, overlap or touch.
    /// 3. Where NAT has changed addresses, the numbers alone count, if chance explains less than one in a million
    ///    pairs.
    #[must_use]
    pub fn pair(ends: &[ConnectionEnd], messages: &[MessageRow], packets: &[PacketRow]) -> Self {
        let mut found = Self::default();
        let reaches = sequence_window::reaches(messages, packets);
        let mut by_id: BTreeMap<EndId, (ConnectionEnd, bool)> = BTreeMap::new();
        for &end in ends {
            let (first, is_contradictory) = by_id.entry(end.id()).or_insert((end, false));
            // The same row twice says nothing new.
            *is_contradictory |= *first != end;
        }
        let mut known = Vec::with_capacity(by_id.len());
        for (id, (end, is_contradictory)) in by_id {
            if is_contradictory {
                found.unpaired.push((id, WhyUnpaired::Contradictory));
            } else {
                known.push(KnownEnd::new(end, reaches.get(&id).copied().unwrap_or_default()));
            }
        }
        let mut state = vec![PeerSearchResult::Nothing; known.len()];
        let steps = [
            (PairEvidence::Host, find_peers::by_host as Step),
            (PairEvidence::InitialNumbers, find_peers::by_initial),
            (PairEvidence::Addresses, find_peers::by_addresses),
            (PairEvidence::Numbers, find_peers::by_numbers),
        ];
        for (evidence, step) in steps {
            let pairs = step(&known, &mut state);
            let pairs = pairs.iter().filter_map(|ids| pair(ids.map(|id| &known[id.0]), evidence));
            found.pairs.extend(pairs);
        }
        for (known, state) in known.iter().zip(&state) {
            let why = match state {
                PeerSearchResult::Paired => continue,
                PeerSearchResult::Nothing => WhyUnpaired::NoPeer,
                PeerSearchResult::Many => WhyUnpaired::Ambiguous,
                PeerSearchResult::Worn => WhyUnpaired::Worn,
            };
            found.unpaired.push((known.end.id(), why));
        }
        found.pairs.sort_unstable_by_key(|pair| pair.ends);
        found.unpaired.sort_unstable();
        found
    }

    /// Returns the place of each paired end.
    pub(crate) fn places(&self) -> HashMap<EndId, EndPlace> {
        let ends = self.pairs.iter().enumerate();
        ends.flat_map(|(pair, ConnectionPair { ends: [a, b], .. })| {
            [(*a, EndPlace { pair, side: 0 }), (*b, EndPlace { pair, side: 1 })]
        })
        .collect()
    }
}

/// Place of an end in [`Connections::pairs`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndPlace {
    pub(crate) pair: usize,
    /// Index of the end in [`ConnectionPair::ends`].
    pub(crate) side: usize,
}

impl EndPlace {
    pub(crate) fn other_side(self) -> usize {
        1 - self.side
    }

    /// Returns the stream of the bytes that the end sent or received.
    pub(crate) fn stream(self, way: ByteDirection) -> StreamIndex {
        StreamIndex(2 * self.pair + (self.side ^ usize::from(way == ByteDirection::Received)))
    }
}

/// One direction of a connection: twice the index in [`Connections::pairs`], plus that of the sender in
/// [`ConnectionPair::ends`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamIndex(usize);

impl StreamIndex {
    pub(crate) fn pair(self) -> usize {
        self.0 / 2
    }

    pub(crate) fn sender(self) -> usize {
        self.0 % 2
    }

    pub(crate) fn receiver(self) -> usize {
        1 - self.sender()
    }
}

/// A function that pairs ends which are not paired yet, and notes what became of each.
type Step = fn(&[KnownEnd], &mut [PeerSearchResult]) -> Vec<[KnownId; 2]>;

/// Returns the pair of two ends that fit.
fn pair([a, b]: [&KnownEnd; 2], evidence: PairEvidence) -> Option<ConnectionPair> {
    let (a, b) = if a.end.id() < b.end.id() { (a, b) } else { (b, a) };
    let client = match (a.end.opener, b.end.opener) {
        (Some(ConnectionOpener::This), None | Some(ConnectionOpener::Peer))
        | (None, Some(ConnectionOpener::Peer)) => Some(a.end.id()),
        (Some(ConnectionOpener::Peer), None | Some(ConnectionOpener::This))
        | (None, Some(ConnectionOpener::This)) => Some(b.end.id()),
        // Both at once, or neither: nobody is the client.
        _ => None,
    };
    let shifts = match evidence {
        PairEvidence::Host => [0, 0],
        _ => find_peers::shifts(a, b)?,
    };
    Some(ConnectionPair { ends: [a.end.id(), b.end.id()], client, shifts, evidence })
}
