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
                    answered_ns: exchange
                        .answer
                        .map_or(u64::MAX, |answer| answer.first.at_ns),
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
    /// Their places by the request of the thread that has sent them.
    of_request: HashMap<usize, Vec<usize>>,
    /// Calls that are not farther apart are sent at the same time.
    same_time_ns: u64,
}

impl<'a> OfServer<'a> {
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
            of_request,
            same_time_ns: (SAME_TIME * all_ns as f64 / calls.len() as f64) as u64,
        }
    }

    /// The calls that threads with this request have sent, but for one.
    fn of(&self, request: usize, call: &Call) -> impl Iterator<Item = &'a Call> {
        let (calls, but) = (self.calls, call.number);
        let places = self.of_request.get(&request).into_iter().flatten();
        let all = places.map(move |&place| &calls[place]);
        all.filter(move |other| other.number != but)
    }

    fn has_at_once(&self, request: usize, call: &Call) -> bool {
        self.of(request, call)
            .any(|other| other.is_at_once_with(call))
    }

    fn tell(&self, others: &mut Others) {
        let is_twice = |call: &&Call| self.has_at_once(call.own, call);
        let twice = self.calls.iter().filter(is_twice).count() as f64;
        let is_seldom_twice = twice <= FEW_TWICE * self.calls.len() as f64;
        for call in self.calls {
            match call.by_reader {
                Some(by_reader) if by_reader != call.own => {
                    if self.is_extra(call, by_reader) || self.is_exchanged(call, by_reader) {
                        others.found.push((call.number, by_reader));
                    } else if let Some(other) = self.sent_with(call, by_reader) {
                        others.found.push((call.number, by_reader));
                        others.found.push((other.number, call.own));
                    }
                }
                None if is_seldom_twice && self.has_known_at_once(call) => {
                    others.in_doubt.push(call.number);
                }
                _ => {}
            }
        }
    }

    /// Whether its sender's request has two under way, and the one that its reader tells has none.
    fn is_extra(&self, call: &Call, by_reader: usize) -> bool {
        self.has_at_once(call.own, call) && !self.has_at_once(by_reader, call)
    }

    /// Whether the thread of the other request has sent one that is for this one's, by its reader.
    fn is_exchanged(&self, call: &Call, by_reader: usize) -> bool {
        self.of(by_reader, call)
            .any(|other| other.by_reader == Some(call.own) && other.is_at_once_with(call))
    }

    /// The only call that the thread of the other request has sent at the same time, if nobody was woken for its answer.
    fn sent_with(&self, call: &Call, by_reader: usize) -> Option<&'a Call> {
        let is_sent_with =
            |other: &&Call| other.asked_ns.abs_diff(call.asked_ns) <= self.same_time_ns;
        let mut with = self.of(by_reader, call).filter(is_sent_with);
        let only = with.next().filter(|_| with.next().is_none());
        only.filter(|other| other.by_reader.is_none())
    }

    /// Whether its sender's request has another one under way that is its own, by its reader.
    fn has_known_at_once(&self, call: &Call) -> bool {
        self.of(call.own, call)
            .any(|other| other.by_reader == Some(call.own) && other.is_at_once_with(call))
    }
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
}
