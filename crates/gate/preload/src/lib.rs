//! `libluc_gate.so`: interposes `fsync`, `fdatasync` and `msync` of a dynamically linked program.
//!
//! Loaded by `luc run` through LD_PRELOAD. Without `luc run`'s environment, or wherever anything is not
//! as expected, each call goes straight to the C library's.
//!
//! The exported functions are `C-unwind`: the real calls are cancellation points, and a cancelled thread
//! unwinds through the frames here, none of which holds anything to drop.

mod mappings;
mod overwrites;
mod places;
mod process;
mod real;
mod thread;

use std::ffi::{c_int, c_void};

use luc_gate_core::CallKind;

/// `fsync(2)`, together with the others of its file system.
///
/// # Safety
///
/// As the C library's: none beyond the descriptor being the program's own business.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fsync(fd: c_int) -> c_int {
    places::synchronize_file(CallKind::Fsync, fd, || real::fsync(fd))
}

/// `fdatasync(2)`, together with the others of its file system.
///
/// # Safety
///
/// As for [`fsync`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fdatasync(fd: c_int) -> c_int {
    places::synchronize_file(CallKind::Fdatasync, fd, || real::fdatasync(fd))
}

/// `msync(2)`; with `MS_SYNC`, together with the others of its file system.
///
/// # Safety
///
/// As the C library's: `address` must be a mapping of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn msync(address: *mut c_void, length: usize, flags: c_int) -> c_int {
    let call = || real::msync(address, length, flags);
    if flags & libc::MS_SYNC == 0 {
        call()
    } else {
        places::synchronize_mapping(address, call)
    }
}
