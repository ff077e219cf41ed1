//! System calls of the gate, and what only the notifier asks of the kernel.

use std::ffi::c_int;

pub use luc_rounds::sys::*;

/// The calling thread's `errno`.
pub fn errno() -> c_int {
    // SAFETY: the C library gives every thread its own valid location.
    unsafe { *libc::__errno_location() }
}

/// Whether the kernel has recorded a failed write of the file where the open file's next `fsync` finds it. An early
/// write that failed does not tell: its error may be of a block that could not be allocated, which is recorded nowhere.
///
/// Asks by an open file of its own, whose place in the mapping's `errseq_t` is before the error unless somebody has seen
/// it; the place of `fd`'s open file stays. Where that cannot be had, it is taken for recorded.
pub fn has_recorded_error(fd: c_int) -> bool {
    let path = format!("/proc/self/fd/{fd}");
    let flags = rustix::fs::OFlags::RDONLY
        | rustix::fs::OFlags::CLOEXEC
        | rustix::fs::OFlags::NONBLOCK
        | rustix::fs::OFlags::NOCTTY;
    let Ok(again) = rustix::fs::open(path, flags, rustix::fs::Mode::empty()) else {
        return true;
    };
    // SAFETY: plain integers. It waits for pages that are being written, and starts none.
    let result = unsafe {
        libc::sync_file_range(
            std::os::fd::AsRawFd::as_raw_fd(&again),
            0,
            0,
            libc::SYNC_FILE_RANGE_WAIT_BEFORE,
        )
    };
    if result == 0 && is_on_overlay(&again) {
        // What is recorded below is told to a call that gets there. It makes durable what the program is about to.
        return rustix::fs::fdatasync(&again).is_err();
    }
    result != 0
}

/// Whether a file is on an overlay, whose open files stand for those below.
fn is_on_overlay(file: &std::os::fd::OwnedFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type == libc::OVERLAYFS_SUPER_MAGIC)
}
