//! Calls of a process that hands the tasks of its requests to one queue: told by when tasks can have been put and taken.
//!
//! A queue in memory that keeps the order gives the first task that was put to whoever takes first. When that was is not
//! recorded, but a thread puts and takes while it runs: after it has read the request, and before it sleeps to wait for
//! the results; after it woke up, and before it sends the call. So orders of puts and takes are drawn that agree with
//! these times and with what else is known, by the Metropolis rule, and a call is for a request if it is so in nearly all
//! of them. Calls whose cause is known are hidden from some of the draws: only if these tell them right, others are
//! believed.

mod chain;
mod tasks;
mod times;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use luc_fleet_clocks::HostId;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use crate::rows::Thread;
use crate::waits::Waits;
use chain::Chain;
pub(super) use tasks::{Call, Request};
use tasks::{Queue, QueueCall, QueueRequest, Rank};
use times::{Moment, Threads};

/// Chains, which begin alike and have other random numbers: one alone may stay with orders that are not the likely ones.
const CHAINS: u64 = 4;
/// Sweeps of each, and how many of them come before the first that counts.
const SWEEPS: usize = 200;
const WARM_UP: usize = 100;
/// A call is told if it is for one request in so large a share of the draws: the least of these with which hidden calls
/// are told right.
const SURE: [f64; 4] = [0.8, 0.9, 0.95, 0.99];
/// With more calls of a process none is told, as each call takes a thousand moves.
const MOST_CALLS: usize = 100_000;
/// Calls are drawn in stretches of so many, and so many more on either side, of which nothing is told.
const STRETCH: usize = 1_024;
const MARGIN: usize = 64;
/// One known call in so many is hidden for the test.
const HIDDEN: usize = 8;
/// So many hidden calls must be told, and so large a share of them right, before others are.
const FEWEST: usize = 20;
const RIGHT: f64 = 0.99;
/// From so large a share of calls that woke nobody on, whose request waited for an earlier result then, all requests are
/// taken to wait for their results in order.
const IN_ORDER: f64 = 0.9;

/// Which calls without a cause are for which requests, `(place, rank)`. `calls` are in the order in which they were sent,
/// and requests in that in which they were read; each request makes `each` calls.
pub(super) fn told(
    host: HostId,
    waits: &Waits,
    calls: &[Call],
    requests: &[Request],
    each: usize,
) -> Vec<(usize, Rank)> {
    let is_all_known = calls.iter().all(|call| call.cause.is_some());
    let mut takers: Vec<Thread> = calls.iter().map(|call| call.thread).collect();
    takers.sort_unstable();
    takers.dedup();
    let threads = Threads::new(host, waits, &takers);
    let Some(threads) = threads.filter(|_| !is_all_known && calls.len() <= MOST_CALLS) else {
        return Vec::new();
    };
    let requests = queue_requests(&threads, calls, requests);
    let mut queue =
        Queue { calls: queue_calls(&threads, calls), requests: &requests, waits_in_order: false };
    queue.waits_in_order = queue.waits_in_order();
    let stretches = queue.stretches(each);
    let Some(sure) = queue.sure(&stretches) else {
        return Vec::new();
    };
    let drawn = queue.draw(&stretches, &vec![false; queue.calls.len()]);
    let is_told = |one: &Drawn| one.share >= sure && queue.calls[one.call].call.cause.is_none();
    let told = drawn.into_iter().filter(is_told);
    let mut told: Vec<(usize, Rank)> = told.map(|one| (one.call, one.rank)).collect();
    told.sort_unstable();
    told
}

fn queue_calls(threads: &Threads, calls: &[Call]) -> Vec<QueueCall> {
    let mut last_ns: HashMap<Thread, u64> = HashMap::new();
    calls
        .iter()
        .map(|call| {
            let before_ns = last_ns.get(&call.thread).copied().unwrap_or(0);
            last_ns.insert(call.thread, call.asked_ns.max(call.answered_ns));
            let sent =
                Moment { thread: call.thread, at_ns: call.asked_ns, is_first: call.is_first };
            QueueCall { taken: threads.taken(sent, before_ns.min(call.asked_ns)), call: *call }
        })
        .collect()
}

fn queue_requests(threads: &Threads, calls: &[Call], requests: &[Request]) -> Vec<QueueRequest> {
    let mut heard: Vec<Vec<usize>> = vec![Vec::new(); requests.len()];
    for (number, call) in calls.iter().enumerate() {
        if let Some(rank) = call.cause.filter(|_| call.is_heard) {
            heard[rank].push(number);
        }
    }
    let with_heard = requests.iter().zip(heard);
    with_heard
        .map(|(request, heard)| QueueRequest {
            put: threads.put(
                Moment {
                    thread: request.thread,
                    at_ns: request.span.opened_ns,
                    is_first: request.is_first,
                },
                request.span.sure_until_ns,
            ),
            span: request.span,
            heard,
        })
        .collect()
}

/// In how large a share of the draws a call is for a request.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    call: usize,
    rank: Rank,
    share: f64,
}

/// Calls and the tasks that they may be for, in the order in which these seem to have been taken and put.
#[derive(Debug)]
struct Stretch {
    calls: Vec<usize>,
    ranks: Vec<Rank>,
    /// Which of the calls are told of.
    told: Range<usize>,
}

impl Queue<'_> {
    /// Whether requests wait for their results in order: of the calls that are known and woke nobody nearly all ended
    /// while one that was taken earlier was waited for.
    fn waits_in_order(&self) -> bool {
        let (mut all, mut in_order) = (0, 0);
        for QueueCall { call, .. } in &self.calls {
            let Some(rank) = call.cause.filter(|_| !call.is_heard) else {
                continue;
            };
            let heard = self.requests[rank].heard.iter();
            let mut heard = heard.map(|&heard| &self.calls[heard]);
            all += 1;
            in_order += usize::from(heard.any(|heard| {
                heard.call.answered_ns > call.answered_ns && heard.taken.begin() < call.asked_ns
            }));
        }
        all >= FEWEST && in_order as f64 >= IN_ORDER * all as f64
    }

    /// The least of [`SURE`] with which calls whose cause is known are told right when it is hidden.
    fn sure(&self, stretches: &[Stretch]) -> Option<f64> {
        let known = self.calls.iter().scan(0, |known, QueueCall { call, .. }| {
            *known += usize::from(call.cause.is_some());
            Some(call.cause.is_some() && *known % HIDDEN == 0)
        });
        let hidden: Vec<bool> = known.collect();
        let mut drawn = self.draw(stretches, &hidden);
        drawn.retain(|one| hidden[one.call]);
        let is_right = |one: &&Drawn| self.calls[one.call].call.cause == Some(one.rank);
        SURE.into_iter().find(|&sure| {
            let told = || drawn.iter().filter(|one| one.share >= sure);
            let (all, right) = (told().count(), told().filter(is_right).count());
            all >= FEWEST && right as f64 >= RIGHT * all as f64
        })
    }

    /// The stretches that have calls without a cause. Each begins with the task that what is known there tells: calls for
    /// requests from before the trace shift all that follow.
    fn stretches(&self, each: usize) -> Vec<Stretch> {
        let mut calls: Vec<usize> = (0..self.calls.len()).collect();
        calls.sort_by_key(|&call| (self.calls[call].taken.middle(), call));
        let mut order: Vec<Rank> = (0..self.requests.len()).collect();
        order.sort_by_key(|&rank| (self.requests[rank].put.middle(), rank));
        let ranks: Vec<Rank> =
            order.iter().flat_map(|&rank| std::iter::repeat_n(rank, each)).collect();
        let mut place_of = vec![0; order.len()];
        for (place, &rank) in order.iter().enumerate() {
            place_of[rank] = place;
        }
        let mut stretches = Vec::new();
        for begin in (0..calls.len()).step_by(STRETCH) {
            let end = (begin + STRETCH).min(calls.len());
            let inner = &calls[begin..end];
            if inner.iter().all(|&call| self.calls[call].call.cause.is_some()) {
                continue;
            }
            let known = (begin..end).filter_map(|place| {
                let rank = self.calls[calls[place]].call.cause?;
                // The middle one of its tasks.
                Some((place_of[rank] * each + each / 2) as i64 - place as i64)
            });
            let mut shifts: Vec<i64> = known.collect();
            if shifts.len() < FEWEST {
                continue;
            }
            shifts.sort_unstable();
            let shift = shifts[shifts.len() / 2];
            // As many calls as there are tasks.
            let first = (begin as i64 - MARGIN as i64).max(0).max(-shift);
            let last = ((end + MARGIN).min(calls.len()) as i64).min(ranks.len() as i64 - shift);
            if first >= last {
                continue;
            }
            let places = first as usize..last as usize;
            let tasks = (first + shift) as usize..(last + shift) as usize;
            let told = begin.clamp(places.start, places.end)..end.clamp(places.start, places.end);
            stretches.push(Stretch {
                told: told.start - places.start..told.end - places.start,
                calls: calls[places].to_vec(),
                ranks: ranks[tasks].to_vec(),
            });
        }
        stretches
    }

    /// The calls that are for one request in at least the least of [`SURE`] of the draws.
    fn draw(&self, stretches: &[Stretch], hidden: &[bool]) -> Vec<Drawn> {
        let draws = CHAINS as f64 * (SWEEPS - WARM_UP) as f64;
        let mut drawn = Vec::new();
        for stretch in stretches {
            let mut counts: HashMap<(usize, Rank), usize> = HashMap::new();
            for seed in 0..CHAINS {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let mut chain = Chain::new(self, hidden, &stretch.calls, &stretch.ranks);
                for sweep in 0..SWEEPS {
                    chain.sweep(&mut rng);
                    if sweep >= WARM_UP {
                        for pair in chain.pairs() {
                            *counts.entry(pair).or_default() += 1;
                        }
                    }
                }
            }
            let is_told: HashSet<usize> =
                stretch.calls[stretch.told.clone()].iter().copied().collect();
            let shares = counts.into_iter().map(|((call, rank), count)| Drawn {
                call,
                rank,
                share: count as f64 / draws,
            });
            drawn.extend(shares.filter(|one| one.share >= SURE[0] && is_told.contains(&one.call)));
        }
        drawn
    }
}

#[cfg(test)]
mod tests;
