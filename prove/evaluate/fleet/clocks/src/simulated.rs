//! Part `fleet-clocks`: clocks of hosts related by simulated messages, compared with the truth and with one line a
//! pair.

mod clock;
mod mesh;
mod network;
mod ntp_slewed_clock;
pub(crate) mod pair;

use luc_fleet_clocks::ClockError;
use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing, stop_if_interrupted};
use luc_harness::progress::Progress;
use luc_stats::quantile;
use serde_json::{Value, json};

use mesh::NAME as MESH;
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

/// Returns one kind of figures of a run.
type FiguresOf = fn(&PairRun) -> &Vec<f64>;

/// Figures of each event, by their names in the raw data.
const FIGURES: [(&str, FiguresOf); 7] = [
    ("extra_ns", |run| &run.extra),
    ("error_ns", |run| &run.whole),
    ("half_width_ns", |run| &run.half_widths),
    ("line_extra_ns", |run| &run.line_extra),
    ("line_error_ns", |run| &run.line_whole),
    ("first_offset_error_ns", |run| &run.first_offset_whole),
    ("best_offset_error_ns", |run| &run.best_offset_whole),
];

const fn row(name: &'static str, seconds: f64, per_s: f64, kappa_ns_per_s2: f64) -> PairScenario {
    PairScenario { name, seconds, per_s, kappa_ns_per_s2, is_loaded: false, is_slewed: false }
}

/// Makes part `fleet-clocks`.
///
/// # Errors
/// A fit that fails, and interruption.
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let count = harness.options.repeats.unwrap_or(DEFAULT_SEEDS).max(1) as u64;
    let seeds = || (0..count).map(|seed| harness.options.seed + seed);
    let wants = |name: &str| harness.options.wants(name);
    let rows: Vec<PairScenario> = ROWS.into_iter().filter(|row| wants(row.name)).collect();
    let scenarios = rows.len() + usize::from(wants(MESH));
    let mut progress = Progress::new(harness.part, scenarios * count as usize);
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
        harness.keep(pool(row, &runs));
    }
    for seed in seeds().filter(|_| wants(MESH)) {
        stop_if_interrupted()?;
        let run = mesh::run(seed).map_err(|error| fit_error(MESH, &error))?;
        let mut kept = json!(run);
        kept["scenario"] = json!(MESH);
        kept["seed"] = json!(seed);
        harness.keep(kept);
        progress.step(&format!("{MESH}: rms {:.0} ns", run.mesh_rms_ns));
    }
    Ok(())
}

fn fit_error(scenario: &str, error: &ClockError) -> EvaluateError {
    missing(&format!("the fit of {scenario} ({error})"))
}

/// Returns a run as raw data, with quantiles in place of its events.
fn summarize(run: &PairRun, scenario: &str, seed: u64) -> Value {
    let mut kept = json!(run);
    for (name, of) in FIGURES {
        kept[name] = spread(of(run));
    }
    kept["scenario"] = json!(scenario);
    kept["seed"] = json!(seed);
    kept
}

/// Returns the figures over the events of all seeds of a scenario.
fn pool(row: PairScenario, runs: &[PairRun]) -> Value {
    let mut pooled = json!({ "half_round_trip_ns": row.ways().half_round_trip() });
    for (name, of) in FIGURES {
        let mut all: Vec<f64> = runs.iter().flat_map(of).copied().collect();
        all.sort_unstable_by(f64::total_cmp);
        pooled[name] = spread(&all);
    }
    json!({ "scenario": row.name, "all_seeds": pooled })
}

/// Returns the mean and quantiles of figures in ascending order.
fn spread(figures: &[f64]) -> Value {
    let mean = figures.iter().sum::<f64>() / figures.len() as f64;
    let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| quantile(figures, share));
    json!({ "mean": mean, "p50": p50, "p99": p99, "max": max })
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
