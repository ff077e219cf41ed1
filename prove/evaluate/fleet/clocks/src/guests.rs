//! Part `fleet-guests`: clocks of real kernels in guests, related by real packets, beside the counts of the guests'
//! processors.

mod chrony;
mod judge;
mod machines;
mod run;
mod scenario;
mod schedule;
mod truth;

use luc_harness::error::EvaluateError;
use luc_harness::harness::Harness;
use luc_harness::progress::Progress;
use luc_vm::GuestKernel;
use serde_json::json;

use machines::Tools;
use run::GuestsRun;
use scenario::{SCENARIOS, Scenario};

/// Number of runs of each scenario.
const DEFAULT_SEEDS: usize = 2;
/// Maximum attempts at a run whose truth is not known: on a busy machine a guest's counter may be moved on.
const MAX_TRIES: u32 = 3;
/// Time for which clocks are read in a run, s.
const DEFAULT_SECONDS: f64 = 65.0;
/// Versions of distributions' kernels, which take turns.
const KERNELS: [&str; 2] = ["6.12", "6.1"];

/// Makes part `fleet-guests`.
///
/// # Errors
/// A guest, a recording or a fit that fails, and interruption.
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let wanted: Vec<Scenario> =
        SCENARIOS.into_iter().filter(|scenario| harness.options.wants(scenario.name)).collect();
    if wanted.is_empty() {
        return Err(harness.options.no_cell());
    }
    let seeds = harness.options.repeats.unwrap_or(DEFAULT_SEEDS).max(1) as u64;
    let seconds = harness.options.seconds.unwrap_or(DEFAULT_SECONDS);
    let source = include_str!("guests/inside.c");
    let tools = Tools {
        kernels: KERNELS
            .iter()
            .map(|version| GuestKernel::find(version))
            .collect::<Result<_, _>>()?,
        // Named before the source, a library would be left out by itself.
        inside: harness.compile("inside", source, &["-Wl,--no-as-needed", "-lm"])?,
        chrony: chrony::unpack(harness),
    };
    let mut progress = Progress::new(harness.part, wanted.len() * seeds as usize);
    for seed in (0..seeds).map(|seed| harness.options.seed + seed) {
        for (place, scenario) in wanted.iter().enumerate() {
            // Each scenario has both kernels, and each round has.
            let kernel = (seed as usize + place) % tools.kernels.len();
            let run =
                run_scenario(harness, &tools, &tools.kernels[kernel], scenario, seed, seconds)?;
            progress.step(&format!("{} {seed}: {}", scenario.name, run.brief()));
            harness.keep(json!(run));
        }
    }
    Ok(())
}

fn run_scenario(
    harness: &Harness,
    tools: &Tools,
    kernel: &GuestKernel,
    scenario: &Scenario,
    seed: u64,
    seconds: f64,
) -> Result<GuestsRun, EvaluateError> {
    let mut run = GuestsRun {
        scenario: scenario.name,
        seed,
        unable: None,
        kernel: kernel.release().to_owned(),
        seconds,
        in_vain: 0,
        judged: None,
    };
    if let (true, Err(why)) = (scenario.has_ntp, &tools.chrony) {
        run.unable = Some(why.clone());
        return Ok(run);
    }
    loop {
        let recorded = machines::record(harness, tools, kernel, scenario, seed, seconds)?;
        if run.in_vain + 1 < MAX_TRIES && !judge::has_truth(&recorded) {
            run.in_vain += 1;
            continue;
        }
        run.judged = Some(judge::judge(harness, &recorded)?);
        return Ok(run);
    }
}
