//! Quantiles of Student's t.

use std::f64::consts::FRAC_PI_2;

/// Returns half the width of an interval of `confidence`, in standard errors, by Student's t for `freedom` degrees.
/// `None` for a confidence outside 0 to 1, and for no degree of freedom.
#[must_use]
pub fn student(freedom: u32, confidence: f64) -> Option<f64> {
    if freedom == 0 || !(0.0 < confidence && confidence < 1.0) {
        return None;
    }
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    // Each step halves the angle's range, until its ends are neighbouring numbers.
    for _ in 0..f64::MANTISSA_DIGITS {
        let middle = f64::midpoint(low, high);
        if probability_within(freedom, middle) < confidence {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low.tan() * f64::from(freedom).sqrt())
}

/// Returns the probability that Student's t lies within `tan(angle) * sqrt(freedom)` of 0. The formulas are 26.7.3
/// and 26.7.4 of Abramowitz and Stegun, *Handbook of Mathematical Functions*.
fn probability_within(freedom: u32, angle: f64) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    // The sums are of cos + 2/3 cos^3 + 2/3 4/5 cos^5 + ... and of 1 + 1/2 cos^2 + 1/2 3/4 cos^4 + ...
    let is_odd = freedom % 2 == 1;
    let mut term = if is_odd { cosine } else { 1.0 };
    let mut sum = 0.0;
    for power in (freedom % 2..freedom - 1).step_by(2) {
        sum += term;
        term *= f64::from(power + 1) / f64::from(power + 2) * cosine * cosine;
    }
    if is_odd { (angle + sine * sum) / FRAC_PI_2 } else { sine * sum }
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
            let found = student(freedom, confidence).expect("a quantile");
            assert!((found - expected).abs() < 1e-3, "{freedom}: {found}");
        }
        // Two degrees of freedom have a closed form; far out in the tail, where many comparisons are made.
        for tail in [1e-3_f64, 1e-4, 1e-6] {
            let exact = (1.0 - 2.0 * tail) / (2.0 * tail * (1.0 - tail)).sqrt();
            let found = student(2, 1.0 - 2.0 * tail).expect("a quantile");
            assert!((found / exact - 1.0).abs() < 1e-6, "{found} {exact}");
        }
        assert_eq!(student(2, 1.0), None);
        assert_eq!(student(0, 0.95), None);
    }
}
