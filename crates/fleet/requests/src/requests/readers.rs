//! What the threads that read answers say of the calls that others have sent.

use std::ops::Range;

use super::exchange::Exchange;
use super::forward::{Before, Span};
use super::timeline::{Kind, Timeline};

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
        let mut readers =
            Self { first, is_others: vec![false; calls.len()], request: vec![None; calls.len()] };
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

    /// The request of the thread that the reader of a call's answer has woken, if another thread had sent the call and
    /// that is known.
    pub(super) fn says(&self, call: usize) -> Option<usize> {
        self.request[call - self.first]
    }
}
