//! Causes of calls that threads have sent for other requests than their own, inferred from the readers of the answers.

use std::collections::HashMap;

use super::answer_readers::AnswerReaders;
use super::exchange::Exchange;
use super::ids::{AssignedCall, CallId, CallPosition, RequestId};
use crate::host_rows::EndAddress;

/// Maximum distance of calls to a server that count as sent at the same time. It is a part of the mean time between
/// calls. By chance one call in fifty has another this near.
const SAME_TIME_PART: f64 = 0.01;
/// Maximum share of calls that overlap another one of their request to the same server, if overlaps are mistakes.
const MAX_OVERLAP_SHARE: f64 = 0.02;
/// Maximum number of a request's calls that are tried for one that overlaps a call.
const MAX_OVERLAP_CANDIDATES: usize = 64;

/// Calls that threads seem to have sent for requests of their own, as the readers of their answers see them.
///
/// A thread may put its call into a queue, and then send the first one in it. That may be the call of another thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CallsForOthers {
    /// Calls that are for another request.
    pub(super) found: Vec<AssignedCall<CallId, RequestId>>,
    /// Calls that may be for another request than the sender's; for which one is not known.
    pub(super) in_doubt: Vec<CallId>,
}

impl CallsForOthers {
    /// Compares senders and readers of a host's calls. `causes` are the requests of the threads that sent them. `sent`
    /// returns a call's exchange, and `server` the address that it goes to.
    pub(super) fn new(
        readers: &AnswerReaders,
        causes: &[Option<RequestId>],
        calls: &[CallId],
        sent: impl Fn(CallId) -> Exchange,
        server: impl Fn(CallId) -> Option<EndAddress>,
    ) -> Self {
        let mut by_server: HashMap<ProcessAndServer, Vec<OwnedCall>> = HashMap::new();
        for &id in calls {
            let exchange = sent(id);
            if let (Some(own), Some(server)) = (causes[id.0], server(id)) {
                let process = exchange.asked.process;
                by_server.entry(ProcessAndServer { process, server }).or_default().push(
                    OwnedCall {
                        id,
                        own,
                        by_reader: readers.cause_of(id),
                        asked_ns: exchange.asked.at_ns,
                        answered_ns: exchange.answer.map_or(u64::MAX, |answer| answer.first.at_ns),
                    },
                );
            }
        }
        let mut others = Self::default();
        for calls in by_server.values() {
            ServerCalls::new(calls).find_others(&mut others);
        }
        others.found.sort_unstable();
        others.in_doubt.sort_unstable();
        others
    }
}

/// A process, and a server that it calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ProcessAndServer {
    process: u32,
    server: EndAddress,
}

#[derive(Debug, Clone, Copy)]
struct OwnedCall {
    id: CallId,
    /// Request of the thread that sent it.
    own: RequestId,
    /// Request of the thread that was woken for the answer.
    by_reader: Option<RequestId>,
    asked_ns: u64,
    answered_ns: u64,
}

impl OwnedCall {
    fn overlaps(&self, other: &Self) -> bool {
        self.asked_ns < other.answered_ns && other.asked_ns < self.answered_ns
    }
}

/// The calls of a process to a server.
struct ServerCalls<'a> {
    calls: &'a [OwnedCall],
    /// Calls by the request of the thread that sent them, in send order.
    of_request: HashMap<RequestId, Vec<CallPosition>>,
    /// By call: whether it overlaps another call of its sender's request.
    is_overlapping: Vec<bool>,
    /// Maximum distance of calls that are sent at the same time.
    same_time_ns: u64,
}

impl<'a> ServerCalls<'a> {
    /// `calls` are in send order.
    fn new(calls: &'a [OwnedCall]) -> Self {
        let mut of_request: HashMap<RequestId, Vec<CallPosition>> = HashMap::new();
        for (position, call) in calls.iter().enumerate() {
            of_request.entry(call.own).or_default().push(CallPosition(position));
        }
        let times = calls.iter().map(|call| call.asked_ns);
        let (first_ns, last_ns) = (times.clone().min(), times.max());
        let all_ns = last_ns.unwrap_or_default() - first_ns.unwrap_or_default();
        Self {
            calls,
            is_overlapping: find_overlapping(calls, of_request.values()),
            of_request,
            same_time_ns: (SAME_TIME_PART * all_ns as f64 / calls.len() as f64) as u64,
        }
    }

    /// Returns other calls of threads with a request that overlap a call. Only the last ones before its answer are
    /// tried, as a request may have very many.
    fn overlapping<'s>(
        &'s self,
        request: RequestId,
        call: &'s OwnedCall,
    ) -> impl Iterator<Item = &'a OwnedCall> + 's {
        let is_before = |other: &OwnedCall| other.asked_ns < call.answered_ns;
        let last = self.sent_while(request, is_before).take(MAX_OVERLAP_CANDIDATES);
        last.filter(|other| other.id != call.id && other.overlaps(call))
    }

    /// Returns the calls of threads with a request while `holds`, the last first. It holds until some time.
    fn sent_while(
        &self,
        request: RequestId,
        holds: impl Fn(&OwnedCall) -> bool,
    ) -> impl Iterator<Item = &'a OwnedCall> {
        let calls = self.calls;
        let positions = self.of_request.get(&request).map_or(&[][..], Vec::as_slice);
        let end = positions.partition_point(|position| holds(&calls[position.0]));
        positions[..end].iter().rev().map(move |position| &calls[position.0])
    }

    fn find_others(&self, others: &mut CallsForOthers) {
        let overlapping = self.is_overlapping.iter().filter(|is_overlapping| **is_overlapping);
        let is_seldom = overlapping.count() as f64 <= MAX_OVERLAP_SHARE * self.calls.len() as f64;
        for (call, &is_overlapping) in self.calls.iter().zip(&self.is_overlapping) {
            match call.by_reader {
                Some(by_reader) if by_reader != call.own => {
                    let is_extra =
                        is_overlapping && self.overlapping(by_reader, call).next().is_none();
                    let assigned = AssignedCall { call: call.id, request: by_reader };
                    if is_extra || self.is_exchanged(call, by_reader) {
                        others.found.push(assigned);
                    } else if let Some(other) = self.sent_with(call, by_reader) {
                        let other = AssignedCall { call: other.id, request: call.own };
                        others.found.extend([assigned, other]);
                    }
                }
                None if is_overlapping && is_seldom && self.overlaps_known(call) => {
                    others.in_doubt.push(call.id);
                }
                _ => {}
            }
        }
    }

    /// Whether a thread of the reader's request has sent a call that is for this call's, by its reader.
    fn is_exchanged(&self, call: &OwnedCall, by_reader: RequestId) -> bool {
        self.overlapping(by_reader, call).any(|other| other.by_reader == Some(call.own))
    }

    /// Finds the only call that a thread of the reader's request sent at the same time. It does not count if somebody
    /// was woken for its answer.
    fn sent_with(&self, call: &OwnedCall, by_reader: RequestId) -> Option<&'a OwnedCall> {
        let latest_ns = call.asked_ns.saturating_add(self.same_time_ns);
        let earliest_ns = call.asked_ns.saturating_sub(self.same_time_ns);
        let until = self.sent_while(by_reader, |other| other.asked_ns <= latest_ns);
        let mut with = until.take_while(|other| other.asked_ns >= earliest_ns);
        let only = with.next().filter(|_| with.next().is_none());
        only.filter(|other| other.by_reader.is_none())
    }

    /// Whether it overlaps a call of its sender's request that is its own, by its reader.
    fn overlaps_known(&self, call: &OwnedCall) -> bool {
        self.overlapping(call.own, call).any(|other| other.by_reader == Some(call.own))
    }
}

/// Finds calls that overlap another one of their request, in one pass: a request may have very many.
fn find_overlapping<'p>(
    calls: &[OwnedCall],
    requests: impl Iterator<Item = &'p Vec<CallPosition>>,
) -> Vec<bool> {
    let mut is_overlapping = vec![false; calls.len()];
    for positions in requests {
        let mut answered_ns = 0;
        for pair in positions.windows(2) {
            let [first, second] = [pair[0].0, pair[1].0];
            let (before, next) = (&calls[first], &calls[second]);
            is_overlapping[first] |= next.asked_ns < before.answered_ns;
            answered_ns = before.answered_ns.max(answered_ns);
            is_overlapping[second] = next.asked_ns < answered_ns;
        }
    }
    is_overlapping
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(own request, request by the reader, asked, answered)`.
    type Plain = (usize, Option<usize>, u64, u64);

    fn calls(all: impl IntoIterator<Item = Plain>) -> Vec<OwnedCall> {
        let call = |(id, (own, by_reader, asked_ns, answered_ns)): (usize, Plain)| OwnedCall {
            id: CallId(id),
            own: RequestId(own),
            by_reader: by_reader.map(RequestId),
            asked_ns,
            answered_ns,
        };
        all.into_iter().enumerate().map(call).collect()
    }

    fn find(calls: &[OwnedCall]) -> CallsForOthers {
        let mut others = CallsForOthers::default();
        ServerCalls::new(calls).find_others(&mut others);
        others
    }

    /// Of two calls, with 98 more that say nothing: 100 µs apart, each of a request of its own and answered at once.
    fn find_in_two(first: [Plain; 2]) -> CallsForOthers {
        let others =
            (2..100).map(|at| (1_000 + at, None, 100_000 * at as u64, 100_000 * at as u64));
        find(&calls(first.into_iter().chain(others)))
    }

    #[test]
    fn calls_that_are_sent_at_the_same_time_may_be_exchanged() {
        // Nobody was woken for the second one's answer.
        let together = find_in_two([(1, Some(2), 0, 50_000), (2, None, 500, 40_000)]);
        let assigned =
            |(call, request)| AssignedCall { call: CallId(call), request: RequestId(request) };
        assert_eq!(together.found, [(0, 2), (1, 1)].map(assigned));
        // 2 µs later another one comes by chance.
        let apart = find_in_two([(1, Some(2), 0, 50_000), (2, None, 2_000, 40_000)]);
        assert_eq!(apart, CallsForOthers::default());
        // Its reader says that it is its sender's.
        let known = find_in_two([(1, Some(2), 0, 50_000), (2, Some(2), 500, 40_000)]);
        assert_eq!(known, CallsForOthers::default());
    }

    #[test]
    fn of_two_at_once_the_one_that_nobody_was_woken_for_is_in_doubt() {
        let at_once = find_in_two([(1, Some(1), 0, 50_000), (1, None, 2_000, 40_000)]);
        assert_eq!(at_once, CallsForOthers { found: Vec::new(), in_doubt: vec![CallId(1)] });
        let in_turn = find_in_two([(1, Some(1), 0, 1_000), (1, None, 2_000, 40_000)]);
        assert_eq!(in_turn, CallsForOthers::default());
        // A process that makes two calls at once to a server does so often.
        let often = (0..50).map(|at| {
            let asked_ns = 1_000 * at as u64;
            (at / 2, (at % 2 == 0).then_some(at / 2), asked_ns, asked_ns + 1_500)
        });
        assert_eq!(find(&calls(often)), CallsForOthers::default());
    }

    #[test]
    fn calls_of_a_request_are_at_once_with_any_one_before() {
        let times = [(0, 10), (2, 3), (5, 6), (12, 13), (13, u64::MAX), (20, 21)];
        let calls = calls(times.map(|(asked_ns, answered_ns)| (1, None, asked_ns, answered_ns)));
        let found = ServerCalls::new(&calls).is_overlapping;
        assert_eq!(found, [true, true, true, false, true, true]);
        for (call, found) in calls.iter().zip(found) {
            let mut others = calls.iter().filter(|other| other.id != call.id);
            assert_eq!(others.any(|other| other.overlaps(call)), found, "{call:?}");
        }
    }
}
