//! The interval of a mean ratio from a few pairs: Student's t on their logarithms.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

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

/// The geometric mean of positive `ratios` with its interval of `confidence`. It assumes that their logarithms are
/// about normal, as order statistics do not, and works from 2 ratios on, where order statistics need 6 for 95 %, and
/// more for more. `None` of fewer, or of a figure that has no logarithm.
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
    let half = quantile(count - 1.0, confidence)? * error;
    Some(MeanInterval {
        mean: mean.exp(),
        low: (mean - half).exp(),
        high: (mean + half).exp(),
    })
}

/// How many standard errors an interval of `confidence` reaches to either side.
fn quantile(freedom: f64, confidence: f64) -> Option<f64> {
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let tail = (1.0 - confidence) / 2.0;
    (tail > 0.0 && tail < 0.5).then(|| -student.inverse_cdf(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_as_in_the_tables() {
        for (freedom, confidence, expected) in [
            (2.0, 0.95, 4.303),
            (5.0, 0.95, 2.571),
            (9.0, 0.99, 3.250),
            (2.0, 0.999, 31.599),
            (20.0, 0.999, 3.850),
        ] {
            let found = quantile(freedom, confidence).expect("a quantile");
            assert!((found - expected).abs() < 1e-3, "{freedom}: {found}");
        }
        // Two degrees of freedom have a closed form; far out in the tail, where many comparisons are made.
        for tail in [1e-3_f64, 1e-4, 1e-6] {
            let exact = (1.0 - 2.0 * tail) / (2.0 * tail * (1.0 - tail)).sqrt();
            let found = quantile(2.0, 1.0 - 2.0 * tail).expect("a quantile");
            assert!((found / exact - 1.0).abs() < 1e-6, "{found} {exact}");
        }
        assert_eq!(quantile(2.0, 1.0), None);
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
