//! Part `throttle`: tasks that ruin each other's disk, under each rival at its best and under `luc throttle`.
//!
//! `mixes` are the tasks, `settings` the rivals and our policies. `guest` runs both in virtual time, `figures` finds
//! the rivals that run again. `host` is part `throttle-host`: the same on the running kernel, with fewer rivals.
//! `paper` is part `throttle-paper`: the paper's experiments. `guests_at_a_time` runs several guests together.
//! `protect` is part `throttle-protect`: a client that must be answered soon, beside batch. `advised` is part
//! `throttle-advise`: predictions of `luc throttle advise`, and the results.

pub mod advised;
mod figures;
mod guest;
mod guests_at_a_time;
pub mod host;
mod mixes;
pub mod paper;
pub mod protect;
pub mod safety;
mod settings;

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, array};
use luc_harness::progress::Progress;
use luc_harness::runs::Runs;
use luc_vm::GuestKernel;
use serde_json::{Value, json};

use figures::Group;
use mixes::{Mix, Model};
use settings::{Setting, main_ours, main_rivals, ours, rivals};

/// Version of Debian's kernel that has all rivals.
const KERNEL: &str = "6.1";
/// Number of places of the files that are tried. More make intervals narrower.
const DEFAULT_SEEDS: usize = 3;

/// A mix, its rivals, and our settings.
type Case = (Mix, Vec<Setting>, Vec<Setting>);

fn cases() -> Vec<Case> {
    let streams = [(4, 32), (8, 32)].map(|(count, file_mib)| {
        let mix = Mix::streams(count, file_mib);
        (mix, rivals(count), ours())
    });
    let long = [4, 8]
        .map(|count| Mix { name: format!("{count} long streams"), ..Mix::streams(count, 128) });
    let unequal = Mix::unequal(4, 16);
    let batches = [16, 32].map(|count| Mix::batch(count, 16));
    let compounded = (0..5).map(Mix::compounded);
    let others = [Model::Ssd, Model::Cloud].map(|model| Mix::on(model, 64));
    let long_others = [Model::Ssd, Model::Cloud].map(|model| Mix {
        name: format!("4 long streams, {}", model.name()),
        ..Mix::on(model, 256)
    });
    let alone = Mix { name: "1 stream".to_owned(), ..Mix::streams(1, 64) };
    let mut all: Vec<Case> = streams.into();
    let rest = long.into_iter().chain([unequal]);
    let rest = rest.chain(batches).chain(compounded);
    let rest = rest.chain(others).chain(long_others);
    all.extend(rest.map(|mix| (mix, main_rivals(), main_ours())));
    let nothing_to_gain = [alone, Mix::light(4, 16)];
    all.extend(nothing_to_gain.map(|mix| (mix, vec![settings::plain()], main_ours())));
    all
}

/// Measures part `throttle`.
///
/// # Errors
/// [`EvaluateError`].
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let kernel = GuestKernel::bootable(KERNEL)?;
    let seeds = harness.options.repeats.unwrap_or(DEFAULT_SEEDS);
    let all: Vec<Case> =
        cases().into_iter().filter(|(mix, ..)| harness.options.wants(&mix.name)).collect();
    if all.is_empty() {
        return Err(harness.options.no_cell());
    }
    let has_throttle = harness.execute(&mut harness.luc(&["throttle", "--help"]), &[0]).is_ok();
    let runs = Runs::open(harness);
    let mut progress = Progress::new(harness.part, all.len() * seeds);
    let mut groups: Vec<Group> = all.iter().map(|(mix, ..)| Group::new(mix)).collect();
    // Seed by seed: an evaluation that is ended early has all mixes.
    for seed in 0..seeds as u64 {
        for ((mix, rivals, ours), group) in all.iter().zip(&mut groups) {
            let ours = ours.iter().filter(|_| has_throttle);
            let rivals =
                rivals.iter().filter(|setting| seed == 0 || group.is_near_best(&setting.name));
            let settings: Vec<&Setting> = rivals.chain(ours).collect();
            let result =
                results(harness, &runs, &kernel, (mix, &settings), harness.options.seed + seed)?;
            group.add(&settings, &result)?;
            progress.step(&format!("{}, places {}", mix.name, seed + 1));
        }
    }
    Ok(())
}

/// Returns a guest's results. The rivals have one run and ours another, so that a change of ours repeats only that.
fn results(
    harness: &Harness,
    runs: &Runs<'_>,
    kernel: &GuestKernel,
    (mix, settings): (&Mix, &[&Setting]),
    seed: u64,
) -> Result<Value, EvaluateError> {
    let mut all = Vec::new();
    let mut alone = Value::Null;
    for is_ours in [false, true] {
        let of: Vec<&Setting> =
            settings.iter().copied().filter(|setting| setting.is_ours() == is_ours).collect();
        if of.is_empty() {
            continue;
        }
        let names: Vec<&str> = of.iter().map(|setting| setting.name.as_str()).collect();
        let key = json!({ "mix": mix.name, "places": seed, "settings": names });
        let result = runs.get(&key, || guest::run(harness, kernel, mix, &of, seed))?;
        let cells = array(&result["cells"], "cells")?;
        all.extend(cells.iter().cloned());
        alone = result["alone_s"].clone();
    }
    Ok(json!({ "alone_s": alone, "cells": all }))
}
