//! Ratios of repeats that were made in the same round.

use super::bootstrap_ratio::StatsError;

/// Returns `with[i] / without[i]` for each round i that both have. Pairs are close in time, so that drift of the
/// machine leaves their ratio alone; the median of the ratios and its order-statistic interval
/// ([`interpolated_interval`](super::interpolated_interval)) then assume nothing about the distribution.
///
/// # Errors
/// [`StatsError::NotPositive`] for a figure that has no ratio.
pub fn paired_ratios(with: &[f64], without: &[f64]) -> Result<Vec<f64>, StatsError> {
    let is_fine = |value: &f64| value.is_finite() && *value > 0.0;
    if !with.iter().chain(without).all(is_fine) {
        return Err(StatsError::NotPositive);
    }
    Ok(with.iter().zip(without).map(|(a, b)| a / b).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_only() {
        assert_eq!(paired_ratios(&[2.0, 9.0, 1.0], &[1.0, 3.0]), Ok(vec![2.0, 3.0]));
        assert_eq!(paired_ratios(&[2.0], &[0.0]), Err(StatsError::NotPositive));
    }
}
