//! Causes of calls, inferred from the calls just before and just after them.

use super::ids::{AssignedCall, CallPosition, PredictionScore, RequestId};

/// Minimum number of known calls that the rule must have been tried on.
const MIN_KNOWN_CALLS: usize = 50;
/// Share of known calls that must be predicted correctly.
const MIN_ACCURACY: f64 = 0.99;

/// Infers causes of calls that have none. `causes` are those of the calls of a process, in send order.
///
/// A queue that keeps the order has the tasks of one request side by side. A call belongs to the request of both its
/// neighbours, provided that this rule predicts nearly all known causes.
pub(super) fn infer_causes(
    causes: &[Option<RequestId>],
) -> Vec<AssignedCall<CallPosition, RequestId>> {
    let known = |position: usize| causes.get(position).copied().flatten();
    let predict = |position: usize| {
        let before = known(position.checked_sub(1)?)?;
        (known(position + 1) == Some(before)).then_some(before)
    };
    let (mut score, mut found) = (PredictionScore::default(), Vec::new());
    for (position, cause) in causes.iter().enumerate() {
        let Some(request) = predict(position) else {
            continue;
        };
        match cause {
            None => found.push(AssignedCall { call: CallPosition(position), request }),
            Some(cause) => score.add(*cause == request),
        }
    }
    let is_ordered = score.all >= MIN_KNOWN_CALLS && score.reaches(MIN_ACCURACY);
    if is_ordered { found } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_queues_that_keep_the_order_tell() {
        let causes = |request: fn(usize) -> usize, unknown: &[usize]| -> Vec<Option<RequestId>> {
            let cause = |call| (!unknown.contains(&call)).then_some(RequestId(request(call)));
            (0..300).map(cause).collect()
        };
        let in_order = causes(|call| call / 3, &[31, 33]);
        // The middle one of three is between its own; the first one is not.
        let middle = AssignedCall { call: CallPosition(31), request: RequestId(10) };
        assert_eq!(infer_causes(&in_order), [middle]);
        let shuffled = causes(|call| call * 7 % 5, &[31]);
        let too_few = &in_order[20..50];
        for causes in [&shuffled, too_few, &[]] {
            assert!(infer_causes(causes).is_empty());
        }
    }
}
