//! The interval of a mean ratio from a few pairs: Student's t on their logarithms.

use std::f64::consts::FRAC_PI_2;

/// A geometric mean between two bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanInterval {
    /// The geometric mean.
    pub mean: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// The geometric mean of positive `ratios` with its interval of `confidence`. The interval assumes that the ratios'
/// logarithms are about normal, which order statistics do not. It needs 2 ratios; order statistics need 6 for 95 %.
/// `None` for fewer, and for a ratio that has no logarithm.
#[must_use]
pub fn geometric_interval(ratios: &[f64], confidence: f64) -> Option<MeanInterval> {
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    if logs.len() < 2 || logs.iter().any(|log| !log.is_finite()) {
        return None;
    }
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    let half = quantile(logs.len() as u32 - 1, confidence)? * error;
    Some(MeanInterval {
        mean: mean.exp(),
        low: (mean - half).exp(),
        high: (mean + half).exp(),
    })
}

/// How many standard errors an interval of `confidence` reaches to either side: Student's t for `freedom` degrees.
fn quantile(freedom: u32, confidence: f64) -> Option<f64> {
    if !(0.0 < confidence && confidence < 1.0) {
        return None;
    }
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    // Each step halves the angle's range, until its ends are neighbouring numbers.
    for _ in 0..f64::MANTISSA_DIGITS {
        let middle = f64::midpoint(low, high);
        if within(freedom, middle) < confidence {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low.tan() * f64::from(freedom).sqrt())
}

/// The probability that Student's t lies within `tan(angle) * sqrt(freedom)` of 0 (Abramowitz and Stegun, *Handbook of
/// Mathematical Functions*, 26.7.3 and 26.7.4).
fn within(freedom: u32, angle: f64) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    // The sums are of cos + 2/3 cos^3 + 2/3 4/5 cos^5 + ... and of 1 + 1/2 cos^2 + 1/2 3/4 cos^4 + ...
    let is_odd = freedom % 2 == 1;
    let mut term = if is_odd { cosine } else { 1.0 };
    let mut sum = 0.0;
    for power in (freedom % 2..freedom - 1).step_by(2) {
        sum += term;
        term *= f64::from(power + 1) / f64::from(power + 2) * cosine * cosine;
    }
    if is_odd {
        (angle + sine * sum) / FRAC_PI_2
    } else {
        sine * sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_as_in_the_tables() {
        for (freedom, confidence, expected) in [
            (1, 0.95, 12.706),
            (2, 0.95, 4.303),
            (3, 0.95, 3.182),
            (5, 0.95, 2.571),
            (9, 0.99, 3.250),
            (2, 0.999, 31.599),
            (20, 0.999, 3.850),
            (120, 0.95, 1.980),
        ] {
            let found = quantile(freedom, confidence).expect("a quantile");
            assert!((found - expected).abs() < 1e-3, "{freedom}: {found}");
        }
        // Two degrees of freedom have a closed form; far out in the tail, where many comparisons are made.
        for tail in [1e-3_f64, 1e-4, 1e-6] {
            let exact = (1.0 - 2.0 * tail) / (2.0 * tail * (1.0 - tail)).sqrt();
            let found = quantile(2, 1.0 - 2.0 * tail).expect("a quantile");
            assert!((found / exact - 1.0).abs() < 1e-6, "{found} {exact}");
        }
        assert_eq!(quantile(2, 1.0), None);
    }

    #[test]
    fn few_and_many() {
        assert_eq!(geometric_interval(&[1.0], 0.95), None);
        assert_eq!(geometric_interval(&[1.0, 0.0], 0.95), None);
        let equal = geometric_interval(&[2.0; 3], 0.95).expect("an interval");
        assert!((equal.low - 2.0).abs() < 1e-12 && (equal.high - 2.0).abs() < 1e-12);
        let found = geometric_interval(&[0.5, 1.0, 2.0], 0.95).expect("an interval");
        // Logarithms -0.693, 0, 0.693: the standard error is 0.4002.
        let half = 4.302_65 * 2.0_f64.ln() / 3.0_f64.sqrt();
        assert!((found.mean - 1.0).abs() < 1e-12);
        assert!((found.high.ln() - half).abs() < 1e-4, "{found:?}");
    }
}
