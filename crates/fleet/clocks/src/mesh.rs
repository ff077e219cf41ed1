//! Many hosts at one moment: bounds and estimates by all pairs together.
//!
//! Bounds of pairs are difference constraints, whose tightest consequences are shortest paths (Cormen et al.,
//! *Introduction to Algorithms*, section 24.4). The estimates are the least squares over all pairs: errors of pairs,
//! above all the asymmetry of their ways, average out along the many paths of a mesh (Geng et al., *Exploiting a
//! Natural Network Effect for Scalable, Fine-grained Clock Synchronization* (Huygens), NSDI 2018).

mod least_squares;
mod pair_bounds;

use crate::host_ids::HostIndex;
pub use pair_bounds::PairBounds;

/// Offset of a host's clock: its time less that of the reference host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostOffset {
    /// Estimate, ns; `None` without a path of pairs that are bounded on both sides.
    pub offset_ns: Option<f64>,
    /// Least possible value, ns; minus infinite if no path bounds it.
    pub low_ns: f64,
    /// Greatest possible value, ns; infinite if no path bounds it.
    pub high_ns: f64,
}

impl HostOffset {
    /// Whether no path of pairs bounds it on either side.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        self.low_ns == f64::NEG_INFINITY && self.high_ns == f64::INFINITY
    }
}

/// Maximum error of the length of a circle by rounding, ns.
const MAX_ROUNDING_NS: f64 = 1e-3;

/// Returns the offsets of all hosts to one of them.
///
/// Pairs of hosts that do not exist, or with bounds that are not numbers, are ignored.
///
/// # Errors
/// A host on a circle of pairs that contradict each other.
pub fn place(
    hosts: usize,
    pairs: &[PairBounds],
    reference: HostIndex,
) -> Result<Vec<HostOffset>, HostIndex> {
    let is_whole = |pair: &&PairBounds| {
        let known = !pair.low_ns.is_nan() && !pair.high_ns.is_nan();
        known && pair.a.0 < hosts && pair.b.0 < hosts && pair.a != pair.b
    };
    let pairs: Vec<PairBounds> = pairs.iter().filter(is_whole).copied().collect();
    // The greatest offset of a host is along arrows from A to B with `high`, and from B to A with `-low`.
    let highs = shortest_paths(hosts, reference, &pairs, |pair| (pair.high_ns, -pair.low_ns))?;
    let lows = shortest_paths(hosts, reference, &pairs, |pair| (-pair.low_ns, pair.high_ns))?;
    let estimates = least_squares::estimate_offsets(hosts, &pairs, reference, &highs, &lows);
    let all = highs.into_iter().zip(lows).zip(estimates);
    Ok(all
        .map(|((high_ns, low), offset_ns)| HostOffset {
            offset_ns,
            low_ns: (-low).min(high_ns),
            high_ns: high_ns.max(-low),
        })
        .collect())
}

/// Returns the lengths of the shortest paths from the reference (Bellman and Ford). `lengths` returns those of a pair
/// from A to B and back.
fn shortest_paths(
    hosts: usize,
    reference: HostIndex,
    pairs: &[PairBounds],
    lengths: impl Fn(&PairBounds) -> (f64, f64),
) -> Result<Vec<f64>, HostIndex> {
    let mut found = vec![f64::INFINITY; hosts];
    if let Some(reference) = found.get_mut(reference.0) {
        *reference = 0.0;
    }
    let mut changed = None;
    for _ in 0..=hosts {
        changed = None;
        for pair in pairs {
            let (there, back) = lengths(pair);
            for (from, to, length) in [(pair.a, pair.b, there), (pair.b, pair.a, back)] {
                let way = found[from.0] + length;
                // An infinite bound is no arrow, in whichever direction.
                if length.is_finite() && way < found[to.0] - MAX_ROUNDING_NS {
                    found[to.0] = way;
                    changed = Some(to);
                }
            }
        }
        if changed.is_none() {
            return Ok(found);
        }
    }
    Err(changed.unwrap_or(reference))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REFERENCE: HostIndex = HostIndex(0);

    fn pair(a: usize, b: usize, low_ns: f64, high_ns: f64) -> PairBounds {
        PairBounds { a: HostIndex(a), b: HostIndex(b), low_ns, high_ns }
    }

    #[test]
    fn bounds_add_up_along_paths_and_the_best_path_counts() {
        let pairs = [pair(0, 1, 4.0, 6.0), pair(2, 1, -1.0, 1.0), pair(0, 2, 0.0, 20.0)];
        let places = place(3, &pairs, REFERENCE).expect("no contradiction");
        assert_eq!((places[0].low_ns, places[0].high_ns), (0.0, 0.0));
        assert_eq!((places[2].low_ns, places[2].high_ns), (3.0, 7.0));
        assert_eq!((places[1].low_ns, places[1].high_ns), (4.0, 6.0));
    }

    #[test]
    fn who_talks_with_nobody_is_disconnected() {
        let pairs = [pair(0, 1, 4.0, 6.0), pair(1, 2, 0.0, f64::INFINITY)];
        let places = place(4, &pairs, REFERENCE).expect("no contradiction");
        assert_eq!(places[1].offset_ns, Some(5.0));
        assert_eq!((places[2].low_ns, places[2].high_ns), (4.0, f64::INFINITY));
        assert_eq!(places[2].offset_ns, None);
        assert!(places[3].is_disconnected() && !places[2].is_disconnected());
    }

    #[test]
    fn a_contradiction_is_an_error() {
        let pairs = [pair(0, 1, 4.0, 6.0), pair(1, 2, 4.0, 6.0), pair(0, 2, 0.0, 1.0)];
        assert!(place(3, &pairs, REFERENCE).is_err());
    }

    #[test]
    fn nonsense_says_nothing() {
        let pairs = [pair(0, 9, 0.0, 1.0), pair(1, 1, 5.0, 6.0), pair(0, 1, f64::NAN, 1.0)];
        let places = place(2, &pairs, REFERENCE).expect("no contradiction");
        assert!(places[1].is_disconnected());
        assert!(place(0, &[], HostIndex(3)).is_ok_and(|places| places.is_empty()));
    }

    proptest! {
        #[test]
        fn the_truth_is_inside_and_the_estimates_are(
            truth in prop::collection::vec(-1000_f64..1000.0, 2..9),
            delays in prop::collection::vec((0.1_f64..30.0, 0.1_f64..30.0, any::<bool>()), 36),
        ) {
            let mut pairs = Vec::new();
            let mut delays = delays.into_iter();
            for a in 0..truth.len() {
                for b in a + 1..truth.len() {
                    let Some((above, below, _)) = delays.next().filter(|delay| delay.2) else { continue };
                    let offset = truth[b] - truth[a];
                    pairs.push(pair(a, b, offset - below, offset + above));
                }
            }
            let places = place(truth.len(), &pairs, REFERENCE).expect("the truth is a solution");
            for (place, truth_of) in places.iter().zip(&truth) {
                let offset = truth_of - truth[0];
                prop_assert!(place.low_ns <= offset + 0.1 && offset <= place.high_ns + 0.1);
            }
            for pair in &pairs {
                if let (Some(a), Some(b)) = (places[pair.a.0].offset_ns, places[pair.b.0].offset_ns) {
                    prop_assert!(b - a >= pair.low_ns - 0.1 && b - a <= pair.high_ns + 0.1);
                }
            }
        }
    }
}
