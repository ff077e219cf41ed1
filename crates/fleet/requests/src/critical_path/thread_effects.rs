//! Effects of threads on requests.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::intervals::{Interval, Intervals};
use super::{CriticalPaths, EndedBy};
use crate::fleet_waits::ThreadWaits;
use crate::host_rows::ThreadId;
use crate::requests::{RequestId, Requests};

/// Times at which each thread had an effect on a request: it wrote the answer, or woke the thread that had the request.
/// Its work before, since its effect on another request, was for this request or for none.
#[derive(Debug, Clone)]
pub struct Effects<'r> {
    requests: &'r Requests,
    /// In the order of time.
    of: HashMap<ThreadId, Vec<Effect>>,
    /// Requests that threads have read, while they are open.
    owed: HashMap<ThreadId, Intervals<RequestId>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Effect {
    at_ns: u64,
    request: RequestId,
}

impl<'r> Effects<'r> {
    /// Finds the effects of all threads. A wake-up by a message is no effect: the message is.
    #[must_use]
    pub fn new(requests: &'r Requests, paths: &CriticalPaths<'_>) -> Self {
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
            let waits = paths.waits_of(thread);
            for wait in waits.into_iter().flat_map(ThreadWaits::iter) {
                let Some(woken_ns) = wait.woken_ns else {
                    continue;
                };
                let [Some(request), None] = two_open_at(owed, woken_ns) else {
                    continue;
                };
                if let Some(EndedBy::Waker(waker)) = paths.ended_by(&wait) {
                    add(waker, woken_ns, request);
                }
            }
        }
        for effects in of.values_mut() {
            effects.sort_unstable();
            effects.dedup();
        }
        Self { requests, of, owed }
    }

    /// Returns the request that a thread had an effect on at this time.
    #[must_use]
    pub fn request_at(&self, thread: ThreadId, at_ns: u64) -> Option<RequestId> {
        let effects = self.of.get(&thread)?;
        let first = effects.partition_point(|effect| effect.at_ns < at_ns);
        let effect = effects.get(first)?;
        (effect.at_ns == at_ns).then_some(effect.request)
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

    /// Returns the time of a thread's last effect on another request. The effect was before its work for the request
    /// that it has an effect on at `at_ns`. `None`: it had none, or the request is not known.
    ///
    /// A thread that has read the request itself works for it since then. One that has read another one, and not
    /// answered it, is no worker that takes requests from others: it may have held a lock.
    #[must_use]
    pub fn on_another_before(&self, thread: ThreadId, at_ns: u64) -> Option<u64> {
        let request = self.request_at(thread, at_ns)?;
        let effects = self.of.get(&thread)?;
        let asked = self.requests.incoming.get(request.0)?.exchange.asked;
        let before = if asked.thread_id() == thread {
            effects.partition_point(|effect| effect.at_ns <= asked.at_ns)
        } else {
            let owes = |owed| two_open_at(owed, at_ns)[0].is_some();
            if self.owed.get(&thread).is_some_and(owes) {
                return None;
            }
            effects.partition_point(|effect| effect.at_ns < at_ns)
        };
        let other = effects[..before].iter().rev().find(|effect| effect.request != request);
        other.map(|effect| effect.at_ns)
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
    fn a_worker_worked_for_another_request_until_its_last_effect() {
        // Worker 9 gives thread 1 its result at 50, and then works for thread 2, whose request is open since 15.
        let requests = Requests {
            incoming: vec![incoming(1, 10, 60), incoming(2, 15, 95)],
            ..Requests::default()
        };
        let waits = [
            wait(1, 11, 50, 9),
            wait(2, 16, 70, 9),
            wait(2, 72, 80, 9),
            // Thread 3 has no request.
            wait(3, 5, 75, 9),
        ];
        let waits = FleetWaits::of(&waits).expect("few");
        let paths = CriticalPaths::new(&waits, &[], &[]);
        let effects = Effects::new(&requests, &paths);
        let before = |id: u32, at_ns| effects.on_another_before(thread_id(id), at_ns);
        assert_eq!(effects.request_at(thread_id(9), 50), Some(RequestId(0)));
        assert_eq!(effects.request_at(thread_id(9), 51), None);
        assert_eq!(before(9, 70), Some(50));
        assert_eq!(before(9, 80), Some(50));
        assert_eq!(before(9, 50), None);
        // It had no effect then, as far as is known.
        assert_eq!(before(9, 75), None);
        // Thread 1 has only answered its own request.
        assert_eq!(before(1, 60), None);
    }

    #[test]
    fn who_has_read_a_request_works_for_it_since_then() {
        // Thread 1 answers its first request at 30 and reads another one at 40. It gives a lock to thread 2, whose
        // request is open, at 50.
        let requests = Requests {
            incoming: vec![incoming(1, 10, 30), incoming(1, 40, 60), incoming(2, 15, 95)],
            ..Requests::default()
        };
        let waits = FleetWaits::of(&[wait(2, 16, 50, 1)]).expect("few");
        let paths = CriticalPaths::new(&waits, &[], &[]);
        let effects = Effects::new(&requests, &paths);
        // Its effect on thread 2 was after it had read its own request.
        assert_eq!(effects.on_another_before(thread_id(1), 60), Some(30));
        // It is no worker of thread 2.
        assert_eq!(effects.on_another_before(thread_id(1), 50), None);
    }

    #[test]
    fn of_several_open_requests_none_is_meant() {
        let requests = Requests {
            incoming: vec![incoming(1, 10, 60), incoming(1, 12, 90), incoming(2, 5, 30)],
            ..Requests::default()
        };
        let waits = [wait(2, 6, 20, 9), wait(1, 13, 50, 9), wait(1, 61, 70, 9)];
        let waits = FleetWaits::of(&waits).expect("few");
        let effects = Effects::new(&requests, &CriticalPaths::new(&waits, &[], &[]));
        assert_eq!(effects.on_another_before(thread_id(9), 50), None);
        assert_eq!(effects.on_another_before(thread_id(9), 70), Some(20));
    }
}
