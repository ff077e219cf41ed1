//! Quantiles that are values which occur.

/// Returns the value at the nearest rank: the least one that at least the part `share` of all values does not exceed.
/// This is definition 1 of Hyndman and Fan (*Sample Quantiles in Statistical Packages*, 1996).
///
/// `sorted` is in ascending order. A `share` below 0 is taken as 0, the least value, and one above 1 as 1, the
/// greatest. `None` for no values, and for a `share` that is NaN.
#[must_use]
pub fn quantile<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    if share.is_nan() {
        return None;
    }
    let count = sorted.len() as f64;
    let share = share.clamp(0.0, 1.0);
    // The product is rounded: 0.07 * 100 is above 7.
    let is_enough = |rank: f64| rank / count >= share;
    let mut rank = (share * count).ceil();
    if is_enough(rank - 1.0) {
        rank -= 1.0;
    } else if !is_enough(rank) {
        rank += 1.0;
    }
    sorted.get((rank as usize).saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_a_hundred() {
        let values: Vec<u32> = (1..=100).collect();
        for (share, expected) in [
            (0.005, 1),
            (0.01, 1),
            (0.011, 2),
            (0.07, 7),
            (0.5, 50),
            (0.501, 51),
            (0.99, 99),
            (0.999, 100),
        ] {
            assert_eq!(quantile(&values, share), Some(expected), "{share}");
        }
    }

    #[test]
    fn at_the_edges() {
        let values = [2.0, 3.0, 5.0];
        for share in [0.0, -0.0, -1.0, f64::NEG_INFINITY] {
            assert_eq!(quantile(&values, share), Some(2.0), "{share}");
        }
        for share in [1.0, 1.5, f64::INFINITY] {
            assert_eq!(quantile(&values, share), Some(5.0), "{share}");
        }
        assert_eq!(quantile(&values, f64::NAN), None);
        assert_eq!(quantile(&[7], 0.0), Some(7));
        assert_eq!(quantile(&[7], 1.0), Some(7));
        for share in [0.0, 0.5, 1.0] {
            assert_eq!(quantile::<u64>(&[], share), None, "{share}");
        }
    }

    proptest! {
        /// A share of exactly k values has rank k, and the least more has rank k + 1.
        #[test]
        fn ranks_are_exact(count in 1_usize..3_000, part in any::<prop::sample::Index>()) {
            let values: Vec<usize> = (1..=count).collect();
            let rank = 1 + part.index(count);
            let share = rank as f64 / count as f64;
            prop_assert_eq!(quantile(&values, share), Some(rank));
            prop_assert_eq!(quantile(&values, share.next_up()), Some(count.min(rank + 1)));
        }

        /// Enough values are not above it, and of those below it there are too few.
        #[test]
        fn it_is_the_least_value_that_is_enough(
            mut values in prop::collection::vec(0_u32..50, 1..60),
            share in 0.0..=1.0_f64,
        ) {
            values.sort_unstable();
            let found = quantile(&values, share).expect("values");
            let part = |count: usize| count as f64 / values.len() as f64;
            let below = values.iter().filter(|value| **value < found).count();
            let not_above = values.iter().filter(|value| **value <= found).count();
            prop_assert!(part(not_above) >= share);
            prop_assert!(below == 0 || part(below) < share);
        }
    }
}
