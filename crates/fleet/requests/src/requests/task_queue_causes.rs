//! Causes of calls of a process that hands the tasks of its requests to one queue. They are inferred from the times
//! at which tasks can have been put and taken.
//!
//! A queue in memory that keeps the order gives the first task put to the thread that takes first. The times of puts
//! and takes are not recorded, but a thread puts and takes while it runs. It puts after it has read the request, and
//! before it sleeps to wait for the results. It takes after it woke up, and before it sends the call.
//!
//! So orders of puts and takes are drawn that agree with these times and with what else is known. They are drawn by
//! the Metropolis rule. A call is for a request if that is so in nearly all draws. Some known calls are hidden from
//! some of the draws: only if the draws predict these, other calls are assigned.

mod queue_order_chain;
mod queue_task_times;
mod task_queue;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use luc_fleet_clocks::HostId;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use super::ids::{AssignedCall, CallPosition, PredictionScore, RequestRank};
use crate::fleet_waits::FleetWaits;
use crate::host_rows::ThreadIdentity;
use queue_order_chain::QueueOrderChain;
use queue_task_times::{CallOrReadMoment, QueueThreads};
pub(super) use task_queue::{PutTasks, TakenTask};
use task_queue::{QueueCall, QueueRequest, TaskQueue};

/// Number of chains, which begin alike and have other random numbers. One alone may stay with unlikely orders.
const CHAIN_COUNT: u64 = 4;
/// Number of sweeps of a chain, with those before the first that counts.
const SWEEPS_PER_CHAIN: usize = 200;
/// Number of sweeps before the first that counts.
const WARM_UP_SWEEPS: usize = 100;
/// Shares of draws in which a call must be for one request, to be assigned to it. The lowest one is used with which
/// hidden calls are predicted correctly.
const CONFIDENCE_THRESHOLDS: [f64; 4] = [0.8, 0.9, 0.95, 0.99];
/// Maximum number of calls of a process, as each call takes a thousand moves.
const MAX_CALLS: usize = 100_000;
/// Number of calls that are drawn together.
const STRETCH_CALLS: usize = 1_024;
/// Number of calls on either side of a stretch that are drawn with it, but not assigned.
const MARGIN_CALLS: usize = 64;
/// One of this many known calls is hidden for the test.
const HIDDEN_INTERVAL: usize = 8;
/// Minimum number of calls that a rule must have been tried on.
const MIN_KNOWN_CALLS: usize = 20;
/// Share of hidden calls that must be predicted correctly.
const MIN_ACCURACY: f64 = 0.99;
/// Minimum share, in the calls that woke nobody, of those whose request still waited for an earlier result. From it
/// on, requests are assumed to read results in order.
const MIN_IN_ORDER_SHARE: f64 = 0.9;

/// Assigns calls without a cause to requests. `calls` are in send order, `requests` in receive order.
pub(super) fn infer_causes(
    host: HostId,
    waits: &FleetWaits,
    calls: &[TakenTask],
    requests: &[PutTasks],
    calls_per_request: usize,
) -> Vec<AssignedCall<CallPosition, RequestRank>> {
    // 1. Times at which tasks can have been put and taken.
    let is_all_known = calls.iter().all(|call| call.cause.is_some());
    let mut takers: Vec<ThreadIdentity> = calls.iter().map(|call| call.thread).collect();
    takers.sort_unstable();
    takers.dedup();
    let threads = QueueThreads::new(host, waits, &takers);
    let Some(threads) = threads.filter(|_| !is_all_known && calls.len() <= MAX_CALLS) else {
        return Vec::new();
    };
    let requests = queue_requests(&threads, calls, requests);
    let mut queue = TaskQueue {
        calls: queue_calls(&threads, calls),
        requests: &requests,
        waits_in_order: false,
    };
    queue.waits_in_order = queue.seems_to_wait_in_order();
    // 2. A test with hidden calls.
    let stretches = queue.split_into_stretches(calls_per_request);
    let Some(threshold) = queue.confidence_threshold(&stretches) else {
        return Vec::new();
    };
    // 3. The calls without a cause.
    let drawn = queue.draw(&stretches, &vec![false; queue.calls.len()]);
    let mut found: Vec<AssignedCall<CallPosition, RequestRank>> = drawn
        .into_iter()
        .filter(|one| one.share >= threshold && queue.cause(one.assigned.call).is_none())
        .map(|one| one.assigned)
        .collect();
    found.sort_unstable();
    found
}

fn queue_calls(threads: &QueueThreads, calls: &[TakenTask]) -> Vec<QueueCall> {
    let mut last_ns: HashMap<ThreadIdentity, u64> = HashMap::new();
    calls
        .iter()
        .map(|call| {
            let &TakenTask { thread, asked_ns, answered_ns, is_first, .. } = call;
            let before_ns = last_ns.insert(thread, asked_ns.max(answered_ns)).unwrap_or(0);
            let sent = CallOrReadMoment { thread, at_ns: asked_ns, is_first };
            QueueCall { taken: threads.taken(sent, before_ns.min(asked_ns)), call: *call }
        })
        .collect()
}

fn queue_requests(
    threads: &QueueThreads,
    calls: &[TakenTask],
    requests: &[PutTasks],
) -> Vec<QueueRequest> {
    let mut by_effect: Vec<Vec<CallPosition>> = vec![Vec::new(); requests.len()];
    for (position, call) in calls.iter().enumerate() {
        if let Some(rank) = call.cause.filter(|_| call.is_by_effect) {
            by_effect[rank.0].push(CallPosition(position));
        }
    }
    let request = |(request, by_effect): (&PutTasks, Vec<CallPosition>)| {
        let &PutTasks { thread, span, is_first } = request;
        let read = CallOrReadMoment { thread, at_ns: span.opened_ns, is_first };
        QueueRequest { put: threads.put(read, span.sure_until_ns), span, by_effect }
    };
    requests.iter().zip(by_effect).map(request).collect()
}

/// Share of the draws in which a call is for a request.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    assigned: AssignedCall<CallPosition, RequestRank>,
    share: f64,
}

/// Calls, and the tasks that they may be for. Calls are in the order in which tasks seem to have been taken, tasks in
/// that of puts.
#[derive(Debug)]
struct Stretch {
    calls: Vec<CallPosition>,
    ranks: Vec<RequestRank>,
    /// Calls without the margins.
    inner: Range<usize>,
}

impl TaskQueue<'_> {
    fn cause(&self, call: CallPosition) -> Option<RequestRank> {
        self.calls[call.0].call.cause
    }

    /// Whether requests seem to wait for their results in order. Then nearly all known calls that woke nobody ended
    /// while one that was taken earlier was waited for.
    fn seems_to_wait_in_order(&self) -> bool {
        let mut score = PredictionScore::default();
        for QueueCall { call, .. } in &self.calls {
            let Some(rank) = call.cause.filter(|_| !call.is_by_effect) else {
                continue;
            };
            let by_effect = &self.requests[rank.0].by_effect;
            score.add(by_effect.iter().map(|other| &self.calls[other.0]).any(|other| {
                other.call.answered_ns > call.answered_ns && other.taken.begin() < call.asked_ns
            }));
        }
        score.all >= MIN_KNOWN_CALLS && score.reaches(MIN_IN_ORDER_SHARE)
    }

    /// Returns the lowest of [`CONFIDENCE_THRESHOLDS`] with which known calls are predicted correctly when they are
    /// hidden.
    fn confidence_threshold(&self, stretches: &[Stretch]) -> Option<f64> {
        let is_hidden = self.calls.iter().scan(0, |known, QueueCall { call, .. }| {
            *known += usize::from(call.cause.is_some());
            Some(call.cause.is_some() && *known % HIDDEN_INTERVAL == 0)
        });
        let hidden: Vec<bool> = is_hidden.collect();
        let mut drawn = self.draw(stretches, &hidden);
        drawn.retain(|one| hidden[one.assigned.call.0]);
        CONFIDENCE_THRESHOLDS.into_iter().find(|&threshold| {
            let mut score = PredictionScore::default();
            for Drawn { assigned, .. } in drawn.iter().filter(|one| one.share >= threshold) {
                score.add(self.cause(assigned.call) == Some(assigned.request));
            }
            score.all >= MIN_KNOWN_CALLS && score.reaches(MIN_ACCURACY)
        })
    }

    /// Returns the stretches that have calls without a cause. Each begins with the task that its known calls tell:
    /// calls for requests from before the trace shift all that follow.
    fn split_into_stretches(&self, calls_per_request: usize) -> Vec<Stretch> {
        // 1. Calls and tasks by the middles of their times.
        let mut calls: Vec<CallPosition> = (0..self.calls.len()).map(CallPosition).collect();
        calls.sort_by_key(|&call| (self.calls[call.0].taken.middle(), call));
        let mut order: Vec<RequestRank> = (0..self.requests.len()).map(RequestRank).collect();
        order.sort_by_key(|&rank| (self.requests[rank.0].put.middle(), rank));
        let ranks: Vec<RequestRank> =
            order.iter().flat_map(|&rank| std::iter::repeat_n(rank, calls_per_request)).collect();
        let mut place_of = vec![0; order.len()];
        for (place, rank) in order.iter().enumerate() {
            place_of[rank.0] = place;
        }
        let mut stretches = Vec::new();
        for begin in (0..calls.len()).step_by(STRETCH_CALLS) {
            let end = (begin + STRETCH_CALLS).min(calls.len());
            if calls[begin..end].iter().all(|&call| self.cause(call).is_some()) {
                continue;
            }
            // 2. The shift between calls and tasks: the median over known calls, each with the middle one of its
            //    request's tasks.
            let known = (begin..end).filter_map(|place| {
                let task = place_of[self.cause(calls[place])?.0] * calls_per_request;
                Some((task + calls_per_request / 2) as i64 - place as i64)
            });
            let mut shifts: Vec<i64> = known.collect();
            if shifts.len() < MIN_KNOWN_CALLS {
                continue;
            }
            shifts.sort_unstable();
            let shift = shifts[shifts.len() / 2];
            // 3. As many calls as there are tasks, with margins.
            let first = (begin as i64 - MARGIN_CALLS as i64).max(0).max(-shift);
            let last =
                ((end + MARGIN_CALLS).min(calls.len()) as i64).min(ranks.len() as i64 - shift);
            if first >= last {
                continue;
            }
            let places = first as usize..last as usize;
            let tasks = (first + shift) as usize..(last + shift) as usize;
            let inner = begin.clamp(places.start, places.end)..end.clamp(places.start, places.end);
            stretches.push(Stretch {
                inner: inner.start - places.start..inner.end - places.start,
                calls: calls[places].to_vec(),
                ranks: ranks[tasks].to_vec(),
            });
        }
        stretches
    }

    /// Returns the calls that are for one request in at least the lowest of [`CONFIDENCE_THRESHOLDS`] of the draws.
    fn draw(&self, stretches: &[Stretch], hidden: &[bool]) -> Vec<Drawn> {
        let draws = CHAIN_COUNT as f64 * (SWEEPS_PER_CHAIN - WARM_UP_SWEEPS) as f64;
        let mut drawn = Vec::new();
        for stretch in stretches {
            let mut counts: HashMap<AssignedCall<CallPosition, RequestRank>, usize> =
                HashMap::new();
            for seed in 0..CHAIN_COUNT {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let mut chain = QueueOrderChain::new(self, hidden, &stretch.calls, &stretch.ranks);
                for sweep in 0..SWEEPS_PER_CHAIN {
                    chain.sweep(&mut rng);
                    if sweep >= WARM_UP_SWEEPS {
                        for assigned in chain.assigned() {
                            *counts.entry(assigned).or_default() += 1;
                        }
                    }
                }
            }
            let inner: HashSet<CallPosition> =
                stretch.calls[stretch.inner.clone()].iter().copied().collect();
            let shares = counts
                .into_iter()
                .map(|(assigned, count)| Drawn { assigned, share: count as f64 / draws });
            drawn.extend(shares.filter(|one| {
                one.share >= CONFIDENCE_THRESHOLDS[0] && inner.contains(&one.assigned.call)
            }));
        }
        drawn
    }
}

#[cfg(test)]
mod tests;
