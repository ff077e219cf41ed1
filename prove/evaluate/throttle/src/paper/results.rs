//! Results of a service under each policy, in the paper's figures: improvements over none.

use luc_harness::error::EvaluateError;
use luc_harness::harness::{array, missing};
use luc_stats::{TaskTimes, Together, median, together};
use serde_json::Value;

use super::services::ServiceKind;

/// Name of the rows without a throttle, which others are compared with.
pub(super) const NONE: &str = "none";

#[derive(Debug, Clone)]
pub(super) struct ServiceRun {
    pub(super) together: Together,
    kind: ServiceKind,
    tasks: Vec<TaskTimes>,
    stalled_s: f64,
    busy_s: f64,
    bytes: f64,
    requests: f64,
    pub(super) freezes: f64,
    pub(super) longest_frozen_s: f64,
}

impl ServiceRun {
    fn of(cell: &Value) -> Result<Self, EvaluateError> {
        let name = cell["service"].as_str().unwrap_or_default();
        let figure = |name: &str| cell[name].as_f64().ok_or_else(|| missing(name));
        let alone: Vec<f64> =
            serde_json::from_value(cell["alone_s"].clone()).map_err(|_| missing(name))?;
        let times: Vec<(f64, f64)> =
            serde_json::from_value(cell["tasks"].clone()).map_err(|_| missing(name))?;
        let is_batch = !cell["at_a_time"].is_null();
        let tasks: Vec<TaskTimes> = alone
            .iter()
            .zip(&times)
            .map(|(&alone, &(start, finish))| TaskTimes {
                alone,
                // All are there at once; in a batch one is there when a place is free.
                start: if is_batch { start } else { 0.0 },
                finish,
            })
            .collect();
        Ok(Self {
            together: together(&tasks).map_err(|_| missing(name))?,
            kind: ServiceKind::named(cell["kind"].as_str().unwrap_or_default())
                .ok_or_else(|| missing("a kind of service"))?,
            tasks,
            stalled_s: figure("stalled_s")?,
            busy_s: figure("busy_s")?,
            bytes: figure("bytes")?,
            requests: figure("requests")?,
            freezes: figure("freezes")?,
            longest_frozen_s: figure("longest_frozen_s")?,
        })
    }

    pub(super) fn weighted_speedup(&self) -> f64 {
        self.together.speedup.parts().0
    }

    pub(super) fn worst_slowdown(&self) -> f64 {
        self.together.speedup.parts().1
    }

    /// Time of a request in software, s: the paper's `await - svctm`.
    pub(super) fn soft_s(&self) -> f64 {
        ((self.stalled_s - self.busy_s) / self.requests.max(1.0)).max(0.0)
    }

    /// Time of a request at the disk, s.
    pub(super) fn hard_s(&self) -> f64 {
        self.busy_s / self.requests.max(1.0)
    }

    /// Part of the time in which the disk was busy.
    pub(super) fn utilization(&self) -> f64 {
        self.busy_s / self.together.makespan
    }

    /// Bandwidth, bytes per second.
    pub(super) fn bandwidth(&self) -> f64 {
        self.bytes / self.together.makespan
    }

    /// Time of each task under `other` over its time here: above 1 it gains here.
    pub(super) fn gains_over(&self, other: &Self) -> Vec<f64> {
        let took = |task: &TaskTimes| task.finish - task.start;
        let pairs = self.tasks.iter().zip(&other.tasks);
        pairs.map(|(here, there)| took(there) / took(here)).collect()
    }
}

/// A run with its service and policy.
#[derive(Debug, Clone)]
struct Labelled {
    service: String,
    under: String,
    run: ServiceRun,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Results {
    all: Vec<Labelled>,
    services: Vec<(String, ServiceKind)>,
}

impl Results {
    pub(super) fn add(&mut self, result: &Value) -> Result<(), EvaluateError> {
        let cells = array(&result["cells"], "cells")?;
        for cell in cells {
            let run = ServiceRun::of(cell)?;
            let text = |name: &str| cell[name].as_str().unwrap_or_default().to_owned();
            let service = text("service");
            if !self.services.iter().any(|(known, _)| *known == service) {
                self.services.push((service.clone(), run.kind));
            }
            self.all.push(Labelled { service, under: text("under"), run });
        }
        Ok(())
    }

    pub(super) fn of_kind(&self, kind: ServiceKind) -> Vec<&str> {
        let all = self.services.iter().filter(|(_, of)| *of == kind);
        all.map(|(name, _)| name.as_str()).collect()
    }

    /// The runs of a service under a policy, by the places of the files.
    pub(super) fn runs(&self, service: &str, under: &str) -> Vec<&ServiceRun> {
        self.all
            .iter()
            .filter(|one| one.service == service && one.under == under)
            .map(|one| &one.run)
            .collect()
    }

    /// The policies that a service ran under, in their order.
    pub(super) fn unders(&self, service: &str) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for one in self.all.iter().filter(|one| one.service == service) {
            if !names.contains(&one.under.as_str()) {
                names.push(&one.under);
            }
        }
        names
    }

    /// Median over places of a figure.
    pub(super) fn figure(
        &self,
        service: &str,
        under: &str,
        of: impl Fn(&ServiceRun) -> f64,
    ) -> Option<f64> {
        let figures: Vec<f64> = self.runs(service, under).into_iter().map(of).collect();
        median(&figures)
    }

    /// Median over places of a figure over that under none, at the same places.
    pub(super) fn over_none(
        &self,
        service: &str,
        under: &str,
        of: impl Fn(&ServiceRun) -> f64,
    ) -> Option<f64> {
        let none = self.runs(service, NONE);
        let runs = self.runs(service, under);
        let ratios: Vec<f64> =
            runs.iter().zip(&none).map(|(run, none)| of(run) / of(none)).collect();
        median(&ratios)
    }

    /// Improvement of weighted speedup over none, %.
    pub(super) fn speedup_gain(&self, service: &str, under: &str) -> Option<f64> {
        percent(self.over_none(service, under, ServiceRun::weighted_speedup))
    }

    /// Improvement of throughput over none, %.
    pub(super) fn throughput_gain(&self, service: &str, under: &str) -> Option<f64> {
        percent(self.over_none(service, under, |run| run.together.throughput))
    }

    /// Minimum and maximum improvement of a task over none, %, over all places.
    pub(super) fn task_gains(&self, service: &str, under: &str) -> Option<(f64, f64)> {
        let none = self.runs(service, NONE);
        let runs = self.runs(service, under);
        let all: Vec<f64> =
            runs.iter().zip(&none).flat_map(|(run, none)| run.gains_over(none)).collect();
        let least = all.iter().copied().reduce(f64::min);
        let most = all.iter().copied().reduce(f64::max);
        percent(least).zip(percent(most))
    }
}

fn percent(ratio: Option<f64>) -> Option<f64> {
    ratio.map(|ratio| 100.0 * (ratio - 1.0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cell(under: &str, tasks: &[(f64, f64)]) -> Value {
        json!({ "service": "KM-2", "kind": "different", "at_a_time": null, "under": under, "alone_s": [1.0, 1.0],
            "tasks": tasks, "stalled_s": 6.0, "requests": 1000, "bytes": 100e6, "busy_s": 2.0, "freezes": 0,
            "longest_frozen_s": 0.0 })
    }

    #[test]
    fn improvements_are_over_none() {
        let mut results = Results::default();
        let cells =
            [cell(NONE, &[(0.0, 4.0), (0.0, 4.0)]), cell("ours", &[(0.0, 1.0), (1.0, 2.0)])];
        results.add(&json!({ "cells": cells })).expect("results");
        let close = |value: Option<f64>, to: f64| (value.expect("a figure") - to).abs() < 1e-9;
        assert!(close(results.speedup_gain("KM-2", "ours"), 200.0));
        assert!(close(results.throughput_gain("KM-2", "ours"), 100.0));
        assert_eq!(results.task_gains("KM-2", "ours"), Some((100.0, 300.0)));
        assert!(close(results.figure("KM-2", "ours", ServiceRun::soft_s), 0.004));
        assert_eq!(results.of_kind(ServiceKind::Different), ["KM-2"]);
    }
}
