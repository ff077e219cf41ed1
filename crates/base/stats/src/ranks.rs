//! Ranks, and the correlation of ranks.

/// Returns the rank of each value among all, from 1; equal values share the mean of their ranks. None of them is NaN.
pub(super) fn mid_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let value = values[order[first]];
        let equal = order[first..].iter().take_while(|&&at| values[at] == value).count();
        let rank = first as f64 + (equal as f64 + 1.0) / 2.0;
        for &at in &order[first..first + equal] {
            ranks[at] = rank;
        }
        first += equal;
    }
    ranks
}

/// Brings values to mean 0 and length 1; `false`, and no change, where all are equal.
pub(super) fn normalize(values: &mut [f64]) -> bool {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let length = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>().sqrt();
    // Rounding leaves something of equal values.
    let is_varied = length > 1e-9 * mean.abs() * (values.len() as f64).sqrt() && length > 0.0;
    if is_varied {
        for value in values {
            *value = (*value - mean) / length;
        }
    }
    is_varied
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Computes Spearman's correlation of ranks, from -1 to 1; `None` of values that are all equal, not numbers, or not in
/// pairs.
#[must_use]
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() != b.len() || a.iter().chain(b).any(|value| value.is_nan()) {
        return None;
    }
    let (mut a, mut b) = (mid_ranks(a), mid_ranks(b));
    (normalize(&mut a) && normalize(&mut b)).then(|| dot(&a, &b).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn alike_values_share_a_rank() {
        assert_eq!(mid_ranks(&[5.0, 1.0, 5.0, 9.0]), [2.5, 1.0, 2.5, 4.0]);
        assert!(mid_ranks(&[]).is_empty());
    }

    #[test]
    fn known_correlations() {
        // Without ties 1 - 6 * sum(d^2) / (n (n^2 - 1)): IQ and hours of television, the textbooks' example, d^2 = 194.
        let iq = [106.0, 100.0, 86.0, 101.0, 99.0, 103.0, 97.0, 113.0, 112.0, 110.0];
        let hours = [7.0, 27.0, 2.0, 50.0, 28.0, 29.0, 20.0, 12.0, 6.0, 17.0];
        let rho = spearman(&iq, &hours).expect("varied");
        assert!((rho - (1.0 - 6.0 * 194.0 / 990.0)).abs() < 1e-12, "{rho}");
        assert_eq!(spearman(&[1.0, 2.0], &[1.0]), None);
        assert_eq!(spearman(&[1.0, 2.0], &[3.0, 3.0]), None);
        assert_eq!(spearman(&[1.0, f64::NAN], &[3.0, 4.0]), None);
    }

    proptest! {
        #[test]
        fn only_the_order_counts(values in prop::collection::vec(-50_f64..50.0, 3..60)) {
            let others: Vec<f64> = values.iter().rev().copied().collect();
            let plain = spearman(&values, &others);
            let grown: Vec<f64> = values.iter().map(|value| value.exp()).collect();
            prop_assert_eq!(plain.is_some(), spearman(&grown, &others).is_some());
            if let (Some(plain), Some(grown)) = (plain, spearman(&grown, &others)) {
                prop_assert!((plain - grown).abs() < 1e-9 && plain.abs() <= 1.0);
            }
        }
    }
}
