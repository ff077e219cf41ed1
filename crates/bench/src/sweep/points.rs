//! The points of a sweep: the cross product of a plan's axes.

use super::plan::{Plan, Policy, Target, Workload};
use crate::frequency::Setting;

/// One value of every axis.
#[derive(Debug, Clone)]
pub struct Point {
    /// What is run.
    pub workload: Workload,
    /// Clients.
    pub threads: usize,
    /// Where.
    pub target: Target,
    /// With the gate, or without.
    pub policy: Policy,
    /// The processors' frequency, where the plan has that axis.
    pub frequency: Option<Setting>,
}

impl Point {
    /// Its axes and values, in the order of the product.
    #[must_use]
    pub fn axes(&self) -> Vec<(&'static str, String)> {
        let mut axes = vec![
            ("workload", self.workload.name.clone()),
            ("threads", self.threads.to_string()),
            ("target", self.target.name.clone()),
            ("policy", self.policy.name().to_owned()),
        ];
        axes.extend(self.frequency.map(|setting| ("frequency", setting.label())));
        axes
    }

    /// Its name in the results.
    #[must_use]
    pub fn key(&self) -> String {
        let values: Vec<String> = self.axes().into_iter().map(|(_, value)| value).collect();
        values.join(",")
    }

    /// What it has in common with those that it may be better or worse than: all but target and policy.
    #[must_use]
    pub fn group(&self) -> String {
        let axes = self.axes().into_iter();
        let common = axes.filter(|(axis, _)| !["target", "policy"].contains(axis));
        common.map(|(_, value)| value).collect::<Vec<_>>().join(",")
    }

    /// What its figure is counted in.
    #[must_use]
    pub fn unit(&self) -> &str {
        use super::plan::Bench;
        match (self.workload.bench, &self.workload.figure) {
            (Some(Bench::Metarates), _) => "files/s",
            (Some(Bench::Varmail | Bench::Oltp), _) => "operations/s",
            (Some(Bench::InitialWrite), _) => "KiB/s",
            _ if self.workload.filebench.is_some() => "operations/s",
            (None, Some(figure)) => &figure.unit,
            (None, None) => "s",
        }
    }

    /// What a joule gives, where its figure is a rate: `files/J` of `files/s`.
    #[must_use]
    pub fn unit_per_joule(&self) -> Option<String> {
        Some(format!("{}/J", self.unit().strip_suffix("/s")?))
    }
}

/// All of them.
pub(super) fn points(plan: &Plan) -> Vec<Point> {
    let mut points = Vec::new();
    let frequencies: Vec<Option<Setting>> = if plan.frequency.is_empty() {
        vec![None]
    } else {
        plan.frequency.iter().copied().map(Some).collect()
    };
    for workload in &plan.workload {
        for &threads in &plan.threads {
            for target in &plan.target {
                for &policy in &plan.policy {
                    points.extend(frequencies.iter().map(|&frequency| Point {
                        workload: workload.clone(),
                        threads,
                        target: target.clone(),
                        policy,
                        frequency,
                    }));
                }
            }
        }
    }
    points
}
