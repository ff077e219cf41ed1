//! Processes that make their calls in the order in which they have read the requests, as a loop does whose tasks and
//! connections have queues: told by whether all calls then are within their requests.

use std::ops::Range;

use super::forward::Span;
use super::regular::Call;

/// Calls are looked at in stretches of so many, or up to twice as many at the end.
const STRETCH: usize = 1_000;
/// Requests from before the trace, or calls that it lacks, shift the order by so many calls at most.
const FARTHEST: i64 = 64;
/// In the order that is believed no call is outside its request. With it shifted by up to one request at least so many of
/// a stretch must be, or few of them tell one order from another.
const NEAR_OUTSIDE: usize = 10;
/// The same with it shifted further.
const FAR_OUTSIDE: usize = 3;

/// Which calls are for which requests, `(place, rank)`. `calls` are in the order in which they were sent, `spans` those
/// of the requests in the order in which they were read; each makes `each` calls.
///
/// A request is open from when it is read until it is answered, and all its calls and their answers are in between.
/// Another order than the true one puts some calls to requests that were not open.
pub(super) fn told(calls: &[Call], spans: &[Span], each: usize) -> Vec<(usize, usize)> {
    let mut told = Vec::new();
    let mut begin = 0;
    while begin < calls.len() {
        let rest = calls.len() - begin;
        let end = begin + if rest < 2 * STRETCH { rest } else { STRETCH };
        if let Some(shift) = shift_of(calls, begin..end, spans, each) {
            let ranks = (begin..end).map(|place| (place, rank_of(place, shift, each)));
            told.extend(ranks.filter_map(|(place, rank)| {
                let rank = rank?;
                is_within(&calls[place], *spans.get(rank)?).then_some((place, rank))
            }));
        }
        begin = end;
    }
    told
}

/// The only shift of the order with which calls are within their requests.
fn shift_of(calls: &[Call], stretch: Range<usize>, spans: &[Span], each: usize) -> Option<i64> {
    let outside = |shift: i64| {
        let outside = stretch.clone().filter(|&place| {
            // Calls for requests that are not in the trace are not outside.
            let span = rank_of(place, shift, each).and_then(|rank| spans.get(rank));
            span.is_some_and(|&span| !is_within(&calls[place], span))
        });
        outside.take(NEAR_OUTSIDE).count()
    };
    let counts: Vec<(i64, usize)> =
        (-FARTHEST..=FARTHEST).map(|shift| (shift, outside(shift))).collect();
    let &(good, _) = counts.iter().find(|(_, outside)| *outside == 0)?;
    let is_refuted = |&(shift, outside): &(i64, usize)| {
        let is_near = (shift - good).unsigned_abs() <= each as u64;
        let fewest = if is_near { NEAR_OUTSIDE } else { FAR_OUTSIDE };
        outside >= fewest || shift == good
    };
    counts.iter().all(is_refuted).then_some(good)
}

fn rank_of(place: usize, shift: i64, each: usize) -> Option<usize> {
    let task = usize::try_from(place as i64 + shift).ok()?;
    Some(task / each)
}

fn is_within(call: &Call, span: Span) -> bool {
    span.contains(call.asked_ns) && span.contains(call.answered_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of eight clients, one each 100 µs, with three calls each that are sent in the order of the requests, or
    /// the calls of each second request before those of the one before.
    fn story(requests: usize, is_swapped: bool) -> (Vec<Call>, Vec<Span>) {
        let spans: Vec<Span> = (0..requests as u64)
            .map(|rank| Span {
                opened_ns: rank * 100_000,
                sure_until_ns: rank * 100_000 + 700_000 + (rank * 7919) % 100_000,
            })
            .collect();
        let mut calls: Vec<Call> = (0..3 * requests)
            .map(|task| {
                let rank = task / 3;
                let late = if is_swapped && rank % 2 == 0 { 130_000 } else { 0 };
                let asked_ns = rank as u64 * 100_000 + late + 10 + task as u64 % 3;
                Call {
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
        let told_of = told(&calls, &spans, 3);
        assert_eq!(told_of.len(), 3_000);
        assert!(told_of.iter().all(|&(place, rank)| rank == place / 3));
        // The trace begins after four requests: twelve calls more at first.
        let told_of = told(&calls, &spans[4..], 3);
        assert!(told_of.len() >= 2_980, "{}", told_of.len());
        assert!(told_of.iter().all(|&(place, rank)| rank + 4 == place / 3));
    }

    #[test]
    fn another_order_or_too_few_calls_tell_nothing() {
        let (calls, spans) = story(1_000, true);
        assert_eq!(told(&calls, &spans, 3), []);
        let (calls, spans) = story(2, false);
        assert_eq!(told(&calls, &spans, 3), []);
        assert_eq!(told(&[], &[], 3), []);
        // All requests are open all the time.
        let (calls, mut spans) = story(1_000, false);
        for span in &mut spans {
            (span.opened_ns, span.sure_until_ns) = (0, u64::MAX);
        }
        assert_eq!(told(&calls, &spans, 3), []);
    }
}
