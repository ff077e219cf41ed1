//! Straight lines between two hulls: their possible heights at a knot, and their possible slopes.
//!
//! Both sides are lower hulls. Bounds from below are mirrored, so that their heights bound the line's negative from
//! above. Each question about one side is then the same question about the other.
//!
//! These are linear programs in two variables, height `c` at the knot and slope `b` (Duda et al., 1987, draw them by
//! hand). For a slope, `room(b)` is the distance of the highest line below `up` and the lowest above `down`. It is
//! concave and made of straight parts. Slopes are possible where it is not negative.

use crate::lower_hull::{HullVertex, hull_of_vertices};

/// Maximum error of a room by rounding, ns.
const MAX_ROUNDING_NS: f64 = 1e-4;

/// Bounds of the height of a line at x = 0; infinite where there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LineHeights {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Returns the heights at x = 0 of the lines that pass below `up` and whose negatives pass below `down`. `None` if
/// there is no line.
pub(crate) fn tube(up: &[HullVertex], down: &[HullVertex]) -> Option<LineHeights> {
    let steepest = steepest(up, down)?;
    let flattest = -self::steepest(down, up)?;
    let high = highest(up, flattest, steepest);
    let low = -highest(down, -steepest, -flattest);
    if low <= high {
        return Some(LineHeights { low, high });
    }
    // Only rounding parts them, as there is a line.
    let middle = f64::midpoint(low, high);
    Some(LineHeights { low: middle, high: middle })
}

/// Returns the greatest possible slope, `INFINITY` if any is possible; `None` if there is no line at all.
///
/// Newton's method from a slope that is too great. Each step goes to the slope at which the two vertices that it stands
/// on leave no room. So it ends, at a slope that two vertices give.
pub(crate) fn steepest(up: &[HullVertex], down: &[HullVertex]) -> Option<f64> {
    let (Some(&last), Some(&first)) = (up.last(), down.first()) else {
        return Some(f64::INFINITY);
    };
    let (mut above, mut below) = (last, first);
    if above.x <= below.x {
        let touch = above.x == below.x && above.y + below.y < -MAX_ROUNDING_NS;
        return (!touch).then_some(f64::INFINITY);
    }
    for _ in 0..=up.len() + down.len() {
        let slope = (above.y + below.y) / (above.x - below.x);
        (above, below) = (touch(up, slope), touch(down, -slope));
        let room = above.y - slope * above.x + below.y + slope * below.x;
        if room >= -MAX_ROUNDING_NS {
            return Some(slope);
        }
        // The room grows with the slope, and greater ones are known to be impossible.
        if above.x <= below.x {
            return None;
        }
    }
    None
}

/// Finds the vertex that a line of this slope touches first when it comes from below.
pub(crate) fn touch(hull: &[HullVertex], slope: f64) -> HullVertex {
    let (mut low, mut high) = (0, hull.len() - 1);
    while low < high {
        let middle = low.midpoint(high);
        let (a, b) = (hull[middle], hull[middle + 1]);
        if b.y - a.y < slope * (b.x - a.x) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    hull[low]
}

/// Returns the greatest height at x = 0 of a line below `up` with a slope between these.
fn highest(up: &[HullVertex], flattest: f64, steepest: f64) -> f64 {
    let at = |slope: f64| {
        if slope.is_finite() {
            let vertex = touch(up, slope);
            vertex.y - slope * vertex.x
        } else {
            f64::INFINITY
        }
    };
    let next = up.partition_point(|vertex| vertex.x < 0.0);
    let before = next.checked_sub(1).map(|before| up[before]);
    let after = up.get(next).copied();
    let rise = |a: HullVertex, b: HullVertex| (b.y - a.y) / (b.x - a.x);
    match (before, after) {
        (None, None) => f64::INFINITY,
        (None, Some(after)) if after.x > 0.0 => at(flattest),
        (Some(_), None) => at(steepest),
        (before, Some(after)) => {
            let (left, height) = match before {
                Some(before) => {
                    let slope = rise(before, after);
                    (slope, after.y - slope * after.x)
                }
                None => (f64::NEG_INFINITY, after.y),
            };
            let right = match up.get(next + 1) {
                Some(&later) if after.x == 0.0 => rise(after, later),
                None if after.x == 0.0 => f64::INFINITY,
                _ => left,
            };
            if left > steepest {
                at(steepest)
            } else if right < flattest {
                at(flattest)
            } else {
                height
            }
        }
    }
}

/// Bends points away from the knot and makes their hull.
pub(crate) fn bend_hull(vertices: impl Iterator<Item = HullVertex>, kappa: f64) -> Vec<HullVertex> {
    hull_of_vertices(
        vertices.map(|HullVertex { x, y }| HullVertex { x, y: y + kappa / 2.0 * x * x }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hull(points: &[(f64, f64)]) -> Vec<HullVertex> {
        hull_of_vertices(points.iter().map(|&(x, y)| HullVertex { x, y }))
    }

    #[test]
    fn one_direction_bounds_one_side() {
        let up = hull(&[(-1.0, 3.0), (1.0, 5.0)]);
        let found = tube(&up, &[]).expect("there are lines");
        assert_eq!((found.low, found.high), (f64::NEG_INFINITY, 4.0));
        let found = tube(&[], &up).expect("there are lines");
        assert_eq!((found.low, found.high), (-4.0, f64::INFINITY));
    }

    #[test]
    fn points_on_one_side_of_the_knot() {
        // Only later points: from below and above they bound the slope, and so the height at the knot.
        let (up, down) = (hull(&[(1.0, 1.0), (2.0, 1.0)]), hull(&[(1.0, 1.0), (2.0, 1.0)]));
        // Slopes from -2 to 2; steep ones touch the later point.
        let found = tube(&up, &down).expect("there are lines");
        assert_eq!((found.low, found.high), (-3.0, 3.0));
        // A single moment bounds no slope.
        let found = tube(&hull(&[(1.0, 1.0)]), &hull(&[(1.0, 1.0)])).expect("there are lines");
        assert_eq!((found.low, found.high), (f64::NEG_INFINITY, f64::INFINITY));
    }

    #[test]
    fn what_contradicts_itself_has_no_line() {
        assert_eq!(tube(&hull(&[(0.0, 1.0)]), &hull(&[(0.0, -2.0)])), None);
        let (up, down) = (hull(&[(-1.0, 0.0), (1.0, 0.0)]), hull(&[(0.0, -1.0)]));
        assert_eq!(tube(&up, &down), None);
        let (up, down) = (hull(&[(0.0, -1.0)]), hull(&[(-1.0, 0.0), (1.0, 0.0)]));
        assert_eq!(tube(&up, &down), None);
    }

    /// Points around x = 0, each x once and sorted.
    fn points() -> impl Strategy<Value = Vec<(f64, f64)>> {
        prop::collection::btree_map(-20_i32..20, -60_i32..60, 1..12)
            .prop_map(|map| map.into_iter().map(|(x, y)| (f64::from(x), f64::from(y))).collect())
    }

    /// Finds the highest line by trying all slopes that two points give.
    fn try_all(up: &[(f64, f64)], down: &[(f64, f64)]) -> Option<f64> {
        let mut slopes = vec![0.0];
        for &(x, y) in up {
            slopes
                .extend(down.iter().filter(|one| one.0 != x).map(|one| (y + one.1) / (x - one.0)));
            slopes.extend(up.iter().filter(|one| one.0 != x).map(|one| (y - one.1) / (x - one.0)));
        }
        slopes
            .into_iter()
            .filter_map(|slope| {
                let high = up.iter().map(|(x, y)| y - slope * x).reduce(f64::min)?;
                let low = down.iter().map(|(x, y)| -(y + slope * x)).reduce(f64::max)?;
                (high >= low - 1e-9).then_some(high)
            })
            .reduce(f64::max)
    }

    proptest! {
        #[test]
        fn the_tube_is_that_of_all_slopes(up in points(), down in points(), apart in 0_i32..80) {
            let up: Vec<_> = up.into_iter().map(|(x, y)| (x, y + f64::from(apart))).collect();
            let found = tube(&hull(&up), &hull(&down));
            let tried = try_all(&up, &down);
            if let Some(found) = found {
                prop_assert!(found.low <= found.high);
                if found.high.is_finite() {
                    let tried = tried.expect("a line");
                    prop_assert!((found.high - tried).abs() < 1e-6, "{} {tried}", found.high);
                }
            } else {
                prop_assert_eq!(tried, None);
            }
        }

        #[test]
        fn sides_changed_negate(up in points(), down in points()) {
            let (there, back) = (tube(&hull(&up), &hull(&down)), tube(&hull(&down), &hull(&up)));
            prop_assert_eq!(there.map(|tube| (tube.low, tube.high)), back.map(|tube| (-tube.high, -tube.low)));
        }
    }
}
