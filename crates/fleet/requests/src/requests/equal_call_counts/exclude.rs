//! Calls that can only be for one request, and requests that can only have made certain calls.

use std::collections::HashMap;

use super::{
    HandOver, InferredCause, MAX_CANDIDATES, MAX_OPEN_REQUESTS, MAX_PASSES, RegularProcess,
};
use crate::requests::ids::{CallPosition, RequestRank};

/// Requests that unknown calls may be for.
#[derive(Debug)]
struct Candidates {
    of_call: HashMap<CallPosition, Vec<RequestRank>>,
    /// By rank: whether calls that are not in `of_call` may be for the request, too.
    is_open_ended: Vec<bool>,
}

impl RegularProcess<'_> {
    /// Assigns calls that can only be for one request. Also assigns calls that a request must have made to have its
    /// number.
    pub(super) fn exclude(&mut self) -> Vec<InferredCause> {
        let Some(mut candidates) = self.find_candidates() else {
            return Vec::new();
        };
        let mut of_rank: HashMap<RequestRank, Vec<CallPosition>> = HashMap::new();
        for (&call, ranks) in &candidates.of_call {
            for &rank in ranks {
                of_rank.entry(rank).or_default().push(call);
            }
        }
        let mut found = Vec::new();
        let mut calls: Vec<CallPosition> = candidates.of_call.keys().copied().collect();
        calls.sort_unstable();
        let mut ranks: Vec<RequestRank> = of_rank.keys().copied().collect();
        ranks.sort_unstable();
        for _ in 0..MAX_PASSES {
            let before = found.len();
            // 1. Calls with one candidate.
            for &call in &calls {
                if self.ranks[call.0].is_none()
                    && let [rank] = candidates.of_call[&call][..]
                    && self.lacks(rank) > 0
                {
                    found.push(self.assign(call, rank, HandOver::Exclusion));
                }
            }
            // 2. Requests that lack as many calls as may be theirs.
            for &rank in &ranks {
                let may_be = of_rank[&rank].iter();
                let left = || may_be.clone().filter(|call| self.ranks[call.0].is_none());
                if candidates.is_open_ended[rank.0]
                    || self.lacks(rank) == 0
                    || left().count() != self.lacks(rank)
                {
                    continue;
                }
                for call in left().copied().collect::<Vec<CallPosition>>() {
                    found.push(self.assign(call, rank, HandOver::Exclusion));
                }
            }
            if found.len() == before {
                break;
            }
            for ranks in candidates.of_call.values_mut() {
                ranks.retain(|&rank| self.lacks(rank) > 0);
            }
        }
        found
    }

    /// Finds the requests that each call without a cause may be for: those that are open meanwhile, and lack a call.
    /// `None`: too many are open at once, as requests without answers stay.
    fn find_candidates(&self) -> Option<Candidates> {
        let mut candidates =
            Candidates { of_call: HashMap::new(), is_open_ended: vec![false; self.spans.len()] };
        let (mut open, mut next): (Vec<RequestRank>, usize) = (Vec::new(), 0);
        for (position, call) in self.calls.iter().enumerate() {
            while self.spans.get(next).is_some_and(|span| span.opened_ns <= call.asked_ns) {
                if self.lacks(RequestRank(next)) > 0 {
                    open.push(RequestRank(next));
                }
                next += 1;
            }
            open.retain(|&rank| self.spans[rank.0].sure_until_ns >= call.asked_ns);
            if open.len() > MAX_OPEN_REQUESTS {
                return None;
            }
            if self.ranks[position].is_some() {
                continue;
            }
            let may_be: Vec<RequestRank> =
                open.iter().copied().filter(|&rank| self.is_open(rank, call)).collect();
            if may_be.len() <= MAX_CANDIDATES {
                candidates.of_call.insert(CallPosition(position), may_be);
            } else {
                // It is not looked at, but may be for each of these.
                for rank in may_be {
                    candidates.is_open_ended[rank.0] = true;
                }
            }
        }
        Some(candidates)
    }
}
