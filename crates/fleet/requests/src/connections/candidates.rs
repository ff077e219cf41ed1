//! The three steps by which ends find their peers.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::window::{Fit, ROUND, Reach, Window, chance, compare};
use crate::rows::{Address, End, EndId};

/// The most ends that one end is compared with in a step. Addresses and narrow windows of random numbers leave one or
/// two; rows that leave more are forged, and comparing all would take quadratic time.
const MOST: usize = 64;
/// By how much chance may explain a pair whose addresses fit as well.
const CHANCE_WITH_ADDRESSES: f64 = 1e-2;
/// By how much chance may explain any of the pairs that only numbers make.
const CHANCE_ALONE: f64 = 1e-6;

/// An end, and what its rows show of it.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) end: End,
    sent: Option<Window>,
    received: Option<Window>,
}

impl Known {
    pub(super) fn of(end: End, reach: Reach) -> Self {
        Self { end, sent: Window::sent(&end, reach), received: Window::received(&end, reach) }
    }

    fn has_both_initial(&self) -> bool {
        self.end.own_isn.is_some() && self.end.peer_isn.is_some()
    }

    fn windows(&self) -> Option<(Window, Window)> {
        self.sent.zip(self.received)
    }
}

/// What became of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Pair(usize),
    Many,
    Worn,
}

/// What to add to offsets that the second and the first end received, to have what the other sent.
pub(super) fn shifts(a: &Known, b: &Known) -> Option<[i64; 2]> {
    let ((a_sent, a_received), (b_sent, b_received)) = (a.windows()?, b.windows()?);
    match (compare(a_sent, b_received), compare(b_sent, a_received)) {
        (Fit::Shift(there), Fit::Shift(back)) => Some([there, back]),
        _ => None,
    }
}

/// Ends of which each is the other's peer.
pub(super) fn by_host(known: &[Known], state: &mut [Found]) -> Vec<(usize, usize)> {
    let places: HashMap<EndId, usize> =
        known.iter().enumerate().map(|(at, known)| (known.end.id(), at)).collect();
    let mut choices = Choices::new(known.len());
    for (at, known) in known.iter().enumerate() {
        let other = known.end.peer.and_then(|connection| {
            let host = known.end.host;
            places.get(&EndId { host, connection })
        });
        if let Some(&other) = other.filter(|&&other| other != at) {
            choices.add(at, other);
        }
    }
    choices.settle(state)
}

/// Both initial sequence numbers, exchanged.
pub(super) fn by_initial(known: &[Known], state: &mut [Found]) -> Vec<(usize, usize)> {
    let numbers = |end: &End| end.own_isn.zip(end.peer_isn);
    let mut by_numbers: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
    for (at, known) in known.iter().enumerate() {
        if let Some(numbers) = numbers(&known.end) {
            by_numbers.entry(numbers).or_default().push(at);
        }
    }
    let mut choices = Choices::new(known.len());
    for (at, known) in known.iter().enumerate() {
        if let Some((own, peer)) = numbers(&known.end) {
            let others = by_numbers.get(&(peer, own)).map_or(&[][..], Vec::as_slice);
            for &other in others.iter().filter(|&&other| other != at).take(2) {
                choices.add(at, other);
            }
        }
    }
    choices.settle(state)
}

/// The addresses of both ends, if they are of the Internet.
fn addresses(end: &End) -> Option<(SocketAddr, SocketAddr)> {
    let plain = |address: Address| match address {
        Address::Internet(address) => {
            Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
        }
        Address::Unix(_) | Address::Pipe(_) => None,
    };
    plain(end.local).zip(plain(end.remote))
}

/// Addresses that are each other's, and numbers that fit.
pub(super) fn by_addresses(known: &[Known], state: &mut [Found]) -> Vec<(usize, usize)> {
    let mut by_addresses: HashMap<(SocketAddr, SocketAddr), Vec<usize>> = HashMap::new();
    for (at, known) in known.iter().enumerate() {
        if let (Found::Nothing, Some(addresses)) = (state[at], addresses(&known.end)) {
            by_addresses.entry(addresses).or_default().push(at);
        }
    }
    let mut choices = Choices::new(known.len());
    for (at, one) in known.iter().enumerate() {
        let (Found::Nothing, Some((local, remote))) = (state[at], addresses(&one.end)) else {
            continue;
        };
        let others = by_addresses.get(&(remote, local)).map_or(&[][..], Vec::as_slice);
        if others.len() > MOST {
            choices.give_up(at);
            continue;
        }
        for &other in others {
            let two = &known[other];
            let is_same_network =
                (one.end.host, one.end.namespace) == (two.end.host, two.end.namespace);
            // Each network namespace has a loopback of its own.
            if other == at || (local.ip().is_loopback() && !is_same_network) {
                continue;
            }
            choices.compare(known, at, other, CHANCE_WITH_ADDRESSES / others.len() as f64);
        }
    }
    choices.settle(state)
}

/// Numbers that fit, and hardly by chance.
pub(super) fn by_numbers(known: &[Known], state: &mut [Found]) -> Vec<(usize, usize)> {
    let mut choices = Choices::new(known.len());
    let rest: Vec<usize> = (0..known.len())
        .filter(|&at| state[at] == Found::Nothing && known[at].windows().is_some())
        .collect();
    let chance = CHANCE_ALONE / (rest.len() as f64).max(1.0);
    // A pair that chance does not explain has a direction whose windows together are at most this wide.
    let most_width = (ROUND as f64 * chance.sqrt()) as u64;
    let mut receivers: Vec<(u32, usize)> = rest
        .iter()
        .filter_map(|&at| {
            let window = known[at].received?;
            (window.length <= most_width).then_some((window.origin, at))
        })
        .collect();
    receivers.sort_unstable();
    for &at in &rest {
        let Some(sent) = known[at].sent.filter(|sent| sent.length <= most_width) else {
            continue;
        };
        // Windows of receivers that begin before the sender's may reach into it.
        let from = sent.origin.wrapping_sub(most_width as u32);
        let width = most_width + sent.length;
        let first = receivers.partition_point(|&(origin, _)| origin < from);
        let all = receivers[first..].iter().chain(&receivers[..first]);
        let near = all.take_while(|&&(origin, _)| u64::from(origin.wrapping_sub(from)) <= width);
        for (count, &(_, other)) in near.filter(|&&(_, other)| other != at).enumerate() {
            if count == MOST {
                choices.give_up(at);
                break;
            }
            choices.compare(known, at, other, chance);
            choices.compare(known, other, at, chance);
        }
    }
    choices.settle(state)
}

/// The ends that each end may belong to.
struct Choices(Vec<Choice>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Nothing,
    Worn,
    One(usize),
    Many,
}

impl Choices {
    fn new(length: usize) -> Self {
        Self(vec![Choice::Nothing; length])
    }

    fn add(&mut self, at: usize, other: usize) {
        self.0[at] = match self.0[at] {
            Choice::Nothing => Choice::One(other),
            Choice::One(same) if same == other => Choice::One(same),
            _ => Choice::Many,
        };
    }

    /// Another end may fit, too, but nobody can know.
    fn add_worn(&mut self, at: usize) {
        self.0[at] = match self.0[at] {
            Choice::Nothing | Choice::Worn => Choice::Worn,
            Choice::One(_) | Choice::Many => Choice::Many,
        };
    }

    fn give_up(&mut self, at: usize) {
        self.0[at] = Choice::Many;
    }

    /// Adds the other end if both directions fit and chance does not explain that.
    fn compare(&mut self, known: &[Known], at: usize, other: usize, most_chance: f64) {
        let (one, two) = (&known[at], &known[other]);
        // Of these the first step has decided.
        if one.has_both_initial() && two.has_both_initial() {
            return;
        }
        let (Some((sent, received)), Some((their_sent, their_received))) =
            (one.windows(), two.windows())
        else {
            return;
        };
        let fits = [compare(sent, their_received), compare(their_sent, received)];
        let is_by_chance =
            chance(sent, their_received) * chance(their_sent, received) > most_chance;
        if fits.contains(&Fit::Apart) {
            return;
        }
        if fits.contains(&Fit::TooWide) || is_by_chance {
            self.add_worn(at);
        } else {
            self.add(at, other);
        }
    }

    /// The pairs of ends that are each other's only choice.
    fn settle(self, state: &mut [Found]) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        for (at, &choice) in self.0.iter().enumerate() {
            state[at] = match choice {
                Choice::Nothing => continue,
                Choice::Worn => Found::Worn,
                Choice::One(other) if self.0[other] == Choice::One(at) => {
                    if at < other {
                        pairs.push((at, other));
                    }
                    Found::Pair(other)
                }
                Choice::One(_) | Choice::Many => Found::Many,
            };
        }
        pairs
    }
}
