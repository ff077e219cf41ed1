//! Rank correlations of many columns with a figure, and the probability that chance gives as strong a one.

use rand::RngExt;
use serde::Serialize;

use super::ranks::{dot, mid_ranks, normalize};
use crate::seeded_random;

/// Shuffles of the figure. The smallest probability that can come out is 1 / (SHUFFLES + 1).
const SHUFFLES: usize = 1999;

/// A column needs this many rows.
const MIN_ROWS: usize = 6;

/// Correlation of one column with the figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankCorrelation {
    /// Spearman's correlation of ranks, within strata.
    pub correlation: f64,
    /// The probability that any of the columns correlates as strongly with a figure that depends on none of them.
    pub adjusted_p: f64,
    /// Rows that have the column.
    pub rows: usize,
}

/// Columns that have the same rows.
struct Family {
    rows: Vec<usize>,
    /// Number of each column, with its normalized ranks.
    columns: Vec<(usize, Vec<f64>)>,
    /// A correlation times this is comparable to one of other rows.
    weight: f64,
}

/// Computes the association of each column with the figure; `None` for a constant column, or one with too few rows.
///
/// Ranks are taken within a row's stratum. With all rows in one stratum this is Spearman's correlation. With points as
/// strata, differences between points do not count. The figure is shuffled within strata.
///
/// The adjusted probability is that of the largest correlation of all columns, each scaled by its rows. The method is
/// the single step of Westfall and Young (*Resampling-Based Multiple Testing*, 2.3). The probability holds for all
/// columns together, however they depend on each other. The same `seed` gives the same result.
#[must_use]
pub fn associations(
    figure: &[f64],
    strata: &[usize],
    columns: &[Vec<Option<f64>>],
    seed: u64,
) -> Vec<Option<RankCorrelation>> {
    shuffled(figure, strata, columns, seed, SHUFFLES)
}

fn shuffled(
    figure: &[f64],
    strata: &[usize],
    columns: &[Vec<Option<f64>>],
    seed: u64,
    shuffles: usize,
) -> Vec<Option<RankCorrelation>> {
    let families = families(strata, columns);
    let mut found: Vec<Option<RankCorrelation>> = vec![None; columns.len()];
    let mut strengths = vec![0.0; columns.len()];
    for family in &families {
        for (column, correlation) in family.correlations(figure, strata) {
            strengths[column] = correlation.abs() * family.weight;
            found[column] =
                Some(RankCorrelation { correlation, adjusted_p: 1.0, rows: family.rows.len() });
        }
    }
    let mut random = seeded_random::stream(seed, 0);
    let mut figure = figure.to_vec();
    let mut as_strong = vec![0_usize; columns.len()];
    for _ in 0..shuffles {
        shuffle_within(&mut figure, strata, &mut random);
        let strongest = families
            .iter()
            .flat_map(|family| {
                let correlations = family.correlations(&figure, strata);
                correlations.map(|(_, correlation)| correlation.abs() * family.weight)
            })
            .fold(0.0, f64::max);
        for (count, strength) in as_strong.iter_mut().zip(&strengths) {
            *count += usize::from(strongest >= strength - 1e-9);
        }
    }
    for (association, count) in found.iter_mut().zip(as_strong) {
        if let Some(association) = association {
            association.adjusted_p = (count + 1) as f64 / (shuffles + 1) as f64;
        }
    }
    found
}

fn families(strata: &[usize], columns: &[Vec<Option<f64>>]) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        let there = |row: &usize| column[*row].is_some_and(f64::is_finite);
        let rows: Vec<usize> = (0..column.len()).filter(there).collect();
        if rows.len() < MIN_ROWS {
            continue;
        }
        let values: Vec<f64> = rows.iter().filter_map(|&row| column[row]).collect();
        let mut ranks = ranks_within(&values, &rows, strata);
        if !normalize(&mut ranks) {
            continue;
        }
        match families.iter_mut().find(|family| family.rows == rows) {
            Some(family) => family.columns.push((place, ranks)),
            None => {
                let mut present: Vec<usize> = rows.iter().map(|&row| strata[row]).collect();
                present.sort_unstable();
                present.dedup();
                families.push(Family {
                    // The variance of a correlation by chance is 1 / (n - strata).
                    weight: (rows.len().saturating_sub(present.len()) as f64).sqrt(),
                    rows,
                    columns: vec![(place, ranks)],
                });
            }
        }
    }
    families
}

impl Family {
    /// Returns the place and correlation of each column; none where the figure is constant.
    fn correlations(
        &self,
        figure: &[f64],
        strata: &[usize],
    ) -> impl Iterator<Item = (usize, f64)> + '_ {
        let values: Vec<f64> = self.rows.iter().map(|&row| figure[row]).collect();
        let mut ranks = ranks_within(&values, &self.rows, strata);
        let columns = if normalize(&mut ranks) { self.columns.as_slice() } else { &[] };
        columns.iter().map(move |(place, column)| (*place, dot(column, &ranks).clamp(-1.0, 1.0)))
    }
}

/// Returns the ranks of `values`, which are in `rows`, each within its stratum, around 0.
fn ranks_within(values: &[f64], rows: &[usize], strata: &[usize]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|&at| strata[rows[at]]);
    let mut ranks = vec![0.0; values.len()];
    for members in order.chunk_by(|&a, &b| strata[rows[a]] == strata[rows[b]]) {
        let own: Vec<f64> = members.iter().map(|&at| values[at]).collect();
        // Divided by the size, so that a stratum counts by its rows.
        let size = members.len() as f64;
        for (&at, rank) in members.iter().zip(mid_ranks(&own)) {
            ranks[at] = (rank - (size + 1.0) / 2.0) / size;
        }
    }
    ranks
}

/// Shuffles each stratum by itself (Fisher and Yates).
fn shuffle_within(figure: &mut [f64], strata: &[usize], random: &mut impl RngExt) {
    let mut order: Vec<usize> = (0..figure.len()).collect();
    order.sort_by_key(|&row| strata[row]);
    for members in order.chunk_by(|&a, &b| strata[a] == strata[b]) {
        for last in (1..members.len()).rev() {
            figure.swap(members[last], members[random.random_range(0..=last)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spearman;

    fn noise(seed: u64, count: usize) -> Vec<f64> {
        let mut random = seeded_random::stream(seed, 7);
        (0..count).map(|_| seeded_random::normal(&mut random)).collect()
    }

    fn whole(column: &[f64]) -> Vec<Option<f64>> {
        column.iter().copied().map(Some).collect()
    }

    #[test]
    fn what_goes_along_is_found_and_noise_is_not() {
        let figure = noise(1, 40);
        let against: Vec<f64> = figure.iter().map(|value| (-value).exp()).collect();
        let mut columns = vec![whole(&against), vec![Some(3.0); 40], vec![None; 40]];
        columns.extend((0..30).map(|column| whole(&noise(100 + column, 40))));
        let found = associations(&figure, &[0; 40], &columns, 1);
        let strong = found[0].expect("varied");
        assert!((strong.correlation + 1.0).abs() < 1e-9, "{strong:?}");
        assert_eq!(strong.adjusted_p, 1.0 / (SHUFFLES + 1) as f64);
        assert_eq!((found[1], found[2]), (None, None));
        for (column, found) in columns.iter().zip(&found).skip(3) {
            let found = found.expect("varied");
            let values: Vec<f64> = column.iter().flatten().copied().collect();
            let plain = spearman(&values, &figure).expect("varied");
            assert!((found.correlation - plain).abs() < 1e-9);
            assert!(found.adjusted_p > 0.01, "{found:?}");
        }
        assert_eq!(found, associations(&figure, &[0; 40], &columns, 1));
    }

    #[test]
    fn any_of_many_by_chance_is_as_rare_as_it_says() {
        // 20 columns: half are near copies of the others, and some are there in half of the rows only.
        let trials = 200;
        let wrong = (0..trials)
            .filter(|trial| {
                let figure = noise(trial * 1000, 24);
                let columns: Vec<Vec<Option<f64>>> = (0..20)
                    .map(|column| {
                        let base = noise(trial * 1000 + 1 + column / 2, 24);
                        let own = noise(trial * 1000 + 500 + column, 24);
                        let mut mixed: Vec<Option<f64>> =
                            base.iter().zip(own).map(|(a, b)| Some(a + 0.3 * b)).collect();
                        if column >= 15 {
                            mixed[..12].fill(None);
                        }
                        mixed
                    })
                    .collect();
                let found = shuffled(&figure, &[0; 24], &columns, 3, 199);
                found.iter().flatten().any(|association| association.adjusted_p <= 0.05)
            })
            .count();
        // 10 are expected; more than 20 have a probability below 0.2 %.
        assert!((1..=20).contains(&wrong), "{wrong} of {trials}");
    }

    #[test]
    fn strata_take_out_what_points_have_in_common() {
        // Two points: in the second both are greater; within each they have nothing to do with each other.
        let strata: Vec<usize> = (0..60).map(|row| row / 30).collect();
        let raised = |values: Vec<f64>| -> Vec<f64> {
            let places = strata.iter().map(|&stratum| stratum as f64 * 100.0);
            values.iter().zip(places).map(|(a, b)| a + b).collect()
        };
        let figure = raised(noise(1, 60));
        let columns = [whole(&raised(noise(2, 60)))];
        let across = associations(&figure, &[0; 60], &columns, 1)[0].expect("varied");
        let within = associations(&figure, &strata, &columns, 1)[0].expect("varied");
        assert!(across.correlation > 0.6 && across.adjusted_p < 0.01, "{across:?}");
        assert!(within.correlation.abs() < 0.3 && within.adjusted_p > 0.05, "{within:?}");
    }

    #[test]
    fn a_figure_that_is_all_alike_goes_with_nothing() {
        let columns = [whole(&noise(1, 10))];
        assert_eq!(associations(&[2.0; 10], &[0; 10], &columns, 1), [None]);
    }
}
