//! Tables beside the paper's figures, and targets.

use luc_harness::cells;
use luc_harness::report::{Page, Table, Target, change, number};

use super::points::Curves;
use super::results::{NONE, Results, ServiceRun};
use super::services::ServiceKind;

/// The paper's rules with its one printed Vector Point.
pub(super) const PRINTED: &str = "wise, as printed";
/// The paper's rules with the Vector Points of this disk.
pub(super) const WISE: &str = "wise, this disk's points";
/// Default policy of `luc throttle`.
pub(super) const AUTO: &str = "auto";

/// Returns the paper's improvement of a service: of WS, and of TP if it gives that.
fn papers(service: &str) -> &'static str {
    match service {
        "PS-8, same data" => "+67.8 %",
        "PS-8, different data" => "+18.5 %",
        "KM-8, same data" => "+14.0 %",
        "KM-8, different data" => "+8.0 %",
        "batch of 16" => "WS +9.8 %, TP +24.9 %, tasks -1.7 to +51.8 %",
        "batch of 32" => "WS +6.6 %, TP +26.7 %, tasks -66.0 to +858.9 %",
        "WD-48" => "+2.3 %",
        "WD-64" => "+8.8 %",
        name if name.ends_with("same data") => "up to +127.5 % (8), +29.5 % (4)",
        name if name.ends_with("different data") => "up to +207.0 % (8), +28.0 % (4)",
        _ => "+11.2 to +28.7 %",
    }
}

fn format_change(percent: Option<f64>) -> String {
    percent.map_or_else(|| "-".to_owned(), change)
}

fn format_figure(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

fn ms(seconds: Option<f64>) -> String {
    format_figure(seconds.map(|seconds| 1e3 * seconds))
}

/// Makes the table of a kind's services, with a row for each policy.
fn improvements(results: &Results, kind: ServiceKind, title: &str) -> (String, Table) {
    let mut table = Table::new(&[
        "service",
        "under",
        "all done, s",
        "WS",
        "worst slowdown",
        "WS, over none",
        "TP, over none",
        "tasks, over none",
        "freezes",
        "longest, s",
        "WS in the paper, over CFS + CFQ",
    ]);
    for service in results.of_kind(kind) {
        for under in results.unders(service) {
            let figure =
                |of: fn(&ServiceRun) -> f64| format_figure(results.figure(service, under, of));
            let is_none = under == NONE;
            let unless_none = |text: String| if is_none { "-".to_owned() } else { text };
            let tasks = results.task_gains(service, under);
            let tasks = tasks.map(|(least, most)| {
                let least = change(least);
                format!("{} to {}", least.trim_end_matches(" %"), change(most))
            });
            table.row(cells![
                service,
                under,
                figure(|run| run.together.makespan),
                figure(ServiceRun::weighted_speedup),
                figure(ServiceRun::worst_slowdown),
                unless_none(format_change(results.speedup_gain(service, under))),
                unless_none(format_change(results.throughput_gain(service, under))),
                unless_none(tasks.unwrap_or_else(|| "-".to_owned())),
                figure(|run| run.freezes),
                figure(|run| run.longest_frozen_s),
                if is_none { papers(service).to_owned() } else { String::new() }
            ]);
        }
    }
    (title.to_owned(), table)
}

/// Makes the table of BD-gap and ST-gap (Fig. 6, 8 and 27).
fn gaps(results: &Results, peak: f64) -> (String, Table) {
    let mut table = Table::new(&[
        "service",
        "under",
        "device busy",
        "bandwidth, of the peak",
        "BD-gap",
        "wait in software, ms",
        "at the disk, ms",
        "wait in software, of none's",
    ]);
    for service in GAPS {
        for under in results.unders(service) {
            let figure = |of: &dyn Fn(&ServiceRun) -> f64| results.figure(service, under, of);
            let busy = figure(&ServiceRun::utilization);
            let part = figure(&|run| run.bandwidth() / peak);
            let gap = busy.zip(part).map(|(busy, part)| busy - part);
            table.row(cells![
                service,
                under,
                format_figure(busy),
                format_figure(part),
                format_figure(gap),
                ms(figure(&ServiceRun::soft_s)),
                ms(figure(&ServiceRun::hard_s)),
                format_figure(results.over_none(service, under, ServiceRun::soft_s))
            ]);
        }
    }
    let said = "**Gaps** (Fig. 6, 8 and 27): the device is busy while little is delivered (BD-gap), and a request's time is \
        the wait in software (ST-gap: the tasks' stall time by io.pressure less the device's busy time, over its requests).";
    (said.to_owned(), table)
}

/// Services whose wait in software the paper shows.
const GAPS: [&str; 2] = ["KM-4, same data", "BFS-8, different data"];

/// Mean over services of the improvement of WS, %.
fn mean_gain(results: &Results, kind: ServiceKind, under: &str) -> Option<f64> {
    let gains: Option<Vec<f64>> = results
        .of_kind(kind)
        .into_iter()
        .map(|service| results.speedup_gain(service, under))
        .collect();
    super::super::figures::mean(&gains?)
}

/// Minimum over services of a figure.
fn least(results: &Results, kind: ServiceKind, of: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let all: Option<Vec<f64>> = results.of_kind(kind).into_iter().map(of).collect();
    all?.into_iter().reduce(f64::min)
}

/// Targets that ours reaches what the paper claims.
fn targets_of_ours(results: &Results) -> Vec<Target> {
    let mut all = Vec::new();
    for (kind, papers) in [(ServiceKind::Same, 37.9), (ServiceKind::Different, 29.0)] {
        all.push(Target::at_least(
            format!(
                "auto, similar services, {} data: mean improvement of WS over none, %",
                kind.name()
            ),
            mean_gain(results, kind, AUTO),
            papers,
        ));
    }
    all.push(Target::at_least(
        "auto, compounded services: least improvement of WS over none, %",
        least(results, ServiceKind::Compounded, |service| results.speedup_gain(service, AUTO)),
        11.2,
    ));
    for (service, papers) in [("batch of 16", 24.9), ("batch of 32", 26.7)] {
        all.push(Target::at_least(
            format!("auto, {service}: improvement of TP over none, %"),
            results.throughput_gain(service, AUTO),
            papers,
        ));
    }
    all.push(Target::at_least(
        "auto, batch of 32: the worst task's improvement over none, %",
        results.task_gains("batch of 32", AUTO).map(|gains| gains.0),
        -66.0,
    ));
    for service in GAPS {
        all.push(Target::below(
            format!("auto, {service}: wait in software, of that under none"),
            results.over_none(service, AUTO, ServiceRun::soft_s),
            0.5,
        ));
    }
    for service in ["WD-48", "WD-64"] {
        all.push(Target::at_least(
            format!("auto, {service} (threads of one task): throughput against none"),
            results.over_none(service, AUTO, |run| run.together.throughput),
            3.0,
        ));
    }
    all
}

/// Targets that the paper's rules do here what they do there.
fn targets_of_the_paper(results: &Results, curves: &Curves) -> Vec<Target> {
    let mut all = Vec::new();
    for under in [PRINTED, WISE] {
        all.push(Target::at_least(
            format!("{under}, similar services, different data: mean improvement of WS over none, % (paper: 29.0)"),
            mean_gain(results, ServiceKind::Different, under),
            29.0,
        ));
        all.push(Target::at_least(
            format!(
                "{under}, compounded services: least improvement of WS over none, % (paper: 11.2)"
            ),
            least(results, ServiceKind::Compounded, |service| results.speedup_gain(service, under)),
            11.2,
        ));
    }
    let services = results.of_kind(ServiceKind::Different);
    let acts = |under: &str| {
        let frozen = |service: &&&str| {
            let freezes = results.figure(service, under, |run| run.freezes);
            freezes.is_some_and(|freezes| freezes > 0.0)
        };
        services.iter().filter(frozen).count()
    };
    if !services.is_empty() {
        all.push(Target::new(
            "as printed, the rules suspend somebody in each similar service with different data",
            acts(PRINTED) == services.len(),
            format!(
                "in {} of {}; with this disk's points in {}",
                acts(PRINTED),
                services.len(),
                acts(WISE)
            ),
        ));
    }
    all.push(Target::below(
        "A-BW of two tasks, of the peak, against the paper's 24.3 of 90: either over the other",
        curves.of_two().map(|part| (part / 0.27).max(0.27 / part)),
        1.5,
    ));
    all
}

pub(super) fn page(results: &Results, ablations: &Results, curves: &Curves, about: String) -> Page {
    let mut tables = vec![curves.table(), curves.points_table()];
    for (kind, title) in [
        (
            ServiceKind::Same,
            "**Similar services, same data** (Fig. 21). Mean in the paper +37.9 %.",
        ),
        (
            ServiceKind::Different,
            "**Similar services, different data** (Fig. 21). Mean in the paper +29.0 %.",
        ),
        (ServiceKind::Compounded, "**Compounded services** (Fig. 22)."),
        (ServiceKind::Batch, "**Batch services** (Fig. 23), 8 tasks at a time."),
        (
            ServiceKind::Threads,
            "**Threads of one task** (Fig. 20); with `--threads` each thread takes turns as a task.",
        ),
    ] {
        tables.push(improvements(results, kind, title));
    }
    tables.push(gaps(results, curves.peak));
    tables.push(improvements(
        ablations,
        ServiceKind::Compounded,
        "**Ablations**, one thing changed at a time, of the paper's rules (self-tuning, order, RESUME_GROUP, \
         CHECK_INTERVAL) and of ours (order and turns).",
    ));
    tables.retain(|(_, table)| !table.is_empty());
    let mut targets = targets_of_ours(results);
    targets.extend(targets_of_the_paper(results, curves));
    Page { title: "WiseThrottling's experiments".to_owned(), about, tables, targets }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A task that ends when the disk has done with it.
    fn cell(service: &str, under: &str, stalled_s: f64, finish: f64) -> Value {
        json!({ "service": service, "kind": "same", "at_a_time": null, "under": under, "alone_s": [1.0],
            "tasks": [(0.0, finish)], "stalled_s": stalled_s, "requests": 1000, "bytes": 40.01e6 * finish,
            "busy_s": 0.4 * finish, "freezes": 0, "longest_frozen_s": 0.0 })
    }

    #[test]
    fn what_is_no_figure_is_shown_as_none() {
        let service = GAPS[0];
        // Under none nobody waits in software, so that a wait is no multiple of that.
        let cells = [cell(service, NONE, 0.4, 1.0), cell(service, AUTO, 0.9, 1.0001)];
        let mut results = Results::default();
        results.add(&json!({ "cells": cells })).expect("results");
        let rows = gaps(&results, 100e6).1.to_string();
        let none = format!("| {service} | {NONE} | 0.400 | 0.400 | 0.000 | 0.000 | 0.400 | - |");
        assert!(rows.contains(&none), "{rows}");
        let ours = format!("| {service} | {AUTO} | 0.400 | 0.400 | 0.000 | 0.500 | 0.400 | - |");
        assert!(rows.contains(&ours), "{rows}");
        let rows = improvements(&results, ServiceKind::Same, "").1.to_string();
        assert!(rows.contains("| 0.0 % | 0.0 % | 0.0 to 0.0 % |"), "{rows}");
        let targets: Vec<String> =
            targets_of_ours(&results).iter().map(ToString::to_string).collect();
        let all = rows + &targets.join("\n");
        for text in ["inf", "NaN", "-0.0 ", "-0.000"] {
            assert!(!all.contains(text), "{text}: {all}");
        }
    }
}
