//! Part `throttle-protect`: a client that must be answered soon, beside batch, under each rival and `luc throttle`.
//!
//! `settings` are what they run under, `figures` makes tables and targets; `protect.sh` runs a client beside batch.

mod figures;
mod settings;

use std::fmt::Write as _;

use luc_claims::report::Page;
use luc_vm::Kernel;
use serde_json::{Value, json};

use super::KERNEL;
use super::guest::{boot, script};
use super::mixes::Mix;
use crate::error::EvaluateError;
use crate::harness::{Harness, missing};
use crate::progress::Progress;
use crate::safety::resume::Runs;
use figures::Group;
use settings::Setting;

/// What runs a client beside batch.
const BESIDE: &str = include_str!("protect.sh");
/// Places of the files that are tried.
const SEEDS: usize = 3;
/// How long the client works.
const SECONDS: f64 = 20.0;

/// A client and what is beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scenario {
    /// Reads 4 KiB at random every 10 ms, beside three streams.
    Reads,
    /// Appends 4 KiB and fsyncs every 10 ms, beside two that write files over and fsync them, and one that reads.
    Fsyncs,
}

impl Scenario {
    fn name(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Fsyncs => "fsyncs",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Reads => {
                "a client reads 4 KiB at a random place and pauses for 10 ms, again and again, beside three tasks that \
                 read files from end to end"
            }
            Self::Fsyncs => {
                "a client appends 4 KiB to a log, calls fsync and pauses for 10 ms, again and again, beside two tasks \
                 that write a file of 40 MiB over and fsync it, again and again, and one that reads such a file"
            }
        }
    }

    /// How many batch tasks there are.
    fn batch(self) -> usize {
        3
    }

    /// The tasks' files; the client that reads has the last.
    fn files(self) -> Mix {
        let mix = match self {
            Self::Reads => Mix::streams(4, 96),
            Self::Fsyncs => Mix::streams(3, 40),
        };
        Mix {
            name: format!("protect, {}", self.name()),
            ..mix
        }
    }

    fn client(self, seconds: f64, seed: u64) -> String {
        match self {
            Self::Reads => format!(
                "\"$LUC\" bench ranking \"$MNT/4\" --cold --random {seed} --block 4K --think 10ms --for {seconds}s --json"
            ),
            Self::Fsyncs => format!(
                "\"$LUC\" bench append --dir \"$MNT\" --threads 1 --record-size 4k --call fsync --think 10ms \
                 --seconds {seconds} --json"
            ),
        }
    }

    /// What a batch task does until it is ended.
    fn batch_task(self, number: usize) -> String {
        let options = if self == Self::Fsyncs && number < 3 {
            "--write"
        } else {
            "--cold"
        };
        format!(
            "while :; do \"$LUC\" bench ranking \"$MNT/{number}\" {options} 2>/dev/null || exit 1; done"
        )
    }

    /// Where the client's figures are in what it printed.
    fn latency(self, printed: &Value) -> Option<Latency> {
        let of = match self {
            Self::Reads => &printed["latency"],
            Self::Fsyncs => printed["operations"]
                .as_array()?
                .iter()
                .find(|figures| figures["operation"] == "fsync")?,
        };
        let ms = |name: &str| Some(of[name].as_f64()? / 1e3);
        Some(Latency {
            requests: of["count"].as_f64()?,
            mean_ms: ms("mean_us")?,
            p50_ms: ms("p50_us")?,
            p99_ms: ms("p99_us")?,
            max_ms: ms("max_us")?,
            seconds: printed["measured_s"].as_f64()?,
        })
    }
}

/// What a client saw.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Latency {
    requests: f64,
    mean_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    /// How long it was measured.
    seconds: f64,
}

pub(crate) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    if let Some(reason) = luc_vm::missing() {
        return Err(reason.into());
    }
    let kernel = Kernel::find(KERNEL)?;
    let seeds = harness.options.repeats.unwrap_or(SEEDS);
    // A cell is, for `--only`, a scenario and a setting.
    let wanted = |scenario: Scenario, settings: Vec<Setting>| -> Vec<Setting> {
        let is_wanted = |setting: &Setting| {
            let cell = format!("{}, {}", scenario.name(), setting.name);
            harness.options.wants(&cell)
        };
        settings.into_iter().filter(is_wanted).collect()
    };
    let guests: Vec<(Scenario, Vec<Setting>)> = [Scenario::Reads, Scenario::Fsyncs]
        .into_iter()
        // One guest for the rivals and one for ours, so that a change of ours repeats only that.
        .flat_map(|scenario| {
            let both = [settings::rivals(scenario), settings::ours(scenario)];
            both.map(|settings| (scenario, wanted(scenario, settings)))
        })
        .filter(|(_, settings)| !settings.is_empty())
        .collect();
    if guests.is_empty() {
        return Err(EvaluateError::NoCell(
            harness.options.only.clone().unwrap_or_default(),
        ));
    }
    let runs = Runs::open(harness);
    let mut progress = Progress::new(harness.part, guests.len() * seeds);
    let mut groups: Vec<Group> = Vec::new();
    // Seed by seed: an evaluation that is ended early has all settings.
    for seed in harness.options.seed..harness.options.seed + seeds as u64 {
        for (scenario, settings) in &guests {
            let names: Vec<&str> = settings.iter().map(|s| s.name.as_str()).collect();
            let key = json!({ "scenario": scenario.name(), "places": seed, "settings": names });
            let make = || in_guest(harness, &kernel, *scenario, settings, seed);
            let result = runs.get(&key, make)?;
            let known = groups.iter().position(|group| group.is_of(*scenario));
            let place = known.unwrap_or_else(|| {
                groups.push(Group::new(*scenario));
                groups.len() - 1
            });
            groups[place].add(settings, &result)?;
            progress.step(&format!("{}, places {seed}", scenario.name()));
        }
    }
    Ok(figures::page(&groups, kernel.release()))
}

/// The client alone, then beside batch under each setting.
fn in_guest(
    harness: &Harness,
    kernel: &Kernel,
    scenario: Scenario,
    settings: &[Setting],
    seed: u64,
) -> Result<Value, EvaluateError> {
    let seconds = harness.options.seconds.unwrap_or(SECONDS);
    let mut lines = vec![BESIDE.to_owned()];
    let mut commands = format!(
        "cat >\"$WORK/client\" <<'END'\n{}\nEND\n",
        scenario.client(seconds, seed)
    );
    for number in 1..=scenario.batch() {
        let task = scenario.batch_task(number);
        let _ = write!(
            commands,
            "cat >\"$WORK/batch.{number}\" <<'END'\n{task}\nEND\n"
        );
    }
    lines.push(commands);
    lines.push(format!("beside alone 0 {}", settings::plain().words()));
    for (number, setting) in settings.iter().enumerate() {
        lines.push(format!(
            "beside {number} {} {}",
            scenario.batch(),
            setting.words()
        ));
    }
    let files = scenario.files();
    let outcome = boot(harness, kernel, &files, script(&files, &lines, seed))?;
    let cell = |name: &str| -> Result<Value, EvaluateError> {
        let file = |end: &str| {
            let name = format!("{name}.{end}");
            outcome.file(&name).ok_or_else(|| missing(&name))
        };
        let client: Value =
            serde_json::from_str(&file("client")?).map_err(|_| missing("the client's figures"))?;
        let throttle: Value = outcome
            .file(&format!("{name}.json"))
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        Ok(json!({
            "client": client, "moved": moved(&file("before")?, &file("after")?)?, "throttle": throttle,
        }))
    };
    let mut cells = Vec::new();
    for (number, setting) in settings.iter().enumerate() {
        let mut of = cell(&number.to_string())?;
        of["setting"] = json!(setting.name);
        cells.push(of);
    }
    Ok(json!({
        "release": kernel.release(), "alone": cell("alone")?, "cells": cells,
        "wall_s": outcome.wall.as_secs(),
    }))
}

/// What the disk moved between two looks at its counters (Documentation/block/stat.rst), after the time each.
fn moved(before: &str, after: &str) -> Result<Value, EvaluateError> {
    const SECTOR_BYTES: f64 = 512.0;
    let numbers = |text: &str| -> Vec<f64> {
        text.split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect()
    };
    let (before, after) = (numbers(before), numbers(after));
    let since = |place: usize| Some(after.get(place)? - before.get(place)?);
    let of = || {
        Some((
            since(0)?,
            since(3)? * SECTOR_BYTES,
            since(7)? * SECTOR_BYTES,
        ))
    };
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
        let moved = moved(before, after).expect("counters");
        assert_eq!(moved["seconds"], 10.0);
        assert_eq!(moved["read_bytes"], 512_000.0);
        assert_eq!(moved["written_bytes"], 51_200.0);
        assert!(super::moved("", "1").is_err());
    }

    #[test]
    fn the_clients_figures_are_found_where_they_are() {
        let figures = json!({
            "operation": "fsync", "count": 300, "mean_us": 31_000.0, "p50_us": 30_000.0, "p99_us": 40_000.0,
            "max_us": 50_000.0,
        });
        let appended =
            json!({ "measured_s": 20.0, "operations": [{ "operation": "write" }, figures] });
        let latency = Scenario::Fsyncs.latency(&appended).expect("figures");
        assert_eq!((latency.requests, latency.p99_ms), (300.0, 40.0));
        let read = json!({ "measured_s": 20.0, "latency": figures });
        assert_eq!(Scenario::Reads.latency(&read), Some(latency));
        assert_eq!(Scenario::Reads.latency(&appended), None);
    }
}
