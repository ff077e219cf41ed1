//! The page: tables, and targets computed from all seeds.

use luc_harness::cells;
use luc_harness::report::{Table, Target};
use luc_stats::quantile;

use super::scaled::{ScaledRun, ScaledScenario};
use super::stacks::{StackKind, Stacked};

/// Maximum error of an event's total at the 95th percentile.
const MAX_ERROR: f64 = 0.03;
/// Minimum share of the truths that are within their intervals.
const MIN_COVERED_SHARE: f64 = 0.95;
/// Standard deviations below the count that one in 20 scenarios exceeds by chance. Exact intervals fall below the count
/// as often as not.
const CONFIDENCE_QUANTILE: f64 = 1.645;

/// A scenario with the runs of all seeds.
pub(super) struct MeasuredCounters {
    pub(super) row: ScaledScenario,
    pub(super) runs: Vec<ScaledRun>,
}

impl MeasuredCounters {
    fn error(&self, share: f64) -> f64 {
        quantile_of(self.runs.iter().flat_map(|run| &run.errors), share)
    }

    fn with_interval(&self) -> usize {
        self.runs.iter().map(|run| run.with_interval).sum()
    }

    fn covered(&self) -> usize {
        self.runs.iter().map(|run| run.covered).sum()
    }

    fn events(&self) -> usize {
        self.runs.iter().map(|run| run.errors.len()).sum()
    }
}

pub(crate) fn quantile_of<'f>(figures: impl Iterator<Item = &'f f64>, share: f64) -> f64 {
    let mut sorted: Vec<f64> = figures.copied().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile(&sorted, share).unwrap_or(f64::NAN)
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// Makes all tables that have a row.
pub(super) fn tables(
    measured: &[MeasuredCounters],
    stacked: &[(StackKind, Vec<Stacked>)],
) -> Vec<(String, Table)> {
    let tables = vec![
        (
            "Totals of events; the last four scenarios show limits, and no target is claimed of them:".to_owned(),
            tabulate_totals(measured),
        ),
        (
            "Stacks; errors and half-widths are of CPI, completion and each source, in cycles of an instruction, \
             relative to CPI:"
                .to_owned(),
            tabulate_stacks(stacked),
        ),
    ];
    tables.into_iter().filter(|(_, table)| !table.is_empty()).collect()
}

fn tabulate_totals(measured: &[MeasuredCounters]) -> Table {
    let mut table = Table::new(&[
        "scenario",
        "error p50 / p95 / max",
        "p95 scaled at once",
        "half-width p50",
        "truth within the interval",
        "of these events",
        "without an interval",
    ]);
    for one in measured {
        let errors = [0.5, 0.95, 1.0].map(|share| percent(one.error(share)));
        let at_once = quantile_of(one.runs.iter().flat_map(|run| &run.errors_at_once), 0.95);
        let half_width = quantile_of(one.runs.iter().flat_map(|run| &run.half_widths), 0.5);
        let with_interval = one.with_interval();
        table.row(cells![
            one.row.name,
            errors.join(" / "),
            percent(at_once),
            percent(half_width),
            percent(one.covered() as f64 / with_interval as f64),
            with_interval,
            one.events() - with_interval
        ]);
    }
    table
}

fn tabulate_stacks(stacked: &[(StackKind, Vec<Stacked>)]) -> Table {
    let mut table = Table::new(&[
        "scenario",
        "stacks",
        "that close",
        "that miss something",
        "missing, mean / truth",
        "its half-width p50",
        "error p50 / p95 / max",
        "half-width p50",
        "truth within the interval",
    ]);
    for (kind, stacks) in stacked {
        let count = |of: fn(&Stacked) -> bool| stacks.iter().filter(|one| of(one)).count();
        let mean = |of: fn(&Stacked) -> Option<f64>| {
            let known: Vec<f64> = stacks.iter().filter_map(of).collect();
            known.iter().sum::<f64>() / known.len() as f64
        };
        let errors = || stacks.iter().flat_map(|one| &one.errors);
        let half_widths = || stacks.iter().flat_map(|one| &one.half_widths);
        let missing = stacks.iter().filter_map(|one| one.missing_half_width.as_ref());
        table.row(cells![
            kind.name(),
            stacks.len(),
            count(|one| one.closes),
            count(|one| one.misses),
            format!(
                "{} / {}",
                percent(mean(|one| one.missing)),
                percent(mean(|one| one.missing_truth))
            ),
            percent(quantile_of(missing, 0.5)),
            [0.5, 0.95, 1.0].map(|share| percent(quantile_of(errors(), share))).join(" / "),
            percent(quantile_of(half_widths(), 0.5)),
            percent(covered(stacks))
        ]);
    }
    table
}

fn covered(stacks: &[Stacked]) -> f64 {
    let covered: usize = stacks.iter().map(|one| one.covered).sum();
    let all: usize = stacks.iter().map(|one| one.half_widths.len()).sum();
    covered as f64 / all as f64
}

/// Makes the targets of all scenarios that were run.
pub(super) fn targets(
    measured: &[MeasuredCounters],
    stacked: &[(StackKind, Vec<Stacked>)],
) -> Vec<Target> {
    let mut targets = Vec::new();
    for one in measured.iter().filter(|one| one.row.is_claimed) {
        let name = one.row.name;
        targets.push(is_accurate(name, one.error(0.95)));
        targets.push(covers(name, one.covered(), one.with_interval()));
    }
    for (kind, stacks) in stacked {
        let name = kind.name();
        if *kind == StackKind::Planted {
            let misses = stacks.iter().filter(|one| one.misses).count();
            targets.push(Target::new(
                format!("{name}: each stack says that something is missing"),
                misses == stacks.len(),
                format!("{misses} of {}", stacks.len()),
            ));
            continue;
        }
        let closes = stacks.iter().filter(|one| one.closes).count();
        targets.push(Target::new(
            format!("{name}: 95 % close within the interval"),
            is_enough(closes, stacks.len()),
            of(closes, stacks.len()),
        ));
        let covered = stacks.iter().map(|one| one.covered).sum();
        let all = stacks.iter().map(|one| one.half_widths.len()).sum();
        targets.push(covers(name, covered, all));
    }
    targets
}

pub(crate) fn is_accurate(name: &str, error_p95: f64) -> Target {
    Target::new(
        format!("{name}: error of a total <= 3 % at p95"),
        error_p95 <= MAX_ERROR,
        percent(error_p95),
    )
}

pub(crate) fn covers(name: &str, covered: usize, all: usize) -> Target {
    Target::new(
        format!("{name}: 95 % of the truths are within their intervals"),
        is_enough(covered, all),
        of(covered, all),
    )
}

fn of(some: usize, all: usize) -> String {
    format!("{some} of {all}, {}", percent(some as f64 / all as f64))
}

/// Whether `some` are 95 % of all, or no fewer than chance makes of 95 %.
fn is_enough(some: usize, all: usize) -> bool {
    let all = all as f64;
    let deviation = (all * MIN_COVERED_SHARE * (1.0 - MIN_COVERED_SHARE)).sqrt();
    all > 0.0 && some as f64 >= MIN_COVERED_SHARE * all - CONFIDENCE_QUANTILE * deviation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_allowed_for_and_no_more() {
        assert!(is_enough(95, 100) && is_enough(92, 100) && !is_enough(91, 100));
        assert!(is_enough(1885, 2000) && !is_enough(1880, 2000));
        assert!(!is_enough(0, 0));
    }
}
