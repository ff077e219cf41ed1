//! Causes of calls of processes whose requests make the same number of calls each: an unknown call is for a request
//! that lacks one.

mod exclude;
mod order;

use std::collections::{HashMap, HashSet};

use super::HandOver;
use super::follow_threads::RequestSpan;
use super::ids::{AssignedCall, CallCause, CallPosition, RequestId, RequestRank};

/// Maximum share of requests that may have made another number of calls than the others.
const MAX_IRREGULAR_SHARE: f64 = 0.01;
/// Infer nothing from fewer known calls. The order is trusted only if it predicts at least this many.
const MIN_KNOWN_CALLS: usize = 50;
/// Share of known calls that the order must predict correctly.
const MIN_ACCURACY: f64 = 0.99;
/// Maximum number of calls in a row that the order assigns, and of requests that one call may be for.
const MAX_CANDIDATES: usize = 64;
/// Maximum number of open requests that lack a call; with more, none is excluded.
const MAX_OPEN_REQUESTS: usize = 1_000;
/// Each pass may allow further matches; stop after this many passes.
const MAX_PASSES: usize = 16;

/// A call of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimedCall {
    pub(super) asked_ns: u64,
    /// Time at which its answer had been read; without an answer, when the call was sent.
    pub(super) answered_ns: u64,
    pub(super) cause: Option<CallCause>,
}

/// A cause of a call that had none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InferredCause {
    pub(super) call: CallPosition,
    pub(super) cause: CallCause,
}

/// Result of [`infer_causes`] for the calls of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CauseInference {
    /// Whether the known causes contradict each other.
    pub(super) is_contradictory: bool,
    /// Calls whose cause is not believed any more.
    pub(super) doubted: Vec<CallPosition>,
    pub(super) found: Vec<InferredCause>,
}

/// Assigns calls to requests. `calls` are in send order, `requests` in receive order. Infers nothing where requests
/// make different numbers of calls.
///
/// If effects and wake-ups give more than a few requests too many calls, they are wrong for this process: then only
/// those causes are believed that the order of the queue confirms. Otherwise no cause is believed that makes a request
/// have too many.
///
/// A call is for the only request that was open meanwhile and lacks one. A request has made the only calls that may
/// be for it. The order of the queue is used if it predicts the known causes. Calls in a row are then for the
/// requests around them that lack as many.
pub(super) fn infer_causes(
    calls: &[TimedCall],
    requests: &[RequestId],
    spans: &[RequestSpan],
) -> CauseInference {
    let Some(mut process) = RegularProcess::new(calls, requests, spans) else {
        return CauseInference::default();
    };
    if process.is_contradictory() {
        let doubted = process.find_out_of_order();
        return CauseInference { is_contradictory: true, doubted, found: Vec::new() };
    }
    let doubted = process.doubt_overfull();
    let mut found = Vec::new();
    for _ in 0..MAX_PASSES {
        let before = found.len();
        found.extend(process.exclude());
        found.extend(process.infer_from_order());
        if found.len() == before {
            break;
        }
    }
    CauseInference { found, doubted, is_contradictory: false }
}

/// Returns the number of calls that each request makes, if all may make the same number.
pub(super) fn calls_per_request(calls: usize, requests: usize) -> Option<usize> {
    let (calls, requests) = (calls as f64, requests as f64);
    let each = (calls / requests).round();
    let is_number =
        each >= 1.0 && (each * requests - calls).abs() <= MAX_IRREGULAR_SHARE * requests;
    is_number.then_some(each as usize)
}

type KnownCall = AssignedCall<CallPosition, RequestRank>;

#[derive(Debug)]
struct RegularProcess<'a> {
    calls: &'a [TimedCall],
    /// Requests by rank, in receive order.
    requests: &'a [RequestId],
    /// Spans of the requests, by rank.
    spans: Vec<RequestSpan>,
    calls_per_request: usize,
    /// By call: the rank of its cause.
    ranks: Vec<Option<RequestRank>>,
    /// By rank: the number of known calls.
    counts: Vec<usize>,
}

impl<'a> RegularProcess<'a> {
    fn new(
        calls: &'a [TimedCall],
        requests: &'a [RequestId],
        spans: &[RequestSpan],
    ) -> Option<Self> {
        let calls_per_request = calls_per_request(calls.len(), requests.len())?;
        let rank_of: HashMap<RequestId, RequestRank> =
            requests.iter().copied().zip((0..).map(RequestRank)).collect();
        let ranks: Vec<Option<RequestRank>> =
            calls.iter().map(|call| rank_of.get(&call.cause?.request).copied()).collect();
        let mut counts = vec![0; requests.len()];
        for &rank in ranks.iter().flatten() {
            counts[rank.0] += 1;
        }
        // Whether that number is each one's, too, only known ones show.
        (counts.iter().sum::<usize>() >= MIN_KNOWN_CALLS).then_some(Self {
            calls,
            requests,
            spans: requests.iter().map(|&request| spans[request.0]).collect(),
            calls_per_request,
            ranks,
            counts,
        })
    }

    /// Whether effects and wake-ups give more than a few requests too many calls.
    fn is_contradictory(&self) -> bool {
        let mut is_by_effect = vec![false; self.counts.len()];
        for known in self.known() {
            is_by_effect[known.request.0] |= self.evidence(known.call) >= Some(HandOver::Backward);
        }
        let counts = self.counts.iter().zip(is_by_effect);
        let overfull =
            counts.filter(|&(&count, by_effect)| by_effect && count > self.calls_per_request);
        overfull.count() as f64 > MAX_IRREGULAR_SHARE * self.counts.len() as f64
    }

    /// Finds calls known by effects or wake-ups that a queue in order would have given to another request.
    fn find_out_of_order(&self) -> Vec<CallPosition> {
        self.known()
            .filter(|known| known.call.0 / self.calls_per_request != known.request.0)
            .map(|known| known.call)
            .filter(|&call| self.evidence(call) >= Some(HandOver::Backward))
            .collect()
    }

    /// Forgets the causes of calls of requests that have too many, if others that lack one were open meanwhile. Returns
    /// these calls. A token in the bytes stays.
    fn doubt_overfull(&mut self) -> Vec<CallPosition> {
        let lacking: Vec<RequestRank> =
            (0..self.counts.len()).map(RequestRank).filter(|&rank| self.lacks(rank) > 0).collect();
        let may_be_for_another = |call: CallPosition| {
            let call = &self.calls[call.0];
            let next =
                lacking.partition_point(|&rank| self.spans[rank.0].opened_ns <= call.asked_ns);
            let before = lacking[..next].iter().rev().take(MAX_CANDIDATES);
            before.copied().any(|rank| self.is_open(rank, call))
        };
        let overfull: Vec<KnownCall> = self
            .known()
            .filter(|known| self.counts[known.request.0] > self.calls_per_request)
            .collect();
        let doubtful: HashSet<RequestRank> = overfull
            .iter()
            .filter(|known| may_be_for_another(known.call))
            .map(|known| known.request)
            .collect();
        let doubted: Vec<CallPosition> = overfull
            .into_iter()
            .filter(|known| doubtful.contains(&known.request))
            .map(|known| known.call)
            .filter(|&call| self.evidence(call) != Some(HandOver::Token))
            .collect();
        for &call in &doubted {
            if let Some(rank) = self.ranks[call.0].take() {
                self.counts[rank.0] -= 1;
            }
        }
        doubted
    }

    fn evidence(&self, call: CallPosition) -> Option<HandOver> {
        self.calls[call.0].cause.map(|cause| cause.evidence)
    }

    /// Returns the known calls in send order.
    fn known(&self) -> impl Iterator<Item = KnownCall> {
        let calls = (0..).map(CallPosition).zip(&self.ranks);
        calls.filter_map(|(call, rank)| Some(AssignedCall { call, request: (*rank)? }))
    }

    /// Returns the number of calls that a request lacks.
    fn lacks(&self, rank: RequestRank) -> usize {
        self.calls_per_request.saturating_sub(self.counts[rank.0])
    }

    fn assign(
        &mut self,
        call: CallPosition,
        rank: RequestRank,
        evidence: HandOver,
    ) -> InferredCause {
        self.ranks[call.0] = Some(rank);
        self.counts[rank.0] += 1;
        InferredCause { call, cause: CallCause { request: self.requests[rank.0], evidence } }
    }

    /// Whether a request was open from a call to its answer.
    fn is_open(&self, rank: RequestRank, call: &TimedCall) -> bool {
        self.spans[rank.0].covers(call.asked_ns, call.answered_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls and requests of a process.
    struct Story {
        calls: Vec<TimedCall>,
        requests: Vec<RequestId>,
        spans: Vec<RequestSpan>,
    }

    impl Story {
        /// Requests 100 to 199, each open for `open_ns` from 1,000 ns after the one before. Each makes three calls 10,
        /// 20 and 30 ns after `queued_ns` from its begin, which take 5 ns.
        fn new(open_ns: u64, queued_ns: u64) -> Self {
            let begin_ns = |number: usize| 1_000 * (number as u64 - 99);
            let mut spans = vec![RequestSpan { opened_ns: 0, sure_until_ns: 0 }; 100];
            spans.extend((100..200).map(|number| RequestSpan {
                opened_ns: begin_ns(number),
                sure_until_ns: begin_ns(number) + open_ns,
            }));
            let calls = (0..300).map(|call| {
                let asked_ns = begin_ns(own(call)) + queued_ns + 10 * (call as u64 % 3 + 1);
                let cause = Some(cause(own(call), HandOver::Backward));
                TimedCall { asked_ns, answered_ns: asked_ns + 5, cause }
            });
            Self { calls: calls.collect(), requests: (100..200).map(RequestId).collect(), spans }
        }

        fn forget(&mut self, calls: &[usize]) {
            for &call in calls {
                self.calls[call].cause = None;
            }
        }

        fn infer(&self) -> CauseInference {
            let mut inference = infer_causes(&self.calls, &self.requests, &self.spans);
            inference.found.sort_unstable();
            inference
        }
    }

    /// The request that a call of a [`Story`] is for.
    fn own(call: usize) -> usize {
        100 + call / 3
    }

    fn cause(request: usize, evidence: HandOver) -> CallCause {
        CallCause { request: RequestId(request), evidence }
    }

    fn positions(calls: &[usize]) -> Vec<CallPosition> {
        calls.iter().copied().map(CallPosition).collect()
    }

    /// An inference that finds the true causes of these calls.
    fn finds(calls: &[usize], evidence: HandOver) -> CauseInference {
        let found = calls.iter().map(|&call| InferredCause {
            call: CallPosition(call),
            cause: cause(own(call), evidence),
        });
        CauseInference { found: found.collect(), ..CauseInference::default() }
    }

    #[test]
    fn a_request_with_too_many_calls_is_not_believed() {
        let mut story = Story::new(50_000, 20_000);
        for (number, call) in story.calls.iter_mut().enumerate() {
            // The last call of a request is said to be of the next one, by what its thread has read last.
            let wrong = usize::from([32, 62, 92].contains(&number));
            call.cause = Some(cause(own(number) + wrong, HandOver::SameThread));
        }
        let inference = story.infer();
        let doubted = [32, 33, 34, 35, 62, 63, 64, 65, 92, 93, 94, 95];
        assert_eq!(inference.doubted, positions(&doubted));
        let found: Vec<(usize, usize)> =
            inference.found.iter().map(|one| (one.call.0, one.cause.request.0)).collect();
        assert_eq!(found, doubted.map(|call| (call, own(call))));
        // It has asked once more, and no other request lacks a call.
        let mut again = Story::new(50_000, 20_000);
        again.calls.insert(33, again.calls[32]);
        assert!(again.infer().doubted.is_empty());
    }

    #[test]
    fn calls_are_told_by_who_lacks_them() {
        // No two requests are open at once.
        let mut alone = Story::new(500, 0);
        let unknown = [32, 90, 91, 92];
        alone.forget(&unknown);
        assert_eq!(alone.infer(), finds(&unknown, HandOver::Exclusion));
        // Many are open at once: only the order tells.
        let mut many = Story::new(50_000, 20_000);
        let unknown = [32, 62, 63, 90, 91, 92];
        many.forget(&unknown);
        assert_eq!(many.infer(), finds(&unknown, HandOver::Queue));
    }

    #[test]
    fn what_is_irregular_tells_nothing() {
        // A call too many in each second request.
        let mut more = Story::new(50_000, 20_000);
        let calls = more.calls.iter().enumerate();
        more.calls =
            calls.flat_map(|(at, call)| vec![*call; 1 + usize::from(at % 6 == 0)]).collect();
        more.forget(&[61]);
        let inference = more.infer();
        assert!(!inference.is_contradictory);
        assert_eq!(inference.found, []);
        // The same number in all, but in another order than that of the requests.
        let mut other = Story::new(50_000, 20_000);
        for (at, call) in other.calls.iter_mut().enumerate() {
            call.cause = Some(cause(100 + at * 7 % 100, HandOver::Backward));
        }
        other.forget(&[31]);
        // Only that one request lacks a call.
        let only = InferredCause {
            call: CallPosition(31),
            cause: cause(100 + 31 * 7 % 100, HandOver::Exclusion),
        };
        let inference = other.infer();
        assert!(!inference.is_contradictory);
        assert!(inference.found.iter().all(|found| *found == only));
        assert_eq!(infer_causes(&[], &[], &[]), CauseInference::default());
    }

    #[test]
    fn contradictions_leave_what_the_order_confirms() {
        let mut story = Story::new(50_000, 20_000);
        for call in [30, 60, 90] {
            story.calls[call].cause = Some(cause(own(call) + 1, HandOver::Backward));
        }
        let doubted = positions(&[30, 60, 90]);
        assert_eq!(
            story.infer(),
            CauseInference { is_contradictory: true, doubted, found: Vec::new() }
        );
    }
}
