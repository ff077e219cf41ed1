//! What each thread works for, told in the order of time: by what it has read, and by who woke it.

use std::collections::BTreeSet;

use super::timeline::{Event, Kind, Timeline};

/// The requests that come in, as far as hand-over needs them: from when to when each is without doubt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) opened_ns: u64,
    pub(super) sure_until_ns: u64,
}

impl Span {
    pub(super) fn contains(self, at_ns: u64) -> bool {
        self.opened_ns <= at_ns && at_ns <= self.sure_until_ns
    }
}

/// What is known when an event happens.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Before {
    /// The request that the thread works for by what it has read itself. Of a wake-up, of the thread that wakes.
    pub(super) own: Option<usize>,
    /// The only request that the thread has read and that is not answered. Of a wake-up, of the thread that is woken.
    pub(super) owes: Option<usize>,
    /// Whether it has read several that are not answered.
    pub(super) owes_many: bool,
    /// Of a wake-up, whether it may be the result of calls that the thread that wakes has made: not if the other one
    /// began to wait after the last of them had its answer, as it does for a lock.
    pub(super) may_be_result: bool,
    /// The request of whoever woke it while it was idle, and how many rounds of calls it has made since.
    pub(super) woken_for: Option<(usize, usize)>,
}

#[derive(Debug, Default)]
struct State {
    /// Requests that it read and that are open, by until when that is sure.
    owes: BTreeSet<(u64, usize)>,
    own: Option<usize>,
    woken_for: Option<usize>,
    /// When it last asked or read an answer.
    called_ns: Option<u64>,
    /// Rounds of calls since then; a round ends with an answer.
    rounds: usize,
    is_new_round: bool,
}

impl State {
    fn forget(&mut self, spans: &[Span], at_ns: u64) {
        let is_open = |request: &usize| spans[*request].contains(at_ns);
        while self.owes.first().is_some_and(|&(until_ns, _)| until_ns < at_ns) {
            self.owes.pop_first();
        }
        self.own = self.own.filter(is_open);
        self.woken_for = self.woken_for.filter(is_open);
    }

    fn owes_one(&self) -> Option<usize> {
        let only = self.owes.first().filter(|_| self.owes.len() == 1);
        only.map(|&(_, request)| request)
    }
}

/// What is known at each event. `causes` has the request that each outgoing one belongs to, if that is known already;
/// those that a thread sends while it works for one that it has read itself are added.
pub(super) fn forward(
    timeline: &Timeline,
    spans: &[Span],
    causes: &mut [Option<usize>],
) -> Vec<Before> {
    let mut states: Vec<State> = (0..timeline.threads).map(|_| State::default()).collect();
    let mut known = Vec::with_capacity(timeline.events.len());
    for event in &timeline.events {
        let &Event { at_ns, kind, thread, since_ns } = event;
        states[thread].forget(spans, at_ns);
        if let Kind::Woken(Some(waker)) = kind {
            states[waker].forget(spans, at_ns);
        }
        let mut before = Before {
            own: states[thread].own,
            owes: states[thread].owes_one(),
            owes_many: states[thread].owes.len() > 1,
            may_be_result: false,
            woken_for: states[thread].woken_for.map(|request| (request, states[thread].rounds)),
        };
        if !timeline.has_wake_ups && before.owes_many {
            // What it has read last may be another wait ago.
            before.own = None;
        }
        match kind {
            Kind::Woken(waker) => {
                before.own = waker.and_then(|waker| states[waker].own);
                let called_ns = waker.and_then(|waker| states[waker].called_ns);
                before.may_be_result = called_ns.is_none_or(|called_ns| since_ns <= called_ns);
                let of_waker = waker.and_then(|waker| states[waker].woken_for);
                let is_idle = states[thread].owes.is_empty();
                if is_idle {
                    let state = &mut states[thread];
                    state.woken_for = before.own.or(of_waker);
                    (state.rounds, state.is_new_round) = (0, true);
                } else if let Some(waker) = waker
                    && before.own.is_none()
                {
                    // It has done for another what it was woken for.
                    states[waker].woken_for = None;
                }
                // Which of several requests it goes on with is not known.
                states[thread].own = states[thread].owes_one();
            }
            Kind::ReadsRequest(request) => {
                let state = &mut states[thread];
                state.owes.insert((spans[request].sure_until_ns, request));
                state.own = Some(request);
                state.woken_for = None;
                state.forget(spans, at_ns);
            }
            Kind::ReadsAnswer(call) => {
                // A loop goes on with what it has read.
                let state = &mut states[thread];
                state.own = causes[call].or(state.owes_one());
                (state.is_new_round, state.called_ns) = (true, Some(at_ns));
                state.forget(spans, at_ns);
            }
            Kind::Asks(call) => {
                causes[call] = causes[call].or(before.own);
                let state = &mut states[thread];
                state.called_ns = Some(at_ns);
                state.rounds += usize::from(std::mem::take(&mut state.is_new_round));
                before.woken_for = state.woken_for.map(|request| (request, state.rounds));
            }
            Kind::Answers(request) => {
                let state = &mut states[thread];
                state.woken_for = state.woken_for.filter(|&other| other != request);
            }
            Kind::Reads | Kind::Sends => {}
        }
        known.push(before);
    }
    known
}
