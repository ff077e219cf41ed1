//! Processes whose requests make the same number of calls each: which call a request lacks tells whose an unknown one is.

mod exclude;
mod order;

use std::collections::{HashMap, HashSet};

use super::HandOver;
use super::forward::Span;

/// The share of requests that may have made another number of calls than the others.
const IRREGULAR: f64 = 0.01;
/// With fewer calls whose cause is known nothing is told. Of so many the order must tell it right before it is asked for
/// others.
const FEWEST: usize = 50;
/// So large a share of them.
const RIGHT: f64 = 0.99;
/// The most calls in a row that are told by how many are missing, and the most requests that one may be for.
const MOST: usize = 64;
/// With more requests open at once that lack a call, none of them is excluded.
const MOST_OPEN: usize = 1_000;
/// What is found may tell more, so often at most.
const PASSES: usize = 16;

/// A call of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) asked_ns: u64,
    /// When its answer had been read; without one, when it was sent.
    pub(super) answered_ns: u64,
    /// The request that it was made for, and what says so, if that is known.
    pub(super) cause: Option<(usize, HandOver)>,
}

/// What regularity says of the calls of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Whether what is known contradicts itself.
    pub(super) is_contradictory: bool,
    /// Places of calls whose cause is not believed any more.
    pub(super) doubted: Vec<usize>,
    /// Places of calls without a cause, which one they have, and what says so.
    pub(super) found: Vec<(usize, usize, HandOver)>,
}

/// Of calls in the order in which they were sent, and of the numbers of the requests that the process received, in their
/// order. Says nothing where requests make different numbers of calls.
///
/// Where more requests than a few have more calls than others by effects and wake-ups, these are wrong for this process:
/// then only those are believed that the order of the queue confirms. Else what is said of the calls of a request that
/// has too many is not believed.
///
/// A call is for the only request that was open meanwhile and lacks one. A request has made the only calls that may be
/// for it. Where the order of the queue tells the known ones right, calls in a row are for the requests around them that
/// lack as many.
pub(super) fn told(calls: &[Call], requests: &[usize], spans: &[Span]) -> Told {
    let Some(mut regular) = Regular::new(calls, requests, spans) else {
        return Told::default();
    };
    if regular.contradicts() {
        return Told { is_contradictory: true, doubted: regular.not_in_order(), found: Vec::new() };
    }
    let doubted = regular.doubt_too_many();
    let mut found = Vec::new();
    for _ in 0..PASSES {
        let before = found.len();
        found.extend(regular.exclude());
        found.extend(regular.by_order());
        if found.len() == before {
            break;
        }
    }
    Told {
        found: found
            .into_iter()
            .map(|(place, rank, evidence)| (place, requests[rank], evidence))
            .collect(),
        doubted,
        is_contradictory: false,
    }
}

/// How many calls each of so many requests makes, if all may make the same number of them.
pub(super) fn each(calls: usize, requests: usize) -> Option<usize> {
    let (calls, requests) = (calls as f64, requests as f64);
    let each = (calls / requests).round();
    let is_number = each >= 1.0 && (each * requests - calls).abs() <= IRREGULAR * requests;
    is_number.then_some(each as usize)
}

#[derive(Debug)]
struct Regular<'a> {
    calls: &'a [Call],
    /// The requests, each a rank from here on.
    spans: Vec<Span>,
    /// How many calls each makes.
    each: usize,
    /// The rank of each call's cause.
    ranks: Vec<Option<usize>>,
    /// How many calls of each request are known.
    counts: Vec<usize>,
}

impl<'a> Regular<'a> {
    fn new(calls: &'a [Call], requests: &[usize], spans: &[Span]) -> Option<Self> {
        let each = each(calls.len(), requests.len())?;
        let of_request: HashMap<usize, usize> = requests.iter().copied().zip(0..).collect();
        let ranks: Vec<Option<usize>> =
            calls.iter().map(|call| of_request.get(&call.cause?.0).copied()).collect();
        let mut counts = vec![0; requests.len()];
        for &rank in ranks.iter().flatten() {
            counts[rank] += 1;
        }
        // Whether that number is each one's, too, only known ones show.
        (counts.iter().sum::<usize>() >= FEWEST).then_some(Self {
            calls,
            spans: requests.iter().map(|&request| spans[request]).collect(),
            each,
            ranks,
            counts,
        })
    }

    /// Whether more requests than a few are said to have made more calls than each makes, by effects and wake-ups.
    fn contradicts(&self) -> bool {
        let mut by_others = vec![false; self.counts.len()];
        for (call, rank) in self.calls.iter().zip(&self.ranks) {
            if let (Some((_, evidence)), Some(rank)) = (call.cause, rank) {
                by_others[*rank] |= evidence >= HandOver::Backward;
            }
        }
        let counts = self.counts.iter().zip(by_others);
        let with_more = counts.filter(|&(&count, by_others)| by_others && count > self.each);
        with_more.count() as f64 > IRREGULAR * self.counts.len() as f64
    }

    /// Places of calls that are known by effects or wake-ups, and that a queue which keeps the order would have given to
    /// another request.
    fn not_in_order(&self) -> Vec<usize> {
        let known = self.known().into_iter();
        known
            .filter(|&(place, rank)| place / self.each != rank)
            .map(|(place, _)| place)
            .filter(|&place| self.evidence(place) >= Some(HandOver::Backward))
            .collect()
    }

    /// Forgets the causes of calls of requests that have too many while others that lack one were open, and returns their
    /// places. A name in the bytes stays.
    fn doubt_too_many(&mut self) -> Vec<usize> {
        let lacking: Vec<usize> =
            (0..self.counts.len()).filter(|&rank| self.lacks(rank) > 0).collect();
        let may_be_others = |place: usize| {
            let call = &self.calls[place];
            let next = lacking.partition_point(|&rank| self.spans[rank].opened_ns <= call.asked_ns);
            let before = lacking[..next].iter().rev().take(MOST);
            before.copied().any(|rank| self.is_open(rank, call))
        };
        let with_many = self.known().into_iter();
        let with_many = with_many.filter(|&(_, rank)| self.counts[rank] > self.each);
        let with_many: Vec<(usize, usize)> = with_many.collect();
        let in_doubt = with_many.iter().filter(|&&(place, _)| may_be_others(place));
        let in_doubt: HashSet<usize> = in_doubt.map(|&(_, rank)| rank).collect();
        let doubted: Vec<usize> = with_many
            .into_iter()
            .filter(|(_, rank)| in_doubt.contains(rank))
            .map(|(place, _)| place)
            .filter(|&place| self.evidence(place) != Some(HandOver::Token))
            .collect();
        for &place in &doubted {
            if let Some(rank) = self.ranks[place].take() {
                self.counts[rank] -= 1;
            }
        }
        doubted
    }

    fn evidence(&self, place: usize) -> Option<HandOver> {
        self.calls[place].cause.map(|(_, evidence)| evidence)
    }

    /// The places of known calls, and their ranks.
    fn known(&self) -> Vec<(usize, usize)> {
        let known = self.ranks.iter().enumerate();
        known.filter_map(|(place, rank)| Some((place, (*rank)?))).collect()
    }

    fn lacks(&self, rank: usize) -> usize {
        self.each.saturating_sub(self.counts[rank])
    }

    fn note(&mut self, place: usize, rank: usize) {
        self.ranks[place] = Some(rank);
        self.counts[rank] += 1;
    }

    /// Whether a request was open from a call to its answer.
    fn is_open(&self, rank: usize, call: &Call) -> bool {
        let span = self.spans[rank];
        span.contains(call.asked_ns) && span.contains(call.answered_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests 100 to 199, each open for `open_ns` from 1,000 ns after the one before, and their three calls 10, 20 and 30
    /// ns after `queued_ns` from its begin, which take 5 ns.
    fn story(open_ns: u64, queued_ns: u64) -> (Vec<Call>, Vec<usize>, Vec<Span>) {
        let requests: Vec<usize> = (100..200).collect();
        let begin_ns = |number: usize| 1_000 * (number as u64 - 99);
        let mut spans = vec![Span { opened_ns: 0, sure_until_ns: 0 }; 100];
        spans.extend(requests.iter().map(|&number| Span {
            opened_ns: begin_ns(number),
            sure_until_ns: begin_ns(number) + open_ns,
        }));
        let calls = requests.iter().flat_map(|&number| {
            (1..=3).map(move |call| Call {
                asked_ns: begin_ns(number) + queued_ns + 10 * call,
                answered_ns: begin_ns(number) + queued_ns + 10 * call + 5,
                cause: Some((number, HandOver::Backward)),
            })
        });
        (calls.collect(), requests, spans)
    }

    #[test]
    fn a_request_with_too_many_calls_is_not_believed() {
        let (mut calls, requests, spans) = story(50_000, 20_000);
        // The last call of a request is said to be of the next one, by what its thread has read last.
        for place in [32, 62, 92] {
            calls[place].cause = Some((100 + place / 3 + 1, HandOver::SameThread));
        }
        for call in &mut calls {
            call.cause = call.cause.map(|(cause, _)| (cause, HandOver::SameThread));
        }
        let told = told(&calls, &requests, &spans);
        assert_eq!(told.doubted, [32, 33, 34, 35, 62, 63, 64, 65, 92, 93, 94, 95]);
        let mut found = told.found;
        found.sort_unstable();
        let right: Vec<(usize, usize)> =
            told.doubted.iter().map(|&at| (at, 100 + at / 3)).collect();
        let found: Vec<(usize, usize)> = found.into_iter().map(|one| (one.0, one.1)).collect();
        assert_eq!(found, right);
        // It has asked once more, and no other request lacks a call.
        let (calls, requests, spans) = story(50_000, 20_000);
        let mut again = calls.clone();
        again.insert(33, calls[32]);
        assert!(super::told(&again, &requests, &spans).doubted.is_empty());
    }

    fn found(calls: &[Call], requests: &[usize], spans: &[Span]) -> Vec<(usize, usize, HandOver)> {
        let told = told(calls, requests, spans);
        assert!(!told.is_contradictory);
        let mut found = told.found;
        found.sort_unstable();
        found
    }

    #[test]
    fn calls_are_told_by_who_lacks_them() {
        // No two requests are open at once.
        let (mut calls, requests, spans) = story(500, 0);
        for place in [32, 90, 91, 92] {
            calls[place].cause = None;
        }
        let by = |evidence, places: &[usize]| -> Vec<(usize, usize, HandOver)> {
            let told = places.iter().map(|&place| (place, 100 + place / 3, evidence));
            told.collect()
        };
        let all = found(&calls, &requests, &spans);
        assert_eq!(all, by(HandOver::Exclusion, &[32, 90, 91, 92]));
        // Many are open at once: only the order tells.
        let (mut calls, requests, spans) = story(50_000, 20_000);
        for place in [32, 62, 63, 90, 91, 92] {
            calls[place].cause = None;
        }
        let all = found(&calls, &requests, &spans);
        assert_eq!(all, by(HandOver::Queue, &[32, 62, 63, 90, 91, 92]));
    }

    #[test]
    fn what_is_irregular_tells_nothing() {
        let (calls, requests, spans) = story(50_000, 20_000);
        // A call too many in each second request.
        let mut more: Vec<Call> = calls
            .iter()
            .enumerate()
            .flat_map(|(place, call)| vec![*call; 1 + usize::from(place % 6 == 0)])
            .collect();
        more[61].cause = None;
        assert_eq!(found(&more, &requests, &spans), []);
        // The same number in all, but in another order than that of the requests.
        let mut other = calls.clone();
        for (place, call) in other.iter_mut().enumerate() {
            call.cause = Some((100 + place * 7 % 100, HandOver::Backward));
        }
        other[31].cause = None;
        // Only that one request lacks a call.
        let only = 100 + 31 * 7 % 100;
        let all = found(&other, &requests, &spans);
        assert!(all.iter().all(|&(place, request, evidence)| {
            (place, request, evidence) == (31, only, HandOver::Exclusion)
        }));
        assert_eq!(told(&[], &[], &spans), Told::default());
    }

    #[test]
    fn contradictions_leave_what_the_order_confirms() {
        let (mut calls, requests, spans) = story(50_000, 20_000);
        for place in [30, 60, 90] {
            calls[place].cause = Some((100 + place / 3 + 1, HandOver::Backward));
        }
        assert_eq!(
            told(&calls, &requests, &spans),
            Told { is_contradictory: true, doubted: vec![30, 60, 90], found: Vec::new() }
        );
    }
}
