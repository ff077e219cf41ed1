//! Part `throttle-paper`: the experiments of WiseThrottling, scaled, under its rules and ours.
//!
//! `programs` are its programs, `services` combinations of them. `guest` runs them, `points` measures degradation
//! curves and Vector Points.

mod guest;
mod points;
mod programs;
mod services;

use luc_harness::error::EvaluateError;
use luc_harness::harness::Harness;
use luc_harness::progress::Progress;
use luc_harness::runs::Runs;
use luc_vm::GuestKernel;
use serde_json::json;

use super::KERNEL;
use guest::{Compiled, Under};
use points::Curves;
use programs::Program;
use services::Stage;

/// Name of services without a throttle, which others are compared with.
const NONE: &str = "none";
/// The paper's rules with its one printed Vector Point.
const PRINTED: &str = "wise, as printed";
/// The paper's rules with the Vector Points of this disk.
const WISE: &str = "wise, this disk's points";
/// Default policy of `luc throttle`.
const AUTO: &str = "auto";
/// Number of the mix in ablations.
const ABLATED: u64 = 0;
/// Name of the guest of ablations.
const ABLATIONS: &str = "ablations";

/// Returns the stages that run, without the ablations.
fn stages() -> Vec<Stage> {
    let similar =
        [Program::Similarity, Program::Kmeans, Program::Search, Program::Encode, Program::Build];
    let similar = similar.into_iter().map(Stage::similar);
    let compounded = (0..5).map(Stage::compounded);
    let batches = [16, 32].into_iter().map(Stage::batch);
    let threads = [48, 64].into_iter().map(Stage::threads);
    similar.chain(compounded).chain(batches).chain(threads).collect()
}

/// Returns the policies that each service runs under.
fn policies(curves: &Curves) -> Vec<Under> {
    vec![
        Under::new(NONE, ""),
        Under::new(PRINTED, format!("wise:{}", curves.peak.round())),
        Under::new(WISE, curves.policy("")),
        Under::new(AUTO, AUTO),
    ]
}

/// Returns policies with one thing changed at a time.
fn ablations(curves: &Curves) -> Vec<Under> {
    let wise =
        |name: &str, words: &str| Under::new(&format!("{WISE}, {name}"), curves.policy(words));
    let mut all = policies(curves);
    all.extend([
        wise("dtimeslice fixed", ",tuning=off"),
        wise("least sensitive first", ",order=lowest"),
        wise("oldest first", ",order=arrival"),
        wise("one resumed at a time", ",resume=0%"),
        wise("all resumed at once", ",resume=100%"),
        wise("checks each 100 ms", ",check=100ms"),
        Under::new("fcfs", "fcfs"),
    ]);
    let turns = ["100ms", "250ms", "1s"].map(|turn| format!("turns:{turn}"));
    all.extend(turns.map(|policy| Under::new(&policy, policy.clone())));
    all
}

/// Measures the part.
///
/// # Errors
/// [`EvaluateError`].
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let kernel = GuestKernel::bootable(KERNEL)?;
    let compiled = Compiled::of(harness)?;
    let wants = |name: &str| harness.options.wants(name);
    let stages: Vec<Stage> = stages().into_iter().filter(|stage| wants(&stage.name)).collect();
    let wants_ablations = wants(ABLATIONS);
    let seeds = harness.options.repeats.unwrap_or(1) as u64;
    let runs = Runs::open(harness);
    let guests = 1 + (stages.len() + usize::from(wants_ablations)) * seeds as usize;
    let mut progress = Progress::new(harness.part, guests);
    let first = harness.options.seed;
    let measured = runs.get(&json!({ "stage": "curves", "places": first }), || {
        points::run(harness, &kernel, first)
    })?;
    let curves = Curves::of(&measured)?;
    progress.step("degradation curves");
    let policies = policies(&curves);
    let one = |stage: &Stage, name: &str, policies: &[Under], seed: u64| {
        let all: Vec<&str> = policies.iter().map(|under| under.policy.as_str()).collect();
        let key = json!({ "stage": name, "places": seed, "policies": all });
        runs.get(&key, || guest::run(harness, &kernel, &compiled, (stage, policies), seed))
    };
    // Seed by seed: an evaluation that is ended early has all services.
    for seed in first..first + seeds {
        for stage in &stages {
            one(stage, &stage.name, &policies, seed)?;
            progress.step(&format!("{}, places {seed}", stage.name));
        }
        if wants_ablations {
            let stage = Stage::compounded(ABLATED);
            one(&stage, ABLATIONS, &ablations(&curves), seed)?;
            progress.step(&format!("{ABLATIONS}, places {seed}"));
        }
    }
    Ok(())
}
