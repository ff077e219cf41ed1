//! Least squares over the graph of pairs, kept inside the bounds.

use super::pair_bounds::PairBounds;
use crate::host_ids::HostIndex;

/// Maximum number of rounds of conjugate gradients; in exact arithmetic one for each host suffices.
const MAX_ROUNDS: usize = 200;
/// Ratio of the residual to the first one below which it counts as 0.
const MIN_RESIDUAL_RATIO: f64 = 1e-12;
/// Minimum width of a pair in its weight, ns: a pair of no width would have an infinite weight.
const MIN_WIDTH_NS: f64 = 1.0;

/// A pair that is bounded on both sides: its middle is a measurement of the difference.
struct Measured {
    a: HostIndex,
    b: HostIndex,
    middle: f64,
    weight: f64,
}

/// Estimates the offset of each host to the reference; `None` without a path of pairs that are bounded on both sides.
/// `highs` and `lows` are the lengths of the shortest paths: each of them fulfils all bounds, and so does their middle.
pub(super) fn estimate_offsets(
    hosts: usize,
    pairs: &[PairBounds],
    reference: HostIndex,
    highs: &[f64],
    lows: &[f64],
) -> Vec<Option<f64>> {
    let measured: Vec<Measured> = pairs.iter().filter_map(Measured::of).collect();
    let is_reached = find_reached(hosts, &measured, reference);
    let middles: Vec<f64> = highs
        .iter()
        .zip(lows)
        .zip(&is_reached)
        .map(|((high, low), &is_reached)| if is_reached { f64::midpoint(*high, -low) } else { 0.0 })
        .collect();
    let mut best = middles.clone();
    solve(&measured, &is_reached, reference, &mut best);
    let share = share_inside(pairs, &is_reached, &middles, &best);
    let offset = |host: usize| middles[host] + share * (best[host] - middles[host]);
    (0..hosts).map(|host| is_reached[host].then(|| offset(host))).collect()
}

impl Measured {
    fn of(pair: &PairBounds) -> Option<Self> {
        let width = pair.high_ns - pair.low_ns;
        width.is_finite().then(|| Self {
            a: pair.a,
            b: pair.b,
            middle: f64::midpoint(pair.low_ns, pair.high_ns),
            weight: width.max(MIN_WIDTH_NS).powi(-2),
        })
    }
}

fn find_reached(hosts: usize, measured: &[Measured], reference: HostIndex) -> Vec<bool> {
    let mut is_reached = vec![false; hosts];
    if let Some(reference) = is_reached.get_mut(reference.0) {
        *reference = true;
    }
    loop {
        let mut is_changed = false;
        for pair in measured {
            let (HostIndex(a), HostIndex(b)) = (pair.a, pair.b);
            if is_reached[a] != is_reached[b] {
                (is_reached[a], is_reached[b]) = (true, true);
                is_changed = true;
            }
        }
        if !is_changed {
            return is_reached;
        }
    }
}

/// Minimizes the weighted squares by conjugate gradients (Hestenes and Stiefel, 1952), preconditioned by the weights
/// of each host; the reference stays at 0.
fn solve(measured: &[Measured], is_reached: &[bool], reference: HostIndex, offsets: &mut [f64]) {
    let hosts = offsets.len();
    let is_free = |host: usize| host != reference.0 && is_reached[host];
    let mut own = vec![0.0; hosts];
    for pair in measured.iter().filter(|pair| is_reached[pair.a.0]) {
        own[pair.a.0] += pair.weight;
        own[pair.b.0] += pair.weight;
    }
    // Half the negative gradient: the pull of the pairs on each host.
    let pull = |of: &[f64], share_of_middle: f64| {
        let mut pulls = vec![0.0; hosts];
        for pair in measured.iter().filter(|pair| is_reached[pair.a.0]) {
            let (HostIndex(a), HostIndex(b)) = (pair.a, pair.b);
            let pulled = pair.weight * (share_of_middle * pair.middle - (of[b] - of[a]));
            pulls[b] += pulled;
            pulls[a] -= pulled;
        }
        for (host, pull) in pulls.iter_mut().enumerate() {
            if !is_free(host) {
                *pull = 0.0;
            }
        }
        pulls
    };
    let scaled = |pulls: &[f64]| -> Vec<f64> {
        pulls
            .iter()
            .zip(&own)
            .map(|(pull, own)| if *own > 0.0 { pull / own } else { 0.0 })
            .collect()
    };
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut residual = pull(offsets, 1.0);
    let mut way = scaled(&residual);
    let first = dot(&residual, &way);
    let mut left = first;
    for _ in 0..MAX_ROUNDS {
        let bent = pull(&way, 0.0);
        let curvature = -dot(&way, &bent);
        if !(left > first * MIN_RESIDUAL_RATIO && curvature > 0.0) {
            return;
        }
        let step = left / curvature;
        for host in 0..hosts {
            offsets[host] += step * way[host];
            residual[host] += step * bent[host];
        }
        let new = scaled(&residual);
        let next = dot(&residual, &new);
        for (way, new) in way.iter_mut().zip(new) {
            *way = new + next / left * *way;
        }
        left = next;
    }
}

/// Returns the share of the way from the middles, which fulfil all bounds, to the best offsets, that leaves no bound.
fn share_inside(pairs: &[PairBounds], is_reached: &[bool], middles: &[f64], best: &[f64]) -> f64 {
    let mut share = 1.0_f64;
    for pair in pairs {
        let (HostIndex(a), HostIndex(b)) = (pair.a, pair.b);
        if !(is_reached[a] && is_reached[b]) {
            continue;
        }
        let from = middles[b] - middles[a];
        let change = best[b] - best[a] - from;
        let room = if change > 0.0 { pair.high_ns - from } else { from - pair.low_ns };
        if change.abs() > room.max(0.0) {
            share = share.min(room.max(0.0) / change.abs());
        }
    }
    share
}
