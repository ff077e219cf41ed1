//! Part `fleet-counters`: multiplexed counters of a model whose truth is exact. Also stacks of cycles, by the model and
//! by files in the format of `perf stat`.

pub(crate) mod page;
mod scaled;
mod stacks;

use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing, stop_if_interrupted};
use luc_harness::progress::Progress;
use luc_harness::report::Page;
use luc_testkit::pmu::{Noise, Order, Phases};
use serde_json::json;

use page::MeasuredCounters;
use scaled::ScaledScenario;
use stacks::{StackKind, Stacked};

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
    ScaledScenario {
        steps: 1000,
        is_claimed: false,
        ..row("phases of 0.1 s, recorded for 1 s", phases(100.0))
    },
    ScaledScenario {
        noise: Noise { variation: 0.2, busy_share: 0.01 },
        is_claimed: false,
        ..row("each event in 1 % of the time only", Phases::None)
    },
    ScaledScenario { is_claimed: false, ..row("a period of 28 ms, as the rotation has", IN_STEP) },
    ScaledScenario {
        order: Order::Shuffled,
        is_claimed: false,
        ..row("the same, turns in random order", IN_STEP)
    },
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
        is_claimed: true,
    }
}

/// Makes part `fleet-counters`.
///
/// # Errors
/// A file or a formula that cannot be read, and interruption.
pub fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let count = harness.options.repeats.unwrap_or(SEEDS).max(1) as u64;
    let seeds = || (0..count).map(|seed| harness.options.seed + seed);
    let wants = |name: &str| harness.options.wants(name);
    let rows: Vec<ScaledScenario> = ROWS.into_iter().filter(|row| wants(row.name)).collect();
    let kinds: Vec<StackKind> =
        StackKind::ALL.into_iter().filter(|kind| wants(kind.name())).collect();
    let mut progress = Progress::new(harness.part, (rows.len() + kinds.len()) * count as usize);
    let mut measured = Vec::new();
    for row in rows {
        let mut runs = Vec::new();
        for seed in seeds() {
            stop_if_interrupted()?;
            let run = scaled::run(row, seed);
            let mut kept = json!(run);
            kept["scenario"] = json!(row.name);
            kept["seed"] = json!(seed);
            harness.keep(kept);
            progress.step(row.name);
            runs.push(run);
        }
        measured.push(MeasuredCounters { row, runs });
    }
    let mut stacked: Vec<(StackKind, Vec<Stacked>)> = Vec::new();
    for kind in kinds {
        let mut all = Vec::new();
        for seed in seeds() {
            stop_if_interrupted()?;
            let stacks = stacks::run(kind, seed)
                .map_err(|reason| missing(&format!("the stack of {} ({reason})", kind.name())))?;
            for stack in stacks {
                let mut kept = json!(stack);
                kept["scenario"] = json!(kind.name());
                kept["seed"] = json!(seed);
                harness.keep(kept);
                all.push(stack);
            }
            progress.step(kind.name());
        }
        stacked.push((kind, all));
    }
    Ok(Page {
        title: "Hardware counters that take turns".to_owned(),
        about: about(count),
        tables: page::tables(&measured, &stacked),
        targets: page::targets(&measured, &stacked),
    })
}

fn about(seeds: u64) -> String {
    format!(
        "No real counter is in this: the machine has none. Loads and the PMU are a model, whose truth is exact, and files \
         are written from it in the form of `perf stat -I 100 -x,`. Time goes in steps of 1 ms. A load is of one of 4 \
         kinds at a time, for times that are exponential; an event's rate in a kind is log-normal (sigma 0.7) about \
         its own mean, and scatters by 20 % from step to step. {events} events share {counters} counters in groups of \
         {counters}, which take turns of 4 ms in the kernel's order, from a random group on: 7 groups, so each event is \
         counted for 14 % of the time. Without groups the kernel moves one event at a time: each is counted for 24 ms \
         of every 160. Recordings last 10 s and are read each 4 ms, but where it is said. The error is of an event's \
         total, relative to the truth; half-widths are of the 95 % interval, relative to the value. *Scaled at once* is \
         the value times the time for which it was wanted by that for which it was counted, over the whole recording, as \
         perf scales it; it has no interval. Stacks split the cycles of the model by sources, in user space, in the \
         kernel and in all; the phases last 0.3 s. With 30 counters and no groups each event is counted for 75 % of the time, and \
         no two events of a stack have the same turns. Where intervals cover exactly 95 %, a count of them is below 95 % about \
         half of the time. So a target of 95 % is missed only below what one in 20 such counts falls to by chance, were \
         all intervals independent. {seeds} seeds a scenario.",
        events = scaled::EVENTS,
        counters = scaled::COUNTERS,
    )
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
