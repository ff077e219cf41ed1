//! The order of runs with and without a change, so that drift of the machine favours neither.

use rand::RngExt;
use serde::Serialize;

use crate::seeded_random;

/// A run with the change under test, or without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunSide {
    /// A run with the change.
    With,
    /// A run without the change.
    Without,
}

/// Returns an order of `n` runs of each side: pairs of one with and one without, each pair in an order of
/// its own drawn from `seed`. Pairs keep the sides together in time, the draw keeps neither always
/// first.
#[must_use]
pub fn interleave(n: usize, seed: u64) -> Vec<RunSide> {
    let mut random = seeded_random::stream(seed, 0);
    (0..n)
        .flat_map(|_| {
            if random.random() {
                [RunSide::With, RunSide::Without]
            } else {
                [RunSide::Without, RunSide::With]
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_pair_has_both_sides(n in 0_usize..200, seed: u64) {
            let order = interleave(n, seed);
            prop_assert_eq!(order.len(), 2 * n);
            prop_assert!(order.chunks(2).all(|pair| pair[0] != pair[1]));
            prop_assert_eq!(order, interleave(n, seed));
        }
    }

    #[test]
    fn neither_side_is_always_first() {
        let first =
            interleave(1000, 1).iter().step_by(2).filter(|&&side| side == RunSide::With).count();
        assert!((400..600).contains(&first), "{first}");
    }
}
