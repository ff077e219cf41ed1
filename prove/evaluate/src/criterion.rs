//! Part `criterion`: how often "not slower" is met by a side that is slower, by simulation.
//!
//! Rounds are drawn with a known ratio and judged by the functions that all pages call. The noise is log-normal, or
//! that of measured rounds in the raw data of other pages.

use std::collections::{BTreeMap, BTreeSet};

use luc_claims::criterion::power::rounds_needed;
use luc_claims::criterion::simulated::{Estimator, RoundNoise, Simulation, passes};
use luc_claims::criterion::{ComparedRatio, NOT_SLOWER, SURELY_NOT_SLOWER};
use luc_claims::{Data, Point};
use serde_json::{Value, json};

use crate::EvaluateError;
use crate::harness::{Harness, read_json, stop_if_interrupted};
use crate::progress::Progress;

/// Losses that are simulated, with their names in the raw data.
const LOSSES: [(&str, f64); 3] = [("loss_5", 0.95), ("loss_2", 0.98), ("loss_0", 1.0)];

struct NamedCriterion {
    /// Name in the raw data.
    name: &'static str,
    is_met: fn(&ComparedRatio) -> bool,
}

/// Criteria: that of before 2026-11-30, that of the pages, and the sure one.
const CRITERIA: [NamedCriterion; 3] = [
    NamedCriterion { name: "upper_end", is_met: |compared| compared.high >= 0.98 },
    NamedCriterion { name: "pages", is_met: |compared| NOT_SLOWER.is_met(compared) },
    NamedCriterion { name: "sure", is_met: |compared| SURELY_NOT_SLOWER.is_met(compared) },
];

/// Standard deviations of the logarithm of a round's ratio.
const SCATTERS: [f64; 5] = [0.01, 0.02, 0.03, 0.05, 0.1];
const ROUNDS: [usize; 11] = [3, 5, 7, 10, 15, 20, 30, 40, 60, 100, 200];

/// Scatters, in steps of a quarter of a percent, and rounds among which a criterion is sought that meets all.
const SOUGHT_SCATTERS: std::ops::RangeInclusive<u32> = 2..=24;
const SOUGHT_ROUNDS: std::ops::RangeInclusive<usize> = 3..=40;

/// The bootstrap takes a thousand times as long as order statistics: fewer cells and trials.
const BOOTSTRAP_SCATTERS: [f64; 2] = [0.01, 0.03];
const BOOTSTRAP_ROUNDS: [usize; 5] = [3, 5, 10, 20, 40];
const BOOTSTRAP_TRIALS: u64 = 400;
const TRIALS: u64 = 4000;

/// Measured rounds of a page's subject.
struct Subject {
    page: &'static str,
    name: String,
    estimator: Estimator,
    /// Speed with the change and without it, round by round.
    rounds: Vec<(f64, f64)>,
}

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let subjects = subjects(harness)?;
    let steps = SCATTERS.len() * (ROUNDS.len() + 2)
        + BOOTSTRAP_SCATTERS.len() * BOOTSTRAP_ROUNDS.len()
        + SOUGHT_SCATTERS.count()
        + subjects.len();
    let mut progress = Progress::new(harness.part, steps);
    let seed = harness.options.seed;
    let mut log_normal = |estimator, scatter: f64, rounds, seed, why: &str| {
        stop_if_interrupted()?;
        let noise = RoundNoise::log_normal(scatter);
        let made = simulate(&noise, estimator, rounds, seed);
        harness.keep(json!({
            "noise": "log-normal", "scatter": scatter, "estimator": name(estimator), "rounds": rounds, "why": why,
            "made": made,
        }));
        progress.step(&format!("log-normal, {scatter}, {rounds} rounds"));
        Ok::<(), EvaluateError>(())
    };

    // 1. Log-normal noise, some numbers of rounds.
    for scatter in SCATTERS {
        for rounds in ROUNDS {
            log_normal(Estimator::MedianOfRatios, scatter, rounds, seed, "any")?;
        }
    }
    for scatter in BOOTSTRAP_SCATTERS {
        for rounds in BOOTSTRAP_ROUNDS {
            log_normal(Estimator::RatioOfMedians, scatter, rounds, seed, "any")?;
        }
    }

    // 2. The rounds that the calculation of power chooses, with another seed.
    for scatter in SCATTERS {
        for (why, rounds) in needed(scatter) {
            let rounds = rounds.ok_or_else(|| crate::harness::missing("enough rounds"))?;
            log_normal(Estimator::MedianOfRatios, scatter, rounds, seed + 1, why)?;
        }
    }

    // 3. Rounds that would meet all.
    for step in SOUGHT_SCATTERS {
        stop_if_interrupted()?;
        harness.keep(seek(f64::from(step) / 400.0, seed));
        progress.step(&format!("sought, step {step}"));
    }

    // 4. The noise of measured rounds: as many as were made, and as many as are needed.
    for subject in &subjects {
        stop_if_interrupted()?;
        if let Some(found) = subject.simulate(seed) {
            harness.keep(found);
        }
        progress.step(&subject.name);
    }
    Ok(())
}

fn needed(scatter: f64) -> [(&'static str, Option<usize>); 2] {
    [
        ("pages", rounds_needed(scatter, &NOT_SLOWER)),
        ("sure", rounds_needed(scatter, &SURELY_NOT_SLOWER)),
    ]
}

/// Seeks rounds that find a side without loss not slower, more than 90 times in 100. A loss of 5 % must pass less than
/// 5 times. Keeps for each criterion the number of rounds at which a loss of 2 % passes least.
fn seek(scatter: f64, seed: u64) -> Value {
    let noise = RoundNoise::log_normal(scatter);
    let mut found = serde_json::Map::new();
    let cells: Vec<Value> = SOUGHT_ROUNDS
        .map(|rounds| simulate(&noise, Estimator::MedianOfRatios, rounds, seed))
        .collect();
    for NamedCriterion { name: criterion, .. } in CRITERIA {
        let passes =
            |cell: &Value, loss: &str| cell["passes"][criterion][loss].as_f64().unwrap_or(f64::NAN);
        let good = cells
            .iter()
            .filter(|cell| passes(cell, "loss_0") > 0.9 && passes(cell, "loss_5") < 0.05);
        let best = good.min_by(|a, b| passes(a, "loss_2").total_cmp(&passes(b, "loss_2")));
        let best =
            best.map(|cell| json!({ "rounds": cell["rounds"], "loss_2": passes(cell, "loss_2") }));
        found.insert(criterion.to_owned(), json!(best));
    }
    json!({ "noise": "log-normal", "scatter": scatter, "why": "sought", "cells": cells.len(), "best": found })
}

fn name(estimator: Estimator) -> &'static str {
    match estimator {
        Estimator::MedianOfRatios => "median of ratios",
        Estimator::RatioOfMedians => "ratio of medians",
    }
}

/// Returns the shares of pages that meet each criterion, by the loss.
fn simulate(noise: &RoundNoise, estimator: Estimator, rounds: usize, seed: u64) -> Value {
    let trials = match estimator {
        Estimator::MedianOfRatios => TRIALS,
        Estimator::RatioOfMedians => BOOTSTRAP_TRIALS,
    };
    let simulation = Simulation { noise, estimator, rounds, trials, seed };
    let passed = passes(
        &simulation,
        &LOSSES.map(|(_, ratio)| ratio),
        &CRITERIA.map(|criterion| criterion.is_met),
    );
    let mut shares = serde_json::Map::new();
    for (at, criterion) in CRITERIA.iter().enumerate() {
        let losses = LOSSES.iter().zip(&passed);
        let losses = losses.map(|((loss, _), passed)| ((*loss).to_owned(), json!(passed[at])));
        shares.insert(criterion.name.to_owned(), Value::Object(losses.collect()));
    }
    json!({ "rounds": rounds, "trials": trials, "seed": seed, "passes": shares })
}

impl Subject {
    /// Simulates pages with the noise of these rounds. `None` if they are too few.
    fn simulate(&self, seed: u64) -> Option<Value> {
        let noise = RoundNoise::measured(&self.rounds, seed)?;
        let compared = self.compared()?;
        let at = |rounds: usize| simulate(&noise, self.estimator, rounds, seed);
        let [pages, sure] = needed(compared.scatter).map(|(_, rounds)| rounds.map(at));
        Some(json!({
            "noise": "measured", "page": self.page, "subject": self.name, "estimator": name(self.estimator),
            "scatter": compared.scatter, "rounds": self.rounds.len(), "made": at(self.rounds.len()),
            "needed": { "pages": pages, "sure": sure },
        }))
    }

    fn compared(&self) -> Option<ComparedRatio> {
        let (with, without): (Vec<f64>, Vec<f64>) = self.rounds.iter().copied().unzip();
        match self.estimator {
            Estimator::MedianOfRatios => {
                ComparedRatio::of_ratios(&luc_stats::paired_ratios(&with, &without).ok()?)
            }
            Estimator::RatioOfMedians => ComparedRatio::of_medians(&with, &without, 1),
        }
    }
}

/// Takes the rounds of pages whose raw data have them.
fn subjects(harness: &Harness) -> Result<Vec<Subject>, EvaluateError> {
    let raw = |page: &str| harness.options.out.join(format!("raw/{page}.json"));
    let mut all = Vec::new();
    for (page, estimator) in
        [("services", Estimator::MedianOfRatios), ("services-kernel", Estimator::RatioOfMedians)]
    {
        all.extend(of_services(page, estimator, &read_json(&raw(page))?));
    }
    for page in ["metarates", "varmail"] {
        all.extend(of_sweep(page, &Data::read(&raw(page))?));
    }
    all.retain(|subject| harness.options.wants(&subject.name));
    Ok(all)
}

/// Takes the rounds of services: the clients' time without the change and with it.
fn of_services(page: &'static str, estimator: Estimator, data: &Value) -> Vec<Subject> {
    let mut seconds: BTreeMap<(String, String), BTreeMap<u64, f64>> = BTreeMap::new();
    for run in data["runs"].as_array().into_iter().flatten() {
        let (key, result) = (&run["key"], &run["result"]);
        let way = key["way"].as_str().or(key["setting"].as_str());
        let is_well = result["status"].as_i64().unwrap_or(0) == 0;
        if let (Some(service), Some(way), Some(repeat), Some(time), true) = (
            key["service"].as_str(),
            way,
            key["repeat"].as_u64(),
            result["seconds"].as_f64(),
            is_well,
        ) {
            seconds.entry((service.to_owned(), way.to_owned())).or_default().insert(repeat, time);
        }
    }
    let subject = |((service, way), with): (&(String, String), &BTreeMap<u64, f64>)| {
        let stock = seconds.get(&(service.clone(), "stock".to_owned()))?;
        let speeds = |(repeat, with): (&u64, &f64)| Some((1.0 / with, 1.0 / stock.get(repeat)?));
        let name = format!("{service}, {way}");
        let rounds = with.iter().filter_map(speeds).collect();
        (way != "stock").then_some(Subject { page, name, estimator, rounds })
    };
    seconds.iter().filter_map(subject).collect()
}

/// Takes the rounds of a sweep's points that differ only in the policy.
fn of_sweep(page: &'static str, data: &Data) -> Vec<Subject> {
    let policy = data.axes.iter().position(|axis| axis == "policy");
    let without_policy = |point: &Point| -> Vec<String> {
        let axes = point.point.iter().enumerate().filter(|(axis, _)| Some(*axis) != policy);
        axes.map(|(_, value)| value.clone()).collect()
    };
    let values = |point: &Point| -> BTreeMap<usize, f64> {
        let figures = point.figures.get("value").into_iter().flatten();
        let rounds = point.rounds.iter().zip(figures);
        rounds.filter_map(|(round, value)| Some((*round, (*value)?))).collect()
    };
    let of_policy =
        |point: &&Point, wanted: &str| policy.is_some_and(|at| point.point[at] == wanted);
    let names: BTreeSet<Vec<String>> = data.points.iter().map(without_policy).collect();
    let subject = |name: Vec<String>| {
        let mut points = data.points.iter().filter(|point| without_policy(point) == name);
        let stock = values(points.clone().find(|point| of_policy(point, "off"))?);
        let gate = values(points.find(|point| of_policy(point, "auto"))?);
        let pair = |(round, with): (&usize, &f64)| Some((*with, *stock.get(round)?));
        let rounds = gate.iter().filter_map(pair).collect();
        let estimator = Estimator::MedianOfRatios;
        Some(Subject { page, name: name.join(", "), estimator, rounds })
    };
    names.into_iter().filter_map(subject).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_of_services_are_paired_by_repeat() {
        let run = |way: &str, repeat: u64, seconds: f64, status: i64| {
            json!({ "key": { "service": "etcd", "way": way, "repeat": repeat },
                    "result": { "seconds": seconds, "status": status } })
        };
        let data = json!({ "runs": [
            run("stock", 0, 2.0, 0), run("auto", 0, 1.0, 0), run("auto", 1, 4.0, 0), run("stock", 1, 2.0, 0),
            run("auto", 2, 1.0, 1), run("stock", 2, 1.0, 0), json!({ "key": { "service": "etcd", "recorded": true } }),
        ] });
        let found = of_services("services", Estimator::MedianOfRatios, &data);
        let [subject] = &found[..] else { panic!("{}", found.len()) };
        assert_eq!(subject.name, "etcd, auto");
        assert_eq!(subject.rounds, [(1.0, 0.5), (0.25, 0.5)]);
    }

    #[test]
    fn points_of_a_sweep_are_paired_by_policy_and_round() {
        let point = |policy: &str, threads: &str, rounds: [usize; 2], values: [f64; 2]| json!({ "point": [policy, threads], "rounds": rounds, "figures": { "value": values } });
        let data: Data = serde_json::from_value(json!({
            "part": "t", "made_by": "a test", "machine": null, "kernel": [], "axes": ["policy", "threads"],
            "points": [point("off", "4", [0, 1], [1.0, 2.0]), point("auto", "4", [1, 2], [3.0, 4.0]),
                       point("off", "8", [0, 1], [1.0, 1.0])],
        }))
        .expect("data");
        let found = of_sweep("metarates", &data);
        let [subject] = &found[..] else { panic!("{}", found.len()) };
        assert_eq!((subject.name.as_str(), &subject.rounds[..]), ("4", &[(3.0, 2.0)][..]));
    }

    #[test]
    fn shares_are_by_criterion_and_loss() {
        let noise = RoundNoise::log_normal(0.001);
        let found = simulate(&noise, Estimator::MedianOfRatios, 10, 1);
        assert_eq!(found["passes"]["pages"]["loss_0"], json!(1.0));
        assert_eq!(found["passes"]["pages"]["loss_5"], json!(0.0));
        assert_eq!(found["passes"]["sure"]["loss_0"], json!(1.0));
    }
}
