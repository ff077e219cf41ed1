//! Clocks of traces beside each other.

use std::fmt::Debug;

use crate::graph_ids::TraceIndex;

/// Relates the clocks of traces. A constant difference is enough within a call.
pub trait TraceClocks: Debug {
    /// Returns the time that the clock of `to` shows, less that of `from`, when `from` shows `at_ns`; `None` if that is
    /// not known.
    fn ahead_ns(&self, from: TraceIndex, to: TraceIndex, at_ns: u64) -> Option<i64>;
}

/// The clock of a single trace, or one that all traces share.
#[derive(Debug, Clone, Copy, Default)]
pub struct OneClock;

impl TraceClocks for OneClock {
    fn ahead_ns(&self, _: TraceIndex, _: TraceIndex, _: u64) -> Option<i64> {
        Some(0)
    }
}
