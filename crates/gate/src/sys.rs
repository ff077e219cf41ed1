//! The few system calls of the call path, raw: no allocation, no lock, no cancellation point.

use std::ffi::c_int;
use std::sync::atomic::AtomicU32;

/// CLOCK_MONOTONIC in nanoseconds.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for writes; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    // A monotonic clock is never negative.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The calling thread's `errno`.
pub fn errno() -> c_int {
    // SAFETY: the C library gives every thread its own valid location.
    unsafe { *libc::__errno_location() }
}

/// Sets the calling thread's `errno`.
pub fn set_errno(value: c_int) {
    // SAFETY: as in `errno`.
    unsafe { *libc::__errno_location() = value }
}

/// Sleeps while `word` holds `expected`, until woken or until CLOCK_MONOTONIC reaches `until_ns`; may
/// return early (a signal handler ran). Shared between processes. Changes `errno`.
pub fn futex_wait_until(word: &AtomicU32, expected: u32, until_ns: u64) {
    let until = libc::timespec {
        tv_sec: (until_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (until_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `word` lives in a mapping that is never unmapped; the kernel only reads it and `until`.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET,
            expected,
            &raw const until,
            std::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        );
    }
}

/// Wakes everybody who sleeps on `word`, in all processes. Changes `errno`.
pub fn futex_wake_all(word: &AtomicU32) {
    // SAFETY: as in `futex_wait_until`.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, c_int::MAX);
    }
}

/// Sleeps until `until_ns` or until a signal comes.
pub fn sleep_until(until_ns: u64) {
    let until = libc::timespec {
        tv_sec: (until_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (until_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `until` is valid for reads. The raw call is no cancellation point, unlike the C library's
    // wrapper.
    unsafe {
        libc::syscall(
            libc::SYS_clock_nanosleep,
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const until,
            std::ptr::null::<libc::timespec>(),
        );
    }
}

/// Lets others run on this processor first.
pub fn yield_processor() {
    // SAFETY: no arguments, no failure.
    unsafe { libc::sched_yield() };
}

/// Writes the file's dirty pages and waits for them, without a journal commit or a device flush. 0 or
/// an `errno` value; an error is consumed from the open file, so the caller has to report it.
pub fn write_back(fd: c_int) -> c_int {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: plain integers; a bad descriptor is an error, not undefined. The raw call is no
    // cancellation point, unlike the C library's wrapper.
    let result = unsafe { libc::syscall(libc::SYS_sync_file_range, fd, 0i64, 0i64, flags) };
    if result == 0 { 0 } else { errno() }
}
