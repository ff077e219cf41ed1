//! Where an event is on the clock of the reference host.

use crate::bounds::Bounds;

/// A time on the reference host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// The estimate; `None` where a bound is missing.
    pub at_ns: Option<i64>,
    /// The guaranteed bounds.
    pub bounds: Bounds,
}
