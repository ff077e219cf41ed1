//! Rivals that may be the best at further places, by the times of tasks so far.

use luc_harness::error::EvaluateError;
use luc_harness::harness::{elements, missing};
use luc_stats::{TaskTimes, median, together};
use serde_json::Value;

use super::mixes::{Mix, Model};
use super::settings::Setting;

/// Minimum throughput or weighted speedup of a rival that may be the best elsewhere, over the best one's.
const MIN_PART_OF_BEST: f64 = 0.8;
/// Setting of a system that was not tuned.
const UNTUNED: &str = "none";

/// Whether a rival leaves BFQ the kernel's own `timeout_sync`.
fn is_usual(rival: &str) -> bool {
    !rival.contains("timeout_sync")
}

#[derive(Debug, Clone)]
struct MixRun {
    throughput: f64,
    speedup: f64,
}

/// All runs of a mix under a rival.
#[derive(Debug, Clone)]
struct Rival {
    name: String,
    runs: Vec<MixRun>,
}

impl Rival {
    fn median(&self, of: fn(&MixRun) -> f64) -> Option<f64> {
        median(&self.runs.iter().map(of).collect::<Vec<f64>>())
    }
}

#[derive(Debug, Clone)]
pub(super) struct Group {
    mix: Mix,
    rivals: Vec<Rival>,
}

impl Group {
    pub(super) fn new(mix: &Mix) -> Self {
        Self { mix: mix.clone(), rivals: Vec::new() }
    }

    /// Adds the result of a guest.
    pub(super) fn add(
        &mut self,
        settings: &[&Setting],
        result: &Value,
    ) -> Result<(), EvaluateError> {
        let alone: Vec<f64> = serde_json::from_value(result["alone_s"].clone())
            .map_err(|_| missing("the times alone"))?;
        for cell in elements(&result["cells"]) {
            let name = cell["setting"].as_str().unwrap_or_default();
            let setting = settings.iter().find(|setting| setting.name == name);
            let setting = setting.ok_or_else(|| missing(name))?;
            let times: Vec<(f64, f64)> = serde_json::from_value(cell["tasks"].clone())
                .map_err(|_| missing("the times of tasks"))?;
            let tasks: Vec<TaskTimes> = alone
                .iter()
                .zip(&times)
                .map(|(&alone, &(start, finish))| TaskTimes {
                    alone,
                    // All are there at once; one that is frozen before it begins has begun to wait.
                    start: self.mix.at_a_time.map_or(0.0, |_| start),
                    finish,
                })
                .collect();
            let together = together(&tasks).map_err(|_| missing("a task's time"))?;
            if setting.is_ours() {
                continue;
            }
            let (speedup, _) = together.speedup.parts();
            let run = MixRun { throughput: together.throughput, speedup };
            match self.rivals.iter_mut().find(|rival| rival.name == name) {
                Some(rival) => rival.runs.push(run),
                None => self.rivals.push(Rival { name: name.to_owned(), runs: vec![run] }),
            }
        }
        Ok(())
    }

    /// Whether a rival may be the best at further places, by its medians so far.
    ///
    /// It is compared with the best of all, or of those with the usual `timeout_sync`. On a disk without an arm targets
    /// compare with `none`, which is always kept.
    pub(super) fn is_near_best(&self, rival: &str) -> bool {
        if rival == UNTUNED && self.mix.model != Model::Hdd {
            return true;
        }
        let is_near = |of: fn(&MixRun) -> f64| {
            let own = self.rivals.iter().find(|known| known.name == rival);
            let own = own.and_then(|own| own.median(of));
            let others =
                self.rivals.iter().filter(|other| !is_usual(rival) || is_usual(&other.name));
            let best = others.filter_map(|other| other.median(of)).max_by(f64::total_cmp);
            own.zip(best).is_none_or(|(own, best)| own >= MIN_PART_OF_BEST * best)
        };
        is_near(|run| run.throughput) || is_near(|run| run.speedup)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::settings::{Setting, ours, plain, schedulers};
    use super::*;

    fn cell(setting: &Setting, finishes: &[f64]) -> Value {
        let tasks: Vec<(f64, f64)> = finishes.iter().map(|&finish| (0.0, finish)).collect();
        json!({ "setting": setting.name, "tasks": tasks, "throttle": null })
    }

    #[test]
    fn rivals_near_the_best_are_found_by_the_figures() {
        let mut group = Group::new(&Mix::streams(2, 8));
        let bfq = schedulers().remove(3);
        let auto = ours().remove(0);
        let plain = plain();
        let result = json!({
            "alone_s": [1.0, 1.0],
            "cells": [cell(&plain, &[10.0, 10.0]), cell(&bfq, &[2.2, 2.2]), cell(&auto, &[1.0, 2.0])],
        });
        group.add(&[&plain, &bfq, &auto], &result).expect("a result");
        let near = [&bfq.name, &plain.name, "unknown"].map(|name| group.is_near_best(name));
        assert_eq!(near, [true, false, true]);
    }
}
