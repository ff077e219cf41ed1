//! Cuts readings into rotations.
//!
//! All are of one length. If each ended with the turn of the event, long ones would end with late turns. The load at
//! that time would then count more than it should.

use std::ops::Range;

use crate::counter_recording::{CounterReading, CounterRecording};

/// Minimum share of the time of an event in a rotation, relative to its usual share.
const MIN_TURN_SHARE: f64 = 0.5;
/// Maximum share of rotations that may lack it because a turn came late. They are joined with the next one.
const MAX_LATE_SHARE: f64 = 0.05;

/// Returns the readings of each rotation, in order and without gaps; one rotation if no event has two turns.
pub(super) fn cut(
    recording: &CounterRecording,
    events: &[usize],
    shares: &[f64],
) -> Vec<Range<usize>> {
    let sums = Sums::of(recording, events, shares);
    let count = sums.wanted.len();
    let mut length = 1;
    while length <= count {
        let most_late = (MAX_LATE_SHARE * (count / length) as f64) as usize;
        let late = sums.blocks(length).filter(|block| !sums.has_turns(block));
        if late.take(most_late + 1).count() <= most_late {
            return sums.merged(length);
        }
        length += (length / 16).max(1);
    }
    let all = 0..recording.ends_ns().len();
    vec![all]
}

/// Times in which events were wanted and counted, summed up to each reading.
struct Sums<'s> {
    /// Readings in which any event was wanted.
    wanted: Vec<usize>,
    count: usize,
    /// Sums before each reading, and over all, by event.
    times: Vec<Vec<CounterReading>>,
    shares: &'s [f64],
}

impl<'s> Sums<'s> {
    fn of(recording: &CounterRecording, events: &[usize], shares: &'s [f64]) -> Self {
        let count = recording.ends_ns().len();
        let times: Vec<Vec<CounterReading>> = events
            .iter()
            .map(|&event| {
                let mut sum = CounterReading::default();
                let readings = recording.readings(event).iter();
                let sums = readings.map(|reading| {
                    sum = sum.and(*reading);
                    sum
                });
                std::iter::once(CounterReading::default()).chain(sums).collect()
            })
            .collect();
        let is_wanted = |&at: &usize| {
            let mut events = events.iter();
            events.any(|&event| recording.readings(event)[at].enabled_ns > 0)
        };
        Self { wanted: (0..count).filter(is_wanted).collect(), count, times, shares }
    }

    /// Returns blocks of `length` readings in which an event was wanted, with the readings between them.
    fn blocks(&self, length: usize) -> impl Iterator<Item = Range<usize>> {
        let mut begin = 0;
        self.wanted.chunks_exact(length).map(move |block| {
            let end = block.last().map_or(begin, |last| last + 1);
            let range = begin..end;
            begin = end;
            range
        })
    }

    fn has_turns(&self, block: &Range<usize>) -> bool {
        self.times.iter().zip(self.shares).all(|(sums, share)| {
            let (before, after) = (sums[block.start], sums[block.end]);
            let enabled_ns = after.enabled_ns - before.enabled_ns;
            let running_ns = after.running_ns - before.running_ns;
            running_ns > 0 && running_ns as f64 >= MIN_TURN_SHARE * share * enabled_ns as f64
        })
    }

    /// Blocks of this length; late ones together with the next, and what is left with the last.
    fn merged(&self, length: usize) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut begin = 0;
        for block in self.blocks(length) {
            let whole = begin..block.end;
            if self.has_turns(&whole) {
                begin = whole.end;
                ranges.push(whole);
            }
        }
        match ranges.last_mut() {
            Some(last) => last.end = self.count,
            None => ranges.push(0..self.count),
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware_event::{CountMode, HardwareEvent};

    /// Two events by reading: whether they are wanted, and whether each has a counter.
    fn cut_of(readings: &str) -> Vec<Range<usize>> {
        let names = ["a", "b"].map(|name| HardwareEvent::new(name, CountMode::Total));
        let mut recording = CounterRecording::new(names.to_vec());
        for (at, turn) in readings.chars().enumerate() {
            let one = |name: char| CounterReading {
                value: 0.0,
                enabled_ns: if turn == '-' { 0 } else { 10 },
                running_ns: if turn == name { 10 } else { 0 },
            };
            recording.add(at as u64, &[one('a'), one('b')]);
        }
        let share = |name: char| {
            let has = readings.chars().filter(|&turn| turn == name).count();
            let wanted = readings.chars().filter(|&turn| turn != '-').count();
            has as f64 / wanted as f64
        };
        cut(&recording, &[0, 1], &[share('a'), share('b')])
    }

    #[test]
    fn rotations_are_as_short_as_they_can_be() {
        assert_eq!(cut_of("abababab"), [0..2, 2..4, 4..6, 6..8]);
        assert_eq!(cut_of("a.b.a.b."), [0..4, 4..8]);
        assert_eq!(cut_of("abab-a"), [0..2, 2..6]);
        assert_eq!(cut_of("a--b-ab"), [0..4, 4..7]);
    }

    #[test]
    fn turns_that_come_late_join_two_and_what_never_comes_again_joins_all() {
        let ranges = cut_of(&format!("{}aabb{}", "ab".repeat(30), "ab".repeat(10)));
        assert_eq!(ranges.len(), 41);
        assert_eq!(ranges[30], 60..64);
        for never_again in ["aaaaaab", ""] {
            let ranges = cut_of(never_again);
            assert_eq!((ranges.len(), &ranges[0]), (1, &(0..never_again.len())));
        }
    }
}
