//! The time in which a trouble was there, and how often it was met.

use std::sync::Mutex;

use luc_twin_truth::{Kind, Planted, WorkKind};

use crate::clock::now_ns;
use crate::error::TwinError;
use crate::log::Recorder;
use crate::sync::locked;

/// The row of a trouble, until the end.
#[derive(Debug)]
pub(super) struct Span(Mutex<State>);

#[derive(Debug)]
struct State {
    planted: Planted,
    is_open: bool,
}

impl Span {
    pub(super) fn new(kind: Kind, strength: u64) -> Self {
        let planted =
            Planted { kind, from_ns: u64::MAX, to_ns: 0, thread: 0, holder: 0, strength, times: 0 };
        Self(Mutex::new(State { planted, is_open: false }))
    }

    pub(super) fn begin(&self) {
        let mut state = locked(&self.0);
        state.planted.from_ns = state.planted.from_ns.min(now_ns());
        state.planted.times += 1;
        state.is_open = true;
    }

    pub(super) fn end(&self) {
        let mut state = locked(&self.0);
        state.planted.to_ns = now_ns();
        state.is_open = false;
    }

    /// A trouble that is there from now on.
    pub(super) fn open(kind: Kind, strength: u64) -> Self {
        let span = Self::new(kind, strength);
        span.begin();
        span
    }

    /// Notes that the trouble was met in this time.
    pub(super) fn note(&self, [from_ns, to_ns]: [u64; 2]) {
        let planted = &mut locked(&self.0).planted;
        planted.from_ns = planted.from_ns.min(from_ns);
        planted.to_ns = planted.to_ns.max(to_ns);
        planted.times += 1;
    }

    /// Does the work by which a search meets the trouble, and records it.
    pub(super) fn work(
        &self,
        request: u64,
        recorder: &Recorder,
        work: impl FnOnce() -> Result<(), TwinError>,
    ) -> Result<(), TwinError> {
        let from_ns = now_ns();
        work()?;
        let times = [from_ns, now_ns()];
        recorder.work(request, WorkKind::Planted, times);
        self.note(times);
        Ok(())
    }

    /// Sets the thread that is the cause.
    pub(super) fn set_thread(&self, thread: u32) {
        locked(&self.0).planted.thread = thread;
    }

    /// Sets the thread that holds what others wait for, which is the cause.
    pub(super) fn set_holder(&self, holder: u32) {
        let planted = &mut locked(&self.0).planted;
        planted.thread = holder;
        planted.holder = holder;
    }

    /// Returns the row; none if the trouble was never there.
    pub(super) fn planted(&self) -> Vec<Planted> {
        let state = locked(&self.0);
        let mut planted = state.planted;
        if state.is_open {
            planted.to_ns = now_ns();
        }
        Vec::from_iter((planted.times > 0).then_some(planted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_still_there_lasts_until_the_end() {
        let span = Span::new(Kind::Loss, 5);
        assert_eq!(span.planted(), []);
        let before_ns = now_ns();
        span.begin();
        let row = |span: &Span| span.planted()[0];
        assert!(row(&span).from_ns >= before_ns && row(&span).to_ns >= row(&span).from_ns);
        assert!(row(&span).to_ns < row(&span).to_ns);
        span.end();
        assert_eq!(row(&span), row(&span));
        assert_eq!((row(&span).times, row(&span).strength), (1, 5));
    }

    #[test]
    fn times_of_several_searches_are_one_row() {
        let span = Span::new(Kind::Cpu, 5);
        for times in [[20, 30], [10, 40], [15, 25]] {
            span.note(times);
        }
        let row = span.planted()[0];
        assert_eq!((row.from_ns, row.to_ns, row.times), (10, 40, 3));
    }
}
