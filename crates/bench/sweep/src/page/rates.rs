//! The figures themselves: bars of all points, the matrix of targets and workloads, the ratios.

use luc_graphs::{
    BarGraph, Graph, GraphBar, GraphTable, MatrixCell, MatrixGraph, PageSection, TableEntry,
};
use luc_stats::{MedianInterval, StoppingVerdict};
use luc_units::number_formats::digits;

use crate::{PointReport, SweepAxis, SweepReport};

use super::point_names::{PlanAxes, estimate, is_time, speedup, spread, value_name};
use super::speedups::is_drawn;

const MAX_ROWS: usize = 120;
const MAX_MATRICES: usize = 12;

/// Returns the figures of every point, by workload.
pub(super) fn bars(report: &SweepReport, axes: &PlanAxes) -> PageSection {
    let mut section = PageSection { title: "Figures".to_owned(), ..PageSection::default() };
    if axes.values(SweepAxis::Target).iter().any(|target| report.is_unsafe(target)) {
        section.text.push(
            "Bars of what is UNSAFE are cut off where they are longer than all others.".to_owned(),
        );
    }
    for workload in axes.values(SweepAxis::Workload) {
        let all = report.points.iter();
        let points: Vec<&PointReport> =
            all.filter(|point| point.value(SweepAxis::Workload) == workload).collect();
        let unit = points.first().map_or("", |point| &*point.unit);
        let common = axes.common(&points);
        let bar = |point: &PointReport| {
            let interval = point.interval.or(point.range);
            let is_unsafe = report.is_unsafe(point.value(SweepAxis::Target));
            let name = axes.name(point, &common);
            GraphBar {
                name: mark_unsafe(name, is_unsafe),
                is_aside: is_unsafe,
                figure: interval.as_ref().map(estimate),
                remark: match (point.verdict, &interval) {
                    (StoppingVerdict::Failed, _) => "could not be measured".to_owned(),
                    (_, None) => format!("{} repeats, too few", point.count),
                    // There is no goal in virtual time.
                    _ if report.plan.virtual_time.is_some() => String::new(),
                    (StoppingVerdict::NotConverged, _) => "not converged".to_owned(),
                    (StoppingVerdict::More(wanted), _) => {
                        format!("{} of {wanted} repeats", point.count)
                    }
                    (StoppingVerdict::Worse, _) => "given up: worse than the best".to_owned(),
                    (StoppingVerdict::Converged, _) => String::new(),
                },
            }
        };
        section.graphs.push(Graph::Bars(BarGraph {
            title: workload.clone(),
            row: "point".to_owned(),
            unit: unit.to_owned(),
            bars: points.iter().take(MAX_ROWS).copied().map(bar).collect(),
        }));
        let more = points.len().saturating_sub(MAX_ROWS);
        if more > 0 {
            section.text.push(format!(
                "{workload}: {more} more points are not shown here; report.json has them."
            ));
        }
    }
    section
}

/// Draws targets by workloads for each point of the other axes: figures, and operations per joule.
pub(super) fn matrix(report: &SweepReport, axes: &PlanAxes) -> PageSection {
    let mut section =
        PageSection { title: "Targets by workload".to_owned(), ..PageSection::default() };
    if axes.values(SweepAxis::Target).len() < 2 {
        return section;
    }
    let mut others: Vec<String> = Vec::new();
    for point in &report.points {
        let name = axes.name(point, &[SweepAxis::Workload, SweepAxis::Target]);
        if !others.contains(&name) {
            others.push(name);
        }
    }
    let plain = |point: &PointReport| Some((point.unit.clone(), point.interval.or(point.range)?));
    let per_joule = |point: &PointReport| {
        let energy = point.energy.as_ref()?;
        Some((energy.unit_per_joule.clone()?, energy.per_gross_joule?))
    };
    for name in &others {
        let points: Vec<&PointReport> = report
            .points
            .iter()
            .filter(|point| axes.name(point, &[SweepAxis::Workload, SweepAxis::Target]) == *name)
            .collect();
        let title = if name == "all" { "Figures" } else { name };
        let figures = build_matrix(report, title, &points, axes, &plain);
        let title = format!("{title}, per joule");
        let energy = build_matrix(report, &title, &points, axes, &per_joule);
        section.graphs.extend(figures.into_iter().chain(energy));
    }
    let more = section.graphs.len().saturating_sub(MAX_MATRICES);
    section.graphs.truncate(MAX_MATRICES);
    if !section.graphs.is_empty() {
        section.text.push(
            "The stronger the colour, the nearer to the best of its column. The best is the one with the best median: \
             whether it is more than chance, the ratios say."
                .to_owned(),
        );
    }
    if more > 0 {
        section.text.push(format!("{more} more are not shown here; report.json has them."));
    }
    section
}

/// Draws a matrix of the figures that `of` returns; `None` if it returns none.
fn build_matrix(
    report: &SweepReport,
    title: &str,
    points: &[&PointReport],
    axes: &PlanAxes,
    of: &dyn Fn(&PointReport) -> Option<(String, MedianInterval)>,
) -> Option<Graph> {
    let find = |target: &str, workload: &str| -> Option<(String, MedianInterval)> {
        let is_it = |point: &&&PointReport| {
            point.value(SweepAxis::Target) == target && point.value(SweepAxis::Workload) == workload
        };
        of(points.iter().find(is_it)?)
    };
    let targets = axes.values(SweepAxis::Target);
    // Unsafe targets are shown, but cannot be the best.
    let safe = |workload: &str| -> Vec<f64> {
        let targets = targets.iter().filter(|target| !report.is_unsafe(target));
        let found = targets.filter_map(|target| find(target, workload));
        found.map(|(_, interval)| interval.median).collect()
    };
    let has_choice = |workload: &&String| safe(workload).len() > 1;
    let workloads: Vec<&String> =
        axes.values(SweepAxis::Workload).iter().filter(has_choice).collect();
    if workloads.is_empty() {
        return None;
    }
    let mut matrix =
        MatrixGraph { title: title.to_owned(), row: "target".to_owned(), ..MatrixGraph::default() };
    let mut best = Vec::new();
    for workload in &workloads {
        let mut found = targets.iter().filter_map(|target| find(target, workload));
        let unit = found.next().map_or(String::new(), |(unit, _)| unit);
        let medians = safe(workload).into_iter();
        best.push(if is_time(&unit) { medians.reduce(f64::min) } else { medians.reduce(f64::max) });
        matrix.columns.push(format!("{workload}, {unit}"));
    }
    for target in targets {
        let is_unsafe = report.is_unsafe(target);
        let cells = workloads.iter().zip(&best).map(|(workload, best)| {
            let (unit, interval) = find(target, workload)?;
            let best = best.filter(|_| !is_unsafe);
            let share = |best: f64| {
                if is_time(&unit) { best / interval.median } else { interval.median / best }
            };
            Some(MatrixCell {
                figure: estimate(&interval),
                share: best.map_or(0.0, share),
                note: String::new(),
                is_best: Some(interval.median) == best,
            })
        });
        let cells: Vec<Option<MatrixCell>> = cells.collect();
        if cells.iter().any(Option::is_some) {
            let name = mark_unsafe(target.clone(), is_unsafe);
            matrix.rows.push((name, cells));
        }
    }
    Some(Graph::Matrix(matrix))
}

/// Returns a name, with a warning where it loses data in a power cut.
fn mark_unsafe(name: String, is_unsafe: bool) -> String {
    let warning = if is_unsafe { " (UNSAFE)" } else { "" };
    name + warning
}

/// Returns every ratio to the first value of an axis, but of those that are drawn as lines.
pub(super) fn ratios(report: &SweepReport, axes: &PlanAxes) -> PageSection {
    let mut rows: Vec<Vec<TableEntry>> = Vec::new();
    for point in &report.points {
        let ratios = point.ratios.iter();
        for ratio in ratios.filter(|ratio| !is_drawn(axes, ratio.axis)) {
            let figure = speedup(&ratio.interval, &point.unit);
            let (low, high) = figure.interval.unwrap_or((figure.value, figure.value));
            let is_sure = low > 1.0 || high < 1.0;
            let verdict = match (is_sure, figure.value > 1.0) {
                (false, _) => "no significant difference",
                (true, true) => "faster",
                (true, false) => "slower",
            };
            rows.push(vec![
                value_name(SweepAxis::Workload, point.value(SweepAxis::Workload)).into(),
                axes.name(point, &[SweepAxis::Workload]).into(),
                format!("{} {}", ratio.axis, ratio.to).into(),
                TableEntry {
                    text: digits(figure.value),
                    // Twice as fast has the full colour.
                    heat: is_sure.then(|| figure.value.max(1e-9).log2().clamp(-1.0, 1.0)),
                },
                format!("{} to {}", digits(low), digits(high)).into(),
                ratio.pairs.to_string().into(),
                verdict.into(),
            ]);
        }
    }
    let more = rows.len().saturating_sub(MAX_ROWS);
    rows.truncate(MAX_ROWS);
    let columns = [
        ("workload", false),
        ("point", false),
        ("against", false),
        ("speedup", true),
        (spread(report), true),
        ("pairs", true),
        ("", false),
    ];
    let table = GraphTable {
        title: "Against the first value of each axis".to_owned(),
        columns: columns.map(|(name, is_number)| (name.to_owned(), is_number)).to_vec(),
        rows,
        more,
    };
    let graphs = if table.rows.is_empty() { Vec::new() } else { vec![Graph::Table(table)] };
    PageSection { title: "Ratios".to_owned(), text: Vec::new(), graphs }
}
