//! The steps by which ends find their peers.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::sequence_window::{
    SEQUENCE_PERIOD, SequenceWindow, TracedExtent, WindowFit, chance, compare,
};
use crate::host_rows::{ConnectionEnd, EndAddress, EndId};

/// Maximum number of ends that one end is compared with in a step. Addresses and narrow windows of random numbers leave
/// one or two. Rows that leave more are forged, and comparing all would take quadratic time.
const MAX_CANDIDATES: usize = 64;
/// Maximum probability that a pair whose addresses fit as well is chance.
const MAX_CHANCE_WITH_ADDRESSES: f64 = 1e-2;
/// Maximum probability that any of the pairs that only numbers make is chance.
const MAX_CHANCE_ALONE: f64 = 1e-6;

/// Index of a known end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KnownId(pub(super) usize);

/// An end, and the sequence numbers that it has seen.
#[derive(Debug)]
pub(super) struct KnownEnd {
    pub(super) end: ConnectionEnd,
    sent: Option<SequenceWindow>,
    received: Option<SequenceWindow>,
}

impl KnownEnd {
    pub(super) fn new(end: ConnectionEnd, reach: TracedExtent) -> Self {
        Self {
            end,
            sent: SequenceWindow::sent(&end, reach),
            received: SequenceWindow::received(&end, reach),
        }
    }

    fn has_both_initial(&self) -> bool {
        self.end.own_isn.is_some() && self.end.peer_isn.is_some()
    }

    fn windows(&self) -> Option<(SequenceWindow, SequenceWindow)> {
        self.sent.zip(self.received)
    }
}

/// Result of the steps so far for an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerSearchResult {
    Nothing,
    Paired,
    Many,
    Worn,
}

/// Returns the shifts of a pair ([`ConnectionPair::shifts`](super::ConnectionPair::shifts)).
pub(super) fn shifts(a: &KnownEnd, b: &KnownEnd) -> Option<[i64; 2]> {
    let ((a_sent, a_received), (b_sent, b_received)) = (a.windows()?, b.windows()?);
    match (compare(a_sent, b_received), compare(b_sent, a_received)) {
        (WindowFit::Shift(there), WindowFit::Shift(back)) => Some([there, back]),
        _ => None,
    }
}

/// Pairs ends that name each other.
pub(super) fn by_host(known: &[KnownEnd], state: &mut [PeerSearchResult]) -> Vec<[KnownId; 2]> {
    let ids: HashMap<EndId, KnownId> =
        enumerate(known).map(|(id, known)| (known.end.id(), id)).collect();
    let mut choices = Choices::new(known.len());
    for (id, known) in enumerate(known) {
        let other = known.end.peer.and_then(|connection| {
            let host = known.end.host;
            ids.get(&EndId { host, connection })
        });
        if let Some(&other) = other.filter(|&&other| other != id) {
            choices.add(id, other);
        }
    }
    choices.settle(state)
}

/// Pairs ends with the same initial sequence numbers, exchanged.
pub(super) fn by_initial(known: &[KnownEnd], state: &mut [PeerSearchResult]) -> Vec<[KnownId; 2]> {
    let numbers = |end: &ConnectionEnd| end.own_isn.zip(end.peer_isn);
    let mut by_numbers: HashMap<(u32, u32), Vec<KnownId>> = HashMap::new();
    for (id, known) in enumerate(known) {
        if let Some(numbers) = numbers(&known.end) {
            by_numbers.entry(numbers).or_default().push(id);
        }
    }
    let mut choices = Choices::new(known.len());
    for (id, known) in enumerate(known) {
        if let Some((own, peer)) = numbers(&known.end) {
            let others = by_numbers.get(&(peer, own)).map_or(&[][..], Vec::as_slice);
            for &other in others.iter().filter(|&&other| other != id).take(2) {
                choices.add(id, other);
            }
        }
    }
    choices.settle(state)
}

/// Returns the addresses of both ends, if they are of the Internet.
fn addresses(end: &ConnectionEnd) -> Option<(SocketAddr, SocketAddr)> {
    let plain = |address: EndAddress| match address {
        EndAddress::Internet(address) => {
            Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
        }
        EndAddress::Unix(_) | EndAddress::Pipe(_) => None,
    };
    plain(end.local).zip(plain(end.remote))
}

/// Pairs ends whose addresses are each other's, and whose numbers fit.
pub(super) fn by_addresses(
    known: &[KnownEnd],
    state: &mut [PeerSearchResult],
) -> Vec<[KnownId; 2]> {
    let mut by_addresses: HashMap<(SocketAddr, SocketAddr), Vec<KnownId>> = HashMap::new();
    for (id, known) in enumerate(known) {
        if let (PeerSearchResult::Nothing, Some(addresses)) = (state[id.0], addresses(&known.end)) {
            by_addresses.entry(addresses).or_default().push(id);
        }
    }
    let mut choices = Choices::new(known.len());
    for (id, one) in enumerate(known) {
        let (PeerSearchResult::Nothing, Some((local, remote))) = (state[id.0], addresses(&one.end))
        else {
            continue;
        };
        let others = by_addresses.get(&(remote, local)).map_or(&[][..], Vec::as_slice);
        if others.len() > MAX_CANDIDATES {
            choices.give_up(id);
            continue;
        }
        for &other in others {
            let two = &known[other.0];
            let is_same_network =
                (one.end.host, one.end.namespace) == (two.end.host, two.end.namespace);
            // Each network namespace has a loopback of its own.
            if other == id || (local.ip().is_loopback() && !is_same_network) {
                continue;
            }
            let max_chance = MAX_CHANCE_WITH_ADDRESSES / others.len() as f64;
            choices.compare(known, id, other, max_chance);
        }
    }
    choices.settle(state)
}

/// Pairs ends whose numbers fit, and hardly by chance.
pub(super) fn by_numbers(known: &[KnownEnd], state: &mut [PeerSearchResult]) -> Vec<[KnownId; 2]> {
    let mut choices = Choices::new(known.len());
    let rest: Vec<KnownId> = enumerate(known)
        .filter(|(id, known)| state[id.0] == PeerSearchResult::Nothing && known.windows().is_some())
        .map(|(id, _)| id)
        .collect();
    let max_chance = MAX_CHANCE_ALONE / (rest.len() as f64).max(1.0);
    // A pair that chance does not explain has a direction whose windows together are at most this wide.
    let max_width = (SEQUENCE_PERIOD as f64 * max_chance.sqrt()) as u64;
    let mut receivers: Vec<(u32, KnownId)> = rest
        .iter()
        .filter_map(|&id| {
            let window = known[id.0].received?;
            (window.length <= max_width).then_some((window.origin, id))
        })
        .collect();
    receivers.sort_unstable();
    for &id in &rest {
        let Some(sent) = known[id.0].sent.filter(|sent| sent.length <= max_width) else {
            continue;
        };
        // Windows of receivers that begin before the sender's may reach into it.
        let from = sent.origin.wrapping_sub(max_width as u32);
        let width = max_width + sent.length;
        let first = receivers.partition_point(|&(origin, _)| origin < from);
        let all = receivers[first..].iter().chain(&receivers[..first]);
        let near = all.take_while(|&&(origin, _)| u64::from(origin.wrapping_sub(from)) <= width);
        for (count, &(_, other)) in near.filter(|&&(_, other)| other != id).enumerate() {
            if count == MAX_CANDIDATES {
                choices.give_up(id);
                break;
            }
            choices.compare(known, id, other, max_chance);
            choices.compare(known, other, id, max_chance);
        }
    }
    choices.settle(state)
}

fn enumerate(known: &[KnownEnd]) -> impl Iterator<Item = (KnownId, &KnownEnd)> {
    (0..).map(KnownId).zip(known)
}

/// By known end: the ends that may be its peer.
struct Choices(Vec<Choice>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Nothing,
    Worn,
    One(KnownId),
    Many,
}

impl Choices {
    fn new(length: usize) -> Self {
        Self(vec![Choice::Nothing; length])
    }

    fn add(&mut self, id: KnownId, other: KnownId) {
        self.0[id.0] = match self.0[id.0] {
            Choice::Nothing => Choice::One(other),
            Choice::One(same) if same == other => Choice::One(same),
            _ => Choice::Many,
        };
    }

    /// Adds another end that may fit, too, but nobody can know.
    fn add_worn(&mut self, id: KnownId) {
        self.0[id.0] = match self.0[id.0] {
            Choice::Nothing | Choice::Worn => Choice::Worn,
            Choice::One(_) | Choice::Many => Choice::Many,
        };
    }

    fn give_up(&mut self, id: KnownId) {
        self.0[id.0] = Choice::Many;
    }

    /// Adds the other end if both directions fit and chance does not explain that.
    fn compare(&mut self, known: &[KnownEnd], id: KnownId, other: KnownId, max_chance: f64) {
        let (one, two) = (&known[id.0], &known[other.0]);
        // Initial numbers have decided these.
        if one.has_both_initial() && two.has_both_initial() {
            return;
        }
        let (Some((sent, received)), Some((their_sent, their_received))) =
            (one.windows(), two.windows())
        else {
            return;
        };
        let fits = [compare(sent, their_received), compare(their_sent, received)];
        let is_by_chance = chance(sent, their_received) * chance(their_sent, received) > max_chance;
        if fits.contains(&WindowFit::Apart) {
            return;
        }
        if fits.contains(&WindowFit::TooWide) || is_by_chance {
            self.add_worn(id);
        } else {
            self.add(id, other);
        }
    }

    /// Returns the pairs of ends that are each other's only choice.
    fn settle(self, state: &mut [PeerSearchResult]) -> Vec<[KnownId; 2]> {
        let mut pairs = Vec::new();
        for (id, &choice) in (0..).map(KnownId).zip(&self.0) {
            state[id.0] = match choice {
                Choice::Nothing => continue,
                Choice::Worn => PeerSearchResult::Worn,
                Choice::One(other) if self.0[other.0] == Choice::One(id) => {
                    if id < other {
                        pairs.push([id, other]);
                    }
                    PeerSearchResult::Paired
                }
                Choice::One(_) | Choice::Many => PeerSearchResult::Many,
            };
        }
        pairs
    }
}
