//! What the order of a queue says of the calls whose cause nothing else tells.

/// Of so many calls whose cause is known the neighbours must tell it right before they are asked for others.
const FEWEST: usize = 50;
/// So large a share of them.
const RIGHT: f64 = 0.99;

/// Causes of calls that have none, `(place, request)`. `causes` are those of the calls of a process in the order in
/// which they were sent.
///
/// A queue that keeps the order has the tasks of one request side by side. So a call belongs to the request to which
/// both the one before it and the one after it belong; if it is so for nearly all calls whose cause is known.
pub(super) fn between(causes: &[Option<usize>]) -> Vec<(usize, usize)> {
    let known = |place: usize| causes.get(place).copied().flatten();
    let neighbours = |place: usize| {
        let before = known(place.checked_sub(1)?)?;
        (known(place + 1) == Some(before)).then_some(before)
    };
    let (mut told, mut right, mut found) = (0, 0, Vec::new());
    for (place, cause) in causes.iter().enumerate() {
        let Some(request) = neighbours(place) else {
            continue;
        };
        match cause {
            None => found.push((place, request)),
            Some(cause) => {
                told += 1;
                right += usize::from(*cause == request);
            }
        }
    }
    let is_ordered = told >= FEWEST && right as f64 >= RIGHT * told as f64;
    if is_ordered { found } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_queues_that_keep_the_order_tell() {
        let mut causes: Vec<Option<usize>> = (0..300).map(|call| Some(call / 3)).collect();
        causes[31] = None;
        causes[33] = None;
        // The middle one of three is between its own; the first one is not.
        assert_eq!(between(&causes), [(31, 10)]);
        let mut shuffled: Vec<Option<usize>> = (0..300).map(|call| Some(call * 7 % 5)).collect();
        shuffled[31] = None;
        assert!(between(&shuffled).is_empty());
        // Too few to know.
        assert!(between(&causes[20..50]).is_empty());
        assert!(between(&[]).is_empty());
    }
}
