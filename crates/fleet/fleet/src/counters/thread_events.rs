//! Sums the events that threads counted on processors.

use std::collections::HashMap;

use luc_events::event_kinds::CounterMode;
use luc_events::tables::HardwareCount;
use luc_units::plain;
use serde::Serialize;

/// An event may lack rows for at most this fraction (1/16) of an interval.
const UNKNOWN_DIVISOR: u64 = 16;

/// Count of an event in a part of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventCount {
    /// Name of the event, as in `perf list`.
    pub event: String,
    /// Mode of the processor: `total`, `user` or `kernel`.
    pub mode: CounterMode,
    /// Count, extrapolated as if the event always had a counter.
    pub value: u64,
}

/// Events that the threads of one host counted.
#[derive(Debug, Default)]
pub(crate) struct ThreadEvents {
    events: Vec<(String, CounterMode)>,
    threads: HashMap<u32, Vec<CountSpan>>,
}

/// Count of one event for one thread in a row.
#[derive(Debug, Clone, Copy)]
struct CountSpan {
    since_ns: u64,
    at_ns: u64,
    event: usize,
    /// Count, extrapolated as if the event always had a counter.
    value: f64,
    /// Time that the thread was on a processor.
    on_ns: u64,
}

impl ThreadEvents {
    /// Reads rows that are in order of time.
    #[must_use]
    pub(crate) fn new(rows: &[HardwareCount]) -> Self {
        let mut counted = Self::default();
        let mut numbers: HashMap<(&str, CounterMode), usize> = HashMap::new();
        // An event without a counter may have any count.
        for row in rows.iter().filter(|row| row.running_ns > 0) {
            let events = &mut counted.events;
            let event = *numbers.entry((row.event.as_str(), row.mode)).or_insert_with(|| {
                events.push((plain(&row.event), row.mode));
                events.len() - 1
            });
            counted.threads.entry(row.thread.0).or_default().push(CountSpan {
                since_ns: row.since_ns,
                at_ns: row.at_ns,
                event,
                value: row.value as f64 * row.enabled_ns as f64 / row.running_ns as f64,
                on_ns: row.enabled_ns,
            });
        }
        counted
    }

    /// Counts of a thread between two times at which it was on a processor, apart from brief waits. A row is taken to
    /// count at a constant rate while its thread is on a processor. Events whose rows cover less than nearly all of the
    /// time are left out. A small gap is usual, as a thread comes to its processor a little before its counters are
    /// read.
    #[must_use]
    pub(crate) fn between(&self, thread: u32, begin_ns: u64, end_ns: u64) -> Vec<EventCount> {
        let Some(spans) = self.threads.get(&thread) else {
            return Vec::new();
        };
        // Covered time and count by event.
        let mut sums: HashMap<usize, (u64, f64)> = HashMap::new();
        let first = spans.partition_point(|span| span.at_ns <= begin_ns);
        for span in spans[first..].iter().take_while(|span| span.since_ns < end_ns) {
            let length_ns = span.at_ns.min(end_ns).saturating_sub(span.since_ns.max(begin_ns));
            let sum = sums.entry(span.event).or_default();
            sum.0 = sum.0.saturating_add(length_ns);
            let share = length_ns as f64 / span.on_ns.max(1) as f64;
            sum.1 += span.value * share.min(1.0);
        }
        let wanted_ns = end_ns.saturating_sub(begin_ns);
        let mut counts: Vec<(usize, EventCount)> = sums
            .into_iter()
            .filter(|(_, (known_ns, _))| {
                *known_ns > 0 && *known_ns >= wanted_ns - wanted_ns / UNKNOWN_DIVISOR
            })
            .map(|(number, (known_ns, value))| {
                let (event, mode) = self.events[number].clone();
                let of_all = wanted_ns as f64 / known_ns as f64;
                let value = (value * of_all).round() as u64;
                (number, EventCount { event, mode, value })
            })
            .collect();
        counts.sort_unstable_by_key(|(number, _)| *number);
        counts.into_iter().map(|(_, count)| count).collect()
    }
}

/// Sums the counts of several parts by event.
#[must_use]
pub(crate) fn sum<'c>(parts: impl IntoIterator<Item = &'c EventCount>) -> Vec<EventCount> {
    let mut sums: Vec<EventCount> = Vec::new();
    for part in parts {
        let known = sums.iter_mut().find(|sum| (&sum.event, sum.mode) == (&part.event, part.mode));
        match known {
            Some(sum) => sum.value = sum.value.saturating_add(part.value),
            None => sums.push(part.clone()),
        }
    }
    sums
}

/// Cycles per instruction, in user space and the kernel together; `None` if they were counted in different modes.
#[must_use]
pub(crate) fn cycles_of_an_instruction(counts: &[EventCount]) -> Option<f64> {
    let of = |name: &str, mode| {
        let found = counts.iter().find(|count| count.mode == mode && count.event == name);
        found.map(|count| count.value as f64)
    };
    let (mut cycles, mut instructions) = (0.0, 0.0);
    for mode in [CounterMode::User, CounterMode::Kernel, CounterMode::Total] {
        match (of("cycles", mode), of("instructions", mode)) {
            (Some(some), Some(of_them)) => {
                cycles += some;
                instructions += of_them;
            }
            (None, None) => {}
            _ => return None,
        }
    }
    (instructions > 0.0).then_some(cycles / instructions)
}

#[cfg(test)]
mod tests {
    use luc_events::Pid;

    use super::*;

    fn row(since_ns: u64, at_ns: u64, event: &str, value: u64, running_ns: u64) -> HardwareCount {
        HardwareCount {
            since_ns,
            at_ns,
            thread: Pid(7),
            event: event.to_owned(),
            mode: CounterMode::User,
            value,
            enabled_ns: at_ns - since_ns,
            running_ns,
            ..HardwareCount::default()
        }
    }

    fn counts(found: &[EventCount]) -> Vec<(&str, u64)> {
        let pair = |count| {
            let EventCount { event, value, .. }: &EventCount = count;
            (event.as_str(), *value)
        };
        found.iter().map(pair).collect()
    }

    #[test]
    fn a_part_has_its_share_of_each_row() {
        let counted = ThreadEvents::new(&[
            // With a counter for half of the time.
            row(100, 200, "cycles", 300, 50),
            row(100, 200, "instructions", 100, 50),
            row(200, 300, "cycles", 100, 100),
            row(200, 300, "instructions", 100, 100),
            // It had no counter.
            row(300, 400, "cycles", 0, 0),
            row(300, 400, "instructions", 50, 100),
        ]);
        let found = counted.between(7, 190, 210);
        assert_eq!(counts(&found), [("cycles", 70), ("instructions", 30)]);
        let cpi = cycles_of_an_instruction(&found).expect("both");
        assert!((cpi - 70.0 / 30.0).abs() < 1e-9);
        // The first twentieth is in no row.
        let found = counted.between(7, 95, 195);
        assert_eq!(counts(&found), [("cycles", 600), ("instructions", 200)]);
        // Half of the time is not known of the cycles.
        let found = counted.between(7, 290, 310);
        assert_eq!(counts(&found), [("instructions", 15)]);
        assert_eq!(cycles_of_an_instruction(&found), None);
        assert!(counted.between(7, 50, 150).is_empty());
        assert!(counted.between(8, 190, 210).is_empty());
        assert!(counted.between(7, 210, 190).is_empty());
    }

    #[test]
    fn parts_sum_by_event_and_mode() {
        let count = |mode, value| EventCount { event: "cycles".to_owned(), mode, value };
        let parts = [
            count(CounterMode::User, 1),
            count(CounterMode::Kernel, 2),
            count(CounterMode::User, u64::MAX),
        ];
        let sums = sum(&parts);
        assert_eq!(sums, [count(CounterMode::User, u64::MAX), count(CounterMode::Kernel, 2)]);
    }
}
