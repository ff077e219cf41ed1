//! A time on the clock of the reference host.

use crate::bounds::Bounds;

/// A time on the reference host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceTime {
    /// Estimate; `None` where a bound is missing.
    pub at_ns: Option<i64>,
    /// Guaranteed bounds.
    pub bounds: Bounds,
}

impl ReferenceTime {
    /// Returns a time of the reference host itself.
    pub(super) fn exactly(at_ns: i64) -> Self {
        Self { at_ns: Some(at_ns), bounds: Bounds::Both { low_ns: at_ns, high_ns: at_ns } }
    }
}
