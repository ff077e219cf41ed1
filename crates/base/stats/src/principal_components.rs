//! Principal components: the few directions in which many columns vary together.

use serde::Serialize;

use super::ranks::{dot, normalize};

/// Components of standardized columns, the one with the largest share of the variance first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PrincipalComponents {
    /// Share of the variance of each component. The sum of all is 1.
    pub shares: Vec<f64>,
    /// Correlations of each component with each column. The largest is positive.
    pub loadings: Vec<Vec<f64>>,
    /// Of each component its value in each row, in any unit.
    #[serde(skip)]
    pub scores: Vec<Vec<f64>>,
}

/// Computes the components of columns of equal length. `None` for fewer than two columns or three rows. `None`, too,
/// if a column is constant or has a value that is not finite. Components without variance are left out.
#[must_use]
pub fn components(columns: &[Vec<f64>]) -> Option<PrincipalComponents> {
    let rows = columns.first()?.len();
    let is_fine = |column: &Vec<f64>| column.len() == rows && column.iter().all(|v| v.is_finite());
    if columns.len() < 2 || rows < 3 || !columns.iter().all(is_fine) {
        return None;
    }
    let mut standard = columns.to_vec();
    for column in &mut standard {
        if !normalize(column) {
            return None;
        }
    }
    // Their correlations.
    let matrix: Vec<Vec<f64>> =
        standard.iter().map(|a| standard.iter().map(|b| dot(a, b)).collect()).collect();
    let count = columns.len() as f64;
    let mut found: Vec<(f64, Vec<f64>)> =
        eigen(matrix).into_iter().filter(|(value, _)| *value > 1e-9 * count).collect();
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut components =
        PrincipalComponents { shares: Vec::new(), loadings: Vec::new(), scores: Vec::new() };
    for (value, mut vector) in found {
        let largest = vector
            .iter()
            .copied()
            .fold(0.0, |a: f64, b| if b.abs() > a.abs() + 1e-12 { b } else { a });
        for part in &mut vector {
            *part *= largest.signum();
        }
        let score = |row: usize| standard.iter().zip(&vector).map(|(c, part)| c[row] * part).sum();
        components.scores.push((0..rows).map(score).collect());
        components.shares.push(value / count);
        let loading = |part: &f64| (part * value.sqrt()).clamp(-1.0, 1.0);
        components.loadings.push(vector.iter().map(loading).collect());
    }
    Some(components)
}

/// Computes eigenvalues and eigenvectors of a symmetric matrix by Jacobi's rotations (Golub and Van Loan, *Matrix
/// Computations*, 8.5). The vectors have length 1. Matrices have a hundred rows at most. `nalgebra` has the same, and
/// takes 28 s of processor time to build.
fn eigen(mut a: Vec<Vec<f64>>) -> Vec<(f64, Vec<f64>)> {
    let n = a.len();
    let unit = |at: usize| (0..n).map(|k| f64::from(u8::from(k == at))).collect();
    // Rows are the vectors.
    let mut vectors: Vec<Vec<f64>> = (0..n).map(unit).collect();
    let size: f64 = a.iter().map(|row| dot(row, row)).sum();
    // Convergence is quadratic: ten sweeps are plenty for any matrix.
    for _ in 0..60 {
        let off: f64 = (0..n).map(|p| a[p].iter().skip(p + 1).map(|x| x * x).sum::<f64>()).sum();
        if off <= 1e-24 * size {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if a[p][q] != 0.0 {
                    rotate(&mut a, &mut vectors, p, q);
                }
            }
        }
    }
    vectors.into_iter().enumerate().map(|(at, vector)| (a[at][at], vector)).collect()
}

/// Applies the rotation that makes `a[p][q]` 0.
fn rotate(a: &mut [Vec<f64>], vectors: &mut [Vec<f64>], p: usize, q: usize) {
    let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
    let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let c = 1.0 / t.hypot(1.0);
    let s = t * c;
    for row in a.iter_mut() {
        (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
    }
    for rows in [a, vectors] {
        let (upper, lower) = rows.split_at_mut(q);
        for (x, y) in upper[p].iter_mut().zip(&mut lower[0]) {
            (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_by_two() {
        let mut found = eigen(vec![vec![2.0, 1.0], vec![1.0, 2.0]]);
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        assert!((found[0].0 - 3.0).abs() < 1e-12 && (found[1].0 - 1.0).abs() < 1e-12);
        assert!((found[0].1[0] - found[0].1[1]).abs() < 1e-12);
    }

    #[test]
    fn two_factors_of_known_sizes() {
        // f and g have nothing in common; three columns are of f, one of g.
        let f = [1.0, 1.0, -1.0, -1.0];
        let g = [1.0, -1.0, 1.0, -1.0];
        let times = |factor: f64| f.iter().map(|value| value * factor + 5.0).collect();
        let columns = [times(3.0), times(-0.1), g.to_vec(), times(1e6)];
        let found = components(&columns).expect("varied");
        assert_eq!(found.shares.len(), 2);
        assert!((found.shares[0] - 0.75).abs() < 1e-9 && (found.shares[1] - 0.25).abs() < 1e-9);
        let expected = [[1.0, -1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]];
        for (loadings, expected) in found.loadings.iter().zip(expected) {
            for (loading, expected) in loadings.iter().zip(expected) {
                assert!((loading - expected).abs() < 1e-6, "{found:?}");
            }
        }
        let score = &found.scores[0];
        assert!((score[0] - score[1]).abs() < 1e-9 && (score[0] + score[2]).abs() < 1e-9);
    }

    #[test]
    fn what_has_no_components() {
        let varied = vec![1.0, 2.0, 4.0];
        for columns in [
            vec![],
            vec![varied.clone()],
            vec![varied.clone(), vec![3.0; 3]],
            vec![varied.clone(), vec![1.0, f64::NAN, 2.0]],
            vec![varied.clone(), vec![1.0, 2.0]],
            vec![vec![1.0, 2.0], vec![3.0, 1.0]],
        ] {
            assert_eq!(components(&columns), None, "{columns:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn vectors_are_vectors(values in prop::collection::vec(-10_f64..10.0, 64), n in 1_usize..8) {
            let matrix: Vec<Vec<f64>> = (0..n)
                .map(|row| (0..n).map(|column| values[row.min(column) * 8 + row.max(column)]).collect())
                .collect();
            let found = eigen(matrix.clone());
            let trace: f64 = (0..n).map(|at| matrix[at][at]).sum();
            prop_assert!((found.iter().map(|(value, _)| value).sum::<f64>() - trace).abs() < 1e-8);
            for (at, (value, vector)) in found.iter().enumerate() {
                for (row, part) in matrix.iter().zip(vector) {
                    prop_assert!((dot(row, vector) - value * part).abs() < 1e-7);
                }
                for (other, (_, with)) in found.iter().enumerate() {
                    let expected = f64::from(u8::from(other == at));
                    prop_assert!((dot(vector, with) - expected).abs() < 1e-9);
                }
            }
        }

        #[test]
        fn shares_are_whole(values in prop::collection::vec(-10_f64..10.0, 30..90)) {
            let rows = values.len() / 5;
            let columns: Vec<Vec<f64>> = values.chunks(rows).take(5).map(<[f64]>::to_vec).collect();
            if let Some(found) = components(&columns) {
                prop_assert!((found.shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                prop_assert!(found.shares.windows(2).all(|pair| pair[0] >= pair[1]));
                // All that a column varies is in the components.
                for column in 0..5 {
                    let told: f64 = found.loadings.iter().map(|loadings| loadings[column].powi(2)).sum();
                    prop_assert!((told - 1.0).abs() < 1e-6);
                }
            }
        }
    }
}
