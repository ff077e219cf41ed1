//! A Markov chain over the orders in which tasks were put into a queue and taken out of it.

use rand::{Rng, RngExt as _};

use super::task_queue::TaskQueue;
use crate::requests::ids::{AssignedCall, CallPosition, RequestRank};

/// Cost of a contradiction. A call has another request than its known one, or one that was not open. Or its task was
/// put after it was taken. A state is less likely by e to the power of its cost.
const CONTRADICTION_COST: f64 = 6.0;
/// Cost of a result that woke nobody, and came while its request did not wait for an earlier one.
const UNHEARD_COST: f64 = 3.0;
/// Maximum number of calls or tasks that a move shifts.
const MAX_SHIFT: usize = 64;
/// Share of moves that are of tasks put; the others are of tasks taken.
const PUT_MOVE_SHARE: f64 = 0.3;

/// A task of a request, and the time at which it was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Put {
    at_ns: u64,
    rank: RequestRank,
}

/// A stretch of a queue. The first task that was put is the first that was taken, and so on.
#[derive(Debug)]
pub(super) struct QueueOrderChain<'a> {
    queue: &'a TaskQueue<'a>,
    /// By position: whether the call's cause is ignored.
    hidden: &'a [bool],
    /// Calls, in the order in which their tasks were taken.
    calls: Vec<CallPosition>,
    /// By place in `calls`.
    taken_ns: Vec<u64>,
    /// Requests, one for each task, in the order in which the tasks were put.
    ranks: Vec<RequestRank>,
    /// By place in `ranks`.
    put_ns: Vec<u64>,
    /// The lowest position of a call.
    first: usize,
    /// By position less `first`: the time at which the call's task was taken.
    taken_of: Vec<u64>,
    // Scratch space of moves of puts.
    places: Vec<usize>,
    drawn: Vec<u64>,
    merged: Vec<Put>,
    before: Vec<Put>,
}

impl<'a> QueueOrderChain<'a> {
    /// Begins with the first of `calls` for the first of `ranks`, and so on; both have one length.
    pub(super) fn new(
        queue: &'a TaskQueue<'a>,
        hidden: &'a [bool],
        calls: &[CallPosition],
        ranks: &[RequestRank],
    ) -> Self {
        let taken_ns: Vec<u64> =
            calls.iter().map(|call| queue.calls[call.0].taken.middle()).collect();
        let put_ns = ranks.iter().map(|rank| queue.requests[rank.0].put.middle());
        let positions = calls.iter().map(|call| call.0);
        let first = positions.clone().min().unwrap_or(0);
        let last = positions.max().unwrap_or(0);
        let mut taken_of = vec![0; last + 1 - first];
        for (call, &at_ns) in calls.iter().zip(&taken_ns) {
            taken_of[call.0 - first] = at_ns;
        }
        Self {
            queue,
            hidden,
            calls: calls.to_vec(),
            taken_ns,
            ranks: ranks.to_vec(),
            put_ns: put_ns.collect(),
            first,
            taken_of,
            places: Vec::new(),
            drawn: Vec::new(),
            merged: Vec::new(),
            before: Vec::new(),
        }
    }

    /// Tries one move for each call.
    pub(super) fn sweep(&mut self, rng: &mut impl Rng) {
        for _ in 0..self.calls.len() {
            let at = rng.random_range(0..self.calls.len());
            if rng.random_bool(PUT_MOVE_SHARE) {
                self.move_puts(rng, at);
            } else {
                self.move_take(rng, at);
            }
        }
    }

    /// Returns each call with its request in the current state.
    pub(super) fn assigned(&self) -> impl Iterator<Item = AssignedCall<CallPosition, RequestRank>> {
        let pairs = self.calls.iter().zip(&self.ranks);
        pairs.map(|(&call, &request)| AssignedCall { call, request })
    }

    /// Draws another time at which a call's task was taken.
    fn move_take(&mut self, rng: &mut impl Rng, from: usize) {
        let call = self.calls[from];
        let (old_ns, new_ns) = (self.taken_ns[from], self.queue.calls[call.0].taken.draw(rng));
        let to = self.taken_ns.partition_point(|&at_ns| at_ns < new_ns);
        let to = if new_ns > old_ns { to.saturating_sub(1) } else { to };
        let (low, high) = (from.min(to), from.max(to) + 1);
        if high - low > MAX_SHIFT {
            return;
        }
        let before = self.cost(low, high);
        self.shift(call, from, to, new_ns);
        if !accepts(rng, before, self.cost(low, high)) {
            self.shift(call, to, from, old_ns);
        }
    }

    fn shift(&mut self, call: CallPosition, from: usize, to: usize, at_ns: u64) {
        if from < to {
            self.calls[from..=to].rotate_left(1);
            self.taken_ns[from..=to].rotate_left(1);
        } else {
            self.calls[to..=from].rotate_right(1);
            self.taken_ns[to..=from].rotate_right(1);
        }
        self.taken_ns[to] = at_ns;
        self.taken_of[call.0 - self.first] = at_ns;
    }

    /// Draws other times at which the tasks of a request were put.
    fn move_puts(&mut self, rng: &mut impl Rng, at: usize) {
        // 1. The request's tasks nearby, and their new times.
        let rank = self.ranks[at];
        let near = at.saturating_sub(MAX_SHIFT)..(at + MAX_SHIFT + 1).min(self.ranks.len());
        self.places.clear();
        self.places.extend(near.filter(|&place| self.ranks[place] == rank));
        self.drawn.clear();
        self.drawn.resize(self.places.len(), 0);
        self.queue.requests[rank.0].put.draw(rng, &mut self.drawn);
        let ([Some(&first), Some(&last)], [Some(&first_ns), Some(&last_ns)]) =
            ([self.places.first(), self.places.last()], [self.drawn.first(), self.drawn.last()])
        else {
            return;
        };
        // 2. The new order of the tasks in between.
        let place_of = |at_ns| self.put_ns.partition_point(|&put_ns| put_ns < at_ns);
        let (low, high) = (first.min(place_of(first_ns)), (last + 1).max(place_of(last_ns)));
        if high - low > 2 * MAX_SHIFT {
            return;
        }
        self.merged.clear();
        let others = (low..high).filter(|&place| self.ranks[place] != rank);
        let put_at = |place| Put { at_ns: self.put_ns[place], rank: self.ranks[place] };
        self.merged.extend(others.map(put_at));
        self.merged.extend(self.drawn.iter().map(|&at_ns| Put { at_ns, rank }));
        if self.merged.len() != high - low {
            // A task of the request is further away.
            return;
        }
        self.merged.sort_unstable();
        self.before.clear();
        self.before.extend((low..high).map(put_at));
        // 3. Accept it, or go back.
        let before = self.cost(low, high);
        set_puts(&mut self.put_ns, &mut self.ranks, low, &self.merged);
        if !accepts(rng, before, self.cost(low, high)) {
            set_puts(&mut self.put_ns, &mut self.ranks, low, &self.before);
        }
    }

    /// Returns the cost of the calls and tasks at these places.
    fn cost(&self, low: usize, high: usize) -> f64 {
        (low..high).map(|place| self.cost_of(place)).sum()
    }

    fn cost_of(&self, place: usize) -> f64 {
        let (position, rank) = (self.calls[place], self.ranks[place]);
        let (call, request) = (&self.queue.calls[position.0].call, &self.queue.requests[rank.0]);
        let known = call.cause.filter(|_| !self.hidden[position.0]);
        let contradictions = [
            known.is_some_and(|known| known != rank),
            !request.span.covers(call.asked_ns, call.answered_ns),
            self.put_ns[place] > self.taken_ns[place],
        ];
        let contradictions = contradictions.into_iter().filter(|&is_one| is_one).count();
        let mut cost = CONTRADICTION_COST * contradictions as f64;
        if self.queue.waits_in_order && known.is_none() && !call.is_by_effect {
            let taken_ns = self.taken_ns[place];
            let waits_for_earlier = request.by_effect.iter().any(|&CallPosition(other)| {
                let ends_later = self.queue.calls[other].call.answered_ns > call.answered_ns;
                let other_ns = other.checked_sub(self.first).and_then(|at| self.taken_of.get(at));
                ends_later && !self.hidden[other] && other_ns.is_some_and(|&at_ns| at_ns < taken_ns)
            });
            cost += if waits_for_earlier { 0.0 } else { UNHEARD_COST };
        }
        cost
    }
}

fn set_puts(put_ns: &mut [u64], ranks: &mut [RequestRank], low: usize, puts: &[Put]) {
    for (place, &Put { at_ns, rank }) in (low..).zip(puts) {
        (put_ns[place], ranks[place]) = (at_ns, rank);
    }
}

fn accepts(rng: &mut impl Rng, before: f64, after: f64) -> bool {
    after <= before || rng.random::<f64>() < (before - after).exp()
}
