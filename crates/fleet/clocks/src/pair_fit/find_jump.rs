//! Search for the jump of a clock.
//!
//! Messages right after a jump need not contradict those before it: they may have been slow. So the jump is between the
//! last message that contradicts those after it, and the first that contradicts those before it.

use super::message_bucket::{MessageBucket, view_from_knot};
use super::offset_estimate::ClockJump;
use crate::fit_options::CheckedFitOptions;
use crate::offset_points::OffsetPoint;
use crate::separating_lines::{bend_hull, tube};

/// A cut between messages; those of times between the two are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JumpCut {
    pub(super) before_until_ns: i64,
    pub(super) after_from_ns: i64,
    pub(super) jump: ClockJump,
}

impl JumpCut {
    /// Returns the cut between messages of these times.
    pub(super) fn between(after_ns: i64, before_ns: i64) -> Self {
        Self {
            before_until_ns: after_ns,
            after_from_ns: before_ns,
            jump: ClockJump { after_ns, before_ns },
        }
    }

    /// Returns the cut around the messages of one moment.
    fn around(at_ns: i64) -> Self {
        Self {
            before_until_ns: at_ns - 1,
            after_from_ns: at_ns + 1,
            jump: ClockJump { after_ns: at_ns, before_ns: at_ns },
        }
    }
}

/// Messages in a window, each side sorted.
struct Window {
    up: Vec<OffsetPoint>,
    down: Vec<OffsetPoint>,
    /// All times with messages, each once.
    times: Vec<i64>,
}

/// Finds the cut in a window whose messages contradict each other at a knot.
pub(super) fn find_cut(
    window: &[MessageBucket],
    at_ns: i64,
    settings: &CheckedFitOptions,
) -> JumpCut {
    let window = Window::of(window);
    let times = &window.times;
    let rough = window.first_contradiction(at_ns, settings);
    if rough == 0 {
        return JumpCut::around(times[0]);
    }
    let end = window.end_of_agreement(rough, settings);
    let before = window.last_contradiction(rough, end, settings);
    // Messages far from a knot are bent by much, so the search is sharper from where the jump is.
    let after = window.first_contradiction(times[before], settings);
    JumpCut::between(times[before], times[after.clamp(before + 1, rough)])
}

impl Window {
    fn of(buckets: &[MessageBucket]) -> Self {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for bucket in buckets {
            let (above, below) = bucket.points();
            up.extend_from_slice(above);
            down.extend_from_slice(below);
        }
        let mut times: Vec<i64> = up.iter().chain(&down).map(|point| point.at_ns()).collect();
        times.sort_unstable();
        times.dedup();
        Self { up, down, times }
    }

    /// Whether messages of these times, by their indices in `times`, agree at a knot.
    fn agrees(&self, from: usize, to: usize, at_ns: i64, settings: &CheckedFitOptions) -> bool {
        let (Some(&first), Some(&last)) = (self.times.get(from), self.times.get(to)) else {
            return true;
        };
        let part = |points: &[OffsetPoint]| {
            let begin = points.partition_point(|point| point.at_ns() < first);
            begin..points.partition_point(|point| point.at_ns() <= last)
        };
        let (up, down) = (&self.up[part(&self.up)], &self.down[part(&self.down)]);
        let base_ns = up.first().map_or(0, |point| point.offset_ns());
        let view = |points: &[OffsetPoint], base_ns| {
            let mut last = None;
            let lowest =
                points.iter().filter(|point| last.replace(point.at_ns()) != Some(point.at_ns()));
            let error_ns = settings.timestamp_error_ns;
            let seen = lowest.map(|&point| view_from_knot(point, at_ns, base_ns, error_ns));
            bend_hull(seen, settings.kappa)
        };
        tube(&view(up, base_ns), &view(down, -base_ns)).is_some()
    }

    /// Finds the first time whose messages contradict the earlier ones; the last time if none do.
    fn first_contradiction(&self, at_ns: i64, settings: &CheckedFitOptions) -> usize {
        let last = self.times.len() - 1;
        bisect(0, last, |to| !self.agrees(0, to, at_ns, settings))
    }

    /// Finds the last time up to which messages from `from` on agree.
    fn end_of_agreement(&self, from: usize, settings: &CheckedFitOptions) -> usize {
        let (at_ns, end) = (self.times[from], self.times.len());
        let first = bisect(from + 1, end, |to| !self.agrees(from, to, at_ns, settings));
        first - 1
    }

    /// Finds the last time before `from` whose messages contradict those of the times from `from` to `end`.
    fn last_contradiction(&self, from: usize, end: usize, settings: &CheckedFitOptions) -> usize {
        let at_ns = self.times[from];
        let agreeing = bisect(0, from, |begin| self.agrees(begin, end, at_ns, settings));
        // Seen from here nothing may contradict: then the jump is right before.
        agreeing.checked_sub(1).unwrap_or(from - 1)
    }
}

/// Finds the first index from `low` on for which something is true, which then stays true; `high` if there is none
/// before.
fn bisect(mut low: usize, mut high: usize, is_true: impl Fn(usize) -> bool) -> usize {
    while low < high {
        let middle = low.midpoint(high);
        if is_true(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}
