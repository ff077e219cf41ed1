//! Processes whose threads go on with other requests than the one that they read last.

use std::collections::HashMap;

use super::exchange::Exchange;
use super::follow_threads::EventContext;
use super::host_timeline::{HostTimeline, ThreadEventKind};
use super::ids::{PredictionScore, RequestId};

/// Minimum share of a process' answers that must be to the request that the thread read last.
const MIN_OWN_ANSWERS: f64 = 0.98;

/// Processes by whether a thread works for what it read last.
///
/// A loop that works for many requests at once may read several things before it goes on with the first. Its calls wait
/// for a connection, and its tasks for their turn, in its own memory. So it works for other requests than the one that
/// it read last. Its calls do not show that, but its answers do.
#[derive(Debug, Default)]
pub(super) struct EventLoops {
    /// By process: whether each answer that it began was to the request that the thread worked for.
    answers: HashMap<u32, PredictionScore>,
}

impl EventLoops {
    /// Compares the request that each answer of a host is to with the one that its thread worked for. Threads that have
    /// read nothing themselves, such as those of a pool, do not count. `received` returns a request's exchange.
    pub(super) fn new(
        timeline: &HostTimeline,
        contexts: &[EventContext],
        received: impl Fn(RequestId) -> Exchange,
    ) -> Self {
        let mut loops = Self::default();
        for (event, context) in timeline.events.iter().zip(contexts) {
            let (ThreadEventKind::Answers(request), Some(own)) = (event.kind, context.own) else {
                continue;
            };
            let exchange = received(request);
            if exchange.answer.is_some_and(|answer| answer.first.at_ns == event.at_ns) {
                loops.answers.entry(exchange.asked.process).or_default().add(own == request);
            }
        }
        loops
    }

    /// Whether the threads of a process work for what they read last.
    pub(super) fn follows_what_it_reads(&self, process: u32) -> bool {
        self.answers.get(&process).is_none_or(|answers| answers.reaches(MIN_OWN_ANSWERS))
    }
}
