//! Part `throttle-advise`: predictions of `luc throttle advise` for mixes, beside the results of `luc throttle`.

use luc_harness::error::EvaluateError;
use luc_harness::guests;
use luc_harness::harness::{Harness, parse};
use luc_harness::progress::Progress;
use luc_harness::runs::Runs;
use luc_vm::GuestKernel;
use serde_json::{Value, json};

use super::KERNEL;
use super::guest::{boot, cells, script};
use super::mixes::{Mix, Model};
use super::settings::{Setting, plain};

/// Time for measuring the guest's disk.
const LEARN_TIME: &str = "13s";
/// Number of throttled runs of a mix. Their results vary with the moment at which they begin.
const THROTTLED_RUNS: usize = 3;
/// Sources of the model that advice is computed from.
const MODEL_SOURCES: [&str; 2] = ["seen", "learned"];

fn mixes() -> Vec<Mix> {
    let mut all = vec![
        Mix::streams(4, 32),
        Mix::streams(8, 32),
        Mix { name: "4 long streams".to_owned(), ..Mix::streams(4, 128) },
        Mix::unequal(4, 16),
    ];
    all.extend((0..5).map(Mix::compounded));
    all.push(Mix::on(Model::Ssd, 64));
    all
}

/// Measures the part.
///
/// # Errors
/// [`EvaluateError`].
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let kernel = GuestKernel::bootable(KERNEL)?;
    let all: Vec<Mix> =
        mixes().into_iter().filter(|mix| harness.options.wants(&mix.name)).collect();
    if all.is_empty() {
        return Err(harness.options.no_cell());
    }
    let seeds = harness.options.repeats.unwrap_or(1) as u64;
    let runs = Runs::open(harness);
    let mut progress = Progress::new(harness.part, all.len() * seeds as usize);
    for mix in &all {
        for seed in harness.options.seed..harness.options.seed + seeds {
            let key = json!({ "mix": mix.name, "places": seed });
            runs.get(&key, || in_guest(harness, &kernel, mix, seed))?;
            progress.step(&format!("{}, places {seed}", mix.name));
        }
    }
    Ok(())
}

/// Runs a mix alone, advised and throttled; then the same after the disk was measured.
fn in_guest(
    harness: &Harness,
    kernel: &GuestKernel,
    mix: &Mix,
    seed: u64,
) -> Result<Value, EvaluateError> {
    let setting = |policy| Setting { policy, ..plain() };
    let (off, advise, auto) = (setting("off"), setting("advise"), setting("auto"));
    let mut lines = cells(mix, &off, &[]);
    for knowledge in MODEL_SOURCES {
        if knowledge == "learned" {
            lines.push(format!("learn learn {LEARN_TIME}"));
        }
        let mut together = |name: String, setting: &Setting| {
            let line = cells(mix, &off, &[setting]).pop().unwrap_or_default();
            lines.push(line.replacen("together.0", &name, 1));
        };
        together(format!("advise.{knowledge}"), &advise);
        for number in 0..THROTTLED_RUNS {
            together(format!("auto.{knowledge}.{number}"), &auto);
        }
    }
    let outcome = boot(harness, kernel, mix, script(mix, &lines, seed))?;
    let report = |name: String| parse::<Value>(&guests::file(&outcome, &name)?, &name);
    let alone: Result<Vec<Value>, EvaluateError> =
        (1..=mix.kinds.len()).map(|task| report(format!("alone.{task}.json"))).collect();
    let mut result = json!({ "release": kernel.release(), "tasks": mix.about(), "alone": alone? });
    for knowledge in MODEL_SOURCES {
        let auto: Result<Vec<Value>, EvaluateError> = (0..THROTTLED_RUNS)
            .map(|number| report(format!("auto.{knowledge}.{number}.json")))
            .collect();
        result[knowledge] = json!({
            "advice": report(format!("advise.{knowledge}.json"))?,
            "auto": auto?,
        });
    }
    result["learn"] = report("learn.json".to_owned())?;
    Ok(result)
}
