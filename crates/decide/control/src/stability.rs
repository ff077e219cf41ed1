//! Closed-loop stability of the PID batching loop (LUC paper, equation 3).
//!
//! The plant, and the characteristic polynomial of the loop with it, are:
//!
//! ```text
//! d(t+1) = d(t) + c u(t+1)
//! (c Kp + c Ki + c Kd + 1) z^2 - (c Kp + 2 c Kd + 2) z + (c Kd + 1)
//! ```
//!
//! The loop is stable if both roots of the polynomial lie strictly inside the unit circle. A real controller sees the
//! size of a commit only after it has ended, one step late. The polynomial of that loop is one degree higher and is
//! judged by Jury's criterion.

use crate::pid::PidGains;

/// A complex number, with the operations that poles need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComplexNumber {
    /// Real part of the number.
    pub re: f64,
    /// Imaginary part of the number.
    pub im: f64,
}

impl ComplexNumber {
    /// Distance from the origin; a pole is stable below 1.
    pub fn modulus(self) -> f64 {
        libm::hypot(self.re, self.im)
    }
}

/// The two poles of the paper's closed loop for gains and plant slope `c` (requests per unit of `u`).
///
/// Meaningful for `c >= 0` and non-negative gains, where the leading coefficient is at least 1.
pub fn closed_loop_poles(gains: &PidGains, c: f64) -> [ComplexNumber; 2] {
    let a = c * (gains.kp + gains.ki + gains.kd) + 1.0;
    let b = -(c * (gains.kp + 2.0 * gains.kd) + 2.0);
    let k = c * gains.kd + 1.0;
    let discriminant = b * b - 4.0 * a * k;
    let root = libm::sqrt(discriminant.abs()) / (2.0 * a);
    let middle = -b / (2.0 * a);
    if discriminant >= 0.0 {
        [ComplexNumber { re: middle + root, im: 0.0 }, ComplexNumber { re: middle - root, im: 0.0 }]
    } else {
        [ComplexNumber { re: middle, im: root }, ComplexNumber { re: middle, im: -root }]
    }
}

/// Whether the paper's loop is stable: both poles strictly inside the unit circle.
pub fn is_stable(gains: &PidGains, c: f64) -> bool {
    closed_loop_poles(gains, c).iter().all(|pole| pole.modulus() < 1.0)
}

/// Whether the loop with a measurement that is one step old is stable, by Jury's criterion on this polynomial:
///
/// ```text
/// z^3 + (c(Kp+Ki+Kd) - 2) z^2 + (1 - c(Kp+2Kd)) z + c Kd
/// ```
pub fn is_stable_with_late_measurement(gains: &PidGains, c: f64) -> bool {
    let a2 = c * (gains.kp + gains.ki + gains.kd) - 2.0;
    let a1 = 1.0 - c * (gains.kp + 2.0 * gains.kd);
    let a0 = c * gains.kd;
    let at_one = 1.0 + a2 + a1 + a0;
    let at_minus_one = -1.0 + a2 - a1 + a0;
    at_one > 0.0
        && at_minus_one < 0.0
        && a0.abs() < 1.0
        && (a0 * a0 - 1.0).abs() > (a0 * a2 - a1).abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pid::Pid;

    #[test]
    fn the_papers_gains_give_a_damped_pair_inside_the_unit_circle() {
        // 2.3 z^2 - 3.3 z + 1.25 = 0, so |z|^2 = 1.25 / 2.3 and Re z = 3.3 / 4.6.
        let [upper, lower] = closed_loop_poles(&PidGains::PAPER, 1.0);
        assert!((upper.modulus() - (1.25f64 / 2.3).sqrt()).abs() < 1e-12);
        assert!((upper.re - 3.3 / 4.6).abs() < 1e-12);
        assert!(upper.im > 0.0 && lower.im == -upper.im);
    }

    #[test]
    fn poles_are_roots_of_equation_3() {
        for c in [0.05, 0.3, 1.0, 4.0] {
            let g = PidGains::PAPER;
            for pole in closed_loop_poles(&g, c) {
                let square = (pole.re * pole.re - pole.im * pole.im, 2.0 * pole.re * pole.im);
                let a = c * (g.kp + g.ki + g.kd) + 1.0;
                let b = -(c * g.kp + 2.0 * c * g.kd + 2.0);
                let re = a * square.0 + b * pole.re + c * g.kd + 1.0;
                let im = a * square.1 + b * pole.im;
                assert!(re.hypot(im) < 1e-9, "c = {c}: residue {re} + {im} i");
            }
        }
    }

    #[test]
    fn the_papers_gains_are_stable_for_every_positive_slope() {
        for step in 1..1_000 {
            assert!(is_stable(&PidGains::PAPER, f64::from(step) * 0.01));
        }
        assert!(!is_stable(&PidGains::PAPER, 0.0), "without a plant the poles sit on the circle");
    }

    #[test]
    fn jury_agrees_with_a_simulated_loop() {
        for (c, stable) in [(0.2, true), (1.0, true), (1.3, true), (2.5, false), (4.0, false)] {
            assert_eq!(is_stable_with_late_measurement(&PidGains::PAPER, c), stable, "c = {c}");
            let mut pid = Pid::default();
            let mut measured: f64 = 1.0;
            for _ in 0..500 {
                measured += c * pid.update(&PidGains::PAPER, 8.0 - measured);
                measured = measured.clamp(-1e6, 1e6);
            }
            assert_eq!((measured - 8.0).abs() < 1e-3, stable, "c = {c} ended at {measured}");
        }
    }
}
