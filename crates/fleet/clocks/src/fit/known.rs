//! What is known of the offset of two hosts, and where its clocks jumped.

use crate::bounds::Bounds;

/// A clock that jumped, or a message that cannot be: what the messages say before and after contradicts each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jump {
    /// The last message that is before it, A's time. A message of B's may have been under way when the clock jumped.
    pub after_ns: i64,
    /// The first message that is after it, A's time. A message of A's may have been under way. The same as `after_ns`
    /// where messages of one moment contradict each other: these are left out.
    pub before_ns: i64,
}

/// What an offset is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// Messages within a step.
    Messages,
    /// Messages further away, and the bound of the curvature.
    Curvature,
    /// Messages before and after a jump: which hold is not known.
    Jump,
    /// Messages that all are earlier, or all later.
    Beyond,
}

/// What is known of the offset at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// The middle of the bounds, ns: B's clock less A's. `None` where a bound is missing.
    pub offset_ns: Option<i64>,
    /// The guaranteed bounds, ns.
    pub bounds: Bounds,
    /// What they rest on.
    pub evidence: Evidence,
}

/// A row of the table `clock_fit`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knot {
    /// A's time.
    pub at_ns: i64,
    /// What is known then.
    pub estimate: Estimate,
    /// How fast the offset grows from here to the next knot, ns/s; `None` where that is not known.
    pub rate_ns_per_s: Option<f64>,
}

impl Estimate {
    pub(crate) fn of(bounds: Bounds, evidence: Evidence) -> Self {
        let middle = match bounds {
            Bounds::Both { low_ns, high_ns } => Some(low_ns.midpoint(high_ns)),
            _ => None,
        };
        Self { offset_ns: middle, bounds, evidence }
    }
}
