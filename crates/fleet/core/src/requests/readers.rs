//! What the threads that read answers say of the calls that others have sent.

use std::collections::HashMap;
use std::ops::Range;

use super::exchange::Exchange;
use super::forward::{Before, Span};
use super::timeline::{Kind, Timeline};
use crate::rows::Address;

/// The share of calls of which readers and senders say the same, from which on the senders' effects are believed alone.
const SENDERS_AGREE: f64 = 0.98;

/// The calls whose answer another thread reads than the one that sent them.
///
/// A client in the background may send a call when a connection becomes free, by whatever thread is there then: what that
/// thread does next is no result of the call. But whoever reads the answer hands it on, and wakes the thread that has the
/// request, itself or by a thread that it wakes.
#[derive(Debug, Default)]
pub(super) struct Readers {
    /// The number of the host's first call.
    first: usize,
    /// Whether another thread reads the answer of a call, from the first on.
    is_others: Vec<bool>,
    /// The request of the thread that was woken for the answer, of such calls.
    request: Vec<Option<usize>>,
}

impl Readers {
    /// Of a host. `sent` is the call of a number, `calls` are the numbers of the host's.
    pub(super) fn new(
        timeline: &Timeline,
        spans: &[Span],
        known: &[Before],
        (sent, calls): (impl Fn(usize) -> Exchange, Range<usize>),
    ) -> Self {
        let first = calls.start;
        let mut readers = Self {
            first,
            is_others: vec![false; calls.len()],
            request: vec![None; calls.len()],
        };
        let mut senders: Vec<Option<usize>> = vec![None; calls.len()];
        // The call whose answer each thread has, and whether it was handed over.
        let mut answers: Vec<Option<usize>> = vec![None; timeline.threads];
        let mut is_done = vec![false; calls.len()];
        for (event, before) in timeline.events.iter().zip(known) {
            let thread = event.thread;
            match event.kind {
                Kind::Asks(call) => senders[call - first] = Some(thread),
                Kind::ReadsRequest(_) => answers[thread] = None,
                Kind::ReadsAnswer(call) => {
                    let is_others = senders[call - first].is_some_and(|sender| sender != thread);
                    readers.is_others[call - first] |= is_others;
                    answers[thread] = is_others.then_some(call);
                }
                Kind::Woken(Some(waker)) if waker != thread => {
                    let answer = answers[waker].filter(|&call| !is_done[call - first]);
                    answers[thread] = None;
                    let (Some(call), false) = (answer, before.owes_many) else {
                        continue;
                    };
                    let Some(request) = before.owes else {
                        answers[thread] = Some(call);
                        continue;
                    };
                    is_done[call - first] = true;
                    let was_open = spans[request].contains(sent(call).asked.at_ns);
                    readers.request[call - first] = was_open.then_some(request);
                }
                _ => {}
            }
        }
        readers
    }

    /// The requests that calls were made for, `(call, request)`.
    pub(super) fn found(&self) -> impl Iterator<Item = (usize, usize)> {
        let calls = self.request.iter().zip(self.first..);
        calls.filter_map(|(request, call)| Some((call, (*request)?)))
    }

    /// What the effects of those that have sent calls say, without what is not to be believed: of calls whose answer
    /// another thread reads, where the readers of such calls say something else.
    pub(super) fn believed(&self, by_effect: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
        let (mut both, mut same) = (0, 0);
        for &(call, request) in &by_effect {
            if let Some(by_reader) = self.request[call - self.first] {
                both += 1;
                same += usize::from(by_reader == request);
            }
        }
        let agree = same as f64 >= SENDERS_AGREE * both as f64;
        let mut believed = by_effect;
        believed.retain(|(call, _)| agree || !self.is_others[*call - self.first]);
        believed
    }

    /// The calls that a thread has sent for another request than its own, `(call, request)`. `causes` are the requests
    /// of the threads that have sent calls, `calls` those of the host, and `sent` and `server` tell what a call is and to
    /// whom it goes.
    ///
    /// A thread that puts its call into a queue, and then sends what comes first in it, may send the call of another one.
    /// It then has two under way to one server, and if the reader of one of these answers wakes the thread of a request
    /// that has none there, it is that one's. Or two threads have each sent the other's call, if the readers of both
    /// answers say so.
    pub(super) fn of_others(
        &self,
        causes: &[Option<usize>],
        calls: &[usize],
        sent: impl Fn(usize) -> Exchange,
        server: impl Fn(usize) -> Option<Address>,
    ) -> Vec<(usize, usize)> {
        let mut of_request: HashMap<(usize, Address), Vec<usize>> = HashMap::new();
        for &call in calls {
            if let (Some(request), Some(server)) = (causes[call], server(call)) {
                of_request.entry((request, server)).or_default().push(call);
            }
        }
        let is_at_once = |call: usize, other: usize| {
            let (one, other) = (sent(call), sent(other));
            one.asked.at_ns < answered_ns(&other) && other.asked.at_ns < answered_ns(&one)
        };
        let has_other = |request: usize, server: Address, call: usize| {
            let all = of_request.get(&(request, server)).into_iter().flatten();
            all.copied()
                .any(|other| other != call && is_at_once(call, other))
        };
        // Whether the one that it is for by its reader has sent one there that is for `own` by its reader.
        let is_exchanged = |own: usize, by_reader: usize, server: Address, call: usize| {
            let all = of_request.get(&(by_reader, server)).into_iter().flatten();
            all.copied().any(|other| {
                self.request[other - self.first] == Some(own) && is_at_once(call, other)
            })
        };
        let is_of_other = |&call: &usize| {
            let (own, by_reader) = (causes[call]?, self.request[call - self.first]?);
            let server = server(call)?;
            let is_extra = has_other(own, server, call) && !has_other(by_reader, server, call);
            let is_other =
                own != by_reader && (is_extra || is_exchanged(own, by_reader, server, call));
            is_other.then_some((call, by_reader))
        };
        calls.iter().filter_map(is_of_other).collect()
    }
}

/// When a call had its answer.
fn answered_ns(call: &Exchange) -> u64 {
    call.answer.map_or(u64::MAX, |answer| answer.first.at_ns)
}
