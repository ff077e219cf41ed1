//! Numbers that know their slopes by each total: forward differentiation.

use super::tree::Operator;

/// A value and its slope by each total.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Dual {
    pub(super) value: f64,
    pub(super) slopes: Vec<f64>,
}

impl Dual {
    /// Makes a value that depends on none of the totals.
    pub(super) fn constant(value: f64, totals: usize) -> Self {
        Self { value, slopes: vec![0.0; totals] }
    }

    /// Sums the totals with these indexes.
    pub(super) fn sum_of(places: &[usize], totals: &[f64]) -> Self {
        let mut sum = Self::constant(0.0, totals.len());
        for &place in places {
            sum.value += totals[place];
            sum.slopes[place] += 1.0;
        }
        sum
    }

    pub(super) fn combine(self, operator: Operator, other: Self) -> Self {
        let (a, b) = (self.value, other.value);
        // The value, and the slopes by either side. Comparisons and bits have none.
        let (value, by_a, by_b) = match operator {
            Operator::Plus => (a + b, 1.0, 1.0),
            Operator::Minus => (a - b, 1.0, -1.0),
            Operator::Times => (a * b, b, a),
            Operator::Over => (a / b, 1.0 / b, -a / (b * b)),
            Operator::Modulo => (a % b, 1.0, -(a / b).trunc()),
            Operator::Less => (f64::from(u8::from(a < b)), 0.0, 0.0),
            Operator::Greater => (f64::from(u8::from(a > b)), 0.0, 0.0),
            Operator::Or => ((a as i64 | b as i64) as f64, 0.0, 0.0),
            Operator::Xor => ((a as i64 ^ b as i64) as f64, 0.0, 0.0),
            Operator::And => ((a as i64 & b as i64) as f64, 0.0, 0.0),
        };
        let slopes = self.slopes.iter().zip(&other.slopes);
        Self { value, slopes: slopes.map(|(x, y)| by_a * x + by_b * y).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OPERATORS: [Operator; 5] =
        [Operator::Plus, Operator::Minus, Operator::Times, Operator::Over, Operator::Modulo];

    proptest! {
        #[test]
        fn slopes_are_those_of_the_values(a in 1.0..100.0_f64, b in 1.0..100.0_f64) {
            for operator in OPERATORS {
                let of = |a: f64, b: f64| {
                    let totals = [a, b];
                    Dual::sum_of(&[0], &totals).combine(operator, Dual::sum_of(&[1], &totals))
                };
                let step = 1e-6;
                let found = of(a, b);
                for (at, next) in [of(a + step, b), of(a, b + step)].into_iter().enumerate() {
                    let slope = (next.value - found.value) / step;
                    // Modulo jumps.
                    let jumps = operator == Operator::Modulo && slope.abs() > 1e3;
                    prop_assert!(
                        jumps || (slope - found.slopes[at]).abs() < 1e-3 * (1.0 + slope.abs()),
                        "{operator:?} {a} {b}: {slope} {found:?}"
                    );
                }
            }
        }
    }
}
