//! Medians, and intervals of medians from order statistics.

use serde::Serialize;

/// Returns the median; the mean of the middle two of an even number. `None` of nothing or of NaN.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    median_of_scratch(&mut values.to_vec())
}

/// Computes the same as [`median`] without a copy: reorders `values`, which must not contain NaN.
pub(super) fn median_of_scratch(values: &mut [f64]) -> Option<f64> {
    let length = values.len();
    if length == 0 {
        return None;
    }
    let (below, &mut middle, _) = values.select_nth_unstable_by(length / 2, f64::total_cmp);
    if length % 2 == 1 {
        return Some(middle);
    }
    let under = below.iter().copied().max_by(f64::total_cmp)?;
    Some(f64::midpoint(under, middle))
}

/// A median between two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MedianInterval {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

/// Computes the median and its distribution-free 95 % interval from order statistics.
///
/// The bounds are the narrowest symmetric pair that covers the true median with probability of at least 95 %: x(k) and
/// x(n+1-k) with P(Bin(n, 1/2) < k) <= 2.5 % (Conover, *Practical Nonparametric Statistics*, 3.2). `None` for fewer
/// than 6 values, which cannot give 95 %, or for NaN.
#[must_use]
pub fn median_interval(values: &[f64]) -> Option<MedianInterval> {
    let median = median(values)?;
    let rank = lower_rank(values.len())?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(MedianInterval { median, low: sorted[rank - 1], high: sorted[sorted.len() - rank] })
}

/// Returns the largest k >= 1 with P(Bin(n, 1/2) < k) <= 0.025.
fn lower_rank(n: usize) -> Option<usize> {
    let mut ln_probability = -(n as f64) * std::f64::consts::LN_2;
    let mut below = 0.0;
    for k in 0..n {
        below += ln_probability.exp();
        if below > 0.025 {
            return (k >= 1).then_some(k);
        }
        ln_probability += ((n - k) as f64 / (k + 1) as f64).ln();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranks_as_in_the_tables() {
        // Conover, table A3 / Hahn and Meeker: n, k of the 95 % interval of a median.
        for (n, rank) in [(5, None), (6, Some(1)), (9, Some(2)), (10, Some(2)), (15, Some(4))] {
            assert_eq!(lower_rank(n), rank, "{n}");
        }
        for (n, rank) in [(20, Some(6)), (25, Some(8)), (50, Some(18)), (100, Some(40))] {
            assert_eq!(lower_rank(n), rank, "{n}");
        }
        assert!(lower_rank(100_000).is_some_and(|rank| (49_600..49_800).contains(&rank)));
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        let values: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        let expected = MedianInterval { median: 5.5, low: 2.0, high: 9.0 };
        assert_eq!(median_interval(&values), Some(expected));
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_median(values in prop::collection::vec(-1e9_f64..1e9, 6..200)) {
            let interval = median_interval(&values).expect("enough values");
            prop_assert!(interval.low <= interval.median && interval.median <= interval.high);
        }

        #[test]
        fn half_lie_on_either_side(values in prop::collection::vec(-1e9_f64..1e9, 1..200)) {
            let middle = median(&values).expect("a value");
            let below = values.iter().filter(|&&value| value < middle).count();
            let above = values.iter().filter(|&&value| value > middle).count();
            prop_assert!(below <= values.len() / 2 && above <= values.len() / 2);
        }
    }
}
