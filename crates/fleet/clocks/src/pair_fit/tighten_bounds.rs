//! Bounds of a knot by the bounds of all other knots.

use super::knot_bounds::KnotBounds;
use super::message_bucket::seconds;
use crate::lower_hull::{chord, lower_hull};

/// Tightens the bounds of knots, which are in order, by the curvature that all of them allow. Returns `false`, and
/// changes nothing, if a knot would be left without a possible offset.
///
/// With half of kappa t² added the offset is convex, so that it lies below every chord of its upper bounds. The lower
/// hull of these is the best that all chords give.
pub(super) fn tighten(knots: &mut [KnotBounds], kappa: f64) -> bool {
    let highs = tighten_side(knots.iter().map(|knot| (knot.at_ns, knot.high)), kappa);
    let lows = tighten_side(knots.iter().map(|knot| (knot.at_ns, -knot.low)), kappa);
    // Each is the highest, or the lowest, of the same lines but for rounding.
    let crosses = highs.iter().zip(&lows).any(|(high, low)| high + low < -1e-3);
    if crosses {
        return false;
    }
    for ((knot, high), low) in knots.iter_mut().zip(highs).zip(lows) {
        let middle = f64::midpoint(high, -low);
        (knot.low, knot.high) = if high < -low { (middle, middle) } else { (-low, high) };
    }
    true
}

fn tighten_side(bounds: impl Iterator<Item = (i64, f64)> + Clone, kappa: f64) -> Vec<f64> {
    let known = bounds.clone().filter(|(_, height)| height.is_finite());
    let hull = lower_hull(known, |a: (i64, f64), b, c| {
        b.1 - a.1 >= chord(kappa, c.1 - a.1, seconds(b.0 - a.0), seconds(c.0 - b.0))
    });
    let mut next = 0;
    bounds
        .map(|(at_ns, height)| {
            while hull.get(next).is_some_and(|vertex| vertex.0 < at_ns) {
                next += 1;
            }
            match (next.checked_sub(1), hull.get(next)) {
                (Some(before), Some(after)) => {
                    let a = hull[before];
                    let (left, right) = (seconds(at_ns - a.0), seconds(after.0 - at_ns));
                    height.min(a.1 + chord(kappa, after.1 - a.1, left, right))
                }
                _ => height,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knot(at_s: i64, low: f64, high: f64) -> KnotBounds {
        KnotBounds { at_ns: at_s * 1_000_000_000, low, high }
    }

    #[test]
    fn neighbours_bound_what_is_between_them() {
        let mut knots = [
            knot(0, -1.0, 1.0),
            knot(1, f64::NEG_INFINITY, f64::INFINITY),
            knot(2, -1.0, 1.0),
            knot(3, -1.0, f64::INFINITY),
        ];
        assert!(tighten(&mut knots, 4.0));
        assert_eq!(knots[1], knot(1, -3.0, 3.0));
        assert_eq!(knots[3], knot(3, -1.0, f64::INFINITY));
    }

    #[test]
    fn a_contradiction_is_said() {
        let before = [knot(0, -1.0, 1.0), knot(1, 50.0, 60.0), knot(2, -1.0, 1.0)];
        let mut knots = before;
        assert!(!tighten(&mut knots, 4.0));
        assert_eq!(knots, before);
    }
}
