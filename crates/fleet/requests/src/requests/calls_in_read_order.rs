//! Causes of calls of processes that make their calls in the order in which they read the requests. A loop whose
//! tasks and connections have queues does. The order is believed if all calls then are within their requests.

use std::ops::Range;

use super::equal_call_counts::TimedCall;
use super::follow_threads::RequestSpan;
use super::ids::{AssignedCall, CallPosition, RequestRank};

/// Number of calls that are looked at together; at the end up to twice as many.
const STRETCH_CALLS: usize = 1_000;
/// Maximum number of calls by which requests from before the trace, or calls that it lacks, shift the order.
const MAX_SHIFT: i64 = 64;
/// In the order that is believed no call is outside its request. With the order shifted by up to one request, at
/// least this many calls of a stretch must be outside. Fewer may be chance.
const MIN_OUTSIDE_NEAR: usize = 10;
/// Minimum number of calls outside their requests with the order shifted further.
const MIN_OUTSIDE_FAR: usize = 3;

/// Assigns calls to requests. `calls` are in send order, `spans` those of the requests in receive order.
///
/// A request is open from when it is read until it is answered. All its calls and their answers are in between.
/// Another order than the true one puts some calls to requests that were not open.
pub(super) fn infer_causes(
    calls: &[TimedCall],
    spans: &[RequestSpan],
    calls_per_request: usize,
) -> Vec<AssignedCall<CallPosition, RequestRank>> {
    let mut found = Vec::new();
    let mut begin = 0;
    while begin < calls.len() {
        let rest = calls.len() - begin;
        let end = begin + if rest < 2 * STRETCH_CALLS { rest } else { STRETCH_CALLS };
        if let Some(shift) = find_shift(calls, begin..end, spans, calls_per_request) {
            found.extend((begin..end).filter_map(|call| {
                let rank = rank_of(call, shift, calls_per_request)?;
                let is_within = is_within(&calls[call], *spans.get(rank.0)?);
                is_within.then_some(AssignedCall { call: CallPosition(call), request: rank })
            }));
        }
        begin = end;
    }
    found
}

/// Finds the only shift of the order with which calls are within their requests.
fn find_shift(
    calls: &[TimedCall],
    stretch: Range<usize>,
    spans: &[RequestSpan],
    calls_per_request: usize,
) -> Option<i64> {
    let count_outside = |shift: i64| {
        let outside = stretch.clone().filter(|&call| {
            // Calls for requests that are not in the trace are not outside.
            let span = rank_of(call, shift, calls_per_request).and_then(|rank| spans.get(rank.0));
            span.is_some_and(|&span| !is_within(&calls[call], span))
        });
        outside.take(MIN_OUTSIDE_NEAR).count()
    };
    let counts: Vec<(i64, usize)> =
        (-MAX_SHIFT..=MAX_SHIFT).map(|shift| (shift, count_outside(shift))).collect();
    let &(good, _) = counts.iter().find(|(_, outside)| *outside == 0)?;
    let is_refuted = |&(shift, outside): &(i64, usize)| {
        let is_near = (shift - good).unsigned_abs() <= calls_per_request as u64;
        let min_outside = if is_near { MIN_OUTSIDE_NEAR } else { MIN_OUTSIDE_FAR };
        outside >= min_outside || shift == good
    };
    counts.iter().all(is_refuted).then_some(good)
}

fn rank_of(call: usize, shift: i64, calls_per_request: usize) -> Option<RequestRank> {
    let task = usize::try_from(call as i64 + shift).ok()?;
    Some(RequestRank(task / calls_per_request))
}

fn is_within(call: &TimedCall, span: RequestSpan) -> bool {
    span.covers(call.asked_ns, call.answered_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of eight clients, one each 100 µs, with three calls each in the order of the requests. If `is_swapped`,
    /// the calls of each second request come before those of the one before.
    fn story(requests: usize, is_swapped: bool) -> (Vec<TimedCall>, Vec<RequestSpan>) {
        let spans: Vec<RequestSpan> = (0..requests as u64)
            .map(|rank| RequestSpan {
                opened_ns: rank * 100_000,
                sure_until_ns: rank * 100_000 + 700_000 + (rank * 7919) % 100_000,
            })
            .collect();
        let mut calls: Vec<TimedCall> = (0..3 * requests)
            .map(|task| {
                let rank = task / 3;
                let late = if is_swapped && rank % 2 == 0 { 130_000 } else { 0 };
                let asked_ns = rank as u64 * 100_000 + late + 10 + task as u64 % 3;
                TimedCall {
                    asked_ns,
                    answered_ns: spans[rank].sure_until_ns - 1_000 * (task as u64 % 3 + 1),
                    cause: None,
                }
            })
            .collect();
        calls.sort_by_key(|call| call.asked_ns);
        (calls, spans)
    }

    #[test]
    fn calls_in_the_order_of_requests_are_told() {
        let (calls, spans) = story(1_000, false);
        let found = infer_causes(&calls, &spans, 3);
        assert_eq!(found.len(), 3_000);
        assert!(found.iter().all(|one| one.request.0 == one.call.0 / 3));
        // The trace begins after four requests: twelve calls more at first.
        let found = infer_causes(&calls, &spans[4..], 3);
        assert!(found.len() >= 2_980, "{}", found.len());
        assert!(found.iter().all(|one| one.request.0 + 4 == one.call.0 / 3));
    }

    #[test]
    fn another_order_or_too_few_calls_tell_nothing() {
        let (calls, spans) = story(1_000, true);
        assert_eq!(infer_causes(&calls, &spans, 3), []);
        let (calls, spans) = story(2, false);
        assert_eq!(infer_causes(&calls, &spans, 3), []);
        assert_eq!(infer_causes(&[], &[], 3), []);
        // All requests are open all the time.
        let (calls, mut spans) = story(1_000, false);
        for span in &mut spans {
            (span.opened_ns, span.sure_until_ns) = (0, u64::MAX);
        }
        assert_eq!(infer_causes(&calls, &spans, 3), []);
    }
}
