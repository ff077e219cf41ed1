//! Calls in a row that are as many as the requests around them lack.

use super::{
    HandOver, InferredCause, KnownCall, MAX_CANDIDATES, MIN_ACCURACY, MIN_KNOWN_CALLS,
    RegularProcess,
};
use crate::requests::ids::{CallPosition, PredictionScore, RequestRank};

impl RegularProcess<'_> {
    /// Assigns calls in a row that are as many as the requests around them lack. Assigns none if that does not
    /// predict the known calls.
    pub(super) fn infer_from_order(&mut self) -> Vec<InferredCause> {
        if !self.predicts_known_calls() {
            return Vec::new();
        }
        let known: Vec<KnownCall> = self.known().collect();
        let mut found = Vec::new();
        for pair in known.windows(2) {
            let Some(missing) = self.missing_between(pair[0], pair[1]) else {
                continue;
            };
            let calls = pair[0].call.0 + 1..pair[1].call.0;
            let assigned = || calls.clone().zip(missing.iter().copied());
            if assigned().all(|(call, rank)| self.is_open(rank, &self.calls[call])) {
                for (call, rank) in assigned() {
                    found.push(self.assign(CallPosition(call), rank, HandOver::Queue));
                }
            }
        }
        found
    }

    /// Returns the ranks of the calls between two known ones. `None` if the requests from one's to the other's do not
    /// lack as many.
    fn missing_between(&self, before: KnownCall, after: KnownCall) -> Option<Vec<RequestRank>> {
        let gap = after.call.0 - before.call.0 - 1;
        let (first, last) = (before.request, after.request);
        let is_good = (1..=MAX_CANDIDATES).contains(&gap)
            && first <= last
            && last.0 - first.0 <= MAX_CANDIDATES;
        let missing = is_good.then(|| self.missing(first, last))?;
        (missing.len() == gap).then_some(missing)
    }

    /// Returns the rank of each call that these requests lack, up to one more than can be assigned.
    fn missing(&self, first: RequestRank, last: RequestRank) -> Vec<RequestRank> {
        let ranks = (first.0..=last.0).map(RequestRank);
        let missing = ranks.flat_map(|rank| std::iter::repeat_n(rank, self.lacks(rank)));
        missing.take(MAX_CANDIDATES + 1).collect()
    }

    /// Whether the order predicts nearly all known calls, each as if it were not known.
    fn predicts_known_calls(&mut self) -> bool {
        let mut score = PredictionScore::default();
        let known: Vec<KnownCall> = self.known().collect();
        for three in known.windows(3) {
            let [before, KnownCall { call, request: rank }, after] = [three[0], three[1], three[2]];
            self.counts[rank.0] -= 1;
            let missing = self.missing_between(before, after);
            self.counts[rank.0] += 1;
            if let Some(missing) = missing {
                score.add(missing[call.0 - before.call.0 - 1] == rank);
            }
        }
        score.all >= MIN_KNOWN_CALLS && score.reaches(MIN_ACCURACY)
    }
}
