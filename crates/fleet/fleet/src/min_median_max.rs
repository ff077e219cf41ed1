//! Summaries of many values.

use luc_stats::quantile;
use serde::Serialize;

/// Minimum, median and maximum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MinMedianMax {
    pub min_ns: f64,
    pub median_ns: f64,
    pub max_ns: f64,
}

impl MinMedianMax {
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
    fn a_spread_has_the_extremes() {
        let spread = MinMedianMax::of(vec![3.0, 1.0, 2.0]).expect("values");
        assert_eq!((spread.min_ns, spread.median_ns, spread.max_ns), (1.0, 2.0, 3.0));
        assert_eq!(MinMedianMax::of(Vec::new()), None);
    }
}
