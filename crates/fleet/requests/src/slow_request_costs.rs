//! Costs of the slowest requests, beside those of usual ones.

use std::collections::BTreeMap;

/// One of this many requests is one of the slowest.
const SLOW_INTERVAL: usize = 20;
/// Minimum number of slow requests.
const MIN_REQUESTS: usize = 10;
/// Maximum number of slow requests.
const MAX_REQUESTS: usize = 200;
/// The slowest are no more than one part of all requests in this many.
const SLOW_DIVISOR: usize = 3;
/// Ratio of mean times from which on the slowest requests differ from the usual ones.
const MIN_TAIL_RATIO: f64 = 1.25;
/// Number of samples of the bootstrap.
const BOOTSTRAP_SAMPLES: usize = 1_000;
/// Share of samples that is outside of an interval, on either side.
const OUTSIDE_SHARE: f64 = 0.025;

/// Costs of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestCosts<K> {
    pub time_ns: u64,
    pub charges: Vec<RequestCost<K>>,
}

/// Cost of one thing to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestCost<K> {
    pub key: K,
    /// Part of the request's time, ns.
    pub ns: u64,
}

/// A share of time with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeShare {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// Cost of one thing to the slowest requests, and to the usual ones.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowRequestCost<K> {
    pub key: K,
    /// Number of the slowest requests that it cost something.
    pub requests: usize,
    /// Part of the time of all slowest requests, ns.
    pub slow_ns: u64,
    /// Part of the time of all usual requests, ns.
    pub usual_ns: u64,
    /// Share of the slowest requests' time.
    pub share: TimeShare,
    /// Number of the slowest requests of whose time it is the largest part.
    pub largest_in: usize,
    /// Mean cost to a slow request less that to a usual one, ns.
    pub more_ns: f64,
}

/// Returns the indices of the slowest requests in `times_ns`, the slowest first, and of as many usual ones. Usual
/// requests are those around the median that are not among the slowest.
#[must_use]
pub fn slow_and_usual(times_ns: &[u64]) -> [Vec<usize>; 2] {
    let mut places: Vec<usize> = (0..times_ns.len()).collect();
    places.sort_by_key(|&place| (std::cmp::Reverse(times_ns[place]), place));
    let all = places.len();
    let max = all.div_ceil(SLOW_DIVISOR);
    let count = all.div_ceil(SLOW_INTERVAL).clamp(MIN_REQUESTS, MAX_REQUESTS).min(max);
    let middle = (all / 2).saturating_sub(count / 2).max(count);
    let usual = places[middle.min(all)..(middle + count).min(all)].to_vec();
    places.truncate(count);
    [places, usual]
}

/// Returns the cost of each thing. The first one makes the slowest requests slower than usual ones. Where they are not
/// much slower, the first one takes most of their time.
#[must_use]
pub fn accounts<K: Ord + Clone>(
    slow: &[RequestCosts<K>],
    usual: &[RequestCosts<K>],
) -> Vec<SlowRequestCost<K>> {
    let mut keys: BTreeMap<&K, usize> = BTreeMap::new();
    for charge in slow.iter().flat_map(|sample| &sample.charges) {
        keys.entry(&charge.key).or_default();
    }
    for (number, place) in keys.values_mut().enumerate() {
        *place = number;
    }
    // By key and request.
    let mut costs_ns = vec![vec![0_u64; slow.len()]; keys.len()];
    for (at, sample) in slow.iter().enumerate() {
        for charge in &sample.charges {
            let place = keys[&charge.key];
            costs_ns[place][at] = costs_ns[place][at].saturating_add(charge.ns);
        }
    }
    let mut largest_in = vec![0_usize; keys.len()];
    for at in 0..slow.len() {
        let places = (0..costs_ns.len()).filter(|&place| costs_ns[place][at] > 0);
        if let Some(place) = places.max_by_key(|&place| costs_ns[place][at]) {
            largest_in[place] += 1;
        }
    }
    let mut usual_ns = vec![0_u64; keys.len()];
    for charge in usual.iter().flat_map(|sample| &sample.charges) {
        if let Some(&place) = keys.get(&charge.key) {
            usual_ns[place] = usual_ns[place].saturating_add(charge.ns);
        }
    }
    let times_ns: Vec<u64> = slow.iter().map(|sample| sample.time_ns).collect();
    let draws = draws(slow.len());
    let mean = |sum_ns: u64, count: usize| sum_ns as f64 / count.max(1) as f64;
    let account = |(key, place): (&&K, &usize)| {
        let costs_ns = &costs_ns[*place];
        let slow_ns = sum(costs_ns.iter().copied());
        SlowRequestCost {
            key: (*key).clone(),
            requests: costs_ns.iter().filter(|cost_ns| **cost_ns > 0).count(),
            slow_ns,
            usual_ns: usual_ns[*place],
            share: share(costs_ns, &times_ns, &draws),
            largest_in: largest_in[*place],
            more_ns: mean(slow_ns, slow.len()) - mean(usual_ns[*place], usual.len()),
        }
    };
    let mut all: Vec<SlowRequestCost<K>> = keys.iter().map(account).collect();
    let of = |samples: &[RequestCosts<K>]| {
        let sum_ns = sum(samples.iter().map(|sample| sample.time_ns));
        mean(sum_ns, samples.len())
    };
    let has_tail = of(slow) >= MIN_TAIL_RATIO * of(usual);
    all.sort_by(|a, b| {
        let rank = |account: &SlowRequestCost<K>| {
            if has_tail { account.more_ns } else { account.slow_ns as f64 }
        };
        rank(b).total_cmp(&rank(a)).then_with(|| a.key.cmp(&b.key))
    });
    all
}

/// Returns a cost's share of times, with the percentiles of a bootstrap over requests.
fn share(costs_ns: &[u64], times_ns: &[u64], draws: &[Vec<usize>]) -> TimeShare {
    let of = |places: &mut dyn Iterator<Item = usize>| {
        let (mut cost, mut time) = (0.0, 0.0);
        for place in places {
            cost += costs_ns[place] as f64;
            time += times_ns[place] as f64;
        }
        if time > 0.0 { cost / time } else { 0.0 }
    };
    let value = of(&mut (0..times_ns.len()));
    let mut shares: Vec<f64> = draws.iter().map(|draw| of(&mut draw.iter().copied())).collect();
    shares.sort_unstable_by(f64::total_cmp);
    let last = shares.len().saturating_sub(1) as f64;
    let at = |share: f64| shares.get((last * share).round() as usize).copied();
    TimeShare {
        value,
        low: at(OUTSIDE_SHARE).unwrap_or(value).min(value),
        high: at(1.0 - OUTSIDE_SHARE).unwrap_or(value).max(value),
    }
}

/// Returns samples of request indices, drawn with replacement: the same for all things, and the same each time.
fn draws(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return Vec::new();
    }
    let mut state = 0_u64;
    let mut draw = || {
        // SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) as usize % count
    };
    (0..BOOTSTRAP_SAMPLES).map(|_| (0..count).map(|_| draw()).collect()).collect()
}

fn sum(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(charges: &[(&'static str, u64)]) -> RequestCosts<&'static str> {
        let charge = |&(key, ns): &(&'static str, u64)| RequestCost { key, ns };
        RequestCosts {
            time_ns: charges.iter().map(|(_, ns)| ns).sum(),
            charges: charges.iter().map(charge).collect(),
        }
    }

    #[test]
    fn what_makes_the_slowest_slow_comes_first() {
        // Computing takes more of the slowest requests' time, but as much of the others'.
        let slow: Vec<_> =
            (0..20).map(|at| sample(&[("computes", 90), ("lock", 50 + at)])).collect();
        let usual: Vec<_> = (0..20).map(|_| sample(&[("computes", 90)])).collect();
        let found = accounts(&slow, &usual);
        let keys: Vec<_> = found.iter().map(|account| account.key).collect();
        assert_eq!(keys, ["lock", "computes"]);
        let lock = &found[0];
        assert_eq!((lock.requests, lock.slow_ns, lock.usual_ns), (20, 1_190, 0));
        assert_eq!((lock.largest_in, found[1].largest_in), (0, 20));
        assert!((lock.more_ns - 59.5).abs() < 1e-9);
        let share = lock.share;
        assert!((share.value - 1_190.0 / 2_990.0).abs() < 1e-12);
        assert!(share.low < share.value && share.value < share.high, "{share:?}");
        assert!(share.high - share.low < 0.05, "{share:?}");
        // Without a tail, what takes most.
        let found = accounts(&slow, &slow);
        assert_eq!(found[0].key, "computes");
        assert_eq!(found.iter().map(|account| account.slow_ns).sum::<u64>(), 2_990);
    }

    #[test]
    fn one_request_has_no_interval_and_none_no_account() {
        let found = accounts(&[sample(&[("lock", 5)])], &[]);
        let share = found[0].share;
        assert_eq!((share.low, share.value, share.high), (1.0, 1.0, 1.0));
        assert!(accounts::<u8>(&[], &[]).is_empty());
    }

    #[test]
    fn slow_and_usual_requests_are_different_ones() {
        let times_ns: Vec<u64> = (0..1_000).collect();
        let [slow, usual] = slow_and_usual(&times_ns);
        assert_eq!((slow.len(), usual.len()), (50, 50));
        assert_eq!((slow[0], slow[49]), (999, 950));
        assert!(usual.iter().all(|place| (470..530).contains(place)), "{usual:?}");
        for count in 0..40 {
            let [slow, usual] = slow_and_usual(&times_ns[..count]);
            assert_eq!(slow.is_empty(), count == 0);
            assert!(slow.iter().all(|place| !usual.contains(place)), "{count}");
        }
        // Never more than can be looked at in time.
        assert_eq!(slow_and_usual(&vec![1; 100_000])[0].len(), 200);
    }
}
