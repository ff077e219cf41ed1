//! Part `throttle-paper`: the experiments of WiseThrottling, scaled, under its rules and ours, beside its figures.
//!
//! `programs` are its programs, `services` combinations of them. `guest` runs them, `points` measures degradation
//! curves and Vector Points, `results` are the metrics, `pages` the tables and targets.

mod guest;
mod pages;
mod points;
mod programs;
mod results;
mod services;

use luc_harness::error::EvaluateError;
use luc_harness::harness::Harness;
use luc_harness::progress::Progress;
use luc_harness::report::Page;
use luc_harness::runs::Runs;
use luc_vm::Kernel;
use serde_json::json;

use super::KERNEL;
use guest::{Compiled, Under};
use pages::{AUTO, PRINTED, WISE};
use points::Curves;
use programs::Program;
use results::{NONE, Results};
use services::Stage;

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
        Under::new(AUTO, "auto"),
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

/// Makes the part.
///
/// # Errors
/// [`EvaluateError`].
pub fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let kernel = Kernel::bootable(KERNEL)?;
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
    let (mut results, mut ablated) = (Results::default(), Results::default());
    let policies = policies(&curves);
    let one = |stage: &Stage, name: &str, policies: &[Under], seed: u64| {
        let all: Vec<&str> = policies.iter().map(|under| under.policy.as_str()).collect();
        let key = json!({ "stage": name, "places": seed, "policies": all });
        runs.get(&key, || guest::run(harness, &kernel, &compiled, (stage, policies), seed))
    };
    // Seed by seed: an evaluation that is ended early has all services.
    for seed in first..first + seeds {
        for stage in &stages {
            results.add(&one(stage, &stage.name, &policies, seed)?)?;
            progress.step(&format!("{}, places {seed}", stage.name));
        }
        if wants_ablations {
            let stage = Stage::compounded(ABLATED);
            ablated.add(&one(&stage, ABLATIONS, &self::ablations(&curves), seed)?)?;
            progress.step(&format!("{ABLATIONS}, places {seed}"));
        }
    }
    let about = about(kernel.release(), &stages);
    Ok(pages::page(&results, &ablated, &curves, about))
}

fn about(release: &str, stages: &[Stage]) -> String {
    let drawn = stages.iter().filter(|stage| stage.services.len() == 1 && stage.tasks.len() > 1);
    let drawn: Vec<String> =
        drawn.map(|stage| format!("{}: {}", stage.name, stage.about())).collect();
    format!(
        "The experiments of Lv et al., *WiseThrottling* (The Journal of Supercomputing, 2015), in guests with Linux \
         {release} in virtual time, one processor, CFS and no disk scheduler where the paper has CFS and CFQ on 64 \
         cores, on an emulated hard disk of 7200 rpm with its full stroke over 2 GiB. The programs are scaled to the \
         disk, from minutes to tenths of a second alone: PB (parallel building) 8 `gzip` at a time over 48 files of 64 \
         KiB, an object for each few; PS (paper similarity) `cmp` of 4 MiB with three others at once; KM (kmeans) `md5sum` twice over 16 MiB, \
         the second time in memory; BFS a breadth-first search over a mapped graph of 8 MiB in 5 MiB of memory; X264 `gzip` \
         of 6 MiB with fsync; SW (swaptions) `md5sum` of 40 MiB of zeros, no I/O; WD `wc -w` of 16 MiB, of 4 MiB per \
         thread where threads are counted. Times alone are without a scheduler. CHECK_INTERVAL is 1 s as in the paper, so \
         a task lasts few checks. *wise, as printed* has the one Vector Point that the paper prints, scaled to \
         this peak; *wise, this disk's points* has those measured here; IO_BUSY_THRESHOLD, which the paper does not give, \
         is 1 MB/s, and each dtimeslice begins at 1. WS is the sum over the tasks of time alone / time together, TP tasks \
         over the time until all are done; WS rewards unfairness, so the worst task's slowdown is beside it. An \
         improvement of a task is its time under none over its time here, less 1. In a batch a task's time begins when a place is free. \
         Drawn at random: {}.",
        drawn.join("; ")
    )
}
