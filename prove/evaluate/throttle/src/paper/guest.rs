//! Guests that run a stage: each task alone, then each service under each policy.

use luc_harness::error::EvaluateError;
use luc_harness::guests;
use luc_harness::harness::{Harness, elements, missing};
use luc_vm::{GuestKernel, GuestOutcome, VirtualMachine};
use serde_json::{Value, json};

use super::super::guest::{beginning, machine, times};
use super::super::mixes::Model;
use super::programs::{OF_HOST, preparation};
use super::services::{ServiceKind, Stage};

/// Bytes of a sector in the disk's counters.
const SECTOR_BYTES: u64 = 512;

/// A policy that services run under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Under {
    pub(super) name: String,
    /// Policy of `luc throttle`; empty for none.
    pub(super) policy: String,
    pub(super) scheduler: &'static str,
}

impl Under {
    pub(super) fn new(name: &str, policy: impl Into<String>) -> Self {
        Self { name: name.to_owned(), policy: policy.into(), scheduler: "none" }
    }

    /// The kernel's scheduler of this name, and no policy.
    pub(super) fn elevator(scheduler: &'static str) -> Self {
        Self { name: scheduler.to_owned(), policy: String::new(), scheduler }
    }
}

/// Compiled programs that the distribution does not have.
#[derive(Debug)]
pub(super) struct Compiled(Vec<std::path::PathBuf>);

impl Compiled {
    pub(super) fn of(harness: &Harness) -> Result<Self, EvaluateError> {
        let search = harness.compile("bfs", include_str!("bfs.c"), &[])?;
        let mappers = harness.compile("mappers", include_str!("mappers.c"), &[])?;
        Ok(Self(vec![search, mappers]))
    }
}

/// Describes the guest of a stage. The seed decides where the files are.
pub(super) fn describe<'a>(
    harness: &Harness,
    kernel: &'a GuestKernel,
    compiled: &Compiled,
    (stage, policies): (&Stage, &[Under]),
    seed: u64,
) -> VirtualMachine<'a> {
    let mut script = beginning() + "BEFORE='rm -f /mnt/out.*'\n" + &preparation(&stage.tasks, seed);
    for line in lines(stage, policies) {
        script += &line;
        script.push('\n');
    }
    let mut vm = machine(harness, kernel, Model::Hdd, stage.mib() << 20).script(script);
    for program in OF_HOST {
        vm = vm.program(program);
    }
    for program in &compiled.0 {
        vm = vm.program(program);
    }
    vm
}

/// Returns the calls of `cell`.
fn lines(stage: &Stage, policies: &[Under]) -> Vec<String> {
    let alone = Under::new("alone", "");
    let cell = |name: String, tasks: &[usize], slots: Option<usize>, under: &Under| {
        let tasks: Vec<String> = tasks.iter().map(ToString::to_string).collect();
        let slots = slots.map_or_else(String::new, |slots| slots.to_string());
        let Under { scheduler, policy, .. } = under;
        format!("cell {name} '{}' {scheduler} 128 '' '' '' '{slots}' '{policy}'", tasks.join(" "))
    };
    let mut all = Vec::new();
    for task in stage.different() {
        all.push(cell(format!("alone.{task}"), &[task], None, &alone));
    }
    for (number, service) in stage.services.iter().enumerate() {
        let words = match service.kind {
            ServiceKind::Threads => "THROTTLE_OPTIONS=--threads ",
            _ => "",
        };
        for (policy, under) in policies.iter().enumerate() {
            let name = format!("together.{number}.{policy}");
            all.push(words.to_owned() + &cell(name, &service.tasks, service.at_a_time, under));
        }
    }
    all
}

/// Reads the figures of each service under each policy.
pub(super) fn read(
    outcome: &GuestOutcome,
    release: &str,
    stage: &Stage,
    policies: &[Under],
) -> Result<Value, EvaluateError> {
    let file = |name: String| guests::file(outcome, &name);
    let mut alone = vec![0.0; stage.tasks.len()];
    for task in stage.different() {
        let [(start, finish)] = times(&file(format!("alone.{task}.tasks"))?)?[..] else {
            return Err(missing("a task alone"));
        };
        alone[task - 1] = finish - start;
    }
    let mut cells = Vec::new();
    for (number, service) in stage.services.iter().enumerate() {
        let of: Vec<f64> =
            service.tasks.iter().map(|task| alone[stage.alone_of(*task) - 1]).collect();
        for (policy, under) in policies.iter().enumerate() {
            let name = format!("together.{number}.{policy}");
            let report = outcome.file(&format!("{name}.json"));
            let report: Value =
                report.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
            let tasks = times(&file(format!("{name}.tasks"))?)?;
            let disk = DiskWork::between(&file(format!("{name}.disk"))?)?;
            cells.push(json!({
                "service": service.name, "kind": service.kind.name(),
                "at_a_time": service.at_a_time, "under": under.name, "policy": under.policy,
                "alone_s": of, "tasks": tasks, "stalled_s": stalled_s(&file(format!("{name}.stalls"))?)?,
                "requests": disk.requests, "bytes": disk.bytes, "busy_s": disk.busy_s,
                "freezes": sum(&report, "freezes"), "frozen_s": sum(&report, "frozen_s"),
                "longest_frozen_s": largest(&report, "longest_frozen_s"),
            }));
        }
    }
    Ok(json!({
        "release": release, "stage": stage.about(), "cells": cells, "wall_s": outcome.wall.as_secs(),
    }))
}

fn figures<'a>(report: &'a Value, name: &'a str) -> impl Iterator<Item = f64> + 'a {
    elements(&report["tasks"]).iter().filter_map(move |task| task[name].as_f64())
}

fn sum(report: &Value, name: &str) -> f64 {
    figures(report, name).sum()
}

fn largest(report: &Value, name: &str) -> f64 {
    figures(report, name).fold(0.0, f64::max)
}

/// Work of the disk during a cell, by its counters in sysfs.
#[derive(Debug, PartialEq)]
struct DiskWork {
    requests: u64,
    bytes: u64,
    busy_s: f64,
}

impl DiskWork {
    fn between(text: &str) -> Result<Self, EvaluateError> {
        let line = |line: &str| -> Option<Vec<u64>> {
            let words = line.split_whitespace();
            words.map(|word| word.parse().ok()).collect()
        };
        let all: Option<Vec<Vec<u64>>> = text.lines().map(line).collect();
        match all.as_deref() {
            Some([before, after]) if before.len() > 9 && after.len() > 9 => {
                let of = |column: usize| after[column].saturating_sub(before[column]);
                Ok(Self {
                    requests: of(0) + of(4),
                    bytes: (of(2) + of(6)) * SECTOR_BYTES,
                    busy_s: of(9) as f64 / 1e3,
                })
            }
            _ => Err(missing("the disk's figures")),
        }
    }
}

/// Returns the sum of the tasks' waits for I/O.
fn stalled_s(text: &str) -> Result<f64, EvaluateError> {
    let all: Result<Vec<u64>, _> = text.lines().map(str::parse).collect();
    let all = all.map_err(|_| missing("the tasks' waits"))?;
    Ok(all.iter().sum::<u64>() as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::super::programs::Program;
    use super::*;

    #[test]
    fn a_stage_runs_each_task_alone_once_and_each_service_under_each_policy() {
        let stage = Stage::similar(Program::Kmeans);
        let policies = [Under::elevator("bfq"), Under::new("ours", "auto")];
        let all = lines(&stage, &policies);
        assert_eq!(all.len(), 8 + 4 * 2);
        assert_eq!(all[0], "cell alone.1 '1' none 128 '' '' '' '' ''");
        assert!(all[8].ends_with("'1 2 3 4 5 6 7 8' bfq 128 '' '' '' '' ''"), "{}", all[8]);
        assert!(all[15].ends_with("'1 9 10 11' none 128 '' '' '' '' 'auto'"), "{}", all[15]);
        let threads = lines(&Stage::threads(48), &policies);
        assert!(threads[2].starts_with("THROTTLE_OPTIONS=--threads cell"), "{}", threads[2]);
    }

    #[test]
    fn a_disks_figures_are_what_came_between() {
        let text = "10 0 800 5 1 0 8 1 0 100 6 0\n30 0 2400 9 2 0 16 1 0 1100 8 0\n";
        let disk = DiskWork::between(text).expect("figures");
        assert_eq!(disk, DiskWork { requests: 21, bytes: 1608 * 512, busy_s: 1.0 });
        assert!(DiskWork::between("1 2\n").is_err());
        assert!((stalled_s("1000000\n500000\n").expect("waits") - 1.5).abs() < 1e-9);
    }
}
