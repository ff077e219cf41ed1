//! Request that each thread works for, followed in the order of time: by what it read, and by who woke it.

use std::collections::BTreeSet;

use super::host_timeline::{HostTimeline, ThreadEvent, ThreadEventKind};
use super::ids::{CallId, RequestId};

/// Time in which a request is open without doubt.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestSpan {
    pub(super) opened_ns: u64,
    pub(super) sure_until_ns: u64,
}

impl RequestSpan {
    pub(super) fn contains(self, at_ns: u64) -> bool {
        self.opened_ns <= at_ns && at_ns <= self.sure_until_ns
    }

    /// Whether it contains both the begin and the end of a call.
    pub(super) fn covers(self, asked_ns: u64, answered_ns: u64) -> bool {
        self.contains(asked_ns) && self.contains(answered_ns)
    }
}

/// State of a thread when an event happens.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EventContext {
    /// Request that the thread works for by what it read itself. At a wake-up, that of the waker.
    pub(super) own: Option<RequestId>,
    /// The only request that the thread has read and not answered. At a wake-up, that of the woken thread.
    pub(super) owes: Option<RequestId>,
    /// Whether it has read several requests that are not answered.
    pub(super) owes_many: bool,
    /// Whether a wake-up may be the result of calls of the waker. It is not if the wait began after the last of them
    /// had its answer. A wait for a lock does.
    pub(super) may_be_result: bool,
    pub(super) woken_for: Option<WokenFor>,
}

/// Request of the thread that woke a thread while it was idle.
#[derive(Debug, Clone, Copy)]
pub(super) struct WokenFor {
    pub(super) request: RequestId,
    /// Rounds of calls that the woken thread has made since.
    pub(super) rounds: usize,
}

/// An open request that a thread has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Owed {
    sure_until_ns: u64,
    request: RequestId,
}

#[derive(Debug, Default)]
struct ThreadState {
    owes: BTreeSet<Owed>,
    own: Option<RequestId>,
    woken_for: Option<RequestId>,
    /// Time of the last call that it sent, or of the last answer that it read.
    called_ns: Option<u64>,
    /// Rounds of calls since it was woken; a round ends with an answer.
    rounds: usize,
    is_new_round: bool,
}

impl ThreadState {
    /// Forgets requests that are over.
    fn forget(&mut self, spans: &[RequestSpan], at_ns: u64) {
        let is_open = |request: &RequestId| spans[request.0].contains(at_ns);
        while self.owes.first().is_some_and(|owed| owed.sure_until_ns < at_ns) {
            self.owes.pop_first();
        }
        self.own = self.own.filter(is_open);
        self.woken_for = self.woken_for.filter(is_open);
    }

    fn only_owed(&self) -> Option<RequestId> {
        let only = self.owes.first().filter(|_| self.owes.len() == 1);
        only.map(|owed| owed.request)
    }
}

/// Returns the context of each event. `causes` has the known cause of each call. Causes of calls that a thread sends
/// while it works for a request that it read itself are added.
pub(super) fn follow_forward(
    timeline: &HostTimeline,
    spans: &[RequestSpan],
    causes: &mut [Option<RequestId>],
) -> Vec<EventContext> {
    let mut states: Vec<ThreadState> =
        (0..timeline.threads).map(|_| ThreadState::default()).collect();
    let mut contexts = Vec::with_capacity(timeline.events.len());
    for event in &timeline.events {
        let &ThreadEvent { at_ns, kind, thread, since_ns } = event;
        states[thread.0].forget(spans, at_ns);
        if let ThreadEventKind::Woken(Some(waker)) = kind {
            states[waker.0].forget(spans, at_ns);
        }
        let state = &states[thread.0];
        let mut context = EventContext {
            own: state.own,
            owes: state.only_owed(),
            owes_many: state.owes.len() > 1,
            may_be_result: false,
            woken_for: state.woken_for.map(|request| WokenFor { request, rounds: state.rounds }),
        };
        if !timeline.has_wake_ups && context.owes_many {
            // What it read last may be another wait ago.
            context.own = None;
        }
        match kind {
            ThreadEventKind::Woken(waker) => {
                let waker_state = waker.map(|waker| &states[waker.0]);
                context.own = waker_state.and_then(|waker| waker.own);
                let called_ns = waker_state.and_then(|waker| waker.called_ns);
                context.may_be_result = called_ns.is_none_or(|called_ns| since_ns <= called_ns);
                let of_waker = waker_state.and_then(|waker| waker.woken_for);
                if states[thread.0].owes.is_empty() {
                    let state = &mut states[thread.0];
                    state.woken_for = context.own.or(of_waker);
                    (state.rounds, state.is_new_round) = (0, true);
                } else if let Some(waker) = waker
                    && context.own.is_none()
                {
                    // It has done for another what it was woken for.
                    states[waker.0].woken_for = None;
                }
                // Which of several requests it goes on with is not known.
                states[thread.0].own = states[thread.0].only_owed();
            }
            ThreadEventKind::ReadsRequest(request) => {
                let state = &mut states[thread.0];
                let sure_until_ns = spans[request.0].sure_until_ns;
                state.owes.insert(Owed { sure_until_ns, request });
                state.own = Some(request);
                state.woken_for = None;
                state.forget(spans, at_ns);
            }
            ThreadEventKind::ReadsAnswer(CallId(call)) => {
                // A loop goes on with what it has read.
                let state = &mut states[thread.0];
                state.own = causes[call].or(state.only_owed());
                (state.is_new_round, state.called_ns) = (true, Some(at_ns));
                state.forget(spans, at_ns);
            }
            ThreadEventKind::Asks(CallId(call)) => {
                causes[call] = causes[call].or(context.own);
                let state = &mut states[thread.0];
                state.called_ns = Some(at_ns);
                state.rounds += usize::from(std::mem::take(&mut state.is_new_round));
                let rounds = state.rounds;
                context.woken_for = state.woken_for.map(|request| WokenFor { request, rounds });
            }
            ThreadEventKind::Answers(request) => {
                let state = &mut states[thread.0];
                state.woken_for = state.woken_for.filter(|&other| other != request);
            }
            ThreadEventKind::Reads | ThreadEventKind::Sends => {}
        }
        contexts.push(context);
    }
    contexts
}
