//! A time without jumps: knots, and estimates at and between them.

use super::find_jump::{JumpCut, find_cut};
use super::knot_bounds::KnotBounds;
use super::message_bucket::{MessageBucket, seconds, view_from_knot};
use super::offset_estimate::{FitKnot, OffsetEstimate, OffsetEvidence};
use super::tighten_bounds::tighten;
use crate::bounds::Bounds;
use crate::fit_options::CheckedFitOptions;
use crate::lower_hull::{bend, chord};
use crate::offset_points::OffsetPoint;
use crate::separating_lines::{LineHeights, bend_hull, tube};

/// The fit of a time without jumps.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FitSegment {
    /// Base of all offsets: those of hosts that run for months are too large for the precision of an `f64`.
    base_ns: i64,
    kappa: f64,
    step_ns: i64,
    first_ns: i64,
    last_ns: i64,
    sure_from_ns: i64,
    sure_until_ns: i64,
    is_strained: bool,
    knots: Vec<KnotBounds>,
}

/// Fits buckets that are not empty. Returns a cut if they contradict each other.
pub(super) fn fit(
    buckets: &[MessageBucket],
    settings: &CheckedFitOptions,
) -> Result<FitSegment, JumpCut> {
    let base_ns = buckets[0].base_ns();
    let mut knots: Vec<KnotBounds> = Vec::with_capacity(buckets.len() + 1);
    for (at, bucket) in buckets.iter().enumerate() {
        // Both ends of a step with messages are knots; a step that follows at once shares one.
        let is_shared = at > 0 && buckets[at - 1].index + 1 == bucket.index;
        if at > 0 && bucket.index - buckets[at - 1].index > settings.steps {
            check_gap(buckets, at, settings)?;
        }
        for index in [bucket.index, bucket.index + 1].into_iter().skip(usize::from(is_shared)) {
            let window = window_around(buckets, at, index, settings);
            knots.push(solve(window, index, base_ns, settings)?);
        }
    }
    let is_strained = !tighten(&mut knots, settings.kappa);
    let first = extend(buckets, -1, base_ns, settings)?;
    let last = extend(buckets, 1, base_ns, settings)?;
    let (first_bucket, last_bucket) = (&buckets[0], &buckets[buckets.len() - 1]);
    let (first_ns, last_ns) = (first_bucket.first_ns(), last_bucket.last_ns());
    let mut segment = FitSegment {
        base_ns,
        kappa: settings.kappa,
        step_ns: settings.step_ns,
        first_ns,
        last_ns,
        sure_from_ns: first_ns,
        sure_until_ns: last_ns,
        is_strained,
        knots: first.into_iter().rev().chain(knots).chain(last).collect(),
    };
    let under_way =
        segment.longest_under_way(first_bucket.points().0, first_ns, |known| known.low_ns());
    segment.sure_from_ns = first_ns.saturating_add(under_way).min(last_ns);
    let mirrored = |known: Bounds| known.negated().low_ns();
    let under_way = segment.longest_under_way(last_bucket.points().1, last_ns, mirrored);
    segment.sure_until_ns = last_ns.saturating_sub(under_way).max(first_ns);
    Ok(segment)
}

/// Returns the buckets in the window around a knot, which is at an end of bucket `near`.
fn window_around<'b>(
    buckets: &'b [MessageBucket],
    near: usize,
    index: i64,
    settings: &CheckedFitOptions,
) -> &'b [MessageBucket] {
    let earlier = buckets[..near].iter().rev();
    let later = buckets[near..].iter();
    let begin = earlier.take_while(|bucket| bucket.index >= index - settings.steps).count();
    let end = later.take_while(|bucket| bucket.index < index + settings.steps).count();
    &buckets[near - begin..near + end]
}

fn solve(
    window: &[MessageBucket],
    index: i64,
    base_ns: i64,
    settings: &CheckedFitOptions,
) -> Result<KnotBounds, JumpCut> {
    let at_ns = index * settings.step_ns;
    let LineHeights { low, high } = tube_at(window, at_ns, base_ns, settings)
        .ok_or_else(|| find_cut(window, at_ns, settings))?;
    Ok(KnotBounds { at_ns, low, high })
}

fn tube_at(
    window: &[MessageBucket],
    at_ns: i64,
    base_ns: i64,
    settings: &CheckedFitOptions,
) -> Option<LineHeights> {
    let error_ns = settings.timestamp_error_ns;
    let view = |point| view_from_knot(point, at_ns, base_ns, error_ns);
    let down_view = |point| view_from_knot(point, at_ns, -base_ns, error_ns);
    let up = window.iter().flat_map(|bucket| bucket.up_hull.iter().copied().map(view));
    let down = window.iter().flat_map(|bucket| bucket.down_hull.iter().copied().map(down_view));
    tube(&bend_hull(up, settings.kappa), &bend_hull(down, settings.kappa))
}

/// Checks that the messages on both sides of a gap, before bucket `next`, agree: no knot's window sees both.
fn check_gap(
    buckets: &[MessageBucket],
    next: usize,
    settings: &CheckedFitOptions,
) -> Result<(), JumpCut> {
    let (last, first) = (&buckets[next - 1], &buckets[next]);
    let begin = window_around(&buckets[..next], next - 1, last.index + 1, settings).len();
    let end = window_around(&buckets[next..], 0, first.index, settings).len();
    let window = &buckets[next - begin..next + end];
    let middle_ns = last.last_ns().midpoint(first.first_ns());
    let cut = JumpCut::between(last.last_ns(), first.first_ns());
    tube_at(window, middle_ns, last.base_ns(), settings).map(drop).ok_or(cut)
}

/// Solves knots before the first message or after the last, as far as a window, from the nearest one on. They see the
/// messages that the outermost knot sees.
fn extend(
    buckets: &[MessageBucket],
    side: i64,
    base_ns: i64,
    settings: &CheckedFitOptions,
) -> Result<Vec<KnotBounds>, JumpCut> {
    let last = buckets.len() - 1;
    let (end, window) = if side < 0 {
        let end = buckets[0].index;
        (end, window_around(buckets, 0, end, settings))
    } else {
        let end = buckets[last].index + 1;
        (end, window_around(buckets, last, end, settings))
    };
    (1..=settings.steps).map(|step| solve(window, end + side * step, base_ns, settings)).collect()
}

impl FitSegment {
    pub(super) fn first_ns(&self) -> i64 {
        self.first_ns
    }

    pub(super) fn last_ns(&self) -> i64 {
        self.last_ns
    }

    /// Returns the maximum time that messages of this time may have been under way, ns. `least` returns the least
    /// possible height.
    ///
    /// A message that A sent before a jump of B's clock, and B received after it, is of the time after the jump, though
    /// A's time is not. One that B sent before it is of the time before it. So the offset is sure only some time from a
    /// jump.
    fn longest_under_way(
        &self,
        points: &[OffsetPoint],
        at_ns: i64,
        least: impl Fn(Bounds) -> Option<i64>,
    ) -> i64 {
        let heights = points.iter().filter(|point| point.at_ns() == at_ns);
        let Some(highest) = heights.map(|point| point.offset_ns()).max() else {
            return 0;
        };
        least(self.at(at_ns).bounds).map_or(i64::MAX, |least| highest.saturating_sub(least))
    }

    pub(super) fn sure_from_ns(&self) -> i64 {
        self.sure_from_ns
    }

    pub(super) fn sure_until_ns(&self) -> i64 {
        self.sure_until_ns
    }

    pub(super) fn kappa(&self) -> f64 {
        self.kappa
    }

    pub(super) fn step_ns(&self) -> i64 {
        self.step_ns
    }

    pub(super) fn is_strained(&self) -> bool {
        self.is_strained
    }

    /// Estimates the offset at a time.
    pub(super) fn at(&self, at_ns: i64) -> OffsetEstimate {
        let next = self.knots.partition_point(|knot| knot.at_ns < at_ns);
        let (low, high, length_ns) = match (next.checked_sub(1), self.knots.get(next)) {
            (_, Some(knot)) if knot.at_ns == at_ns => (knot.low, knot.high, 0),
            (Some(before), Some(after)) => self.between(self.knots[before], *after, at_ns),
            _ => (f64::NEG_INFINITY, f64::INFINITY, 0),
        };
        let evidence = if at_ns < self.first_ns || at_ns > self.last_ns {
            OffsetEvidence::Beyond
        } else if length_ns > self.step_ns {
            OffsetEvidence::Curvature
        } else {
            OffsetEvidence::Messages
        };
        OffsetEstimate::of(Bounds::around(self.base_ns, low, high), evidence)
    }

    /// Returns the bounds between two knots, and the distance of these. The offset leaves the chord by no more than its
    /// curvature allows.
    fn between(&self, a: KnotBounds, b: KnotBounds, at_ns: i64) -> (f64, f64, i64) {
        let (before, after) = (seconds(at_ns - a.at_ns), seconds(b.at_ns - at_ns));
        let height = |a: f64, b: f64| a + chord(0.0, b - a, before, after);
        let bend = bend(self.kappa, before, after);
        let low = if a.low.is_finite() && b.low.is_finite() {
            height(a.low, b.low) - bend
        } else {
            f64::NEG_INFINITY
        };
        let high = if a.high.is_finite() && b.high.is_finite() {
            height(a.high, b.high) + bend
        } else {
            f64::INFINITY
        };
        (low, high, b.at_ns - a.at_ns)
    }

    /// Returns its knots as rows of a table.
    pub(super) fn rows(&self) -> impl Iterator<Item = FitKnot> {
        self.knots.iter().enumerate().map(|(at, knot)| {
            let middle = |knot: &KnotBounds| f64::midpoint(knot.low, knot.high);
            let rate = self
                .knots
                .get(at + 1)
                .map(|next| (middle(next) - middle(knot)) / seconds(next.at_ns - knot.at_ns));
            FitKnot {
                at_ns: knot.at_ns,
                estimate: self.at(knot.at_ns),
                rate_ns_per_s: rate.filter(|rate| rate.is_finite()),
            }
        })
    }
}
