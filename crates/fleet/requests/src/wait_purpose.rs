//! Whether a thread that waits has nothing to do, or waits for an answer.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use crate::fleet_waits::{HostWaits, ThreadWaits};
use crate::host_rows::{ThreadId, ThreadWait};
use crate::requests::{Exchange, ExchangeAnswer, Requests};
use crate::thread_histories::{Effects, Interval, Intervals, ThreadHistories};

/// Purpose of a wait for input, a lock or another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitPurpose {
    /// Work: the thread has no open request.
    Work,
    /// An answer: the thread has an open request, or has sent one.
    Answer,
    /// Work or an answer: the answers to its requests are not known.
    NotKnown,
}

/// Maximum share of a thread's requests that may be in doubt. Up to it, the others still tell when it has work.
const MAX_DOUBTFUL_SHARE: f64 = 0.02;

/// Times at which threads had something to do.
#[derive(Debug, Clone, Default)]
pub struct EngagedTimes {
    of: HashMap<ThreadId, Intervals<()>>,
    not_known: HashSet<ThreadId>,
}

impl EngagedTimes {
    /// Finds the times at which a thread has something to do:
    ///
    /// - from a request that it reads to the answer, if it writes the answer itself;
    /// - from a call that it sends to the answer; this is also true of the thread that reads the answer;
    /// - from the first call that it sends for a request to its effect on that request.
    #[must_use]
    pub fn new(requests: &Requests, effects: &Effects) -> Self {
        let mut of: HashMap<ThreadId, Vec<Interval<()>>> = HashMap::new();
        let mut add = |thread: ThreadId, from_ns: u64, to_ns: u64| {
            of.entry(thread).or_default().push(Interval { from_ns, to_ns, what: () });
        };
        for incoming in &requests.incoming {
            let Exchange { asked, answer, .. } = incoming.exchange;
            if let Some(ExchangeAnswer { last, .. }) = answer
                && asked.thread_id() == last.thread_id()
            {
                add(asked.thread_id(), asked.at_ns, last.at_ns);
            }
        }
        for outgoing in &requests.outgoing {
            let Exchange { asked, answer, .. } = outgoing.exchange;
            let thread = asked.thread_id();
            if let Some(ExchangeAnswer { last, .. }) = answer {
                add(thread, asked.at_ns, last.at_ns);
                if last.thread_id() != thread {
                    add(last.thread_id(), asked.at_ns, last.at_ns);
                }
            }
            let effect_ns = outgoing
                .cause
                .and_then(|cause| effects.next_on(cause.request, thread, asked.at_ns));
            if let Some(effect_ns) = effect_ns {
                add(thread, asked.at_ns, effect_ns);
            }
        }
        let of = of.into_iter();
        Self {
            of: of.map(|(thread, times)| (thread, Intervals::new(times))).collect(),
            not_known: find_doubtful_threads(requests),
        }
    }

    /// Returns the purpose of a wait, by whether the thread had something to do when it began. `None`: a wait for a
    /// time, a disk or the like.
    #[must_use]
    pub fn awaits(&self, wait: &ThreadWait) -> Option<WaitPurpose> {
        // Nobody ends a wait that is only for a processor.
        let is_for_others =
            wait.may_be_input && wait.woken_ns.is_some_and(|at_ns| at_ns > wait.off_ns);
        is_for_others.then(|| self.at(wait.thread_id(), wait.off_ns))
    }

    /// Returns the purpose of a wait at a time, if it is for input, a lock or another thread.
    #[must_use]
    pub fn at(&self, thread: ThreadId, at_ns: u64) -> WaitPurpose {
        if self.not_known.contains(&thread) {
            return WaitPurpose::NotKnown;
        }
        let Some(times) = self.of.get(&thread) else {
            return WaitPurpose::Work;
        };
        let mut awaits = WaitPurpose::Work;
        times.visit([at_ns, at_ns], |one| {
            // An answer is over when it has been read or begins to be written.
            if one.to_ns == at_ns {
                return ControlFlow::Continue(());
            }
            awaits = WaitPurpose::Answer;
            ControlFlow::Break(())
        });
        awaits
    }
}

/// Finds threads with too many requests that may not be what they seem.
fn find_doubtful_threads(requests: &Requests) -> HashSet<ThreadId> {
    let incoming = requests.incoming.iter().map(|one| &one.exchange);
    let outgoing = requests.outgoing.iter().map(|one| &one.exchange);
    // By thread: the number of exchanges in doubt, and of all.
    let mut counts: HashMap<ThreadId, (usize, usize)> = HashMap::new();
    for exchange in incoming.chain(outgoing) {
        let is_doubtful = exchange.is_of_several || exchange.sure_until_ns == 0;
        let answered = exchange.answer.map(|answer| answer.last);
        let mut threads: Vec<ThreadId> = [Some(exchange.asked), answered]
            .into_iter()
            .flatten()
            .map(|side| side.thread_id())
            .collect();
        threads.dedup();
        for thread in threads {
            let (doubtful, all) = counts.entry(thread).or_default();
            *doubtful += usize::from(is_doubtful);
            *all += 1;
        }
    }
    let many =
        |(doubtful, all): &(usize, usize)| *doubtful as f64 > MAX_DOUBTFUL_SHARE * *all as f64;
    let threads = counts.into_iter().filter(|(_, counts)| many(counts));
    threads.map(|(thread, _)| thread).collect()
}

/// Periodic wake-ups of a thread by itself, after which it found nothing to do and slept again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeriodicWakeups {
    pub thread: ThreadId,
    pub times: u64,
    /// Median of the times between two ticks that follow each other, ns.
    pub period_ns: u64,
}

/// Minimum number of ticks of a thread; fewer are by chance.
const MIN_TICKS: usize = 3;
/// Maximum time that a thread runs for a tick, ns. One that runs longer does something, though no row says what.
const MAX_AWAKE_NS: u64 = 1_000_000;
/// Minimum period of a timer, ns.
const MIN_PERIOD_NS: u64 = 100_000;

/// Finds threads that tick, those with the most ticks first. Without an open request they wake at even times by
/// themselves, and run briefly. Until they sleep again they neither send, nor receive, nor wake anybody.
#[must_use]
pub fn ticks(histories: &ThreadHistories<'_>, engaged: &EngagedTimes) -> Vec<PeriodicWakeups> {
    let of_host = |host: &HostWaits| -> Vec<PeriodicWakeups> {
        let thread_id = |thread| ThreadId { host: host.host(), thread };
        let threads = host.by_thread();
        threads
            .filter_map(|(thread, waits)| find_ticks(thread_id(thread), waits, histories, engaged))
            .collect()
    };
    let mut found: Vec<PeriodicWakeups> = histories.waits().hosts().flat_map(of_host).collect();
    found.sort_unstable_by_key(|one| (std::cmp::Reverse(one.times), one.thread));
    found
}

fn find_ticks(
    thread: ThreadId,
    waits: ThreadWaits<'_>,
    histories: &ThreadHistories<'_>,
    engaged: &EngagedTimes,
) -> Option<PeriodicWakeups> {
    // A wait for a processor is part of what the thread does.
    let is_sleep = |wait: &ThreadWait| wait.woken_ns.is_some_and(|at_ns| at_ns > wait.off_ns);
    let is_tick = |before: &ThreadWait, after: &ThreadWait| {
        let (woke_ns, slept_ns) = (before.on_ns, after.off_ns);
        let mut woken = histories.waits().ended_by(thread, [woke_ns, slept_ns]);
        let is_brief = slept_ns.saturating_sub(woke_ns) <= MAX_AWAKE_NS;
        is_brief
            && before.waker.is_none()
            && !histories.called(thread, [woke_ns, slept_ns])
            && !woken.any(|wait| is_sleep(&wait))
            && engaged.at(thread, woke_ns) == WaitPurpose::Work
    };
    let mut at_ns: Vec<u64> = Vec::new();
    let mut before: Option<ThreadWait> = None;
    for wait in waits.iter().filter(is_sleep) {
        let tick = before.filter(|before| is_tick(before, &wait));
        at_ns.extend(tick.map(|before| before.on_ns));
        before = Some(wait);
    }
    if at_ns.len() < MIN_TICKS {
        return None;
    }
    let between = at_ns.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let mut between_ns: Vec<u64> = between.collect();
    between_ns.sort_unstable();
    let period_ns = between_ns[between_ns.len() / 2];
    let is_even = |between_ns: &&u64| between_ns.abs_diff(period_ns) <= period_ns / 4;
    let even = between_ns.iter().filter(is_even).count();
    let is_periodic = period_ns >= MIN_PERIOD_NS && 2 * even >= between_ns.len();
    is_periodic.then_some(PeriodicWakeups { thread, times: at_ns.len() as u64, period_ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet_waits::FleetWaits;
    use crate::requests::{CallCause, HandOver, Incoming, Outgoing, RequestId};
    use crate::test_rows::{exchange, side};

    fn wait(id: u32, off_ns: u64, woken_ns: u64, waker: Option<u32>) -> ThreadWait {
        crate::test_rows::wait(id, [off_ns, woken_ns, woken_ns + 5], waker)
    }

    /// Thread 1 reads a request and gives it to worker 2, which asks another host and wakes thread 1.
    #[test]
    fn who_has_an_open_request_waits_for_an_answer() {
        let requests = Requests {
            incoming: vec![Incoming { exchange: exchange(side(1, 100), side(1, 900)), from: None }],
            outgoing: vec![Outgoing {
                exchange: exchange(side(2, 200), side(2, 500)),
                cause: Some(CallCause { request: RequestId(0), evidence: HandOver::Backward }),
                to: None,
            }],
            without_role: Vec::new(),
        };
        let waits = [
            wait(1, 10, 90, None),
            wait(1, 120, 800, Some(2)),
            wait(1, 910, 950, None),
            wait(2, 10, 110, Some(1)),
            wait(2, 210, 490, None),
            wait(2, 550, 600, Some(3)),
            wait(2, 810, 990, None),
        ];
        let of_all = FleetWaits::of(&waits).expect("few");
        let histories = ThreadHistories::new(&of_all, &[], &[]);
        let effects = Effects::new(&requests, &histories);
        let engaged = EngagedTimes::new(&requests, &effects);
        let found: Vec<_> = waits.iter().map(|wait| engaged.awaits(wait)).collect();
        let (work, answer) = (Some(WaitPurpose::Work), Some(WaitPurpose::Answer));
        assert_eq!(found, [work, answer, work, work, answer, answer, work]);
        let for_a_disk = ThreadWait { may_be_input: false, ..waits[1] };
        assert_eq!(engaged.awaits(&for_a_disk), None);
    }

    #[test]
    fn who_wakes_for_nothing_ticks() {
        let times = || (0..20).map(|at| 1_000_000 * at);
        let mut waits: Vec<ThreadWait> =
            times().map(|at| wait(1, at, at + 900_000, None)).collect();
        // Thread 2 wakes thread 4 each time, thread 3 runs for long, and thread 5 wakes at other times each time.
        waits.extend(times().map(|at| wait(2, at, at + 900_000, None)));
        waits.extend(times().map(|at| wait(4, at + 10, at + 900_010, Some(2))));
        waits.extend((0..20).map(|at| wait(3, 9_000_000 * at, 9_000_000 * at + 900, None)));
        waits.extend((1..20).map(|at| wait(5, 1_000_000 << at, (2_000_000 << at) - 900, None)));
        let waits = FleetWaits::of(&waits).expect("few");
        let found = ticks(&ThreadHistories::new(&waits, &[], &[]), &EngagedTimes::default());
        let plain: Vec<_> =
            found.iter().map(|one| (one.thread.thread.id, one.times, one.period_ns)).collect();
        assert_eq!(plain, [(1, 19, 1_000_000)]);
    }
}
