//! Totals of events that took turns, compared with the truth.

use luc_counters::{CountMode, CounterReading, CounterRecording, HardwareEvent, total};
use luc_stats::seeded_random;
use luc_testkit::pmu::{Load, Noise, Order, Phases, Pmu};
use rand::RngExt as _;
use serde::Serialize;

/// Number of events that are counted.
pub(super) const EVENTS: usize = 40;
/// Number of counters that they share.
pub(super) const COUNTERS: usize = 6;
const KINDS: usize = 4;
/// Spread of an event's rates in the kinds: sigma of a log-normal distribution.
const RATE_SIGMA: f64 = 0.7;

/// Number of steps in 1 to which relative figures are rounded, so that the raw data stay small.
const STEPS_OF_1: f64 = 1e5;

#[derive(Debug, Clone, Copy)]
pub(super) struct ScaledScenario {
    pub(super) name: &'static str,
    pub(super) phases: Phases,
    pub(super) noise: Noise,
    /// Number of events in a group.
    pub(super) group: usize,
    pub(super) order: Order,
    pub(super) steps_per_reading: usize,
    pub(super) steps: usize,
}

/// Figures of the events of one seed.
#[derive(Debug, Serialize)]
pub(super) struct ScaledRun {
    /// Relative errors, in ascending order.
    pub(super) errors: Vec<f64>,
    /// Relative errors of values that are scaled at once.
    pub(super) errors_at_once: Vec<f64>,
    /// Relative half-widths of intervals, in ascending order.
    pub(super) half_widths: Vec<f64>,
    /// Number of events with an interval.
    pub(super) with_interval: usize,
    /// Number of events whose truth is within the interval.
    pub(super) covered: usize,
}

pub(super) fn run(row: ScaledScenario, seed: u64) -> ScaledRun {
    let load = load(row, seed);
    let pmu = Pmu { order: row.order, ..Pmu::new(COUNTERS, &load, row.group) };
    let recording = pmu.record(&load, row.steps_per_reading, &mut seeded_random::stream(seed, 2));
    let mut run = ScaledRun {
        errors: Vec::new(),
        errors_at_once: Vec::new(),
        half_widths: Vec::new(),
        with_interval: 0,
        covered: 0,
    };
    for event in 0..EVENTS {
        let truth = load.truth(event) as f64;
        // Withheld is as wrong as it can be.
        let (mut error, mut at_once) = (1.0, 1.0);
        if let Ok(found) = total(&recording, event) {
            error = (found.value / truth - 1.0).abs();
            at_once = (scaled_at_once(&recording, event) / truth - 1.0).abs();
            if let (Some(half_width), Some(covers)) = (found.half_width, found.covers(truth)) {
                run.with_interval += 1;
                run.covered += usize::from(covers);
                run.half_widths.push(half_width / found.value);
            }
        }
        run.errors.push(error);
        run.errors_at_once.push(at_once);
    }
    for figures in [&mut run.errors, &mut run.errors_at_once, &mut run.half_widths] {
        for figure in figures.iter_mut() {
            *figure = (*figure * STEPS_OF_1).round() / STEPS_OF_1;
        }
        figures.sort_unstable_by(f64::total_cmp);
    }
    run
}

fn load(row: ScaledScenario, seed: u64) -> Load {
    let mut random = seeded_random::stream(seed, 0);
    let means: Vec<f64> = (0..EVENTS).map(|_| 10_f64.powf(random.random_range(3.0..6.5))).collect();
    let mut kinds = vec![vec![0.0; EVENTS]; KINDS];
    for rates in &mut kinds {
        for (rate, mean) in rates.iter_mut().zip(&means) {
            *rate = mean * (RATE_SIGMA * seeded_random::normal(&mut random)).exp();
        }
    }
    let events = (0..EVENTS).map(|at| HardwareEvent::new(&format!("event{at}"), CountMode::Total));
    let mut random = seeded_random::stream(seed, 1);
    let rates = |kind: usize, event: usize| kinds[kind][event];
    Load::phased(events.collect(), row.steps, row.phases, row.noise, &mut random, rates)
}

/// Scales a total over the whole recording, as perf does.
fn scaled_at_once(recording: &CounterRecording, event: usize) -> f64 {
    let readings = recording.readings(event).iter();
    let sum = readings.fold(CounterReading::default(), |sum, one| sum.and(*one));
    sum.value * sum.enabled_ns as f64 / sum.running_ns as f64
}
