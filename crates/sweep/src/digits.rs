//! Figures as tables show them.

use std::fmt;

/// A figure with about four digits.
pub(crate) struct FourDigits(pub(crate) f64);

impl fmt::Display for FourDigits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = (3 - self.0.abs().max(1e-9).log10().floor() as i32).clamp(0, 9);
        write!(f, "{:.*}", digits.unsigned_abs() as usize, self.0)
    }
}
