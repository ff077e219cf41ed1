//! Part `throttle-paper`: the experiments of WiseThrottling, scaled, under its rules and ours.
//!
//! `programs` are its programs, `services` combinations of them. `guest` runs them, `points` measures degradation
//! curves and Vector Points.

mod guest;
mod points;
mod programs;
mod services;

use luc_harness::error::EvaluateError;
use luc_harness::guests;
use luc_harness::harness::Harness;
use luc_harness::progress::Progress;
use luc_harness::runs::Runs;
use luc_vm::{GuestKernel, VirtualMachine};
use serde_json::{Value, json};

use super::KERNEL;
use super::guests_at_a_time;
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
/// CHECK_INTERVAL of the paper's rules, as one word more of the policy. It is scaled as the tasks are.
const CHECK: &str = ",check=50ms";
/// Number of places of the files.
const PLACES: usize = 5;
/// Number of these at which ablations run.
const ABLATED_PLACES: u64 = 1;
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
        Under::new(PRINTED, format!("wise:{}{CHECK}", curves.peak.round())),
        Under::new(WISE, curves.policy(CHECK)),
        Under::new(AUTO, AUTO),
    ]
}

/// Returns policies with one thing changed at a time.
fn ablations(curves: &Curves) -> Vec<Under> {
    let checked =
        |name: &str, words: &str| Under::new(&format!("{WISE}, {name}"), curves.policy(words));
    let wise = |name: &str, words: &str| checked(name, &format!("{CHECK}{words}"));
    let mut all = policies(curves);
    all.extend([
        wise("dtimeslice fixed", ",tuning=off"),
        wise("least sensitive first", ",order=lowest"),
        wise("oldest first", ",order=arrival"),
        wise("one resumed at a time", ",resume=0%"),
        wise("all resumed at once", ",resume=100%"),
        checked("checks each 20 ms", ",check=20ms"),
        checked("checks each 100 ms", ",check=100ms"),
        checked("checks each 1 s", ",check=1s"),
        Under::new("fcfs", "fcfs"),
        Under::elevator("bfq"),
    ]);
    let turns = ["100ms", "250ms", "1s"].map(|turn| format!("turns:{turn}"));
    all.extend(turns.map(|policy| Under::new(&policy, policy.clone())));
    all
}

/// A guest that runs a stage.
struct StageGuest<'a> {
    stage: Stage,
    policies: &'a [Under],
    key: Value,
    vm: VirtualMachine<'a>,
}

/// Measures the part.
///
/// # Errors
/// [`EvaluateError`].
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let kernel = GuestKernel::bootable(KERNEL)?;
    let compiled = Compiled::of(harness)?;
    let first = harness.options.seed;
    let places = harness.options.repeats.unwrap_or(PLACES) as u64;
    let wanted = wanted(harness, first..first + places);
    let runs = Runs::open(harness);
    let mut progress = Progress::new(harness.part, 1 + wanted.len());
    let measured = runs.get(&json!({ "stage": "curves", "places": first }), || {
        points::run(harness, &kernel, first)
    })?;
    let curves = Curves::of(&measured)?;
    progress.step("degradation curves");
    let (policies, ablations) = (policies(&curves), ablations(&curves));
    let mut guests = Vec::new();
    for (name, stage, seed) in wanted {
        let policies = if name == ABLATIONS { &ablations } else { &policies };
        let all: Vec<&str> = policies.iter().map(|under| under.policy.as_str()).collect();
        let key = json!({ "stage": name, "places": seed, "policies": all });
        if let Some(earlier) = runs.earlier_result(&key) {
            runs.get(&key, || Ok(earlier.clone()))?;
            progress.step(&format!("{name}, places {seed}, taken over"));
        } else {
            let vm = guest::describe(harness, &kernel, &compiled, (&stage, policies), seed);
            guests.push(StageGuest { stage, policies, key, vm });
        }
    }
    let boot = |guest: &StageGuest<'_>| {
        guests::succeed(&guest.vm, &format!("running '{}' in a guest", guest.stage.name))
    };
    guests_at_a_time::each(harness.options.jobs, &guests, boot, |guest, outcome| {
        let StageGuest { stage, policies, key, .. } = guest;
        runs.get(key, || guest::read(&outcome, kernel.release(), stage, policies))?;
        let name = key["stage"].as_str().unwrap_or(&stage.name);
        progress.step(&format!("{name}, places {}", key["places"]));
        Ok(())
    })
}

/// Returns the wanted stages at each place, the places one after another: an evaluation that is ended early has all.
fn wanted(harness: &Harness, places: std::ops::Range<u64>) -> Vec<(String, Stage, u64)> {
    let ablated_before = places.start + ABLATED_PLACES;
    let of_place = |seed: u64| {
        let stages = stages().into_iter().map(|stage| (stage.name.clone(), stage));
        let is_ablated = seed < ablated_before;
        let ablated = is_ablated.then(|| (ABLATIONS.to_owned(), Stage::compounded(ABLATED)));
        stages.chain(ablated).map(move |(name, stage)| (name, stage, seed))
    };
    places.flat_map(of_place).filter(|(name, _, _)| harness.options.wants(name)).collect()
}
