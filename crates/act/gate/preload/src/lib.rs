//! `libluc_gate_preload.so`: interposes `fsync`, `fdatasync` and `msync` of a dynamically linked program.
//!
//! It also watches `prctl` and `syscall` for a program that puts itself under a filter of system calls (seccomp). A
//! filter may kill the process for any call that the gate makes, so the gate leaves.
//!
//! `luc run` loads it through LD_PRELOAD. Without `luc run`'s environment, or if anything is not as expected, each call
//! goes straight to the C library's.
//!
//! Every loader can load it: it needs no other library and no symbol that a C library must have, because
//! `scripts/preload.sh` links it alone. The symbols of a C library that it uses are in `weak_symbols.rs`, and may be
//! missing.

#![no_std]

// Otherwise a standard library is there, whose C library has these.
mod call_file_systems;
mod environment_variables;
mod library_start;
#[cfg(panic = "abort")]
mod memory_functions;
mod process_state;
mod real_functions;
mod retry_notified_call;
mod systemd_unit;
mod thread_state;
mod weak_symbols;

use core::ffi::{c_int, c_long, c_ulong, c_void};

use luc_rounds::GatedCallKind;

/// `fsync(2)`, together with the others of its file system.
///
/// # Safety
/// As the C library's: none beyond the descriptor being the program's own business.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    call_file_systems::synchronize_file(GatedCallKind::Fsync, fd, || real_functions::fsync(fd))
}

/// `fdatasync(2)`, together with the others of its file system.
///
/// # Safety
/// As for [`fsync`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    call_file_systems::synchronize_file(GatedCallKind::Fdatasync, fd, || {
        real_functions::fdatasync(fd)
    })
}

/// `msync(2)`; with `MS_SYNC`, together with the others of its file system.
///
/// # Safety
/// As the C library's: `address` must be a mapping of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msync(address: *mut c_void, length: usize, flags: c_int) -> c_int {
    let call = || real_functions::msync(address, length, flags);
    if flags & libc::MS_SYNC == 0 {
        call()
    } else {
        call_file_systems::synchronize_mapping(address, call)
    }
}

/// `prctl(2)`; with `PR_SET_SECCOMP` the gate leaves the process first.
///
/// # Safety
/// As the C library's. Its further arguments are optional there; unused ones are passed on unseen.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(
    option: c_int,
    a: c_ulong,
    b: c_ulong,
    c: c_ulong,
    d: c_ulong,
) -> c_int {
    if option == libc::PR_SET_SECCOMP {
        process_state::leave();
    }
    real_functions::prctl(option, [a, b, c, d])
}

/// `syscall(2)`; with a number that sets a filter of system calls the gate leaves the process first.
///
/// # Safety
/// As the C library's. Its further arguments are optional there; unused ones are passed on unseen.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    let sets_filter = match number {
        libc::SYS_seccomp => {
            a == c_long::from(libc::SECCOMP_SET_MODE_STRICT)
                || a == c_long::from(libc::SECCOMP_SET_MODE_FILTER)
        }
        libc::SYS_prctl => a == c_long::from(libc::PR_SET_SECCOMP),
        _ => false,
    };
    if sets_filter {
        process_state::leave();
    }
    real_functions::syscall(number, [a, b, c, d, e, f])
}

/// Ends the process where the library's own code is wrong. It cannot unwind.
#[cfg(panic = "abort")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        // SAFETY: ends the process; there are no arguments in memory.
        let _ = unsafe { luc_rounds::raw_syscall::call_always(libc::SYS_exit_group, [134]) };
    }
}
