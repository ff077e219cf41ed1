//! Correlations of a workload's figure with counters (by ranks) and with their principal components.

use std::collections::{BTreeMap, BTreeSet};

use luc_stats::{RankCorrelation, associations, components, spearman};
use serde::Serialize;

use super::results_journal::RepeatRecord;
use super::sweep_points::SweepPoint;

/// Maximum number of components in the report.
const MAX_COMPONENTS: usize = 5;
/// Fewest repeats that say anything.
const MIN_REPEATS: usize = 6;
/// The most probable that is called more than chance.
const MAX_SIGNIFICANT_P: f64 = 0.05;

/// Correlations of the figure of one workload.
#[derive(Debug, Serialize)]
pub struct FigureCorrelations {
    pub workload: String,
    pub unit: String,
    /// Repeats looked at, of all points.
    pub repeats: usize,
    /// Points that they are of.
    pub points: usize,
    /// Every counter that varies, the strongest first.
    pub counters: Vec<CounterCorrelation>,
    /// Principal components of the counters that all repeats have, standardized.
    pub components: Vec<ComponentCorrelation>,
}

/// Correlation of a workload's figure with one counter.
#[derive(Debug, Serialize)]
pub struct CounterCorrelation {
    pub name: String,
    /// Over all repeats: points differ in both, for whatever reason.
    pub across: Option<RankCorrelation>,
    /// Over repeats with the same settings, if there are several points.
    pub within: Option<RankCorrelation>,
}

/// Correlation of a workload's figure with one principal component.
#[derive(Debug, Serialize)]
pub struct ComponentCorrelation {
    /// Share of the counters' variance.
    pub share: f64,
    /// Rank correlation with the figure.
    pub figure_correlation: Option<f64>,
    /// Correlation with each counter, the strongest first.
    pub loadings: Vec<(String, f64)>,
}

/// Explains all workloads with enough repeats. The same `seed` gives the same result.
pub(super) fn explain(
    points: &[SweepPoint],
    records: &[RepeatRecord],
    seed: u64,
) -> Vec<FigureCorrelations> {
    let mut workloads: Vec<&SweepPoint> = Vec::new();
    let mut of_key: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (number, point) in points.iter().enumerate() {
        let known = workloads.iter().position(|at| at.workload.name == point.workload.name);
        let workload = known.unwrap_or(workloads.len());
        if known.is_none() {
            workloads.push(point);
        }
        of_key.insert(point.key(), (workload, number));
    }
    let explained = |(number, point): (usize, &&SweepPoint)| {
        let rows: Vec<(&RepeatRecord, usize)> = records
            .iter()
            .filter_map(|record| {
                let &(workload, at) = of_key.get(&record.key)?;
                (workload == number && !record.counters.is_empty()).then_some((record, at))
            })
            .collect();
        of_workload(point, &rows, seed)
    };
    workloads.iter().enumerate().filter_map(explained).collect()
}

fn of_workload(
    point: &SweepPoint,
    rows: &[(&RepeatRecord, usize)],
    seed: u64,
) -> Option<FigureCorrelations> {
    if rows.len() < MIN_REPEATS {
        return None;
    }
    let workload = &point.workload;
    // Counters that restate the figure, such as a run time or a number of operations, would explain nothing.
    let is_figure = |name: &str| {
        let is_run_time = workload.figure.is_none() && point.unit() == "s";
        (name == "workload.elapsed_s" && is_run_time)
            || (name.starts_with("operation.") && name.ends_with(".count"))
    };
    let names: BTreeSet<&str> = rows
        .iter()
        .flat_map(|(record, _)| record.counters.keys())
        .map(String::as_str)
        .filter(|name| !is_figure(name))
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    let columns: Vec<Vec<Option<f64>>> = names
        .iter()
        .map(|name| rows.iter().map(|(record, _)| record.counters.get(*name).copied()).collect())
        .collect();
    let figure: Vec<f64> = rows.iter().map(|(record, _)| record.value).collect();
    let strata: Vec<usize> = rows.iter().map(|&(_, point)| point).collect();
    let points = strata.iter().collect::<BTreeSet<_>>().len();
    let across = associations(&figure, &vec![0; rows.len()], &columns, seed);
    let within = if points > 1 {
        associations(&figure, &strata, &columns, seed)
    } else {
        vec![None; columns.len()]
    };
    let mut counters: Vec<CounterCorrelation> = names
        .iter()
        .zip(across.into_iter().zip(within))
        .filter(|(_, (across, within))| across.is_some() || within.is_some())
        .map(|(name, (across, within))| CounterCorrelation {
            name: (*name).to_owned(),
            across,
            within,
        })
        .collect();
    counters.sort_by(|a, b| b.strength().total_cmp(&a.strength()));
    Some(FigureCorrelations {
        workload: workload.name.clone(),
        unit: point.unit().to_owned(),
        repeats: rows.len(),
        points,
        components: principal(&names, &columns, &figure),
        counters,
    })
}

fn principal(
    names: &[&str],
    columns: &[Vec<Option<f64>>],
    figure: &[f64],
) -> Vec<ComponentCorrelation> {
    // Whole columns that vary.
    let (names, columns): (Vec<&str>, Vec<Vec<f64>>) = names
        .iter()
        .zip(columns)
        .filter_map(|(name, column)| {
            let values: Vec<f64> = column.iter().copied().collect::<Option<_>>()?;
            // Columns that vary by rounding only have no usable ranks.
            spearman(&values, &values)?;
            Some((*name, values))
        })
        .unzip();
    let Some(found) = components(&columns) else {
        return Vec::new();
    };
    let told = found.shares.iter().zip(&found.loadings).zip(&found.scores);
    told.take(MAX_COMPONENTS)
        .map(|((&share, loadings), scores)| {
            let loadings = names.iter().zip(loadings);
            let mut loadings: Vec<(String, f64)> =
                loadings.map(|(name, &loading)| ((*name).to_owned(), loading)).collect();
            loadings.sort_by(|(_, a), (_, b)| b.abs().total_cmp(&a.abs()));
            ComponentCorrelation { share, figure_correlation: spearman(scores, figure), loadings }
        })
        .collect()
}

impl CounterCorrelation {
    /// Returns the sort key of a counter: significant correlations first, then by strength.
    fn strength(&self) -> f64 {
        let strength =
            |found: Option<RankCorrelation>| found.map_or(0.0, |at| at.correlation.abs());
        let is_sure = |found: Option<RankCorrelation>| {
            found.is_some_and(|found| found.adjusted_p <= MAX_SIGNIFICANT_P)
        };
        let sure = f64::from(u8::from(is_sure(self.within)) * 2 + u8::from(is_sure(self.across)));
        sure * 10.0 + strength(self.within).max(strength(self.across))
    }
}

impl FigureCorrelations {
    /// Returns the strongest counters that are more than chance, of all repeats together.
    #[must_use]
    pub fn strongest(&self, most: usize) -> Vec<(&str, f64)> {
        let mut sure: Vec<(&str, f64)> = self
            .counters
            .iter()
            .filter_map(|counter| {
                let across = counter.across?;
                (across.adjusted_p <= MAX_SIGNIFICANT_P)
                    .then_some((&*counter.name, across.correlation))
            })
            .collect();
        sure.sort_by(|(_, a), (_, b)| b.abs().total_cmp(&a.abs()));
        sure.truncate(most);
        sure
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_plan;
    use luc_stats::seeded_random;

    /// Flushes slow a repeat down, interrupts do nothing, the journal is there in one target only.
    fn sweep() -> (Vec<SweepPoint>, Vec<RepeatRecord>) {
        let plan = test_plan::plan();
        let points = crate::sweep_points::points(&plan);
        let mut random = seeded_random::stream(3, 0);
        let records = points
            .iter()
            .flat_map(|point| (0..20).map(move |round| (point, round)))
            .map(|(point, round)| {
                let flushes = 100.0 + 10.0 * seeded_random::normal(&mut random);
                let mut record = test_plan::record(&point.key(), round, 1e6 / flushes);
                let mut count = |name: &str, value: f64| {
                    record.counters.insert(name.to_owned(), value);
                };
                count("disk.flushes", flushes);
                count("disk.flush_ms", flushes * 6.0);
                count("machine.interrupts", seeded_random::normal(&mut random));
                count("vm.major_faults", 0.0);
                count("operation.fsync.count", 1e6 / flushes);
                if point.target.name == "b" {
                    count("jbd2.commits", flushes / 2.0);
                }
                record
            })
            .collect();
        (points, records)
    }

    #[test]
    fn what_slows_a_repeat_down_is_found() {
        let (points, records) = sweep();
        let found = explain(&points, &records, 1);
        assert_eq!(found.len(), 1);
        let found = &found[0];
        assert_eq!((found.repeats, found.points), (80, 4));
        let names: Vec<&str> = found.counters.iter().map(|at| &*at.name).collect();
        assert_eq!(names.len(), 4);
        assert_eq!(names[3], "machine.interrupts");
        for counter in &found.counters[..3] {
            let within = counter.within.expect("varied");
            assert!(within.correlation < -0.999 && within.adjusted_p < 0.01);
            let rows = if counter.name == "jbd2.commits" { 40 } else { 80 };
            assert_eq!(within.rows, rows);
        }
        assert_eq!(found.strongest(9).len(), 3);
        // Flushes and their time are one component, interrupts another.
        let shares: Vec<f64> = found.components.iter().map(|at| at.share).collect();
        assert!(shares.len() == 2 && (shares[0] - 2.0 / 3.0).abs() < 0.1, "{shares:?}");
        let first = &found.components[0];
        assert!(first.figure_correlation.expect("varied") < -0.95);
        assert_eq!(first.loadings.len(), 3);
        assert!(first.loadings[0].1 > 0.9 && first.loadings[2].0 == "machine.interrupts");
    }

    #[test]
    fn too_little_says_nothing() {
        let (points, mut records) = sweep();
        assert!(explain(&points, &records[..5], 1).is_empty());
        for record in &mut records {
            record.counters.clear();
        }
        assert!(explain(&points, &records, 1).is_empty());
    }
}
