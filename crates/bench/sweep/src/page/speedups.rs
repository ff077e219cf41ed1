//! Normalized speedups along the axes of numbers: a line for each point of the other axes, 1 at the first value.

use std::cmp::Ordering;

use luc_graphs::{
    AxisTick, EstimatedValue, Graph, LineGraph, LineSeries, MOST_SERIES, PageSection,
};

use crate::{PointReport, SweepAxis, SweepReport};

use super::point_names::{PlanAxes, number, speedup, spread, value_name};

const MAX_GRAPHS: usize = 48;

pub(super) fn section(report: &SweepReport, axes: &PlanAxes) -> PageSection {
    let mut graphs = Vec::new();
    for axis in axes.varied() {
        if !is_drawn(axes, axis) {
            continue;
        }
        for workload in axes.values(SweepAxis::Workload) {
            let points: Vec<&PointReport> = report
                .points
                .iter()
                .filter(|point| point.value(SweepAxis::Workload) == workload)
                .collect();
            let by = if axis == SweepAxis::Mips { "speed" } else { axis.name() };
            split(&points, axes, axis, &format!("{workload} by {by}"), &mut graphs);
        }
    }
    let more = graphs.len().saturating_sub(MAX_GRAPHS);
    graphs.truncate(MAX_GRAPHS);
    let mut text = Vec::new();
    if !graphs.is_empty() {
        let spread = spread(report);
        text.push(format!(
            "How many times as fast as with the first value of the axis, with the other settings the same. A band is the {spread} of \
             paired ratios; where it includes 1 there is no significant difference."
        ));
    }
    if more > 0 {
        text.push(format!("{more} more are not shown here; report.json has them."));
    }
    PageSection {
        title: "Speedups".to_owned(),
        text,
        graphs: graphs.into_iter().map(Graph::Lines).collect(),
    }
}

/// Returns whether an axis is drawn as lines: it has at least two numbers. Names have no order, so their ratios are in
/// a table.
pub(super) fn is_drawn(axes: &PlanAxes, axis: SweepAxis) -> bool {
    let values = axes.values(axis).iter();
    values.filter(|value| number(value).is_some()).count() > 1
}

/// Draws one graph. If it had too many lines, draws one for each value of the axis with the most values.
fn split(
    points: &[&PointReport],
    axes: &PlanAxes,
    axis: SweepAxis,
    title: &str,
    graphs: &mut Vec<LineGraph>,
) {
    // 1. The lines, by the values of all other axes.
    let others = |point: &&PointReport| axes.name(point, &[SweepAxis::Workload, axis]);
    let mut names: Vec<String> = Vec::new();
    for point in points {
        let name = others(point);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // 2. Too many: a graph for each value of the axis with the most values.
    let present = |other: SweepAxis| -> Vec<&str> {
        let mut values: Vec<&str> = points.iter().map(|point| point.value(other)).collect();
        values.sort_unstable();
        values.dedup();
        axes.values(other)
            .iter()
            .map(String::as_str)
            .filter(|value| values.contains(value))
            .collect()
    };
    let widest = axes
        .varied()
        .filter(|other| *other != SweepAxis::Workload && *other != axis)
        .max_by_key(|other| present(*other).len())
        .filter(|other| present(*other).len() > 1);
    if let (true, Some(widest)) = (names.len() > MOST_SERIES, widest) {
        for kept in present(widest) {
            let rest: Vec<&PointReport> =
                points.iter().copied().filter(|point| point.value(widest) == kept).collect();
            let title = format!("{title}, {}", value_name(widest, kept));
            split(&rest, axes, axis, &title, graphs);
        }
        return;
    }
    // 3. The lines that have at least two figures.
    let lines: Vec<(String, Vec<&PointReport>)> = names
        .into_iter()
        .map(|name| {
            let line = points.iter().copied().filter(|point| others(point) == name).collect();
            (name, line)
        })
        .filter(|(_, line): &(_, Vec<&PointReport>)| {
            line.iter().filter_map(|point| figure(point, axis, line)).count() > 1
        })
        .collect();
    if lines.is_empty() {
        return;
    }
    // 4. The graph: places along the axis, and a series for each line.
    let drawn: Vec<&PointReport> = lines.iter().flat_map(|(_, line)| line).copied().collect();
    // A workload may have lists of its own in place of the plan's.
    let mut values: Vec<&String> = axes
        .values(axis)
        .iter()
        .filter(|&at| drawn.iter().any(|point| point.value(axis) == at))
        .collect();
    // Each workload's list is ordered, but their concatenation is not. Values that are no numbers come first.
    values.sort_by(|a, b| number(a).partial_cmp(&number(b)).unwrap_or(Ordering::Equal));
    // Values that all lines share go to the title, or are left out because the plan has them.
    let mut common = axes.common(&drawn);
    common.push(axis);
    let series = lines.iter().map(|(name, line)| LineSeries {
        name: match line.first() {
            Some(point) if lines.len() > 1 => axes.name(point, &common),
            _ => name.clone(),
        },
        figures: values
            .iter()
            .map(|&at| {
                let point = line.iter().find(|point| point.value(axis) == at)?;
                figure(point, axis, line)
            })
            .collect(),
    });
    graphs.push(LineGraph {
        title: title.to_owned(),
        across: if axis == SweepAxis::Mips {
            "million instructions per second".to_owned()
        } else {
            axis.name().to_owned()
        },
        up: "speedup".to_owned(),
        places: values.iter().map(|value| place(value)).collect(),
        reference: Some(1.0),
        series: series.collect(),
    });
}

fn place(value: &str) -> AxisTick {
    AxisTick { name: value.to_owned(), number: number(value) }
}

/// Returns the speedup of a point of `line`, whose points differ in `axis` only; 1 for the one that the others are
/// compared with.
fn figure(point: &PointReport, axis: SweepAxis, line: &[&PointReport]) -> Option<EstimatedValue> {
    let along = |point: &'_ PointReport| point.ratios.iter().position(|ratio| ratio.axis == axis);
    if let Some(at) = along(point) {
        return Some(speedup(&point.ratios[at].interval, &point.unit));
    }
    let is_first = line
        .iter()
        .any(|other| along(other).is_some_and(|at| other.ratios[at].to == point.value(axis)));
    is_first.then_some(EstimatedValue { value: 1.0, interval: Some((1.0, 1.0)) })
}
