//! Part `throttle-protect`: a client that must be answered soon, beside batch, under each rival and `luc throttle`.
//!
//! `settings` has the rivals and our policies; `protect.sh` runs a client beside batch. Settings are chosen at some
//! places of the files, and judged at others.

mod scenario;
mod settings;

use std::fmt::Write as _;

use luc_harness::error::EvaluateError;
use luc_harness::guests;
use luc_harness::harness::{Harness, missing, parse};
use luc_harness::progress::Progress;
use luc_harness::runs::Runs;
use luc_vm::{GuestKernel, GuestOutcome, VirtualMachine};
use serde_json::{Value, json};

use super::KERNEL;
use super::guest::{machine, script};
use super::guests_at_a_time;
use scenario::Scenario;
use settings::ClientSetting;

/// Script that runs a client beside batch.
const BESIDE: &str = include_str!("protect.sh");
/// Number of places of the files where settings are judged. They are chosen at half as many others.
const JUDGING: usize = 4;
const CLIENT_SECONDS: f64 = 10.0;

/// Cells that one guest runs.
struct CellGuest<'a> {
    scenario: Scenario,
    settings: &'a [ClientSetting],
    key: Value,
    vm: VirtualMachine<'a>,
}

/// Measures the part.
///
/// # Errors
/// [`EvaluateError`].
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let kernel = GuestKernel::bootable(KERNEL)?;
    // A cell is, for `--only`, a scenario and a setting.
    let wanted = |scenario: Scenario, settings: Vec<ClientSetting>| -> Vec<ClientSetting> {
        let is_wanted = |setting: &ClientSetting| {
            let cell = format!("{}, {}", scenario.name(), setting.name);
            harness.options.wants(&cell)
        };
        settings.into_iter().filter(is_wanted).collect()
    };
    let all: Vec<(Scenario, Vec<ClientSetting>)> = [Scenario::Reads, Scenario::Fsyncs]
        .into_iter()
        // One guest for the rivals and one for ours, so that a change of ours repeats only that.
        .flat_map(|scenario| {
            let both = [settings::rivals(scenario), settings::ours(scenario)];
            both.map(|settings| (scenario, wanted(scenario, settings)))
        })
        .filter(|(_, settings)| !settings.is_empty())
        .collect();
    if all.is_empty() {
        return Err(harness.options.no_cell());
    }
    let judging = harness.options.repeats.unwrap_or(JUDGING);
    let choosing = judging.div_ceil(2);
    let runs = Runs::open(harness);
    let mut progress = Progress::new(harness.part, all.len() * (choosing + judging));
    let mut guests = Vec::new();
    // Seed by seed: an evaluation that is ended early has all settings.
    for place in 0..choosing + judging {
        let seed = harness.options.seed + place as u64;
        let purpose = if place < choosing { "choosing" } else { "judging" };
        for (scenario, settings) in &all {
            let names: Vec<&str> = settings.iter().map(|s| s.name.as_str()).collect();
            let key = json!({
                "scenario": scenario.name(), "places": seed, "for": purpose, "settings": names,
            });
            let mut is_new = false;
            let earlier = runs.get(&key, || {
                is_new = true;
                Err(EvaluateError::Interrupted)
            });
            if is_new {
                let vm = describe(harness, &kernel, *scenario, settings, seed);
                guests.push(CellGuest { scenario: *scenario, settings, key, vm });
            } else {
                earlier?;
                progress.step(&format!("{}, places {seed}, taken over", scenario.name()));
            }
        }
    }
    let boot = |guest: &CellGuest<'_>| {
        guests::succeed(&guest.vm, &format!("running '{}' in a guest", guest.scenario.name()))
    };
    guests_at_a_time::each(harness.options.jobs, &guests, boot, |guest, outcome| {
        runs.get(&guest.key, || read(&outcome, kernel.release(), guest.settings))?;
        progress.step(&format!("{}, places {}", guest.scenario.name(), guest.key["places"]));
        Ok(())
    })
}

/// Describes a guest that runs the client alone, then beside batch under each setting.
fn describe<'a>(
    harness: &Harness,
    kernel: &'a GuestKernel,
    scenario: Scenario,
    settings: &[ClientSetting],
    seed: u64,
) -> VirtualMachine<'a> {
    let seconds = harness.options.seconds.unwrap_or(CLIENT_SECONDS);
    let mut lines = vec![BESIDE.to_owned()];
    let mut commands =
        format!("cat >\"$WORK/client\" <<'END'\n{}\nEND\n", scenario.client(seconds, seed));
    for number in 1..=scenario.batch() {
        let task = scenario.batch_task(number);
        let _ = write!(commands, "cat >\"$WORK/batch.{number}\" <<'END'\n{task}\nEND\n");
    }
    lines.push(commands);
    lines.push(format!("beside alone 0 {}", settings::plain().words()));
    for (number, setting) in settings.iter().enumerate() {
        lines.push(format!("beside {number} {} {}", scenario.batch(), setting.words()));
    }
    let files = scenario.files();
    machine(harness, kernel, files.model, files.bytes())
        .program("ionice")
        .script(script(&files, &lines, seed))
}

/// Reads what the cells of a guest left.
fn read(
    outcome: &GuestOutcome,
    release: &str,
    settings: &[ClientSetting],
) -> Result<Value, EvaluateError> {
    let cell = |name: &str| -> Result<Value, EvaluateError> {
        let file = |end: &str| guests::file(outcome, &format!("{name}.{end}"));
        let client: Value = parse(&file("client")?, "the client's figures")?;
        let throttle: Value = outcome
            .file(&format!("{name}.json"))
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        Ok(json!({
            "client": client, "moved": compute_work(&file("before")?, &file("after")?)?, "throttle": throttle,
        }))
    };
    let mut cells = Vec::new();
    for (number, setting) in settings.iter().enumerate() {
        let mut of = cell(&number.to_string())?;
        of["setting"] = json!(setting.name);
        cells.push(of);
    }
    Ok(json!({
        "release": release, "alone": cell("alone")?, "cells": cells, "wall_s": outcome.wall.as_secs(),
    }))
}

/// Returns the disk's work between two looks at its counters (Documentation/block/stat.rst), each after its time.
fn compute_work(before: &str, after: &str) -> Result<Value, EvaluateError> {
    const SECTOR_BYTES: f64 = 512.0;
    let numbers = |text: &str| -> Vec<f64> {
        text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let (before, after) = (numbers(before), numbers(after));
    let since = |place: usize| Some(after.get(place)? - before.get(place)?);
    let of = || Some((since(0)?, since(3)? * SECTOR_BYTES, since(7)? * SECTOR_BYTES));
    let (seconds, read_bytes, written_bytes) =
        of().ok_or_else(|| missing("the disk's counters"))?;
    Ok(json!({ "seconds": seconds, "read_bytes": read_bytes, "written_bytes": written_bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_moved_is_the_difference_of_the_counters() {
        let before = "1767225610.5 1 0 8 0 2 0 16 0 0 0 0";
        let after = "1767225620.5 9 0 1008 0 2 0 116 0 0 0 0";
        let moved = compute_work(before, after).expect("counters");
        assert_eq!(moved["seconds"], 10.0);
        assert_eq!(moved["read_bytes"], 512_000.0);
        assert_eq!(moved["written_bytes"], 51_200.0);
        assert!(super::compute_work("", "1").is_err());
    }
}
