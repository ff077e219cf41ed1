//! Lower hulls of points that are bent. A quantity whose curvature is bounded lies below the chord of a point's
//! neighbours, but for the bend.
//!
//! Adding a parabola to all points of one time frame adds a linear function when the frame is moved. So which points
//! are on the hull does not depend on the knot that the bend is measured from, and a hull is made once for all knots.

/// A point relative to a knot: s and ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HullVertex {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// Returns the maximum distance to a chord of a quantity of curvature at most `kappa`, at `before` s after the chord's
/// begin and `after` s before its end.
pub(crate) fn bend(kappa: f64, before: f64, after: f64) -> f64 {
    kappa / 2.0 * before * after
}

/// Returns the height above the first end of the chord that rises by `rise` over `before + after` s, with its bend.
pub(crate) fn chord(kappa: f64, rise: f64, before: f64, after: f64) -> f64 {
    let length = before + after;
    if length > 0.0 { rise * (before / length) + bend(kappa, before, after) } else { rise.min(0.0) }
}

/// Returns the items on the lower hull. `items` are sorted by time, each time once. `is_needless(a, b, c)` is true if
/// `b` bounds nothing between `a` and `c` (Andrew's monotone chain, 1979).
pub(crate) fn lower_hull<T: Copy>(
    items: impl Iterator<Item = T>,
    is_needless: impl Fn(T, T, T) -> bool,
) -> Vec<T> {
    let mut hull: Vec<T> = Vec::new();
    for item in items {
        while let [.., before, last] = hull[..]
            && is_needless(before, last, item)
        {
            hull.pop();
        }
        hull.push(item);
    }
    hull
}

/// Returns the hull of points that are bent already.
pub(crate) fn hull_of_vertices(vertices: impl Iterator<Item = HullVertex>) -> Vec<HullVertex> {
    lower_hull(vertices, |a, b, c| b.y - a.y >= chord(0.0, c.y - a.y, b.x - a.x, c.x - b.x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_above_a_chord_is_left_out() {
        let vertices = [(0.0, 0.0), (1.0, 1.0), (2.0, -1.0), (3.0, 0.0), (4.0, 1.0)];
        let hull = hull_of_vertices(vertices.into_iter().map(|(x, y)| HullVertex { x, y }));
        let left: Vec<f64> = hull.iter().map(|vertex| vertex.x).collect();
        assert_eq!(left, [0.0, 2.0, 4.0]);
    }

    #[test]
    fn a_bend_keeps_what_a_straight_chord_would_leave_out() {
        assert_eq!(chord(8.0, 0.0, 0.5, 0.5), 1.0);
        assert_eq!(chord(8.0, 2.0, 0.5, 0.5), 2.0);
        assert_eq!(chord(8.0, 2.0, 0.0, 0.0), 0.0);
    }

    proptest! {
        #[test]
        fn no_point_is_below_the_hull(heights in prop::collection::vec(-100_f64..100.0, 2..60)) {
            let vertices: Vec<HullVertex> = heights
                .iter()
                .enumerate()
                .map(|(at, &y)| HullVertex { x: at as f64, y })
                .collect();
            let hull = hull_of_vertices(vertices.iter().copied());
            for vertex in vertices {
                let next = hull.iter().position(|other| other.x >= vertex.x).expect("inside");
                let (a, c) = (hull[next.saturating_sub(1)], hull[next]);
                let height = a.y + chord(0.0, c.y - a.y, vertex.x - a.x, c.x - vertex.x);
                prop_assert!(next == 0 || vertex.y >= height - 1e-9);
            }
        }
    }
}
