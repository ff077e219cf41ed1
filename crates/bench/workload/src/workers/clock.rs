//! The clock of all clients, and each client's own.

use rustix::time::{ClockId, clock_gettime};

#[inline]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the processor time of the calling thread, ns (CLOCK_THREAD_CPUTIME_ID).
pub(crate) fn used_ns() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}
