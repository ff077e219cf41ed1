//! Sums of an event over the times with a counter and without one.
//!
//! Time without a counter is assumed to have gone on as the times next to it, before and after. On either side a
//! stretch as long as the gap is taken. So a change of the load costs no more than half a gap. A turn that was cut
//! short counts for less than a whole one.

use crate::counter_recording::CounterReading;

/// Time with a counter.
#[derive(Debug, Clone, Copy)]
struct Turn {
    value: f64,
    running_ns: f64,
    /// Time without a counter since the turn before, while the event was wanted.
    gap_ns: f64,
}

/// Maximum standard deviation of even gaps, relative to their mean.
const MAX_GAP_VARIATION: f64 = 0.25;

/// Sums all readings; `None` if turns come at uneven distances. Turns beside long gaps would then count for more than
/// others, and the load in them more than it should.
pub(super) fn total(readings: &[CounterReading]) -> Option<f64> {
    let (seen, last_gap_ns) = counted_turns(readings);
    if !is_even(&seen) {
        return None;
    }
    let counted: f64 = seen.iter().map(|one| one.value).sum();
    let gaps = seen.iter().map(|one| one.gap_ns).chain([last_gap_ns]);
    let filled = gaps.enumerate().filter(|(_, gap_ns)| *gap_ns > 0.0).map(|(at, gap_ns)| {
        let before = before(&seen[..at], gap_ns);
        let after = after(&seen[at..], gap_ns);
        let running_ns = before.running_ns + after.running_ns;
        gap_ns * (before.value + after.value) / running_ns.max(f64::MIN_POSITIVE)
    });
    Some(counted + filled.sum::<f64>())
}

/// Returns whether the gaps between turns are about the same.
fn is_even(seen: &[Turn]) -> bool {
    let gaps = || seen.iter().skip(1).map(|one| one.gap_ns);
    let gaps = || gaps().filter(|gap_ns| *gap_ns > 0.0);
    let count = gaps().count().max(1) as f64;
    let mean = gaps().sum::<f64>() / count;
    let variance = gaps().map(|gap_ns| (gap_ns - mean).powi(2)).sum::<f64>() / count;
    variance.sqrt() <= MAX_GAP_VARIATION * mean
}

/// Returns the times with a counter, in order, and the gap after the last.
fn counted_turns(readings: &[CounterReading]) -> (Vec<Turn>, f64) {
    let wanted: Vec<&CounterReading> = readings.iter().filter(|one| one.enabled_ns > 0).collect();
    let has_counter = |at: Option<usize>| {
        let reading = at.and_then(|at| wanted.get(at));
        reading.is_some_and(|reading| reading.running_ns > 0)
    };
    let mut all = Vec::new();
    let mut gap_ns = 0.0;
    for (at, reading) in wanted.iter().enumerate() {
        let unseen_ns = (reading.enabled_ns - reading.running_ns) as f64;
        if reading.running_ns == 0 {
            gap_ns += unseen_ns;
            continue;
        }
        // Where in a reading a turn begins or ends is told by its neighbours.
        let neighbours = (has_counter(at.checked_sub(1)), has_counter(Some(at + 1)));
        let before_ns = match neighbours {
            (false, true) => unseen_ns,
            (true, false) => 0.0,
            _ => unseen_ns / 2.0,
        };
        all.push(Turn {
            value: reading.value,
            running_ns: reading.running_ns as f64,
            gap_ns: gap_ns + before_ns,
        });
        gap_ns = unseen_ns - before_ns;
    }
    (all, gap_ns)
}

/// Sums the end of the times before a gap, as long as the gap.
fn before(seen: &[Turn], length_ns: f64) -> Turn {
    let steps = seen.iter().rev().map(|one| (one, one.gap_ns));
    next_to(steps, length_ns)
}

/// Sums the begin of the times after a gap, as long as the gap.
fn after(seen: &[Turn], length_ns: f64) -> Turn {
    let gaps = seen.iter().skip(1).map(|one| one.gap_ns);
    let steps = seen.iter().zip(gaps.chain([0.0]));
    next_to(steps, length_ns)
}

/// Sums times until they, and the gaps between them, have this length. Each comes with the gap beyond it.
fn next_to<'s>(steps: impl Iterator<Item = (&'s Turn, f64)>, length_ns: f64) -> Turn {
    let mut sum = Turn { value: 0.0, running_ns: 0.0, gap_ns: 0.0 };
    for (one, beyond_ns) in steps {
        let left_ns = length_ns - sum.running_ns - sum.gap_ns;
        if left_ns <= 0.0 {
            break;
        }
        let taken_ns = one.running_ns.min(left_ns);
        sum.value += one.value * taken_ns / one.running_ns;
        sum.running_ns += taken_ns;
        sum.gap_ns += beyond_ns;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums readings of 4 ns: counts in those with a counter, `None` in the others.
    fn total_of(values: &[Option<f64>]) -> f64 {
        let readings: Vec<CounterReading> = values
            .iter()
            .map(|value| CounterReading {
                value: value.unwrap_or(0.0),
                enabled_ns: 4,
                running_ns: if value.is_some() { 4 } else { 0 },
            })
            .collect();
        total(&readings).expect("even")
    }

    #[test]
    fn turns_at_uneven_distances_are_left_to_rotations() {
        let readings = |turns: &str| -> Vec<CounterReading> {
            let one = |turn| CounterReading {
                value: 1.0,
                enabled_ns: 4,
                running_ns: if turn == 'x' { 4 } else { 0 },
            };
            turns.chars().map(one).collect()
        };
        assert!(total(&readings(".x...x...x...x")).is_some());
        assert!(total(&readings("x.....x.x.....x.x")).is_none());
    }

    #[test]
    fn a_gap_goes_on_as_its_two_sides() {
        let (one, three) = (Some(1.0), Some(3.0));
        assert_eq!(total_of(&[one, None, three]), 1.0 + 2.0 + 3.0);
        assert_eq!(total_of(&[None, one, None, None]), 4.0);
        assert_eq!(total_of(&[one, three]), 4.0);
        assert_eq!(total_of(&[None, None]), 0.0);
        // Of a long turn only the end counts.
        assert_eq!(total_of(&[one, one, one, three, None, three]), 12.0);
    }

    #[test]
    fn a_turn_that_was_cut_short_counts_for_less() {
        let reading = |value, running_ns| CounterReading { value, enabled_ns: 4, running_ns };
        // The second turn has a quarter of the time at four times the rate.
        let found = total(&[reading(1.0, 4), reading(0.0, 0), reading(1.0, 1)]);
        let found = found.expect("even");
        // 3.5 ns of gap between, and 3.5 ns in the last reading: half of it is after the gap.
        let rate = 2.0 / 5.0;
        let between = 4.0 + 1.5;
        let after = 1.5;
        assert!((found - (2.0 + between * rate + after)).abs() < 1e-9, "{found}");
    }

    #[test]
    fn readings_that_are_longer_than_a_rotation_are_scaled_each() {
        let reading = |value| CounterReading { value, enabled_ns: 100, running_ns: 20 };
        assert_eq!(total(&[reading(1.0), reading(3.0)]), Some(5.0 + 15.0));
    }
}
