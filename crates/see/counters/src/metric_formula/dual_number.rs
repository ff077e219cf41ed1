//! Numbers that know their slopes by each total: forward differentiation.

use super::formula_tree::FormulaOperator;

/// A value and its slope by each total.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DualNumber {
    pub(super) value: f64,
    pub(super) slopes: Vec<f64>,
}

impl DualNumber {
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

    pub(super) fn combine(self, operator: FormulaOperator, other: Self) -> Self {
        let (a, b) = (self.value, other.value);
        // The value, and the slopes by either side. Comparisons and bits have none.
        let (value, by_a, by_b) = match operator {
            FormulaOperator::Plus => (a + b, 1.0, 1.0),
            FormulaOperator::Minus => (a - b, 1.0, -1.0),
            FormulaOperator::Times => (a * b, b, a),
            FormulaOperator::Over => (a / b, 1.0 / b, -a / (b * b)),
            FormulaOperator::Modulo => (a % b, 1.0, -(a / b).trunc()),
            FormulaOperator::Less => (f64::from(u8::from(a < b)), 0.0, 0.0),
            FormulaOperator::Greater => (f64::from(u8::from(a > b)), 0.0, 0.0),
            FormulaOperator::Or => ((a as i64 | b as i64) as f64, 0.0, 0.0),
            FormulaOperator::Xor => ((a as i64 ^ b as i64) as f64, 0.0, 0.0),
            FormulaOperator::And => ((a as i64 & b as i64) as f64, 0.0, 0.0),
        };
        let slopes = self.slopes.iter().zip(&other.slopes);
        Self { value, slopes: slopes.map(|(x, y)| by_a * x + by_b * y).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OPERATORS: [FormulaOperator; 5] = [
        FormulaOperator::Plus,
        FormulaOperator::Minus,
        FormulaOperator::Times,
        FormulaOperator::Over,
        FormulaOperator::Modulo,
    ];

    proptest! {
        #[test]
        fn slopes_are_those_of_the_values(a in 1.0..100.0_f64, b in 1.0..100.0_f64) {
            for operator in OPERATORS {
                let of = |a: f64, b: f64| {
                    let totals = [a, b];
                    DualNumber::sum_of(&[0], &totals).combine(operator, DualNumber::sum_of(&[1], &totals))
                };
                let step = 1e-6;
                let found = of(a, b);
                for (at, next) in [of(a + step, b), of(a, b + step)].into_iter().enumerate() {
                    let slope = (next.value - found.value) / step;
                    // Modulo jumps.
                    let jumps = operator == FormulaOperator::Modulo && slope.abs() > 1e3;
                    prop_assert!(
                        jumps || (slope - found.slopes[at]).abs() < 1e-3 * (1.0 + slope.abs()),
                        "{operator:?} {a} {b}: {slope} {found:?}"
                    );
                }
            }
        }
    }
}
