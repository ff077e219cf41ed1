//! Stacks of the model's cycles by counters that took turns, compared with the truth.

use luc_counters::cycle_stack::{
    CounterFigure, CycleClosure, CycleStack, LostCyclesSource, ProcessorFormulas,
};
use luc_counters::perf_stat_file::{self, PerfOutputFormat};
use luc_counters::{CountMode, CounterRecording, HardwareEvent};
use luc_stats::seeded_random;
use luc_testkit::pmu::{Load, Phases, Pmu};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::scaled::{COUNTERS, EVENTS};

/// Number of steps that a stack is recorded for.
const STEPS: usize = 10_000;
const PHASES: Phases = Phases::Random { mean_steps: 300.0, kinds: KINDS };
const KINDS: usize = 4;
/// Number of counters with which each event has one for three quarters of the time.
const MANY_COUNTERS: usize = 30;
/// Cycles of a step: 3 GHz.
const CYCLES: u64 = 3_000_000;

/// A processor that distinguishes all nine sources, each by a counter of its own.
const NINE: ProcessorFormulas = ProcessorFormulas {
    name: "model",
    about: "a model",
    cycles: "cycles",
    instructions: "instructions",
    together: &[],
    definitions: &[],
    completion: "completion / cycles",
    parts: &[
        (LostCyclesSource::InstructionCache, "lost.instruction_cache / cycles"),
        (LostCyclesSource::BranchMisprediction, "lost.branch / cycles"),
        (LostCyclesSource::DataCache, "lost.data_cache / cycles"),
        (LostCyclesSource::Translation, "lost.translation / cycles"),
        (LostCyclesSource::LoadStore, "lost.load_store / cycles"),
        (LostCyclesSource::Rejects, "lost.rejects / cycles"),
        (LostCyclesSource::FloatingPoint, "lost.floating_point / cycles"),
        (LostCyclesSource::Integer, "lost.integer / cycles"),
        (LostCyclesSource::Other, "lost.other / cycles"),
    ],
    within: &[],
};
/// Its counters without cycles and instructions: completion, then the sources.
const NINE_EVENTS: [&str; 10] = [
    "completion",
    "lost.instruction_cache",
    "lost.branch",
    "lost.data_cache",
    "lost.translation",
    "lost.load_store",
    "lost.rejects",
    "lost.floating_point",
    "lost.integer",
    "lost.other",
];
/// Counters of Zen 4, whose slots are split into: retired, latency, rest of the front end, speculation, back end, other
/// thread.
const ZEN_4_EVENTS: [&str; 10] = [
    "ex_ret_ops",
    "cpu/de_no_dispatch_per_slot.no_ops_from_frontend,cmask=0x6/",
    "de_no_dispatch_per_slot.no_ops_from_frontend",
    "de_src_op_disp.all",
    "de_no_dispatch_per_slot.backend_stalls",
    "de_no_dispatch_per_slot.smt_contention",
    "ex_ret_brn_misp",
    "resyncs_or_nc_redirects",
    "ex_no_retire.load_not_complete",
    "ex_no_retire.not_complete",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StackKind {
    Nine,
    /// Nine sources, with counters for most of the time.
    Most,
    /// Events of Zen 4, through a file in perf's format.
    Zen4,
    /// Events of Zen 4, but nobody counts losses to the other thread of the core.
    Planted,
}

impl StackKind {
    pub(super) const ALL: [Self; 4] = [Self::Nine, Self::Most, Self::Zen4, Self::Planted];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nine => "stack of nine sources",
            Self::Most => "stack of nine sources, 30 counters",
            Self::Zen4 => "stack of Zen 4, from a file",
            Self::Planted => "stack of Zen 4, one source not counted",
        }
    }
}

/// A stack compared with the truth.
#[derive(Debug, Serialize)]
pub(super) struct Stacked {
    pub(super) mode: CountMode,
    /// Whether completion and the sources sum to all cycles within the interval.
    pub(super) closes: bool,
    /// Whether they certainly do not.
    pub(super) misses: bool,
    /// Share of the cycles that is missing, and its half-width.
    pub(super) missing: Option<f64>,
    pub(super) missing_half_width: Option<f64>,
    pub(super) missing_truth: Option<f64>,
    /// Errors of CPI, completion and each source, in cycles of an instruction, relative to CPI.
    pub(super) errors: Vec<f64>,
    /// Half-widths of those that have an interval, relative to CPI.
    pub(super) half_widths: Vec<f64>,
    /// Number of those whose truth is within the interval.
    pub(super) covered: usize,
}

pub(super) fn run(kind: StackKind, seed: u64) -> Result<Vec<Stacked>, String> {
    let mut random = seeded_random::stream(seed, 10);
    let (processor, load) = match kind {
        StackKind::Nine | StackKind::Most => (&NINE, nine(&mut random)),
        StackKind::Zen4 | StackKind::Planted => {
            let processor = ProcessorFormulas::named("amd-zen4").ok_or("no such processor")?;
            (processor, zen_4(&mut random, kind == StackKind::Planted))
        }
    };
    let is_file = matches!(kind, StackKind::Zen4 | StackKind::Planted);
    let steps_per_reading = if is_file { 100 } else { 4 };
    let pmu = if kind == StackKind::Most {
        Pmu::new(MANY_COUNTERS, &load, 1)
    } else {
        Pmu::new(COUNTERS, &load, COUNTERS)
    };
    let mut recording = pmu.record(&load, steps_per_reading, &mut random);
    if is_file {
        let text = perf_stat_file::write(&recording, PerfOutputFormat::Csv);
        recording = perf_stat_file::parse(&text).map_err(|error| error.to_string())?.recording;
    }
    // With a counter for each event nothing is scaled.
    let exact = Pmu::new(EVENTS, &load, EVENTS).record(&load, STEPS, &mut random);
    let stack = |recording: &CounterRecording, mode| {
        processor.stack(recording, mode).map_err(|error| error.to_string())
    };
    let modes = CountMode::ALL.into_iter();
    modes.map(|mode| Ok(compare(&stack(&recording, mode)?, &stack(&exact, mode)?))).collect()
}

fn compare(found: &CycleStack, truth: &CycleStack) -> Stacked {
    let value = |figure: &CounterFigure| figure.known().map(|estimate| estimate.value);
    let cpi = value(&truth.cpi).unwrap_or(f64::NAN);
    let mut stacked = Stacked {
        mode: found.mode,
        closes: found.closure == CycleClosure::Closes,
        misses: found.closure == CycleClosure::Misses,
        missing: value(&found.missing),
        missing_half_width: found.missing.known().and_then(|estimate| estimate.half_width),
        missing_truth: value(&truth.missing),
        errors: Vec::new(),
        half_widths: Vec::new(),
        covered: 0,
    };
    let figures = |stack: &CycleStack| {
        let parts = stack.parts.iter().map(|part| part.cpi.clone());
        let whole = [stack.cpi.clone(), stack.completion_cpi.clone()];
        whole.into_iter().chain(parts).collect::<Vec<_>>()
    };
    for (found, truth) in figures(found).iter().zip(figures(truth)) {
        let (Some(found), Some(truth)) = (found.known(), value(&truth)) else {
            stacked.errors.push(1.0);
            continue;
        };
        stacked.errors.push((found.value - truth).abs() / cpi);
        if let (Some(half_width), Some(covers)) = (found.half_width, found.covers(truth)) {
            stacked.half_widths.push(half_width / cpi);
            stacked.covered += usize::from(covers);
        }
    }
    stacked
}

/// Makes events in user space and in the kernel, filled up with others to 40.
fn events(names: &[&str]) -> Vec<HardwareEvent> {
    let of_mode = |mode| names.iter().map(move |name| HardwareEvent::new(name, mode));
    let both = of_mode(CountMode::User).chain(of_mode(CountMode::Kernel));
    let others = (0..EVENTS).map(|at| HardwareEvent::new(&format!("other{at}"), CountMode::Total));
    both.chain(others).take(EVENTS).collect()
}

/// Makes a load in two modes. `count(weights, cycles)` returns the counts of a mode's events in a step.
fn load(
    names: &[&str],
    weights: usize,
    random: &mut ChaCha8Rng,
    mut count: impl FnMut(&[f64], u64, &mut ChaCha8Rng) -> Vec<u64>,
) -> Load {
    // By kind, then by mode: the share of the kernel, and how the cycles are split.
    let kinds: Vec<(f64, [Vec<f64>; 2])> = (0..KINDS)
        .map(|_| {
            let kernel_share = random.random_range(0.1..0.4);
            let mut draw =
                || (0..weights).map(|_| seeded_random::gamma(random, 1.0, 2.0)).collect();
            (kernel_share, [draw(), draw()])
        })
        .collect();
    let mut load = Load::new(events(names));
    for kind in PHASES.by_step(STEPS, random) {
        let (kernel_share, splits) = &kinds[kind];
        let kernel =
            (CYCLES as f64 * kernel_share * seeded_random::gamma(random, 1.0, 25.0)) as u64;
        let kernel = kernel.min(CYCLES);
        let mut counts = count(&splits[0], CYCLES - kernel, random);
        counts.extend(count(&splits[1], kernel, random));
        load.add(|event| counts.get(event).copied().unwrap_or(1000));
    }
    load
}

fn nine(random: &mut ChaCha8Rng) -> Load {
    let names: Vec<&str> = ["cycles", "instructions"].into_iter().chain(NINE_EVENTS).collect();
    load(&names, NINE_EVENTS.len(), random, |weights, cycles, random| {
        let split = split(cycles, weights, random);
        // Four instructions complete in a cycle.
        let mut counts = vec![cycles, 4 * split[0]];
        counts.extend(split);
        counts
    })
}

fn zen_4(random: &mut ChaCha8Rng, is_planted: bool) -> Load {
    let names: Vec<&str> =
        ["ls_not_halted_cyc", "ex_ret_instr"].into_iter().chain(ZEN_4_EVENTS).collect();
    load(&names, 8, random, |weights, cycles, random| {
        let slots = split(6 * cycles, &weights[..6], random);
        let [retired, latency, bandwidth, speculation, backend, other] =
            [0, 1, 2, 3, 4, 5].map(|at| slots[at]);
        let restarts = split(speculation / 20, &weights[6..], random);
        let waiting = backend / 6;
        let loads = split(waiting, &weights[6..], random)[0];
        // Cycles without any operation are whole; what is left of them is bandwidth.
        let empty = latency / 6;
        let contention = if is_planted { 0 } else { other };
        vec![
            cycles,
            retired * 9 / 10,
            retired,
            empty,
            latency + bandwidth,
            retired + speculation,
            backend,
            contention,
            restarts[0],
            restarts[1],
            loads,
            waiting,
        ]
    })
}

/// Splits a count exactly by weights that scatter by 20 %.
fn split(count: u64, weights: &[f64], random: &mut ChaCha8Rng) -> Vec<u64> {
    let weights = weights.iter().map(|weight| weight * seeded_random::gamma(random, 1.0, 25.0));
    let weights: Vec<f64> = weights.collect();
    let sum: f64 = weights.iter().sum();
    let share = |weight: &f64| (count as f64 * weight / sum) as u64;
    let mut parts: Vec<u64> = weights.iter().map(share).collect();
    let given: u64 = parts.iter().sum();
    if let Some(first) = parts.first_mut() {
        *first += count.saturating_sub(given);
    }
    parts
}
