//! Messages of one step, with the few that can bound anything.

use crate::fit_options::CheckedFitOptions;
use crate::lower_hull::{HullVertex, chord, lower_hull};
use crate::offset_points::{OffsetPoint, PairPoints};

/// The messages of one step that has any.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MessageBucket {
    /// Begin, in steps from 0.
    pub(super) index: i64,
    /// Upper bounds of the offset, sorted.
    up: Vec<OffsetPoint>,
    /// Upper bounds of the offset's negative, sorted.
    down: Vec<OffsetPoint>,
    /// Points of `up` on its hull, kept as every knot nearby goes through them.
    pub(super) up_hull: Vec<OffsetPoint>,
    /// Points of `down` on its hull.
    pub(super) down_hull: Vec<OffsetPoint>,
}

/// Puts all messages into buckets, in order.
pub(super) fn fill_buckets(
    points: &PairPoints,
    settings: &CheckedFitOptions,
) -> Vec<MessageBucket> {
    let mut up = points.forward.clone();
    let mut down: Vec<OffsetPoint> = points.backward.iter().map(|point| point.mirrored()).collect();
    up.sort_unstable();
    down.sort_unstable();
    let (mut up, mut down) = (&up[..], &down[..]);
    let mut buckets = Vec::new();
    let index = |point: &OffsetPoint| point.at_ns().div_euclid(settings.step_ns);
    while let Some(next) = up.first().into_iter().chain(down.first()).map(index).min() {
        let split = |points: &mut &[OffsetPoint]| {
            let (these, rest) =
                points.split_at(points.partition_point(|point| index(point) <= next));
            *points = rest;
            these.to_vec()
        };
        buckets.push(MessageBucket::new(next, split(&mut up), split(&mut down), settings));
    }
    buckets
}

impl MessageBucket {
    fn new(
        index: i64,
        up: Vec<OffsetPoint>,
        down: Vec<OffsetPoint>,
        settings: &CheckedFitOptions,
    ) -> Self {
        let hull = |points: &[OffsetPoint]| {
            // Sorted by time and height: the first of each time is the lowest.
            let mut last = None;
            let lowest = points
                .iter()
                .copied()
                .filter(|point| last.replace(point.at_ns()) != Some(point.at_ns()));
            lower_hull(lowest, |a, b, c| is_needless(a, b, c, settings.kappa))
        };
        Self { index, up_hull: hull(&up), down_hull: hull(&down), up, down }
    }

    /// Returns the part until this time; `None` if it is empty.
    pub(super) fn until(&self, last_ns: i64, settings: &CheckedFitOptions) -> Option<Self> {
        self.part(|point| point.at_ns() <= last_ns, settings)
    }

    /// Returns the part from this time on; `None` if it is empty.
    pub(super) fn from(&self, first_ns: i64, settings: &CheckedFitOptions) -> Option<Self> {
        self.part(|point| point.at_ns() >= first_ns, settings)
    }

    fn part(
        &self,
        is_in: impl Fn(&&OffsetPoint) -> bool,
        settings: &CheckedFitOptions,
    ) -> Option<Self> {
        let part =
            |points: &[OffsetPoint]| points.iter().filter(&is_in).copied().collect::<Vec<_>>();
        let (up, down) = (part(&self.up), part(&self.down));
        let is_empty = up.is_empty() && down.is_empty();
        (!is_empty).then(|| Self::new(self.index, up, down, settings))
    }

    /// Returns all messages, first those that bound from above.
    pub(super) fn points(&self) -> (&[OffsetPoint], &[OffsetPoint]) {
        (&self.up, &self.down)
    }

    /// Returns the time of the first message.
    pub(super) fn first_ns(&self) -> i64 {
        let times = self.up.first().into_iter().chain(self.down.first());
        times.map(|point| point.at_ns()).min().unwrap_or(i64::MAX)
    }

    /// Returns the time of the last message.
    pub(super) fn last_ns(&self) -> i64 {
        let times = self.up.last().into_iter().chain(self.down.last());
        times.map(|point| point.at_ns()).max().unwrap_or(i64::MIN)
    }

    /// Returns the height of one of its messages, to calculate relative to it.
    pub(super) fn base_ns(&self) -> i64 {
        let down = self.down_hull.first().map(|point| -point.offset_ns());
        self.up_hull.first().map(|point| point.offset_ns()).or(down).unwrap_or(0)
    }
}

fn is_needless(a: OffsetPoint, b: OffsetPoint, c: OffsetPoint, kappa: f64) -> bool {
    let between = |from: OffsetPoint, to: OffsetPoint| seconds(to.at_ns() - from.at_ns());
    let rise = |to: OffsetPoint| (to.offset_ns() - a.offset_ns()) as f64;
    rise(b) >= chord(kappa, rise(c), between(a, b), between(b, c))
}

pub(super) fn seconds(ns: i64) -> f64 {
    ns as f64 * 1e-9
}

/// Returns a message relative to a knot, a little looser than it is: rounding must not break a bound.
pub(super) fn view_from_knot(
    point: OffsetPoint,
    at_ns: i64,
    base_ns: i64,
    error_ns: f64,
) -> HullVertex {
    let y = (point.offset_ns() - base_ns) as f64;
    HullVertex { x: seconds(point.at_ns() - at_ns), y: y + error_ns + 1e-3 + y.abs() * 1e-15 }
}
