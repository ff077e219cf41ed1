//! System calls of the gate, and those of the notifier alone.

use std::ffi::c_int;

pub use luc_rounds::call_path_syscalls::*;

pub fn errno() -> c_int {
    // SAFETY: the C library gives every thread its own valid location.
    unsafe { *libc::__errno_location() }
}

/// Whether the kernel has recorded a failed write of the file so that the open file's next `fsync` finds it. The error
/// of an early write does not tell: it may be of a block that could not be allocated, which is recorded nowhere.
///
/// Asks through an open file of its own. That file's place in the mapping's `errseq_t` is before the error unless
/// somebody has seen it. The place of `fd`'s open file stays. If the file cannot be opened, the error counts as
/// recorded.
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
