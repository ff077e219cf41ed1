//! The points of a sweep: the cross product of a plan's axes.

use super::plan::{Plan, Policy, Target, Workload};

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
}

impl Point {
    /// Its axes and values, in the order of the product.
    #[must_use]
    pub fn axes(&self) -> [(&'static str, String); 4] {
        [
            ("workload", self.workload.name.clone()),
            ("threads", self.threads.to_string()),
            ("target", self.target.name.clone()),
            ("policy", self.policy.name().to_owned()),
        ]
    }

    /// Its name in the results.
    #[must_use]
    pub fn key(&self) -> String {
        self.axes().map(|(_, value)| value).join(",")
    }

    /// What its figure is counted in.
    #[must_use]
    pub fn unit(&self) -> &str {
        use super::plan::Bench;
        match (self.workload.bench, &self.workload.figure) {
            (Some(Bench::Metarates), _) => "files/s",
            (Some(Bench::Varmail | Bench::Oltp), _) => "operations/s",
            (Some(Bench::InitialWrite), _) => "KiB/s",
            (None, Some(figure)) => &figure.unit,
            (None, None) => "s",
        }
    }
}

/// All of them.
pub(super) fn points(plan: &Plan) -> Vec<Point> {
    let mut points = Vec::new();
    for workload in &plan.workload {
        for &threads in &plan.threads {
            for target in &plan.target {
                points.extend(plan.policy.iter().map(|&policy| Point {
                    workload: workload.clone(),
                    threads,
                    target: target.clone(),
                    policy,
                }));
            }
        }
    }
    points
}
