//! Part `fleet-counters`: multiplexed counters of a model whose truth is exact. Also stacks of cycles, by the model and
//! by files in the format of `perf stat`.

mod scaled;
mod stacks;

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing, stop_if_interrupted};
use luc_harness::progress::Progress;
use luc_testkit::pmu::{Noise, Order, Phases};
use serde_json::json;

use scaled::ScaledScenario;
use stacks::StackKind;

/// Number of seeds of each scenario.
const SEEDS: usize = 50;
/// Steps of 1 ms in 10 s of the model.
const SECONDS_10: usize = 10_000;

const PHASED: Noise = Noise { variation: 0.2, busy_share: 1.0 };
const ROWS: [ScaledScenario; 10] = [
    row("phases of 1 s", phases(1000.0)),
    row("phases of 0.1 s", phases(100.0)),
    row("phases of 20 ms, shorter than a rotation", phases(20.0)),
    row("no phases", Phases::None),
    ScaledScenario {
        steps_per_reading: 100,
        ..row("phases of 1 s, readings of 100 ms", phases(1000.0))
    },
    ScaledScenario {
        group: 1,
        ..row("phases of 1 s, no groups: a rotation of 160 ms", phases(1000.0))
    },
    ScaledScenario { steps: 1000, ..row("phases of 0.1 s, recorded for 1 s", phases(100.0)) },
    ScaledScenario {
        noise: Noise { variation: 0.2, busy_share: 0.01 },
        ..row("each event in 1 % of the time only", Phases::None)
    },
    row("a period of 28 ms, as the rotation has", IN_STEP),
    ScaledScenario { order: Order::Shuffled, ..row("the same, turns in random order", IN_STEP) },
];
const IN_STEP: Phases = Phases::Periodic { steps: 28 };

const fn phases(mean_steps: f64) -> Phases {
    Phases::Random { mean_steps, kinds: 4 }
}

const fn row(name: &'static str, phases: Phases) -> ScaledScenario {
    ScaledScenario {
        name,
        phases,
        noise: PHASED,
        group: scaled::COUNTERS,
        order: Order::Kernel,
        steps_per_reading: 4,
        steps: SECONDS_10,
    }
}

/// Makes part `fleet-counters`.
///
/// # Errors
/// A file or a formula that cannot be read, and interruption.
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let count = harness.options.repeats.unwrap_or(SEEDS).max(1) as u64;
    let seeds = || (0..count).map(|seed| harness.options.seed + seed);
    let wants = |name: &str| harness.options.wants(name);
    let rows: Vec<ScaledScenario> = ROWS.into_iter().filter(|row| wants(row.name)).collect();
    let kinds: Vec<StackKind> =
        StackKind::ALL.into_iter().filter(|kind| wants(kind.name())).collect();
    let mut progress = Progress::new(harness.part, (rows.len() + kinds.len()) * count as usize);
    for row in rows {
        for seed in seeds() {
            stop_if_interrupted()?;
            let run = scaled::run(row, seed);
            let mut kept = json!(run);
            kept["scenario"] = json!(row.name);
            kept["seed"] = json!(seed);
            harness.keep(kept);
            progress.step(row.name);
        }
    }
    for kind in kinds {
        for seed in seeds() {
            stop_if_interrupted()?;
            let stacks = stacks::run(kind, seed)
                .map_err(|reason| missing(&format!("the stack of {} ({reason})", kind.name())))?;
            for stack in stacks {
                let mut kept = json!(stack);
                kept["scenario"] = json!(kind.name());
                kept["seed"] = json!(seed);
                harness.keep(kept);
            }
            progress.step(kind.name());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_runs_have_figures_of_all_events() {
        for row in ROWS {
            let run = scaled::run(ScaledScenario { steps: 2000, ..row }, 1);
            assert_eq!(run.errors.len(), scaled::EVENTS, "{}", row.name);
            assert!(run.covered <= run.with_interval, "{}", row.name);
        }
    }

    #[test]
    fn each_kind_of_stack_is_made_in_each_mode() {
        for kind in StackKind::ALL {
            let stacks = stacks::run(kind, 1).expect("a stack");
            assert_eq!(stacks.len(), 3, "{}", kind.name());
            // One may miss by chance.
            let closes = stacks.iter().filter(|one| one.closes).count();
            let expected = if kind == StackKind::Planted { 0..1 } else { 2..4 };
            assert!(expected.contains(&closes), "{}: {closes}", kind.name());
        }
    }
}
