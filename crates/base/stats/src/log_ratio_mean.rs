//! The interval of a mean ratio from a few pairs: Student's t on their logarithms.

use super::student_t::student;

/// A geometric mean between two bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanInterval {
    /// Geometric mean of the ratios.
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// Computes the geometric mean of positive `ratios` with its interval of `confidence`. The interval assumes that the
/// ratios' logarithms are about normal, which order statistics do not. It needs 2 ratios; order statistics need 6 for
/// 95 %. `None` for fewer, and for a ratio that has no logarithm.
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
    let half = student(logs.len() as u32 - 1, confidence)? * error;
    Some(MeanInterval { mean: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() })
}

#[cfg(test)]
mod tests {
    use super::*;

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
