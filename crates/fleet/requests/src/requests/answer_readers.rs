//! Causes of calls, inferred from the threads that read the answers.

use std::ops::Range;

use super::exchange::Exchange;
use super::follow_threads::{EventContext, RequestSpan};
use super::host_timeline::{HostTimeline, ThreadEventKind};
use super::ids::{AssignedCall, CallId, PredictionScore, RequestId, ThreadIndex};

/// Minimum share of calls for which readers and senders must agree, so that senders' effects are trusted alone.
const MIN_SENDER_AGREEMENT: f64 = 0.98;

/// Calls whose answer another thread reads than the one that sent them.
///
/// A client in the background may send a call when a connection becomes free, by whatever thread is there then. What
/// that thread does next is no result of the call. But the reader of the answer hands it on: it wakes the thread that
/// has the request, itself or by a thread that it wakes.
#[derive(Debug, Default)]
pub(super) struct AnswerReaders {
    /// Index of the host's first call.
    first: usize,
    /// By call of the host: whether another thread reads its answer.
    is_read_by_another: Vec<bool>,
    /// By call of the host: the request of the thread that was woken for the answer, if another thread reads it.
    requests: Vec<Option<RequestId>>,
}

impl AnswerReaders {
    /// Finds the threads that the readers of answers wake. `calls` are the host's; `sent` returns a call's exchange.
    pub(super) fn new(
        timeline: &HostTimeline,
        spans: &[RequestSpan],
        contexts: &[EventContext],
        calls: Range<usize>,
        sent: impl Fn(CallId) -> Exchange,
    ) -> Self {
        let first = calls.start;
        let mut readers = Self {
            first,
            is_read_by_another: vec![false; calls.len()],
            requests: vec![None; calls.len()],
        };
        let mut senders: Vec<Option<ThreadIndex>> = vec![None; calls.len()];
        // The call whose answer each thread has, and whether that answer was handed over.
        let mut answers: Vec<Option<CallId>> = vec![None; timeline.threads];
        let mut is_done = vec![false; calls.len()];
        for (event, context) in timeline.events.iter().zip(contexts) {
            let thread = event.thread;
            match event.kind {
                ThreadEventKind::Asks(call) => senders[call.0 - first] = Some(thread),
                ThreadEventKind::ReadsRequest(_) => answers[thread.0] = None,
                ThreadEventKind::ReadsAnswer(call) => {
                    let is_another = senders[call.0 - first].is_some_and(|sender| sender != thread);
                    readers.is_read_by_another[call.0 - first] |= is_another;
                    answers[thread.0] = is_another.then_some(call);
                }
                ThreadEventKind::Woken(Some(waker)) if waker != thread => {
                    let answer = answers[waker.0].filter(|call| !is_done[call.0 - first]);
                    answers[thread.0] = None;
                    let (Some(call), false) = (answer, context.owes_many) else {
                        continue;
                    };
                    let Some(request) = context.owes else {
                        answers[thread.0] = Some(call);
                        continue;
                    };
                    is_done[call.0 - first] = true;
                    let was_open = spans[request.0].contains(sent(call).asked.at_ns);
                    readers.requests[call.0 - first] = was_open.then_some(request);
                }
                _ => {}
            }
        }
        readers
    }

    /// Returns the causes of calls by the readers of their answers.
    pub(super) fn causes(&self) -> impl Iterator<Item = AssignedCall<CallId, RequestId>> {
        let calls = (self.first..).map(CallId).zip(&self.requests);
        calls.filter_map(|(call, request)| Some(AssignedCall { call, request: (*request)? }))
    }

    /// Drops causes by senders' effects that are not to be trusted: where readers and senders disagree too often, those
    /// of all calls whose answer another thread reads.
    pub(super) fn keep_trusted(&self, by_effect: &mut Vec<AssignedCall<CallId, RequestId>>) {
        let mut agreement = PredictionScore::default();
        for one in &*by_effect {
            if let Some(by_reader) = self.cause_of(one.call) {
                agreement.add(by_reader == one.request);
            }
        }
        if !agreement.reaches(MIN_SENDER_AGREEMENT) {
            by_effect.retain(|one| !self.is_read_by_another[one.call.0 - self.first]);
        }
    }

    /// Returns the request of the thread that the reader of a call's answer woke. `None` if the reader had sent the
    /// call itself.
    pub(super) fn cause_of(&self, call: CallId) -> Option<RequestId> {
        self.requests[call.0 - self.first]
    }
}
