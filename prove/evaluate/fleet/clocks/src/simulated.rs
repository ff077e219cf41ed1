//! Part `fleet-clocks`: clocks of hosts related by simulated messages, compared with the truth and with one line a
//! pair.

mod clock;
mod mesh;
mod network;
mod page;
pub(crate) mod pair;
mod slewed;

use luc_fleet_clocks::ClockError;
use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing, stop_if_interrupted};
use luc_harness::progress::Progress;
use luc_harness::report::Page;
use luc_stats::quantile;
use serde_json::{Value, json};

use mesh::NAME as MESH;
use page::MeasuredPairs;
use pair::{PairRun, PairScenario};

/// Number of seeds of each scenario.
const DEFAULT_SEEDS: usize = 20;

const ROWS: [PairScenario; 6] = [
    row("100 messages/s", 300.0, 100.0, 500.0),
    row("1,000 messages/s", 300.0, 1000.0, 500.0),
    row("1,000 messages/s, kappa 5", 300.0, 1000.0, 5000.0),
    PairScenario {
        is_loaded: true,
        ..row("1,000 messages/s, loaded network", 300.0, 1000.0, 500.0)
    },
    row("10,000 messages/s", 60.0, 10_000.0, 500.0),
    PairScenario {
        is_slewed: true,
        ..row("1,000 messages/s, NTP changes rates", 300.0, 1000.0, 500.0)
    },
];

const fn row(name: &'static str, seconds: f64, per_s: f64, kappa_ns_per_s2: f64) -> PairScenario {
    PairScenario { name, seconds, per_s, kappa_ns_per_s2, is_loaded: false, is_slewed: false }
}

/// Makes part `fleet-clocks`.
///
/// # Errors
/// A fit that fails, and interruption.
pub fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let count = harness.options.repeats.unwrap_or(DEFAULT_SEEDS).max(1) as u64;
    let seeds = || (0..count).map(|seed| harness.options.seed + seed);
    let wants = |name: &str| harness.options.wants(name);
    let rows: Vec<PairScenario> = ROWS.into_iter().filter(|row| wants(row.name)).collect();
    let scenarios = rows.len() + usize::from(wants(MESH));
    let mut progress = Progress::new(harness.part, scenarios * count as usize);
    let mut measured = Vec::new();
    for row in rows {
        let mut runs = Vec::new();
        for seed in seeds() {
            stop_if_interrupted()?;
            let run = pair::run(row, seed).map_err(|error| fit_error(row.name, &error))?;
            let kept = summarize(&run, row.name, seed);
            progress.step(&format!("{}: extra error p99 {} ns", row.name, kept["extra_ns"]["p99"]));
            harness.keep(kept);
            runs.push(run);
        }
        measured.push(MeasuredPairs { row, runs });
    }
    let mut meshes = Vec::new();
    for seed in seeds().filter(|_| wants(MESH)) {
        stop_if_interrupted()?;
        let run = mesh::run(seed).map_err(|error| fit_error(MESH, &error))?;
        let mut kept = json!(run);
        kept["scenario"] = json!(MESH);
        kept["seed"] = json!(seed);
        harness.keep(kept);
        progress.step(&format!("{MESH}: rms {:.0} ns", run.mesh_rms_ns));
        meshes.push(run);
    }
    Ok(Page {
        title: "Clocks of hosts, related by their messages".to_owned(),
        about: about(count),
        tables: page::tables(&measured, &meshes),
        targets: page::targets(&measured, &meshes),
    })
}

fn about(seeds: u64) -> String {
    format!(
        "Everything here is simulated, clocks, delays and messages: no network and no real clock is in it. Two clocks \
         drift apart by 30 µs/s. Temperature bends the rate of each by 3 ppm either way in periods of 120 to 240 s, load \
         steps of up to 1 ppm warm it within 20 s, and it walks at random; a clock's curvature stays below {} µs/s². \
         Messages take 12 µs there and 14 µs back at least, with exponential queues of 5 and 6 µs, and 10 and 20 % of \
         them a Pareto part (shape 1.5, from 10 and 15 µs); on the loaded network queues are 8 and 10 µs, shares 20 and \
         40 %, the Pareto part from 40 and 60 µs. Runs last 300 s, that of 10,000 messages/s 60 s; rates are each way. \
         Kappa, the bound of the curvature that the fit is told, is 0.5 µs/s² but where it is given; windows are 2 s on \
         either side, knots 0.25 s apart. The fit gets what a recorder would keep, the best message of each 4 ms. Where \
         NTP changes rates, times are of CLOCK_MONOTONIC, slewed by up to 50 ppm anew every 4 to 32 s, and mapped to \
         CLOCK_MONOTONIC_RAW by 10 samples a second whose readings are up to 40 ns off; that is simulated too; \
         [fleet-guests](fleet-guests.md) has real ones. One line per pair is the bisector of the convex hulls, or where no line separates them the one with \
         the least violation, and gets all messages. Perfetto (58) relates two machines by one offset for all of the time, \
         which somebody must give it: that of the fastest messages of the first second, or the best there is, in the middle \
         of the truth. It was not run: what it does with an offset is to add it. *Extra* is the error less half the asymmetry of the least delays, \
         here 1 µs, which no method can see. {seeds} seeds a scenario; figures are over the events of all of them, which \
         are at random times of the whole run.",
        clock::MAX_CURVATURE / 1e3
    )
}

fn fit_error(scenario: &str, error: &ClockError) -> EvaluateError {
    missing(&format!("the fit of {scenario} ({error})"))
}

/// Returns a run as raw data, with quantiles in place of its events.
fn summarize(run: &PairRun, scenario: &str, seed: u64) -> Value {
    let mut kept = json!(run);
    let figures = [
        ("extra_ns", &run.extra),
        ("error_ns", &run.whole),
        ("half_width_ns", &run.half_widths),
        ("line_extra_ns", &run.line_extra),
        ("line_error_ns", &run.line_whole),
        ("first_offset_error_ns", &run.first_offset_whole),
        ("best_offset_error_ns", &run.best_offset_whole),
    ];
    for (name, values) in figures {
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| quantile(values, share));
        kept[name] = json!({ "p50": p50, "p99": p99, "max": max });
    }
    kept["scenario"] = json!(scenario);
    kept["seed"] = json!(seed);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_keeps_its_promises() {
        for row in ROWS {
            let row = PairScenario { seconds: 4.0, per_s: 200.0, ..row };
            let run = pair::run(row, 3).expect("a fit");
            assert_eq!((run.inside, run.jumps), (run.events, 0), "{}", row.name);
            assert!(run.inverted_share == 0.0, "{}", row.name);
        }
    }
}
