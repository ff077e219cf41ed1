//! Messages of one step, with the few that can bound anything.

use crate::hull::{Vertex, chord, lower_hull};
use crate::options::Settings;
use crate::point::{PairPoints, Point};

/// The messages of one step that has any.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bucket {
    /// Begin, in steps from 0.
    pub(super) index: i64,
    /// Upper bounds of the offset, sorted.
    up: Vec<Point>,
    /// Upper bounds of the offset's negative, sorted.
    down: Vec<Point>,
    /// Points of `up` on its hull, kept as every knot nearby goes through them.
    pub(super) up_hull: Vec<Point>,
    /// Points of `down` on its hull.
    pub(super) down_hull: Vec<Point>,
}

/// Puts all messages into buckets, in order.
pub(super) fn fill_buckets(points: &PairPoints, settings: &Settings) -> Vec<Bucket> {
    let mut up = points.forward.clone();
    let mut down: Vec<Point> = points.backward.iter().map(|point| point.mirrored()).collect();
    up.sort_unstable();
    down.sort_unstable();
    let (mut up, mut down) = (&up[..], &down[..]);
    let mut buckets = Vec::new();
    let index = |point: &Point| point.at_ns().div_euclid(settings.step_ns);
    while let Some(next) = up.first().into_iter().chain(down.first()).map(index).min() {
        let split = |points: &mut &[Point]| {
            let (these, rest) =
                points.split_at(points.partition_point(|point| index(point) <= next));
            *points = rest;
            these.to_vec()
        };
        buckets.push(Bucket::new(next, split(&mut up), split(&mut down), settings));
    }
    buckets
}

impl Bucket {
    fn new(index: i64, up: Vec<Point>, down: Vec<Point>, settings: &Settings) -> Self {
        let hull = |points: &[Point]| {
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
    pub(super) fn until(&self, last_ns: i64, settings: &Settings) -> Option<Self> {
        self.part(|point| point.at_ns() <= last_ns, settings)
    }

    /// Returns the part from this time on; `None` if it is empty.
    pub(super) fn from(&self, first_ns: i64, settings: &Settings) -> Option<Self> {
        self.part(|point| point.at_ns() >= first_ns, settings)
    }

    fn part(&self, is_in: impl Fn(&&Point) -> bool, settings: &Settings) -> Option<Self> {
        let part = |points: &[Point]| points.iter().filter(&is_in).copied().collect::<Vec<_>>();
        let (up, down) = (part(&self.up), part(&self.down));
        let is_empty = up.is_empty() && down.is_empty();
        (!is_empty).then(|| Self::new(self.index, up, down, settings))
    }

    /// Returns all messages, first those that bound from above.
    pub(super) fn points(&self) -> (&[Point], &[Point]) {
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

fn is_needless(a: Point, b: Point, c: Point, kappa: f64) -> bool {
    let between = |from: Point, to: Point| seconds(to.at_ns() - from.at_ns());
    let rise = |to: Point| (to.offset_ns() - a.offset_ns()) as f64;
    rise(b) >= chord(kappa, rise(c), between(a, b), between(b, c))
}

pub(super) fn seconds(ns: i64) -> f64 {
    ns as f64 * 1e-9
}

/// Returns a message relative to a knot, a little looser than it is: rounding must not break a bound.
pub(super) fn view_from_knot(point: Point, at_ns: i64, base_ns: i64, error_ns: f64) -> Vertex {
    let y = (point.offset_ns() - base_ns) as f64;
    Vertex { x: seconds(point.at_ns() - at_ns), y: y + error_ns + 1e-3 + y.abs() * 1e-15 }
}
