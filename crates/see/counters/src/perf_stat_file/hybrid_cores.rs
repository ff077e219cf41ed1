//! Processors with several kinds of cores, whose PMUs are separate (`cpu_core/cycles/`, `cpu_atom/cycles/`).
//!
//! A task is on one kind of core at a time. Its events of the other kinds have no counter meanwhile. perf prints that
//! as if they had been multiplexed, but there was nothing to count. So an event is wanted for the time that the task
//! was on cores of its kind. That is the longest time in which an event of the kind had a counter. It is longer if
//! all kinds together had counters for less than the whole time. Then they were multiplexed as well.

use std::collections::BTreeMap;

use crate::counter_recording::CounterReading;
use crate::hardware_event::HardwareEvent;

/// Kinds of cores by event, as indexes of PMUs; `None` for events of other PMUs.
#[derive(Debug)]
pub(super) struct CoreKinds {
    of_event: Vec<Option<usize>>,
    count: usize,
}

impl CoreKinds {
    pub(super) fn of(events: &[HardwareEvent]) -> Self {
        let mut pmus = BTreeMap::new();
        let pmu = |event: &HardwareEvent| Some(event.name.split_once('/')?.0.to_owned());
        for name in events.iter().filter_map(pmu).filter(|name| is_of_cores(name)) {
            let next = pmus.len();
            pmus.entry(name).or_insert(next);
        }
        // Others than Intel name the PMU of the only kind like one of several.
        if pmus.len() == 1 && !pmus.keys().any(|name| name.starts_with("cpu_")) {
            pmus.clear();
        }
        let of_event = events.iter().map(|event| pmus.get(&pmu(event)?).copied());
        Self { of_event: of_event.collect(), count: pmus.len() }
    }

    /// Sets the wanted time of each event in a reading to the time on its kind of core.
    pub(super) fn apply(&self, readings: &mut [CounterReading]) {
        let mut on_kind_ns = vec![0; self.count];
        let mut wanted_ns = 0;
        for (kind, reading) in self.of_event.iter().zip(readings.iter()) {
            if let Some(kind) = *kind {
                on_kind_ns[kind] = reading.running_ns.max(on_kind_ns[kind]);
                wanted_ns = reading.enabled_ns.max(wanted_ns);
            }
        }
        let sum_ns: u64 = on_kind_ns.iter().sum();
        if sum_ns == 0 {
            return;
        }
        // perf rounds shares to a hundredth of a percent. Of one kind alone it is not known what the rest was.
        let is_multiplexed = self.count > 1 && sum_ns < wanted_ns - wanted_ns / 1000;
        for (kind, reading) in self.of_event.iter().zip(readings) {
            let Some(on_ns) = kind.map(|kind| on_kind_ns[kind]) else {
                continue;
            };
            let on_ns = if is_multiplexed {
                (wanted_ns as f64 * on_ns as f64 / sum_ns as f64) as u64
            } else {
                on_ns
            };
            reading.enabled_ns = on_ns.max(reading.running_ns);
        }
    }
}

/// Returns whether a PMU counts events of cores. There may be several kinds of cores.
fn is_of_cores(pmu: &str) -> bool {
    pmu.starts_with("cpu_") || pmu.starts_with("armv") || pmu.starts_with("apple_")
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    /// Sums counts, scaled for multiplexing.
    fn sums(text: &str) -> Vec<(String, f64, f64)> {
        let replay = parse(text).expect("read");
        let recording = &replay.recording;
        let of = |place: usize| {
            let readings = recording.readings(place).iter();
            let whole = |reading: &crate::counter_recording::CounterReading| {
                reading.value / reading.running_share().filter(|share| *share > 0.0).unwrap_or(1.0)
            };
            let scaled = readings.clone().map(whole).sum();
            let enabled: u64 = readings.map(|reading| reading.enabled_ns).sum();
            (recording.events()[place].name.clone(), scaled, enabled as f64)
        };
        (0..recording.events().len()).map(of).collect()
    }

    #[test]
    fn time_on_the_other_kind_of_core_is_not_multiplexing() {
        let text = "0.1,200000000,,cpu_atom/cycles/,100000000,100.00,,\n\
                    0.1,<not counted>,,cpu_core/cycles/,0,0.00,,\n\
                    0.2,200000000,,cpu_atom/cycles/,25000000,25.00,,\n\
                    0.2,300000000,,cpu_core/cycles/,75000000,75.00,,\n\
                    0.2,100.0,msec,task-clock,100000000,100.00,,\n";
        let [atom, core, clock] = &sums(text)[..] else {
            panic!("three events");
        };
        assert_eq!((atom.1, atom.2), (250e6, 125e6), "{atom:?}");
        assert_eq!((core.1, core.2), (225e6, 75e6), "{core:?}");
        assert_eq!(clock.1, 100.0);
    }

    #[test]
    fn what_is_multiplexed_on_a_kind_is_scaled_as_ever() {
        // Half the time on each kind, and counters for half of that.
        let text = "0.1,200,,cpu_atom/cycles/,25000000,25.00,,\n0.1,400,,cpu_core/cycles/,25000000,25.00,,\n";
        let [atom, core] = &sums(text)[..] else {
            panic!("two events");
        };
        assert_eq!((atom.1, core.1), (100.0, 200.0));
        // Two events of one kind that take turns, beside one that always has a counter.
        let text = "0.1,80,,cpu_core/cycles/,50000000,50.00,,\n0.1,40,,cpu_core/branches/,25000000,25.00,,\n\
                    0.1,10,,cpu_atom/cycles/,50000000,50.00,,\n";
        let sums = sums(text);
        assert_eq!([sums[0].1, sums[1].1, sums[2].1], [40.0, 20.0, 5.0]);
    }

    #[test]
    fn a_processor_with_one_kind_is_as_it_was() {
        let text =
            "0.1,80,,armv8_pmuv3_0/cycles/,50000000,50.00,,\n0.1,40,,cycles,50000000,50.00,,\n";
        assert_eq!(sums(text).iter().map(|sum| sum.1).collect::<Vec<_>>(), [80.0, 40.0]);
    }
}
