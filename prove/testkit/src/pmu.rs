//! A simulated PMU whose truth is known: loads with phases, and events in groups that take turns on its counters.
//!
//! It multiplexes as the kernel does (`perf_rotate_context` in kernel/events/core.c). At each tick of
//! `perf_event_mux_interval_ms` (4 ms) the first group that has counters goes to the end of the list. Then groups get
//! counters from the beginning of the list until one does not fit.

mod load;

use luc_counters::{CounterReading, CounterRecording};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

pub use load::{Load, Noise, Phases};

/// Length of a simulated step, ns.
pub const STEP_NS: u64 = 1_000_000;

/// The order in which groups take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The kernel's: always the same.
    Kernel,
    /// A random order for each round, which no kernel has.
    Shuffled,
}

/// A PMU and the events that it counts.
#[derive(Debug, Clone)]
pub struct Pmu {
    pub counters: usize,
    /// Events that get their counters together or not at all, by their indexes in the load.
    pub groups: Vec<Vec<usize>>,
    /// Length of a turn.
    pub steps_per_turn: usize,
    pub order: Order,
}

impl Pmu {
    /// Puts the events of a load into groups of `size`. Turns last 4 steps, as the kernel's last 4 ms.
    #[must_use]
    pub fn new(counters: usize, load: &Load, size: usize) -> Self {
        let all: Vec<usize> = (0..load.events().len()).collect();
        Self {
            counters,
            groups: all.chunks(size.max(1)).map(<[usize]>::to_vec).collect(),
            steps_per_turn: 4,
            order: Order::Kernel,
        }
    }

    /// Counts a load, beginning with a random group. There is a reading every `steps_per_reading` steps.
    #[must_use]
    pub fn record(
        &self,
        load: &Load,
        steps_per_reading: usize,
        random: &mut ChaCha8Rng,
    ) -> CounterRecording {
        let mut recording = CounterRecording::new(load.events().to_vec());
        let mut sums = vec![CounterReading::default(); load.events().len()];
        let mut turns = Turns::new(self, random);
        for step in 0..load.steps() {
            if step > 0 && step % self.steps_per_turn.max(1) == 0 {
                turns.next(random);
            }
            for sum in &mut sums {
                sum.enabled_ns += STEP_NS;
            }
            for &event in turns.counted() {
                sums[event].running_ns += STEP_NS;
                sums[event].value += load.count(event, step) as f64;
            }
            if (step + 1) % steps_per_reading.max(1) == 0 || step + 1 == load.steps() {
                recording.add((step as u64 + 1) * STEP_NS, &sums);
                sums.fill(CounterReading::default());
            }
        }
        recording
    }
}

/// The groups that have counters now.
struct Turns<'p> {
    pmu: &'p Pmu,
    /// The groups in the order in which they get counters.
    list: Vec<usize>,
    /// Turns left in this round.
    left: usize,
}

impl<'p> Turns<'p> {
    fn new(pmu: &'p Pmu, random: &mut ChaCha8Rng) -> Self {
        let mut list: Vec<usize> = (0..pmu.groups.len()).collect();
        if !list.is_empty() {
            let first = random.random_range(0..list.len());
            list.rotate_left(first);
        }
        let left = list.len();
        Self { pmu, list, left }
    }

    fn next(&mut self, random: &mut ChaCha8Rng) {
        self.left = self.left.saturating_sub(1);
        match self.pmu.order {
            Order::Shuffled if self.left == 0 => {
                for at in (1..self.list.len()).rev() {
                    self.list.swap(at, random.random_range(0..=at));
                }
                self.left = self.list.len();
            }
            _ if self.list.is_empty() => {}
            _ => self.list.rotate_left(1),
        }
    }

    /// Returns the events that have counters.
    fn counted(&self) -> impl Iterator<Item = &usize> {
        let mut free = self.pmu.counters;
        let groups = self.list.iter().map(|&group| &self.pmu.groups[group]);
        let fitting = groups.take_while(move |group| {
            let fits = group.len() <= free;
            free = free.saturating_sub(group.len());
            fits
        });
        fitting.flatten()
    }
}

#[cfg(test)]
mod tests {
    use luc_counters::{CountMode, HardwareEvent};
    use luc_stats::seeded_random;

    use super::*;

    fn load(events: usize, steps: usize) -> Load {
        let events = (0..events).map(|at| HardwareEvent::new(&format!("e{at}"), CountMode::Total));
        let mut load = Load::new(events.collect());
        for step in 0..steps {
            load.add(|event| (event + step) as u64);
        }
        load
    }

    #[test]
    fn what_fits_is_counted_all_the_time_and_exactly() {
        let load = load(4, 100);
        let recording = Pmu::new(4, &load, 2).record(&load, 7, &mut seeded_random::stream(1, 0));
        for event in 0..4 {
            let readings = recording.readings(event);
            assert!(readings.iter().all(|one| one.running_share() == Some(1.0)));
            let sum: f64 = readings.iter().map(|one| one.value).sum();
            assert_eq!(sum, load.truth(event) as f64);
        }
        assert_eq!(recording.ends_ns().last(), Some(&100_000_000));
    }

    #[test]
    fn groups_of_the_whole_pmu_take_equal_turns() {
        let load = load(12, 4 * 6 * 10);
        for order in [Order::Kernel, Order::Shuffled] {
            let pmu = Pmu { order, ..Pmu::new(2, &load, 2) };
            let recording = pmu.record(&load, 24, &mut seeded_random::stream(1, 0));
            for event in 0..12 {
                let mut readings = recording.readings(event).iter();
                assert!(readings.all(|one| one.running_ns == 4 * STEP_NS), "{order:?}");
            }
        }
    }

    #[test]
    fn single_events_slide_through_the_counters() {
        let load = load(10, 4 * 10);
        let recording = Pmu::new(3, &load, 1).record(&load, 4, &mut seeded_random::stream(1, 0));
        for event in 0..10 {
            let runs: Vec<bool> =
                recording.readings(event).iter().map(|one| one.running_ns > 0).collect();
            assert_eq!(runs.iter().filter(|&&runs| runs).count(), 3);
            let changes = runs.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(changes <= 2, "{runs:?}");
        }
    }

    #[test]
    fn a_group_that_does_not_fit_keeps_those_behind_it_out() {
        let pmu = Pmu {
            counters: 2,
            groups: vec![vec![0], vec![1, 2]],
            steps_per_turn: 4,
            order: Order::Kernel,
        };
        let turns = Turns { pmu: &pmu, list: vec![0, 1], left: 2 };
        assert_eq!(turns.counted().collect::<Vec<_>>(), [&0]);
    }
}
