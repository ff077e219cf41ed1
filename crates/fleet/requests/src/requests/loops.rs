//! Processes whose threads go on with other requests than the one that they have read last.

use std::collections::HashMap;

use super::exchange::Exchange;
use super::forward::Before;
use super::timeline::{Kind, Timeline};

/// The share of a process' answers that must be to the request that the thread works for, by what it has read last.
const OWN_ANSWERS: f64 = 0.98;

/// Of which processes what a thread reads last says what it works for.
///
/// A loop that works for many requests at once may read several things before it goes on with the first, and has calls
/// wait for a connection, or tasks for their turn, in its own memory. What it then does is for others than what it has
/// read last. Its calls do not show it, but its answers do.
#[derive(Debug, Default)]
pub(super) struct Loops {
    of_process: HashMap<u32, Answers>,
}

/// How many answers a process has begun, and how many of them are to the request that the thread worked for.
#[derive(Debug, Clone, Copy, Default)]
struct Answers {
    own: usize,
    all: usize,
}

impl Loops {
    /// Of a host. What is known when an answer begins is compared with what it answers; of threads that have read nothing
    /// themselves, as those of a pool, nothing is known. `received` is the request of a number.
    pub(super) fn new(
        timeline: &Timeline,
        known: &[Before],
        received: impl Fn(usize) -> Exchange,
    ) -> Self {
        let mut loops = Self::default();
        for (event, before) in timeline.events.iter().zip(known) {
            let (Kind::Answers(request), Some(own)) = (event.kind, before.own) else {
                continue;
            };
            let exchange = received(request);
            let begins = exchange.answer.is_some_and(|answer| answer.first.at_ns == event.at_ns);
            if begins {
                let process = exchange.asked.process;
                let answers = loops.of_process.entry(process).or_default();
                answers.own += usize::from(own == request);
                answers.all += 1;
            }
        }
        loops
    }

    /// Whether the threads of a process work for what they have read last.
    pub(super) fn follows_what_it_reads(&self, process: u32) -> bool {
        let answers = self.of_process.get(&process);
        answers.is_none_or(|answers| answers.own as f64 >= OWN_ANSWERS * answers.all as f64)
    }
}
