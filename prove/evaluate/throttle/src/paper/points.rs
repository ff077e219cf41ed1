//! Degradation curves of the emulated disk and its Vector Points (the paper's Fig. 4 and 10).

use luc_harness::error::EvaluateError;
use luc_harness::guests::{self, succeed};
use luc_harness::harness::{Harness, array, missing, parse};
use luc_vm::{GuestKernel, GuestOutcome};
use serde_json::{Value, json};

use super::super::guest::{beginning, machine};
use super::super::mixes::Model;

/// Demands of one probe alone, of the paper's peak of 90 MB/s.
const DEMANDS_MB: [f64; 7] = [1.5, 3.0, 5.1, 9.0, 15.0, 24.3, 26.4];
const PAPER_PEAK_MB: f64 = 90.0;
/// Numbers of probes that run together.
const PROBE_COUNTS: [usize; 6] = [1, 2, 3, 4, 6, 8];
const BLOCK_BYTES: f64 = 32.0 * 1024.0;
/// Peak of the emulated disk for which pauses are chosen, bytes per second. The real demand is measured.
const NOMINAL_PEAK: f64 = 105e6;
const FILE_MIB: usize = 32;
const CELL_S: u32 = 2;
/// Loss that is allowed, and difference of demands that count as equal, as in `luc throttle learn`.
const ALLOWED_LOSS: f64 = 0.1;
const MERGE_DISTANCE: f64 = 0.15;
const LEARN_TIME: &str = "13s";

#[derive(Debug, Clone)]
pub(super) struct Curves {
    /// Peak, bytes per second.
    pub(super) peak: f64,
    /// For each demand, the rate of one probe alone in bytes per second, and the loss by number of probes.
    curves: Vec<(f64, Vec<f64>)>,
}

/// Measures the curves in a guest.
pub(super) fn run(
    harness: &Harness,
    kernel: &GuestKernel,
    seed: u64,
) -> Result<Value, EvaluateError> {
    let vm = machine(harness, kernel, Model::Hdd, 8 * (FILE_MIB << 20) as u64).script(script());
    let outcome = succeed(&vm, "measuring degradation curves in a guest")?;
    let mut cells = Vec::new();
    for (demand, _) in DEMANDS_MB.iter().enumerate() {
        for tasks in PROBE_COUNTS {
            cells.push(json!({ "demand": demand, "tasks": tasks,
                "mb_per_s": rate(&outcome, &format!("d{demand}.{tasks}"), tasks)? }));
        }
    }
    let learned = outcome.file("learn.json").ok_or_else(|| missing("learn"))?;
    let learned: Value = parse(&learned, "learn")?;
    Ok(json!({ "peak_mb_per_s": rate(&outcome, "peak", 1)?, "cells": cells, "learned": learned,
        "seed": seed, "wall_s": outcome.wall.as_secs() }))
}

/// Returns the script. Files lie at equal distances; fewer probes use those that are farthest apart.
fn script() -> String {
    let files: Vec<String> = (0..8).map(|file| format!("/mnt/{file}")).collect();
    let mut script = beginning();
    script += "probe() {\n\
        \ttimeout -s INT \"$1\" luc bench ranking \"/mnt/$3\" --cold --block 32K --think \"$4\" --json >\"$OUT/$2.$3\" 2>/dev/null\n\
        \treturn 0\n}\n";
    script += &format!(
        "luc bench ranking --create {FILE_MIB}M --spread {} >/dev/null || fail 'no files'\n\
         set_queue none 128 ''\nprobe 60 peak 0 0\n",
        files.join(" ")
    );
    for (demand, mb) in DEMANDS_MB.iter().enumerate() {
        let rate = mb / PAPER_PEAK_MB * NOMINAL_PEAK;
        let pause_ns = ((BLOCK_BYTES / rate - BLOCK_BYTES / NOMINAL_PEAK) * 1e9) as u64;
        for tasks in PROBE_COUNTS {
            for number in 0..tasks {
                let file = number * 7 / (tasks - 1).max(1);
                script += &format!("probe {CELL_S} d{demand}.{tasks} {file} {pause_ns}ns &\n");
            }
            script += "wait\n";
        }
    }
    script += &format!("learn learn {LEARN_TIME}\n");
    script
}

/// Returns the mean rate of the probes, MB/s.
fn rate(outcome: &GuestOutcome, name: &str, tasks: usize) -> Result<f64, EvaluateError> {
    let mut sum = 0.0;
    for number in 0..tasks {
        let file = format!("{name}.{}", number * 7 / (tasks - 1).max(1));
        let report: Value = parse(&guests::file(outcome, &file)?, &file)?;
        sum += report["mb_per_second"].as_f64().ok_or_else(|| missing(&file))?;
    }
    Ok(sum / tasks as f64)
}

impl Curves {
    pub(super) fn of(result: &Value) -> Result<Self, EvaluateError> {
        let cells = array(&result["cells"], "cells")?;
        let rate = |demand: usize, tasks: usize| {
            let cell = cells.iter().find(|cell| {
                cell["demand"].as_u64() == Some(demand as u64)
                    && cell["tasks"].as_u64() == Some(tasks as u64)
            });
            let rate = cell.and_then(|cell| cell["mb_per_s"].as_f64());
            rate.ok_or_else(|| missing("a point of a degradation curve"))
        };
        let mut curves = Vec::new();
        for demand in 0..DEMANDS_MB.len() {
            let alone = rate(demand, 1)?;
            let mut losses = Vec::new();
            for tasks in PROBE_COUNTS {
                losses.push((1.0 - rate(demand, tasks)? / alone).max(0.0));
            }
            curves.push((alone * 1e6, losses));
        }
        let peak = result["peak_mb_per_s"].as_f64();
        Ok(Self { peak: peak.ok_or_else(|| missing("the peak"))? * 1e6, curves })
    }

    /// Returns Vector Points by the paper's section 3.4.1: tasks, and the highest demand up to which all losses are
    /// allowed, bytes per second. Neighbours of nearly equal demand become the one with more tasks.
    fn points(&self) -> Vec<(usize, f64)> {
        let mut points: Vec<(usize, f64)> = Vec::new();
        for (index, tasks) in PROBE_COUNTS.into_iter().enumerate().skip(1) {
            let borne = self.curves.iter().take_while(|curve| curve.1[index] <= ALLOWED_LOSS);
            let demand = borne.last().map_or(0.0, |curve| curve.0);
            match points.last_mut() {
                Some(last) if (last.1 - demand).abs() <= MERGE_DISTANCE * last.1.max(demand) => {
                    *last = (tasks, demand);
                }
                _ => points.push((tasks, demand)),
            }
        }
        points
    }

    /// Returns the policy with these points, rounded to 100 kB/s: `wise:PEAK,point=...`.
    pub(super) fn policy(&self, words: &str) -> String {
        let rounded = |rate: f64| (rate / 1e5).round() as u64 * 100_000;
        let mut text = format!("wise:{}", rounded(self.peak));
        for (tasks, rate) in self.points() {
            text += &format!(",point={}:{tasks}", rounded(rate));
        }
        text + words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves() -> Curves {
        Curves {
            peak: 100e6,
            curves: vec![
                (2e6, vec![0.0, 0.0, 0.0, 0.05, 0.2, 0.3]),
                (10e6, vec![0.0, 0.02, 0.3, 0.4, 0.5, 0.6]),
                (30e6, vec![0.0, 0.5, 0.6, 0.7, 0.8, 0.9]),
            ],
        }
    }

    #[test]
    fn a_point_is_the_highest_demand_that_is_borne() {
        assert_eq!(curves().points(), [(2, 10e6), (4, 2e6), (8, 0.0)]);
    }

    #[test]
    fn the_policy_has_them() {
        let text = curves().policy(",tuning=off");
        assert_eq!(text, "wise:100000000,point=10000000:2,point=2000000:4,point=0:8,tuning=off");
    }
}
