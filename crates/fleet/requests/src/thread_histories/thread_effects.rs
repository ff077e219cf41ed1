//! Effects of threads on requests.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::intervals::{Interval, Intervals};
use super::{EndedBy, ThreadHistories};
use crate::fleet_waits::ThreadWaits;
use crate::host_rows::ThreadId;
use crate::requests::{RequestId, Requests};

/// Times at which each thread had an effect on a request: it wrote the answer, or woke the thread that had the request.
#[derive(Debug, Clone)]
pub struct Effects {
    /// In the order of time.
    of: HashMap<ThreadId, Vec<Effect>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Effect {
    at_ns: u64,
    request: RequestId,
}

impl Effects {
    /// Finds the effects of all threads. A wake-up by a message is no effect: the message is.
    #[must_use]
    pub fn new(requests: &Requests, histories: &ThreadHistories<'_>) -> Self {
        let mut of: HashMap<ThreadId, Vec<Effect>> = HashMap::new();
        let mut add = |thread: ThreadId, at_ns: u64, request: RequestId| {
            of.entry(thread).or_default().push(Effect { at_ns, request });
        };
        // 1. Answers.
        let mut owed: HashMap<ThreadId, Vec<Interval<RequestId>>> = HashMap::new();
        for (request, incoming) in (0..).map(RequestId).zip(&requests.incoming) {
            let exchange = &incoming.exchange;
            let asked = exchange.asked;
            owed.entry(asked.thread_id()).or_default().push(Interval {
                from_ns: asked.at_ns,
                to_ns: exchange.sure_until_ns,
                what: request,
            });
            for side in exchange.answer.iter().flat_map(|one| [one.first, one.last]) {
                add(side.thread_id(), side.at_ns, request);
            }
        }
        // 2. Wake-ups of threads with one open request.
        let owed: HashMap<ThreadId, Intervals<RequestId>> =
            owed.into_iter().map(|(thread, open)| (thread, Intervals::new(open))).collect();
        for (&thread, owed) in &owed {
            let waits = histories.waits_of(thread);
            for wait in waits.into_iter().flat_map(ThreadWaits::iter) {
                let Some(woken_ns) = wait.woken_ns else {
                    continue;
                };
                let [Some(request), None] = two_open_at(owed, woken_ns) else {
                    continue;
                };
                if let Some(EndedBy::Waker(waker)) = histories.ended_by(&wait) {
                    add(waker, woken_ns, request);
                }
            }
        }
        for effects in of.values_mut() {
            effects.sort_unstable();
            effects.dedup();
        }
        Self { of }
    }

    /// Returns the time of a thread's next effect on a request after a time.
    pub(crate) fn next_on(
        &self,
        request: RequestId,
        thread: ThreadId,
        after_ns: u64,
    ) -> Option<u64> {
        let effects = self.of.get(&thread)?;
        let first = effects.partition_point(|effect| effect.at_ns <= after_ns);
        let next = effects[first..].iter().find(|effect| effect.request == request);
        next.map(|effect| effect.at_ns)
    }
}

/// Returns two of the requests that are open at a time.
fn two_open_at(owed: &Intervals<RequestId>, at_ns: u64) -> [Option<RequestId>; 2] {
    let mut open = [None, None];
    owed.visit([at_ns, at_ns], |one| {
        if open[0].is_none() {
            open[0] = Some(one.what);
            return ControlFlow::Continue(());
        }
        open[1] = Some(one.what);
        ControlFlow::Break(())
    });
    open
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet_waits::FleetWaits;
    use crate::host_rows::ThreadWait;
    use crate::requests::Incoming;
    use crate::test_rows::{exchange, side, thread_id};

    /// A request that a thread reads, and that it answers.
    fn incoming(id: u32, asked_ns: u64, answered_ns: u64) -> Incoming {
        Incoming { exchange: exchange(side(id, asked_ns), side(id, answered_ns)), from: None }
    }

    fn wait(id: u32, off_ns: u64, woken_ns: u64, waker: u32) -> ThreadWait {
        crate::test_rows::wait(id, [off_ns, woken_ns, woken_ns + 1], Some(waker))
    }

    #[test]
    fn who_wakes_the_thread_of_an_open_request_has_an_effect_on_it() {
        // Worker 9 gives thread 1 its result at 50, and thread 2, whose request is open since 15, its own at 70.
        let requests = Requests {
            incoming: vec![incoming(1, 10, 60), incoming(2, 15, 95)],
            ..Requests::default()
        };
        // Thread 3 has no request.
        let waits = [wait(1, 11, 50, 9), wait(2, 16, 70, 9), wait(3, 5, 75, 9)];
        let waits = FleetWaits::of(&waits).expect("few");
        let effects = Effects::new(&requests, &ThreadHistories::new(&waits, &[], &[]));
        let next =
            |request, id, after_ns| effects.next_on(RequestId(request), thread_id(id), after_ns);
        assert_eq!((next(0, 9, 12), next(0, 9, 50)), (Some(50), None));
        assert_eq!((next(1, 9, 12), next(1, 2, 12)), (Some(70), Some(95)));
    }

    #[test]
    fn of_several_open_requests_none_is_meant() {
        let requests = Requests {
            incoming: vec![incoming(1, 10, 60), incoming(1, 12, 90), incoming(2, 5, 30)],
            ..Requests::default()
        };
        let waits = [wait(2, 6, 20, 9), wait(1, 13, 50, 9), wait(1, 61, 70, 9)];
        let waits = FleetWaits::of(&waits).expect("few");
        let effects = Effects::new(&requests, &ThreadHistories::new(&waits, &[], &[]));
        let next = |request, after_ns| effects.next_on(RequestId(request), thread_id(9), after_ns);
        assert_eq!((next(0, 0), next(1, 0), next(2, 0)), (None, Some(70), Some(20)));
    }
}
