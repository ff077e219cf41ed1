//! What the order of a queue says of the calls whose cause nothing else tells.

use std::collections::HashMap;
use std::ops::RangeInclusive;

/// Of so many calls whose cause is known the neighbours must tell it right before they are asked for others.
const FEWEST: usize = 50;
/// So large a share of them.
const RIGHT: f64 = 0.99;
/// The share of requests that may have made another number of calls than the others.
const IRREGULAR: f64 = 0.01;
/// The most calls in a row that are told by how many are missing.
const MOST: usize = 64;

/// Causes of calls that have none, `(place, request)`. `causes` are those of the calls of a process in the order in
/// which they were sent, `requests` those that the process received in their order.
///
/// A queue that keeps the order has the tasks of one request side by side. So a call belongs to the request to which
/// both the one before it and the one after it belong; and where each request makes the same number of calls, those in a
/// row to the requests around them that lack as many. Both only if it is so for nearly all calls whose cause is known.
pub(super) fn between(causes: &[Option<usize>], requests: &[usize]) -> Vec<(usize, usize)> {
    let mut all = side_by_side(causes);
    let mut causes = causes.to_vec();
    for &(place, request) in &all {
        causes[place] = Some(request);
    }
    all.extend(by_number(&causes, requests));
    all
}

/// Those of a call whose neighbours have one cause.
fn side_by_side(causes: &[Option<usize>]) -> Vec<(usize, usize)> {
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

/// Those of calls in a row that are as many as the requests around them lack, where each request makes the same number
/// of calls, and calls are sent in the order of the requests.
fn by_number(causes: &[Option<usize>], requests: &[usize]) -> Vec<(usize, usize)> {
    let ranks: HashMap<usize, usize> = requests.iter().copied().zip(0..).collect();
    let places = causes.iter().enumerate();
    let known = places.filter_map(|(place, cause)| Some((place, *ranks.get(&(*cause)?)?)));
    let known: Vec<(usize, usize)> = known.collect();
    let mut counts = vec![0; requests.len()];
    for &(_, rank) in &known {
        counts[rank] += 1;
    }
    let (Some(each), true) = (calls_of_each(causes.len(), &counts), is_ordered(&known)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for pair in known.windows(2) {
        let [(before, first), (after, last)] = [pair[0], pair[1]];
        let gap = after - before - 1;
        if !(1..=MOST).contains(&gap) || first > last || last - first > MOST {
            continue;
        }
        let missing = missing(first..=last, &counts, each);
        if missing.len() == gap {
            for (place, rank) in (before + 1..after).zip(missing) {
                counts[rank] += 1;
                found.push((place, requests[rank]));
            }
        }
    }
    found
}

/// The ranks of calls that requests lack, in order.
fn missing(ranks: RangeInclusive<usize>, counts: &[usize], each: usize) -> Vec<usize> {
    let of_rank = |rank: usize| std::iter::repeat_n(rank, each.saturating_sub(counts[rank]));
    ranks.flat_map(of_rank).take(MOST + 1).collect()
}

/// How many calls each request makes, if that is one number. `counts` are those that are known.
fn calls_of_each(calls: usize, counts: &[usize]) -> Option<usize> {
    let requests = counts.len() as f64;
    let each = (calls as f64 / requests).round();
    let is_number = each >= 1.0 && (each * requests - calls as f64).abs() <= IRREGULAR * requests;
    let each = is_number.then_some(each as usize)?;
    let with_more = counts.iter().filter(|&&count| count > each).count();
    (with_more as f64 <= IRREGULAR * requests).then_some(each)
}

/// Whether nearly all calls between two whose causes are known, too, are for one of these or for a request between.
fn is_ordered(known: &[(usize, usize)]) -> bool {
    let (mut told, mut right) = (0, 0);
    for three in known.windows(3) {
        let [(before, first), (_, rank), (after, last)] = [three[0], three[1], three[2]];
        if after - before == 2 {
            told += 1;
            right += usize::from((first..=last).contains(&rank));
        }
    }
    told >= FEWEST && right as f64 >= RIGHT * told as f64
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
        assert_eq!(between(&causes, &[]), [(31, 10)]);
        let mut shuffled: Vec<Option<usize>> = (0..300).map(|call| Some(call * 7 % 5)).collect();
        shuffled[31] = None;
        assert!(between(&shuffled, &[]).is_empty());
        // Too few to know.
        assert!(between(&causes[20..50], &[]).is_empty());
        assert!(between(&[], &[]).is_empty());
    }

    #[test]
    fn calls_are_told_by_how_many_are_missing() {
        // Requests 100 to 199 in this order, each with three calls.
        let requests: Vec<usize> = (100..200).collect();
        let whole: Vec<Option<usize>> = (0..300).map(|call| Some(100 + call / 3)).collect();
        let mut causes = whole.clone();
        // The last one of a request, the last and the first of two, and all of one.
        for place in [32, 62, 63, 90, 91, 92] {
            causes[place] = None;
        }
        let told = |places: &[usize]| -> Vec<(usize, usize)> {
            places
                .iter()
                .map(|&place| (place, 100 + place / 3))
                .collect()
        };
        assert_eq!(between(&causes, &requests), told(&[32, 62, 63, 90, 91, 92]));
        // A call too many in the gap: whose it is, is not known.
        let mut other = causes.clone();
        other.insert(91, None);
        assert_eq!(between(&other, &requests), told(&[32, 62, 63]));
        // Requests that make one, two or three calls lack none.
        let of_several: Vec<usize> = (0..100)
            .flat_map(|rank| vec![100 + rank; 1 + rank % 3])
            .collect();
        let mut of_several: Vec<Option<usize>> = of_several.into_iter().map(Some).collect();
        of_several[60] = None;
        assert!(by_number(&of_several, &requests).is_empty());
        // The same calls in another order of requests.
        let backward: Vec<usize> = requests.iter().rev().copied().collect();
        assert!(by_number(&causes, &backward).is_empty());
    }
}
