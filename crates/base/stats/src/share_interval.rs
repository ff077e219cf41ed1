//! Interval of a share.

/// The standard normal's quantile at 0.975.
const Z: f64 = 1.959_963_984_540_054;

/// Computes the 95 % score interval `(low, high)` of the share of `hits` in `all`. The method is Wilson's (*Probable
/// Inference, the Law of Succession, and Statistical Inference*, 1927).
///
/// It lies within 0 and 1, and is not empty for a share of 0 or 1. Trials are taken as independent. `None` for no
/// trials, and for more hits than trials.
#[must_use]
pub fn share_interval(hits: u64, all: u64) -> Option<(f64, f64)> {
    if all == 0 || hits > all {
        return None;
    }
    let count = all as f64;
    let share = hits as f64 / count;
    let shrink = 1.0 + Z * Z / count;
    let middle = (share + Z * Z / (2.0 * count)) / shrink;
    let half = Z / shrink * (share * (1.0 - share) / count + (Z / (2.0 * count)).powi(2)).sqrt();
    // Exactly 0 and 1, where rounding would leave a remainder.
    let low = if hits == 0 { 0.0 } else { middle - half };
    let high = if hits == all { 1.0 } else { middle + half };
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_newcombe_s_examples() {
        // Newcombe, Two-Sided Confidence Intervals for the Single Proportion, 1998, table I, method 3.
        for (hits, all, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let found = share_interval(hits, all).expect("trials");
            assert!((found.0 - low).abs() < 5e-5, "{hits} of {all}: {found:?}");
            assert!((found.1 - high).abs() < 5e-5, "{hits} of {all}: {found:?}");
        }
    }

    #[test]
    fn of_nothing_there_is_none() {
        assert_eq!(share_interval(0, 0), None);
        assert_eq!(share_interval(3, 2), None);
    }

    proptest! {
        /// The interval holds the share, stays within 0 and 1, and mirrors that of the other outcome.
        #[test]
        fn it_holds_the_share((hits, all) in (1_u64..1 << 40).prop_flat_map(|all| (0..=all, Just(all)))) {
            let (low, high) = share_interval(hits, all).expect("trials");
            let share = hits as f64 / all as f64;
            prop_assert!(0.0 <= low && low <= share && share <= high && high <= 1.0);
            let (other_low, other_high) = share_interval(all - hits, all).expect("trials");
            prop_assert!((low - (1.0 - other_high)).abs() < 1e-9);
            prop_assert!((high - (1.0 - other_low)).abs() < 1e-9);
        }
    }
}
