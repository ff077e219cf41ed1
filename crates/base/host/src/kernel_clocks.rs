//! The kernel's clocks, in nanoseconds.

pub use rustix::time::ClockId;
use rustix::time::clock_gettime;

/// Returns the time of CLOCK_MONOTONIC, ns: the same for all processes, BPF programs and namespaces of a machine. It
/// stands still while the machine is suspended.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// Returns the time of a clock, ns.
#[inline]
#[must_use]
pub fn read_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
