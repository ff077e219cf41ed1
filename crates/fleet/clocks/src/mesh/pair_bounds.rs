//! Bounds of a pair at a moment.

use crate::host_ids::HostIndex;

/// Bounds of the offset of two hosts at a moment. Missing ones are infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairBounds {
    /// The host that offsets are relative to.
    pub a: HostIndex,
    /// The other host.
    pub b: HostIndex,
    /// Least possible value of B's clock less A's, ns.
    pub low_ns: f64,
    /// Greatest possible value, ns.
    pub high_ns: f64,
}
