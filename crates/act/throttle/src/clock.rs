//! The clock of all times in this crate.

use rustix::time::{ClockId, clock_gettime};

/// Time of CLOCK_MONOTONIC, ns. BPF programs use it, too. It stands still while the machine is suspended.
#[must_use]
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
