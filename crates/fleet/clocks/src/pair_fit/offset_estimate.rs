//! Estimates of the offset of two hosts, and jumps of their clocks.

use crate::bounds::Bounds;

/// A clock that jumped, or an impossible message: messages before and after contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockJump {
    /// Last message before it, A's time. A message of B may have been under way when the clock jumped.
    pub after_ns: i64,
    /// First message after it, A's time. A message of A may have been under way. Equal to `after_ns` if messages of one
    /// moment contradict each other: these are left out.
    pub before_ns: i64,
}

/// Evidence of an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetEvidence {
    /// Messages within a step.
    Messages,
    /// Messages further away, and the bound of the curvature.
    Curvature,
    /// Messages before and after a jump; which of them hold is not known.
    Jump,
    /// Messages that are all earlier, or all later.
    Beyond,
}

/// Estimate of the offset at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetEstimate {
    /// Middle of the bounds, ns: B's clock less A's. `None` where a bound is missing.
    pub offset_ns: Option<i64>,
    /// Guaranteed bounds, ns.
    pub bounds: Bounds,
    /// Evidence of the bounds.
    pub evidence: OffsetEvidence,
}

/// A row of the table `clock_fit`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitKnot {
    /// A's time.
    pub at_ns: i64,
    /// Estimate at that time.
    pub estimate: OffsetEstimate,
    /// Rate of the offset from here to the next knot, ns/s; `None`: not known.
    pub rate_ns_per_s: Option<f64>,
}

impl OffsetEstimate {
    pub(crate) fn of(bounds: Bounds, evidence: OffsetEvidence) -> Self {
        let middle = match bounds {
            Bounds::Both { low_ns, high_ns } => Some(low_ns.midpoint(high_ns)),
            _ => None,
        };
        Self { offset_ns: middle, bounds, evidence }
    }
}
