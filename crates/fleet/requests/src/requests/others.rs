//! Calls that threads have sent for other requests than their own, told by who reads the answers.

use std::collections::HashMap;

use super::exchange::Exchange;
use super::readers::Readers;
use crate::rows::Address;

/// The part of the mean time between two calls to a server within which two are sent at the same time. By chance that is
/// so of one in fifty.
const SAME_TIME: f64 = 0.01;
/// The share of calls that are under way with another one of the same request to the same server, up to which none is
/// taken to be meant so.
const FEW_TWICE: f64 = 0.02;

/// So many calls of a request are looked at for one that is under way at once with another.
const MOST_AT_ONCE: usize = 64;

/// A process and a server that it calls.
type Between = (u32, Address);

/// What the readers of answers say of calls that threads seem to have sent for requests of their own.
///
/// A thread that puts its call into a queue, and then sends what comes first in it, may send the call of another one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Others {
    /// The calls that are for another request, `(call, request)`.
    pub(super) found: Vec<(usize, usize)>,
    /// Calls that are not known to be for the sender's request, nor for which one they are.
    pub(super) in_doubt: Vec<usize>,
}

impl Others {
    /// Of the calls of a host. `causes` are the requests of the threads that have sent them, and `sent` and `server` tell
    /// what a call is and to whom it goes.
    pub(super) fn new(
        readers: &Readers,
        causes: &[Option<usize>],
        calls: &[usize],
        sent: impl Fn(usize) -> Exchange,
        server: impl Fn(usize) -> Option<Address>,
    ) -> Self {
        let mut between: HashMap<Between, Vec<Call>> = HashMap::new();
        for &number in calls {
            let exchange = sent(number);
            if let (Some(own), Some(server)) = (causes[number], server(number)) {
                let of_server = between.entry((exchange.asked.process, server)).or_default();
                of_server.push(Call {
                    number,
                    own,
                    by_reader: readers.says(number),
                    asked_ns: exchange.asked.at_ns,
                    answered_ns: exchange.answer.map_or(u64::MAX, |answer| answer.first.at_ns),
                });
            }
        }
        let mut others = Self::default();
        for calls in between.values() {
            OfServer::new(calls).tell(&mut others);
        }
        others.found.sort_unstable();
        others.in_doubt.sort_unstable();
        others
    }
}

#[derive(Debug, Clone, Copy)]
struct Call {
    number: usize,
    /// The request of the thread that has sent it.
    own: usize,
    /// The request of the thread that was woken for the answer.
    by_reader: Option<usize>,
    asked_ns: u64,
    answered_ns: u64,
}

impl Call {
    fn is_at_once_with(&self, other: &Self) -> bool {
        self.asked_ns < other.answered_ns && other.asked_ns < self.answered_ns
    }
}

/// The calls of a process to a server.
struct OfServer<'a> {
    calls: &'a [Call],
    /// Their places by the request of the thread that has sent them, in the order in which they were sent.
    of_request: HashMap<usize, Vec<usize>>,
    /// Of each, whether its sender's request has another one under way.
    is_twice: Vec<bool>,
    /// Calls that are not farther apart are sent at the same time.
    same_time_ns: u64,
}

impl<'a> OfServer<'a> {
    /// `calls` are in the order in which they were sent.
    fn new(calls: &'a [Call]) -> Self {
        let mut of_request: HashMap<usize, Vec<usize>> = HashMap::new();
        for (place, call) in calls.iter().enumerate() {
            of_request.entry(call.own).or_default().push(place);
        }
        let times = calls.iter().map(|call| call.asked_ns);
        let (first_ns, last_ns) = (times.clone().min(), times.max());
        let all_ns = last_ns.unwrap_or_default() - first_ns.unwrap_or_default();
        Self {
            calls,
            is_twice: is_twice(calls, of_request.values()),
            of_request,
            same_time_ns: (SAME_TIME * all_ns as f64 / calls.len() as f64) as u64,
        }
    }

    /// The calls of threads with this request that are under way at once with another one, but for that one: the last
    /// ones before its answer, as a request may have very many.
    fn at_once<'s>(
        &'s self,
        request: usize,
        call: &'s Call,
    ) -> impl Iterator<Item = &'a Call> + 's {
        let is_before = |other: &Call| other.asked_ns < call.answered_ns;
        let last = self.sent_while(request, is_before).take(MOST_AT_ONCE);
        last.filter(|other| other.number != call.number && other.is_at_once_with(call))
    }

    /// The calls of threads with this request while that holds, the last first. It holds until some time.
    fn sent_while(
        &self,
        request: usize,
        holds: impl Fn(&Call) -> bool,
    ) -> impl Iterator<Item = &'a Call> {
        let calls = self.calls;
        let places = self.of_request.get(&request);
        let places = places.map_or(&[][..], Vec::as_slice);
        let end = places.partition_point(|&place| holds(&calls[place]));
        let last = places[..end].iter().rev();
        last.map(move |&place| &calls[place])
    }

    fn tell(&self, others: &mut Others) {
        let twice = self.is_twice.iter().filter(|is_twice| **is_twice).count();
        let is_seldom_twice = twice as f64 <= FEW_TWICE * self.calls.len() as f64;
        for (call, &is_twice) in self.calls.iter().zip(&self.is_twice) {
            match call.by_reader {
                Some(by_reader) if by_reader != call.own => {
                    let is_extra = is_twice && self.at_once(by_reader, call).next().is_none();
                    if is_extra || self.is_exchanged(call, by_reader) {
                        others.found.push((call.number, by_reader));
                    } else if let Some(other) = self.sent_with(call, by_reader) {
                        others.found.push((call.number, by_reader));
                        others.found.push((other.number, call.own));
                    }
                }
                None if is_twice && is_seldom_twice && self.has_known_at_once(call) => {
                    others.in_doubt.push(call.number);
                }
                _ => {}
            }
        }
    }

    /// Whether the thread of the other request has sent one that is for this one's, by its reader.
    fn is_exchanged(&self, call: &Call, by_reader: usize) -> bool {
        self.at_once(by_reader, call).any(|other| other.by_reader == Some(call.own))
    }

    /// The only call that the thread of the other request has sent at the same time, if nobody was woken for its answer.
    fn sent_with(&self, call: &Call, by_reader: usize) -> Option<&'a Call> {
        let latest_ns = call.asked_ns.saturating_add(self.same_time_ns);
        let earliest_ns = call.asked_ns.saturating_sub(self.same_time_ns);
        let until = self.sent_while(by_reader, |other| other.asked_ns <= latest_ns);
        let mut with = until.take_while(|other| other.asked_ns >= earliest_ns);
        let only = with.next().filter(|_| with.next().is_none());
        only.filter(|other| other.by_reader.is_none())
    }

    /// Whether its sender's request has another one under way that is its own, by its reader.
    fn has_known_at_once(&self, call: &Call) -> bool {
        self.at_once(call.own, call).any(|other| other.by_reader == Some(call.own))
    }
}

/// Whether each call's request has another one under way, in one pass: a request may have very many.
fn is_twice<'p>(calls: &[Call], requests: impl Iterator<Item = &'p Vec<usize>>) -> Vec<bool> {
    let mut is_twice = vec![false; calls.len()];
    for places in requests {
        let mut answered_ns = 0;
        for pair in places.windows(2) {
            let (before, next) = (&calls[pair[0]], &calls[pair[1]]);
            is_twice[pair[0]] |= next.asked_ns < before.answered_ns;
            answered_ns = before.answered_ns.max(answered_ns);
            is_twice[pair[1]] = next.asked_ns < answered_ns;
        }
    }
    is_twice
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(own request, request by the reader, asked, answered)`, of the two calls that are looked at, and 98 that say
    /// nothing: 100 µs apart, each of a request of its own and answered at once.
    fn told(first: [(usize, Option<usize>, u64, u64); 2]) -> Others {
        let others =
            (2..100).map(|at| (1_000 + at, None, 100_000 * at as u64, 100_000 * at as u64));
        let calls: Vec<Call> = first
            .into_iter()
            .chain(others)
            .enumerate()
            .map(|(number, (own, by_reader, asked_ns, answered_ns))| Call {
                number,
                own,
                by_reader,
                asked_ns,
                answered_ns,
            })
            .collect();
        let mut told = Others::default();
        OfServer::new(&calls).tell(&mut told);
        told
    }

    #[test]
    fn calls_that_are_sent_at_the_same_time_may_be_exchanged() {
        // Nobody was woken for the second one's answer.
        let together = told([(1, Some(2), 0, 50_000), (2, None, 500, 40_000)]);
        assert_eq!(together.found, [(0, 2), (1, 1)]);
        // 2 µs later another one comes by chance.
        let apart = told([(1, Some(2), 0, 50_000), (2, None, 2_000, 40_000)]);
        assert_eq!(apart, Others::default());
        // Its reader says that it is its sender's.
        let known = told([(1, Some(2), 0, 50_000), (2, Some(2), 500, 40_000)]);
        assert_eq!(known, Others::default());
    }

    #[test]
    fn of_two_at_once_the_one_that_nobody_was_woken_for_is_in_doubt() {
        let at_once = told([(1, Some(1), 0, 50_000), (1, None, 2_000, 40_000)]);
        assert_eq!(at_once.in_doubt, [1]);
        assert_eq!(at_once.found, []);
        let in_turn = told([(1, Some(1), 0, 1_000), (1, None, 2_000, 40_000)]);
        assert_eq!(in_turn, Others::default());
        // A process that makes two calls at once to a server does so often.
        let call = |number, own, by_reader| Call {
            number,
            own,
            by_reader,
            asked_ns: 1_000 * number as u64,
            answered_ns: 1_000 * number as u64 + 1_500,
        };
        let often: Vec<Call> = (0..50)
            .map(|number| call(number, number / 2, (number % 2 == 0).then_some(number / 2)))
            .collect();
        let mut told = Others::default();
        OfServer::new(&often).tell(&mut told);
        assert_eq!(told, Others::default());
    }

    #[test]
    fn calls_of_a_request_are_at_once_with_any_one_before() {
        let times = [(0, 10), (2, 3), (5, 6), (12, 13), (13, u64::MAX), (20, 21)];
        let calls: Vec<Call> = times
            .into_iter()
            .enumerate()
            .map(|(number, (asked_ns, answered_ns))| Call {
                number,
                own: 1,
                by_reader: None,
                asked_ns,
                answered_ns,
            })
            .collect();
        let found = OfServer::new(&calls).is_twice;
        assert_eq!(found, [true, true, true, false, true, true]);
        for (call, found) in calls.iter().zip(found) {
            let others = calls.iter().filter(|other| other.number != call.number);
            let is_at_once = others.clone().any(|other| other.is_at_once_with(call));
            assert_eq!(is_at_once, found, "{call:?}");
        }
    }
}
