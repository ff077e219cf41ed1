//! How figures are spread.

/// The value that this share of them is not above; NaN of none.
pub(super) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted
        .get(place.saturating_sub(1))
        .copied()
        .unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(
            [0.5, 0.99, 1.0].map(|share| quantile(&values, share)),
            [50.0, 99.0, 100.0]
        );
        assert!(quantile(&[], 0.5).is_nan());
    }
}
