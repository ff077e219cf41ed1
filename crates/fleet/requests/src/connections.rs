//! Which two ends are one connection.

mod candidates;
mod window;

use std::collections::{BTreeMap, HashMap};

use crate::rows::{End, EndId, Message, Opener, Packet};
use candidates::{Found, Known};

/// What says that two ends are one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PairEvidence {
    /// The host's kernel says so: of connections within a host.
    Host,
    /// Both initial sequence numbers, 64 bits that NAT and proxies of layer 4 keep.
    InitialNumbers,
    /// Each has the other's address, and what one sent the other may have received, in both directions.
    Addresses,
    /// What one sent the other may have received, in both directions, and chance does not explain it.
    Numbers,
}

/// A connection whose two ends are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionPair {
    /// The ends, in order.
    pub ends: [EndId; 2],
    /// Which of them opened it, where either has seen that.
    pub client: Option<EndId>,
    /// An offset that the other end received, plus this, is the offset that this end sent: 0 if both count from the
    /// initial sequence number.
    pub shifts: [i64; 2],
    /// How that is known.
    pub evidence: PairEvidence,
}

/// Why an end has no peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WhyUnpaired {
    /// No other end fits: the peer's host has no trace.
    NoPeer,
    /// Several ends fit, or one fits that fits several.
    Ambiguous,
    /// One fits, but so much has passed that its sequence numbers say too little: they came round, or are likely to
    /// overlap by chance.
    Worn,
    /// Rows of this number contradict each other.
    Contradictory,
}

/// The connections of many hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connections {
    /// Those whose ends are both known, in order.
    pub pairs: Vec<ConnectionPair>,
    /// The other ends, in order, and why.
    pub unpaired: Vec<(EndId, WhyUnpaired)>,
}

impl Connections {
    /// Pairs the ends that many hosts have recorded; both ends may be on one host. What messages and packets show of
    /// ends that are older than the trace is used as well. Nothing is guessed: where several ends fit, none is taken.
    ///
    /// Connections within a host name their other ends. The other ends are tried in three steps. Both initial sequence numbers, exchanged, are the connection's identity. Of ends
    /// that lack one, both directions must fit at once: the numbers that one sent from the start of its trace on, and
    /// those that the other received, overlap or touch, and the addresses are each other's. Where NAT has changed
    /// these, the numbers alone count, if less than one in a million such pairs of all ends would fit by chance.
    #[must_use]
    pub fn pair(ends: &[End], messages: &[Message], packets: &[Packet]) -> Self {
        let mut found = Self::default();
        let reaches = window::reaches(messages, packets);
        let mut by_id: BTreeMap<EndId, (End, bool)> = BTreeMap::new();
        for &end in ends {
            let row = by_id.entry(end.id()).or_insert((end, false));
            // The same row twice says nothing new.
            row.1 |= row.0 != end;
        }
        let mut known = Vec::with_capacity(by_id.len());
        for (id, (end, is_contradictory)) in by_id {
            if is_contradictory {
                found.unpaired.push((id, WhyUnpaired::Contradictory));
            } else {
                known.push(Known::of(end, reaches.get(&id).copied().unwrap_or_default()));
            }
        }
        let mut state = vec![Found::Nothing; known.len()];
        let steps = [
            (PairEvidence::Host, candidates::by_host as Step),
            (PairEvidence::InitialNumbers, candidates::by_initial),
            (PairEvidence::Addresses, candidates::by_addresses),
            (PairEvidence::Numbers, candidates::by_numbers),
        ];
        for (evidence, step) in steps {
            let pairs = step(&known, &mut state);
            let pairs = pairs.into_iter().filter_map(|(a, b)| pair(&known[a], &known[b], evidence));
            found.pairs.extend(pairs);
        }
        for (known, state) in known.iter().zip(&state) {
            let why = match state {
                Found::Pair(_) => continue,
                Found::Nothing => WhyUnpaired::NoPeer,
                Found::Many => WhyUnpaired::Ambiguous,
                Found::Worn => WhyUnpaired::Worn,
            };
            found.unpaired.push((known.end.id(), why));
        }
        found.pairs.sort_unstable_by_key(|pair| pair.ends);
        found.unpaired.sort_unstable();
        found
    }

    /// The place of each paired end: which pair, and which of its ends.
    pub(crate) fn places(&self) -> HashMap<EndId, (usize, usize)> {
        let ends = self.pairs.iter().enumerate();
        ends.flat_map(|(at, pair)| [(pair.ends[0], (at, 0)), (pair.ends[1], (at, 1))]).collect()
    }
}

/// Pairs ends that are not paired yet, and notes what became of each.
type Step = fn(&[Known], &mut [Found]) -> Vec<(usize, usize)>;

/// The pair of two ends that fit.
fn pair(a: &Known, b: &Known, evidence: PairEvidence) -> Option<ConnectionPair> {
    let (a, b) = if a.end.id() < b.end.id() { (a, b) } else { (b, a) };
    let client = match (a.end.opener, b.end.opener) {
        (Some(Opener::This), None | Some(Opener::Peer)) | (None, Some(Opener::Peer)) => {
            Some(a.end.id())
        }
        (Some(Opener::Peer), None | Some(Opener::This)) | (None, Some(Opener::This)) => {
            Some(b.end.id())
        }
        // Both at once, or neither: nobody is the client.
        _ => None,
    };
    let shifts = match evidence {
        PairEvidence::Host => [0, 0],
        _ => candidates::shifts(a, b)?,
    };
    Some(ConnectionPair { ends: [a.end.id(), b.end.id()], client, shifts, evidence })
}
