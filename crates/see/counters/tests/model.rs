//! Estimates against the exact truth of a simulated PMU, on loads and PMUs of all kinds.

use luc_counters::perf_stat_file::{self, PerfOutputFormat};
use luc_counters::{
    CountMode, CounterRecording, Formula, FormulaDefinitions, HardwareEvent, total,
};
use luc_stats::seeded_random;
use luc_testkit::pmu::{Load, Noise, Order, Phases, Pmu};
use proptest::prelude::*;

/// Length of a turn in steps of 1 ms.
const STEPS_PER_TURN: usize = 4;

fn events(count: usize) -> Vec<HardwareEvent> {
    let names = (0..count).map(|at| HardwareEvent::new(&format!("event{at}"), CountMode::Total));
    names.collect()
}

/// A load whose events have other rates in each kind of phase.
fn load(seed: u64, count: usize, steps: usize, phases: Phases, noise: Noise) -> Load {
    let mut random = seeded_random::stream(seed, 0);
    let rates = |kind: usize, event: usize| 1000.0 * ((kind * 7 + event * 3) % 5 + 1) as f64;
    Load::phased(events(count), steps, phases, noise, &mut random, rates)
}

fn record(
    load: &Load,
    counters: usize,
    group: usize,
    steps_per_reading: usize,
    seed: u64,
) -> CounterRecording {
    let pmu = Pmu::new(counters, load, group);
    pmu.record(load, steps_per_reading, &mut seeded_random::stream(seed, 1))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any load, readings and groups: the counts are those of the times with a counter.
    #[test]
    fn readings_are_exact(
        seed in any::<u64>(),
        count in 1..30_usize,
        counters in 1..8_usize,
        group in 1..4_usize,
        steps_per_reading in 1..50_usize,
    ) {
        let group = group.min(counters);
        let noise = Noise { variation: 0.3, busy_share: 0.7 };
        let phases = Phases::Random { mean_steps: 30.0, kinds: 3 };
        let load = load(seed, count, 400, phases, noise);
        let recording = record(&load, counters, group, steps_per_reading, seed);
        let mut counted_ns = 0;
        for event in 0..count {
            let mut sum = 0.0;
            for reading in recording.readings(event) {
                prop_assert!(reading.running_ns <= reading.enabled_ns);
                sum += reading.value;
                counted_ns += reading.running_ns;
            }
            prop_assert!(sum <= load.truth(event) as f64);
        }
        prop_assert!(counted_ns <= 400_000_000 * counters as u64);
        if count <= counters {
            for event in 0..count {
                let found = total(&recording, event).expect("an estimate");
                prop_assert_eq!(found.value, load.truth(event) as f64);
                prop_assert_eq!(found.half_width, Some(0.0));
            }
        }
    }

    /// A load that never changes is scaled exactly, however it was multiplexed and read.
    #[test]
    fn a_steady_load_has_no_error(
        seed in any::<u64>(),
        count in 2..30_usize,
        group in 1..4_usize,
        steps_per_reading in 1..40_usize,
    ) {
        let noise = Noise { variation: 0.0, busy_share: 1.0 };
        let load = load(seed, count, 4000, Phases::None, noise);
        let recording = record(&load, 4, group, steps_per_reading, seed);
        for event in 0..count {
            let found = total(&recording, event).expect("an estimate");
            let truth = load.truth(event) as f64;
            prop_assert!((found.value / truth - 1.0).abs() < 1e-9, "{found:?} {truth}");
            prop_assert_eq!(found.covers(truth), Some(true));
        }
    }

    /// Text in perf's form gives the same, except for perf's rounding.
    #[test]
    fn what_is_written_is_read(seed in any::<u64>(), count in 1..12_usize, steps_per_reading in 20..60_usize) {
        let noise = Noise { variation: 0.3, busy_share: 1.0 };
        let load = load(seed, count, 1000, Phases::None, noise);
        let recording = record(&load, 3, 1, steps_per_reading, seed);
        for style in [PerfOutputFormat::Csv, PerfOutputFormat::Json] {
            let replay = perf_stat_file::parse(&perf_stat_file::write(&recording, style)).expect("read");
            prop_assert_eq!(replay.recording.events(), recording.events());
            prop_assert_eq!(replay.recording.ends_ns(), recording.ends_ns());
            for event in 0..count {
                let [ours, theirs] = [&recording, &replay.recording].map(|one| total(one, event).expect("an estimate"));
                prop_assert!((ours.value / theirs.value - 1.0).abs() < 2e-3, "{ours:?} {theirs:?}");
                prop_assert!((ours.running_share - theirs.running_share).abs() < 1e-3);
            }
        }
    }
}

/// Counts the events whose truth is within the interval, and all events with an interval.
fn covered(phases: Phases, noise: Noise, order: Order, seeds: u64) -> (usize, usize) {
    let (mut inside, mut all) = (0, 0);
    for seed in 0..seeds {
        let load = load(seed, 40, 10_000, phases, noise);
        let pmu = Pmu { order, ..Pmu::new(6, &load, 6) };
        let recording = pmu.record(&load, STEPS_PER_TURN, &mut seeded_random::stream(seed, 1));
        for event in 0..40 {
            let found = total(&recording, event).expect("an estimate");
            if let Some(covers) = found.covers(load.truth(event) as f64) {
                inside += usize::from(covers);
                all += 1;
            }
        }
    }
    (inside, all)
}

#[test]
fn intervals_cover_on_phases_and_on_noise() {
    let noise = Noise { variation: 0.3, busy_share: 1.0 };
    let phases = Phases::Random { mean_steps: 300.0, kinds: 4 };
    for phases in [Phases::None, phases] {
        let (inside, all) = covered(phases, noise, Order::Kernel, 10);
        assert_eq!(all, 400);
        // 95 % of 400, less three standard deviations of the count.
        assert!(inside >= 367, "{phases:?}: {inside} of {all}");
    }
}

#[test]
fn a_load_in_step_with_the_rotation_is_missed_unless_turns_are_shuffled() {
    let noise = Noise { variation: 0.05, busy_share: 1.0 };
    // Seven groups of turns of 4 steps.
    let phases = Phases::Periodic { steps: 28 };
    let (in_step, all) = covered(phases, noise, Order::Kernel, 3);
    assert!(in_step * 2 < all, "{in_step} of {all}");
    let (shuffled, all) = covered(phases, noise, Order::Shuffled, 3);
    assert!(shuffled * 10 >= all * 9, "{shuffled} of {all}");
}

/// Eight events that happen alike slide through six counters: each is counted for three quarters of the time.
#[test]
fn intervals_cover_what_cancels_out_when_events_are_counted_for_most_of_the_time() {
    let formula = Formula::parse("event0 - event7").expect("a formula");
    let mut inside = 0;
    for seed in 0..200 {
        let mut random = seeded_random::stream(seed, 0);
        let mut load = Load::new(events(8));
        for _ in 0..4000 {
            let alike = seeded_random::gamma(&mut random, 1000.0, 10.0).round() as u64;
            load.add(|_| alike);
        }
        let recording = record(&load, 6, 1, STEPS_PER_TURN, seed);
        let found = formula.evaluate(&FormulaDefinitions::default(), &recording, CountMode::Total);
        let found = found.expect("an estimate");
        assert!((found.running_share - 0.75).abs() < 0.01, "{found:?}");
        inside += u32::from(found.covers(0.0) == Some(true));
    }
    // 95 % of 200, less three standard deviations of the count.
    assert!(inside >= 181, "{inside} of 200");
}
