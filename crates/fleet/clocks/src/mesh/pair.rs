//! What a pair says at a moment.

/// What a pair says of the clocks of two hosts at a moment: `high` is infinite where there is no bound, `low` is minus
/// infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairBounds {
    /// The host that offsets are relative to, from 0.
    pub a: usize,
    /// The other.
    pub b: usize,
    /// B's clock less A's is at least this, ns.
    pub low_ns: f64,
    /// And at most this, ns.
    pub high_ns: f64,
}
