//! Figures of many values.

use serde::Serialize;

/// The value below or at which a share of the values is, by nearest rank; `None` of no values. `values` are sorted.
pub(crate) fn quantile<T: Copy>(values: &[T], share: f64) -> Option<T> {
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.max(1) - 1).copied()
}

/// Least, middle and greatest value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The least, ns.
    pub min_ns: f64,
    /// The median, ns.
    pub median_ns: f64,
    /// The greatest, ns.
    pub max_ns: f64,
}

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        Some(Self {
            min_ns: *values.first()?,
            median_ns: quantile(&values, 0.5)?,
            max_ns: *values.last()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occur() {
        let values: Vec<u32> = (1..=100).collect();
        assert_eq!(quantile(&values, 0.5), Some(50));
        assert_eq!(quantile(&values, 0.99), Some(99));
        assert_eq!(quantile(&values, 1.0), Some(100));
        assert_eq!(quantile(&values[..1], 0.99), Some(1));
        assert_eq!(quantile::<u32>(&[], 0.5), None);
    }

    #[test]
    fn a_spread_has_the_extremes() {
        let spread = Spread::of(vec![3.0, 1.0, 2.0]).expect("values");
        assert_eq!(
            (spread.min_ns, spread.median_ns, spread.max_ns),
            (1.0, 2.0, 3.0)
        );
        assert_eq!(Spread::of(Vec::new()), None);
    }
}
