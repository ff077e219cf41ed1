//! One straight line for a pair of hosts: the usual method, for comparison.

use crate::error::ClockError;
use crate::lower_hull::HullVertex;
use crate::offset_points::{OffsetPoint, PairPoints};
use crate::separating_lines::{bend_hull, steepest, touch};

/// An offset that grows evenly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OffsetLine {
    origin_ns: i64,
    base_ns: i64,
    height_ns: f64,
    /// Growth of the offset, ns per s of A's time.
    slope: f64,
    /// Whether it separates the messages of both directions: if not, some arrive before they are sent.
    pub is_separating: bool,
}

impl OffsetLine {
    /// Returns the offset at A's time, ns.
    #[must_use]
    pub fn offset_ns(&self, at_ns: i64) -> f64 {
        let since = (i128::from(at_ns) - i128::from(self.origin_ns)) as f64 * 1e-9;
        self.base_ns as f64 + (self.height_ns + self.slope * since)
    }
}

/// Returns the line of a pair as Trace Compass finds it. It takes the hulls of both directions, the steepest and the
/// flattest line that separate them, and their bisector (Duda et al., 1987; Jabbarifar, *On Line Trace Synchronization
/// for Large Scale Distributed Systems*, 2013). Where drift bends no line separates them. Trace Compass then keeps the
/// last one that did. Here it is the line whose greatest violation is the least, which is kinder.
///
/// # Errors
/// [`ClockError::NoMessages`] unless there are messages both ways that bound a slope on both sides.
pub fn one_line(points: &PairPoints) -> Result<OffsetLine, ClockError> {
    let (Some(first), Some(_)) = (points.forward.first(), points.backward.first()) else {
        return Err(ClockError::NoMessages);
    };
    let times = points.forward.iter().chain(&points.backward).map(|point| point.at_ns());
    let (least, greatest) =
        times.fold((i64::MAX, i64::MIN), |(least, greatest), at| (least.min(at), greatest.max(at)));
    let (origin_ns, base_ns) = (least.midpoint(greatest), first.offset_ns());
    let hull = |points: &[OffsetPoint], sign: f64| {
        let mut vertices: Vec<HullVertex> = points
            .iter()
            .map(|point| HullVertex {
                x: (point.at_ns() - origin_ns) as f64 * 1e-9,
                y: sign * (point.offset_ns() - base_ns) as f64,
            })
            .collect();
        vertices.sort_unstable_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
        vertices.dedup_by_key(|vertex| vertex.x);
        bend_hull(vertices.into_iter(), 0.0)
    };
    let (up, down) = (hull(&points.forward, 1.0), hull(&points.backward, -1.0));
    let heights = |slope: f64| {
        let (above, below) = (touch(&up, slope), touch(&down, -slope));
        let (high, low) = (above.y - slope * above.x, -(below.y + slope * below.x));
        (f64::midpoint(high, low), above.x - below.x)
    };
    let extremes = steepest(&up, &down).zip(steepest(&down, &up));
    let (slope, is_separating) = match extremes {
        Some((steepest, mirrored)) => (f64::midpoint(steepest, -mirrored), true),
        None => (find_roomiest(&up, &down, |slope| heights(slope).1), false),
    };
    if !slope.is_finite() {
        return Err(ClockError::NoMessages);
    }
    let height_ns = match extremes {
        // The bisector is the mean of both lines, in height as well.
        Some((steepest, mirrored)) => f64::midpoint(heights(steepest).0, heights(-mirrored).0),
        None => heights(slope).0,
    };
    Ok(OffsetLine { origin_ns, base_ns, height_ns, slope, is_separating })
}

/// Finds the slope that leaves the most room between the hulls, or takes the least. The room grows with the slope while
/// `lead`, the distance of the two vertices that it stands on, is negative.
fn find_roomiest(up: &[HullVertex], down: &[HullVertex], lead: impl Fn(f64) -> f64) -> f64 {
    let rises = [up, down]
        .into_iter()
        .flat_map(|hull| hull.windows(2))
        .map(|pair| ((pair[1].y - pair[0].y) / (pair[1].x - pair[0].x)).abs());
    let greatest = rises.fold(1.0, f64::max) * 2.0;
    let (mut low, mut high) = (-greatest, greatest);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if lead(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(offset: impl Fn(i64) -> i64) -> PairPoints {
        let mut points = PairPoints::default();
        for at in (0..10_000_000_000_i64).step_by(10_000_000) {
            let now = offset(at);
            points.add_forward(at, at + now + 10_000).expect("in range");
            points.add_backward(at + now, at + 10_000).expect("in range");
        }
        points
    }

    #[test]
    fn steady_drift_is_a_line() {
        let line = one_line(&points(|at| 7_000_000 + at / 50_000)).expect("a line");
        assert!(line.is_separating);
        assert!((line.slope - 20_000.0).abs() < 50.0, "{line:?}");
        for at in [0, 5_000_000_000, 9_000_000_000] {
            let wrong = line.offset_ns(at) - (7_000_000 + at / 50_000) as f64;
            assert!(wrong.abs() < 300.0, "{wrong}");
        }
    }

    #[test]
    fn bent_drift_is_none() {
        // 50 µs off the chord in the middle; half of that is the least that a line can be wrong by.
        let bent = |at: i64| at / 50_000 * (10_000_000_000 - at) / 10_000_000_000;
        let line = one_line(&points(bent)).expect("a line");
        assert!(!line.is_separating);
        let worst = [0, 5_000_000_000, 9_990_000_000]
            .map(|at| (line.offset_ns(at) - bent(at) as f64).abs());
        assert!(worst.iter().all(|wrong| (20e3..30e3).contains(wrong)), "{worst:?}");
    }

    #[test]
    fn what_has_no_line_says_so() {
        let mut points = PairPoints::default();
        assert_eq!(one_line(&points), Err(ClockError::NoMessages));
        points.add_forward(0, 5).expect("in range");
        assert_eq!(one_line(&points), Err(ClockError::NoMessages));
        points.add_backward(0, 5).expect("in range");
        assert_eq!(one_line(&points), Err(ClockError::NoMessages));
    }
}
