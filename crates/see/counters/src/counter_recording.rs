//! Counts of events, reading by reading.

use std::ops::Range;

use serde::Serialize;

use super::hardware_event::{CountMode, HardwareEvent};

/// Count of an event between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct CounterReading {
    /// Count while the event had a counter, not scaled. Events of time have the unit of the source, such as perf's
    /// milliseconds of task-clock.
    pub value: f64,
    /// Time in which the event was wanted, ns.
    pub enabled_ns: u64,
    /// Part of that time in which it had a counter, ns.
    pub running_ns: u64,
}

impl CounterReading {
    /// Sums two readings.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            enabled_ns: self.enabled_ns.saturating_add(other.enabled_ns),
            running_ns: self.running_ns.saturating_add(other.running_ns),
        }
    }

    /// Returns the share of the wanted time in which the event had a counter; `None` if it was not wanted.
    #[must_use]
    pub fn running_share(&self) -> Option<f64> {
        (self.enabled_ns > 0).then(|| self.running_ns as f64 / self.enabled_ns as f64)
    }
}

/// Readings of several events at the same times.
#[derive(Debug, Clone, Default)]
pub struct CounterRecording {
    events: Vec<HardwareEvent>,
    /// End of each reading, ns after the recording began.
    ends_ns: Vec<u64>,
    /// Readings by event, one for each end.
    readings: Vec<Vec<CounterReading>>,
}

impl CounterRecording {
    /// Makes a recording of these events without readings.
    #[must_use]
    pub fn new(events: Vec<HardwareEvent>) -> Self {
        let readings = vec![Vec::new(); events.len()];
        Self { events, ends_ns: Vec::new(), readings }
    }

    /// Adds a reading of all events, in their order. Events beyond those given have counted nothing; readings beyond
    /// the events are not kept.
    pub fn add(&mut self, end_ns: u64, readings: &[CounterReading]) {
        self.ends_ns.push(end_ns);
        for (at, of_event) in self.readings.iter_mut().enumerate() {
            let reading = readings.get(at).copied().unwrap_or_default();
            of_event.push(CounterReading {
                running_ns: reading.running_ns.min(reading.enabled_ns),
                ..reading
            });
        }
    }

    /// Returns the counted events.
    #[must_use]
    pub fn events(&self) -> &[HardwareEvent] {
        &self.events
    }

    /// Returns the end of each reading, ns after the recording began.
    #[must_use]
    pub fn ends_ns(&self) -> &[u64] {
        &self.ends_ns
    }

    /// Returns an event's readings; none for an unknown event.
    #[must_use]
    pub fn readings(&self, event: usize) -> &[CounterReading] {
        self.readings.get(event).map_or(&[], Vec::as_slice)
    }

    /// Returns a recording of these readings only.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Self {
        let start = range.start.min(self.ends_ns.len());
        let range = start..range.end.min(self.ends_ns.len()).max(start);
        let readings = self.readings.iter();
        Self {
            events: self.events.clone(),
            ends_ns: self.ends_ns[range.clone()].to_vec(),
            readings: readings.map(|all| all[range.clone()].to_vec()).collect(),
        }
    }

    /// Finds the events of a name in a mode: one, or both modes for a total that was counted by mode. `None` if it was
    /// not counted.
    #[must_use]
    pub fn find(&self, name: &str, mode: CountMode) -> Option<Vec<usize>> {
        let place = |mode| {
            let wanted = HardwareEvent::new(name, mode);
            self.events.iter().position(|event| *event == wanted)
        };
        match (place(mode), mode) {
            (Some(found), _) => Some(vec![found]),
            (None, CountMode::Total) => {
                Some(vec![place(CountMode::User)?, place(CountMode::Kernel)?])
            }
            (None, _) => None,
        }
    }

    /// Returns whether any event is counted in a mode.
    #[must_use]
    pub fn has(&self, mode: CountMode) -> bool {
        self.events.iter().any(|event| event.mode == mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording() -> CounterRecording {
        let events = ["cycles:u", "cycles:k", "instructions"];
        let mut recording = CounterRecording::new(events.map(HardwareEvent::of_perf).to_vec());
        for end_ns in [10, 20, 30] {
            let reading = CounterReading { value: end_ns as f64, enabled_ns: 10, running_ns: 50 };
            recording.add(end_ns, &[reading; 2]);
        }
        recording
    }

    #[test]
    fn a_total_is_found_in_its_two_modes() {
        let recording = recording();
        assert_eq!(recording.find("CYCLES", CountMode::User), Some(vec![0]));
        assert_eq!(recording.find("cycles", CountMode::Total), Some(vec![0, 1]));
        assert_eq!(recording.find("instructions", CountMode::Total), Some(vec![2]));
        assert_eq!(recording.find("instructions", CountMode::User), None);
        assert_eq!(recording.find("branches", CountMode::Total), None);
    }

    #[test]
    fn nothing_runs_longer_than_it_is_wanted_and_what_is_not_given_is_nothing() {
        let recording = recording();
        assert_eq!(recording.readings(0)[1].running_ns, 10);
        assert_eq!(recording.readings(2), [CounterReading::default(); 3]);
        assert_eq!(recording.readings(2)[0].running_share(), None);
        assert_eq!(recording.readings(3), []);
        let part = recording.part(1..9);
        assert_eq!(part.ends_ns(), [20, 30]);
        assert_eq!(part.readings(1)[0].value, 20.0);
        assert_eq!(recording.part(5..9).ends_ns(), [0; 0]);
    }
}
