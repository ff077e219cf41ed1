//! A Markov chain over the orders in which tasks were put into a queue and taken out of it.

use rand::{Rng, RngExt as _};

use super::tasks::{Queue, Rank};

/// How much less likely a state is for each call that is put to another request than the one that it is known to be for,
/// to one that was not open, or to a task that was put after it was taken: by e to the power of this.
const CONTRADICTION: f64 = 6.0;
/// The same for a result that came while its request did not wait for an earlier one, and that woke nobody.
const UNHEARD: f64 = 3.0;
/// No move shifts more calls or tasks than this.
const FARTHEST: usize = 64;
/// The share of moves that are of tasks put; the others are of tasks taken.
const PUTS: f64 = 0.3;

/// A stretch of a queue: so many tasks were put, and as many taken, the first of these the first of those.
#[derive(Debug)]
pub(super) struct Chain<'a> {
    queue: &'a Queue<'a>,
    /// Calls of which it is not believed for which request they are.
    hidden: &'a [bool],
    /// The calls, in the order in which their tasks were taken, and when.
    calls: Vec<usize>,
    taken_ns: Vec<u64>,
    /// The requests whose tasks these are, in the order in which they were put, and when.
    ranks: Vec<Rank>,
    put_ns: Vec<u64>,
    /// When each call's task was taken, by its number less the first one's.
    first: usize,
    taken_of: Vec<u64>,
    /// The places of a request's tasks, and what its move makes of them: kept to be used again.
    places: Vec<usize>,
    drawn: Vec<u64>,
    merged: Vec<(u64, Rank)>,
    before: Vec<(u64, Rank)>,
}

impl<'a> Chain<'a> {
    /// Of calls and of the tasks that they are for at first, as many of these as of those.
    pub(super) fn new(
        queue: &'a Queue<'a>,
        hidden: &'a [bool],
        calls: &[usize],
        ranks: &[Rank],
    ) -> Self {
        let taken_ns: Vec<u64> =
            calls.iter().map(|&call| queue.calls[call].taken.middle()).collect();
        let put_ns = ranks.iter().map(|&rank| queue.requests[rank].put.middle());
        let first = calls.iter().copied().min().unwrap_or(0);
        let last = calls.iter().copied().max().unwrap_or(0);
        let mut taken_of = vec![0; last + 1 - first];
        for (&call, &at_ns) in calls.iter().zip(&taken_ns) {
            taken_of[call - first] = at_ns;
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
            if rng.random_bool(PUTS) {
                self.put_again(rng, at);
            } else {
                self.take_again(rng, at);
            }
        }
    }

    /// Which call is for which request now.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, Rank)> {
        self.calls.iter().copied().zip(self.ranks.iter().copied())
    }

    /// Draws anew when a call's task was taken.
    fn take_again(&mut self, rng: &mut impl Rng, from: usize) {
        let call = self.calls[from];
        let (old_ns, new_ns) = (self.taken_ns[from], self.queue.calls[call].taken.draw(rng));
        let to = self.taken_ns.partition_point(|&at_ns| at_ns < new_ns);
        let to = if new_ns > old_ns { to.saturating_sub(1) } else { to };
        let (low, high) = (from.min(to), from.max(to) + 1);
        if high - low > FARTHEST {
            return;
        }
        let before = self.cost(low, high);
        self.shift(call, from, to, new_ns);
        if !accepts(rng, before, self.cost(low, high)) {
            self.shift(call, to, from, old_ns);
        }
    }

    fn shift(&mut self, call: usize, from: usize, to: usize, at_ns: u64) {
        if from < to {
            self.calls[from..=to].rotate_left(1);
            self.taken_ns[from..=to].rotate_left(1);
        } else {
            self.calls[to..=from].rotate_right(1);
            self.taken_ns[to..=from].rotate_right(1);
        }
        self.taken_ns[to] = at_ns;
        self.taken_of[call - self.first] = at_ns;
    }

    /// Draws anew when the tasks of a request were put.
    fn put_again(&mut self, rng: &mut impl Rng, at: usize) {
        let rank = self.ranks[at];
        let near = at.saturating_sub(FARTHEST)..(at + FARTHEST + 1).min(self.ranks.len());
        self.places.clear();
        self.places.extend(near.filter(|&place| self.ranks[place] == rank));
        self.drawn.clear();
        self.drawn.resize(self.places.len(), 0);
        self.queue.requests[rank].put.draw(rng, &mut self.drawn);
        let ([Some(&first), Some(&last)], [Some(&first_ns), Some(&last_ns)]) =
            ([self.places.first(), self.places.last()], [self.drawn.first(), self.drawn.last()])
        else {
            return;
        };
        let place_of = |at_ns| self.put_ns.partition_point(|&put_ns| put_ns < at_ns);
        let (low, high) = (first.min(place_of(first_ns)), (last + 1).max(place_of(last_ns)));
        if high - low > 2 * FARTHEST {
            return;
        }
        self.merged.clear();
        let others = (low..high).filter(|&place| self.ranks[place] != rank);
        self.merged.extend(others.map(|place| (self.put_ns[place], self.ranks[place])));
        self.merged.extend(self.drawn.iter().map(|&at_ns| (at_ns, rank)));
        if self.merged.len() != high - low {
            // A task of the request is further away.
            return;
        }
        self.merged.sort_unstable();
        self.before.clear();
        let now = low..high;
        self.before.extend(now.map(|place| (self.put_ns[place], self.ranks[place])));
        let before = self.cost(low, high);
        set(&mut self.put_ns, &mut self.ranks, low, &self.merged);
        if !accepts(rng, before, self.cost(low, high)) {
            set(&mut self.put_ns, &mut self.ranks, low, &self.before);
        }
    }

    /// How unlikely what these places say is.
    fn cost(&self, low: usize, high: usize) -> f64 {
        (low..high).map(|place| self.cost_of(place)).sum()
    }

    fn cost_of(&self, place: usize) -> f64 {
        let (number, rank) = (self.calls[place], self.ranks[place]);
        let (call, request) = (&self.queue.calls[number].call, &self.queue.requests[rank]);
        let known = call.cause.filter(|_| !self.hidden[number]);
        let contradictions = [
            known.is_some_and(|known| known != rank),
            !request.span.contains(call.asked_ns) || !request.span.contains(call.answered_ns),
            self.put_ns[place] > self.taken_ns[place],
        ];
        let contradictions = contradictions.into_iter().filter(|&is_one| is_one).count();
        let mut cost = CONTRADICTION * contradictions as f64;
        if self.queue.waits_in_order && known.is_none() && !call.is_heard {
            let taken_ns = self.taken_ns[place];
            let waited_for = request.heard.iter().any(|&heard| {
                let has_ended = self.queue.calls[heard].call.answered_ns > call.answered_ns;
                let heard_taken_ns =
                    heard.checked_sub(self.first).and_then(|at| self.taken_of.get(at));
                has_ended && !self.hidden[heard] && heard_taken_ns.is_some_and(|&at| at < taken_ns)
            });
            cost += if waited_for { 0.0 } else { UNHEARD };
        }
        cost
    }
}

fn set(put_ns: &mut [u64], ranks: &mut [Rank], low: usize, all: &[(u64, Rank)]) {
    for (place, &(at_ns, rank)) in (low..).zip(all) {
        (put_ns[place], ranks[place]) = (at_ns, rank);
    }
}

fn accepts(rng: &mut impl Rng, before: f64, after: f64) -> bool {
    after <= before || rng.random::<f64>() < (before - after).exp()
}
