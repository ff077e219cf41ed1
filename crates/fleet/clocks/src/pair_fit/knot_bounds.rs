//! Bounds at a knot.

/// Bounds at a knot, relative to the segment's base; infinite where there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct KnotBounds {
    pub(super) at_ns: i64,
    pub(super) low: f64,
    pub(super) high: f64,
}
