//! Calls that can only be for one request, and requests that can only have made so many.

use std::collections::HashMap;

use super::{HandOver, MOST, MOST_OPEN, PASSES, Regular};

/// For which requests calls may be.
#[derive(Debug)]
struct Candidates {
    of_call: HashMap<usize, Vec<usize>>,
    /// Whether others that are not looked at may be for a request, too.
    is_open_ended: Vec<bool>,
}

impl Regular<'_> {
    /// Calls that can only be for one request, and requests that can only have made so many.
    pub(super) fn exclude(&mut self) -> Vec<(usize, usize, HandOver)> {
        let Some(mut candidates) = self.candidates() else {
            return Vec::new();
        };
        let mut of_rank: HashMap<usize, Vec<usize>> = HashMap::new();
        for (&place, ranks) in &candidates.of_call {
            for &rank in ranks {
                of_rank.entry(rank).or_default().push(place);
            }
        }
        let mut found = Vec::new();
        let mut calls: Vec<usize> = candidates.of_call.keys().copied().collect();
        calls.sort_unstable();
        let mut ranks: Vec<usize> = of_rank.keys().copied().collect();
        ranks.sort_unstable();
        for _ in 0..PASSES {
            let before = found.len();
            for &place in &calls {
                if self.ranks[place].is_none()
                    && let [rank] = candidates.of_call[&place][..]
                    && self.lacks(rank) > 0
                {
                    self.note(place, rank);
                    found.push((place, rank, HandOver::Exclusion));
                }
            }
            for &rank in &ranks {
                let may_be = &of_rank[&rank];
                let left = || {
                    let places = may_be.iter();
                    places.filter(|&&place| self.ranks[place].is_none())
                };
                if candidates.is_open_ended[rank]
                    || self.lacks(rank) == 0
                    || left().count() != self.lacks(rank)
                {
                    continue;
                }
                for place in left().copied().collect::<Vec<usize>>() {
                    self.note(place, rank);
                    found.push((place, rank, HandOver::Exclusion));
                }
            }
            if found.len() == before {
                break;
            }
            for ranks in candidates.of_call.values_mut() {
                ranks.retain(|&rank| self.counts[rank] < self.each);
            }
        }
        found
    }

    /// For which requests each call without a cause may be: those that are open meanwhile, and lack a call. `None`: too many
    /// are open at once, as requests without answers stay.
    fn candidates(&self) -> Option<Candidates> {
        let mut candidates =
            Candidates { of_call: HashMap::new(), is_open_ended: vec![false; self.spans.len()] };
        let (mut open, mut next): (Vec<usize>, usize) = (Vec::new(), 0);
        for (place, call) in self.calls.iter().enumerate() {
            while self.spans.get(next).is_some_and(|span| span.opened_ns <= call.asked_ns) {
                if self.lacks(next) > 0 {
                    open.push(next);
                }
                next += 1;
            }
            open.retain(|&rank| self.spans[rank].sure_until_ns >= call.asked_ns);
            if open.len() > MOST_OPEN {
                return None;
            }
            if self.ranks[place].is_some() {
                continue;
            }
            let may_be = open.iter().copied();
            let may_be = may_be.filter(|&rank| self.is_open(rank, call));
            let may_be: Vec<usize> = may_be.collect();
            if may_be.len() <= MOST {
                candidates.of_call.insert(place, may_be);
            } else {
                // It is not looked at, but may be for each of these.
                for rank in may_be {
                    candidates.is_open_ended[rank] = true;
                }
            }
        }
        Some(candidates)
    }
}
