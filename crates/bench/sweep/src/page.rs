//! A sweep's report as graphs: which figures go into which graph.

mod correlations;
mod environment;
mod point_names;
mod rates;
mod speedups;

use luc_graphs::{GraphPage, PageSection};
use luc_units::number_formats::utc;

use crate::SweepReport;

use point_names::PlanAxes;

/// Returns the page of the report of a sweep called `name`.
#[must_use]
pub fn page(report: &SweepReport, name: &str) -> GraphPage {
    let axes = PlanAxes::of(report);
    let (warnings, notes): (Vec<String>, Vec<String>) = report
        .notes()
        .into_iter()
        .partition(|note| note.contains("UNSAFE") || note.contains("not a frequency"));
    let sections = [
        speedups::section(report, &axes),
        rates::bars(report, &axes),
        rates::matrix(report, &axes),
        rates::ratios(report, &axes),
        correlations::section(report),
        environment::section(report, notes),
    ];
    let is_empty = |section: &PageSection| section.graphs.is_empty() && section.text.is_empty();
    GraphPage {
        title: name.to_owned(),
        kind: "sweep".to_owned(),
        facts: facts(report),
        warnings: doubts(report).into_iter().chain(warnings).collect(),
        sections: sections
            .into_iter()
            .filter(|section| !is_empty(section))
            .collect(),
        footer: vec![
            "Figures are medians of repeats, each on a fresh file system, in rounds of random order. Intervals are of \
             95 % (interpolated order statistics), in virtual time of fewer than 6 repeats their range. Ratios are of repeats of the same round."
                .to_owned(),
            "report.json has all figures; results.parquet and results.csv have every repeat, counters.parquet what was \
             counted meanwhile."
                .to_owned(),
        ],
    }
}

fn facts(report: &SweepReport) -> Vec<String> {
    let times = || {
        let repeats = report.repeats.iter();
        repeats.map(|repeat| repeat.environment.started_unix_s)
    };
    let mut facts = vec![
        format!("{} points", report.points.len()),
        format!("{} repeats", report.repeats.len()),
        match &report.plan.virtual_time {
            Some(guests) => format!("in virtual time on Linux {}", guests.kernel),
            None => format!("goal +-{:.1} %", report.plan.stop.goal * 100.0),
        },
    ];
    if let (Some(first), Some(last)) = (times().min(), times().max()) {
        facts.push(format!("{} to {} UTC", utc(first), utc(last)));
    }
    facts
}

fn doubts(report: &SweepReport) -> Vec<String> {
    let mut doubts = Vec::new();
    let (wide, points) = (report.not_converged(), report.points.len());
    if wide > 0 {
        doubts.push(format!(
            "{wide} of {points} points NOT CONVERGED: their intervals are wider than the goal"
        ));
    }
    if report.unfinished() > 0 {
        doubts.push(format!(
            "{} of {points} points are unfinished: the same `luc sweep` goes on",
            report.unfinished()
        ));
    }
    doubts
}
