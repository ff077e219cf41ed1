//! The clock of every row.

use rustix::time::{ClockId, clock_gettime};

const NS_PER_S: u64 = 1_000_000_000;

/// CLOCK_MONOTONIC, ns: the same for all namespaces of a machine.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The kernel gives neither before boot.
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds * NS_PER_S + u64::try_from(now.tv_nsec).unwrap_or_default()
}
