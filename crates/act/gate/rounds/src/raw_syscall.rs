//! System calls by instruction: nothing that another library can interpose, no `errno`, no cancellation point.

use core::arch::asm;
use core::ffi::{c_int, c_long};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};

/// The `errno` value of a system call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

/// The largest value that the kernel returns for an error, negated.
const MAX_ERRNO: isize = 4095;

/// Makes a system call with up to six arguments.
///
/// # Safety
///
/// The arguments must be valid for the call of this number, as its manual page says.
pub unsafe fn call<const N: usize>(number: c_long, arguments: [usize; N]) -> Result<usize, Errno> {
    // SAFETY: as the caller promises.
    counted(|| unsafe { call_always(number, arguments) }).unwrap_or(Err(Errno(libc::ENOSYS)))
}

/// As [`call`], also after [`end`]: for what the program itself calls.
///
/// # Safety
///
/// As [`call`].
pub unsafe fn call_always<const N: usize>(
    number: c_long,
    arguments: [usize; N],
) -> Result<usize, Errno> {
    const { assert!(N <= 6) };
    let mut six = [0; 6];
    let mut index = 0;
    while index < N {
        six[index] = arguments[index];
        index += 1;
    }
    // SAFETY: as the caller promises; unused arguments are ignored by the kernel.
    let result = unsafe { enter(number as isize, six) };
    if (-MAX_ERRNO..0).contains(&result) {
        Err(Errno(-result as c_int))
    } else {
        Ok(result as usize)
    }
}

/// Calls that are being made, and [`ENDED`].
static CALLS: AtomicU32 = AtomicU32::new(0);

/// No further calls are made.
const ENDED: u32 = 1 << 31;

/// How often, and for how long each time, [`end`] waits for calls that are being made. Longer than a caller is held.
const WAITS: u32 = 50;
const WAIT_NS: libc::c_long = 1_000_000;

/// Makes a call that [`end`] waits for; `None` after that.
pub(crate) fn counted<T>(make: impl FnOnce() -> T) -> Option<T> {
    let may = CALLS.fetch_add(1, AcqRel) & ENDED == 0;
    let made = may.then(make);
    CALLS.fetch_sub(1, Release);
    made
}

/// Makes no further call in this process: each is answered with ENOSYS. Waits, in bounds, until none is being made. One
/// may be lost, of a thread that a handler's jump took out of it or of the process that this one was forked from. A
/// descriptor that a thread has open for a moment stays open then.
pub fn end() {
    CALLS.fetch_or(ENDED, AcqRel);
    let time = libc::timespec { tv_sec: 0, tv_nsec: WAIT_NS };
    for _ in 0..WAITS {
        if CALLS.load(Acquire) == ENDED {
            return;
        }
        let arguments = [&raw const time as usize, 0, 0, 0, 0, 0];
        // SAFETY: `time` is valid for reads.
        unsafe { enter(libc::SYS_nanosleep as isize, arguments) };
    }
}

/// # Safety
///
/// As [`call`].
#[cfg(target_arch = "x86_64")]
unsafe fn enter(number: isize, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let result;
    // SAFETY: the kernel changes rax, rcx and r11, and the memory that the call's arguments name.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// # Safety
///
/// As [`call`].
#[cfg(target_arch = "aarch64")]
unsafe fn enter(number: isize, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let result;
    // SAFETY: the kernel changes x0, and the memory that the call's arguments name.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            in("x4") e,
            in("x5") f,
            options(nostack),
        );
    }
    result
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("write `enter` for this processor: one instruction and its registers");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_errors_are_the_kernel_s() {
        // SAFETY: neither has arguments in memory.
        let (process, closed) =
            unsafe { (call(libc::SYS_getpid, []), call(libc::SYS_close, [usize::MAX])) };
        assert_eq!(process, Ok(std::process::id() as usize));
        assert_eq!(closed, Err(Errno(libc::EBADF)));
    }

    #[test]
    fn after_the_end_only_the_program_s_calls_are_made() {
        // SAFETY: the child makes system calls only, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            end();
            // SAFETY: no arguments.
            let (own, program) =
                unsafe { (call(libc::SYS_getpid, []), call_always(libc::SYS_getpid, [])) };
            let is_right = own == Err(Errno(libc::ENOSYS)) && program.is_ok();
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!is_right)) };
        }
        let mut status = -1;
        // SAFETY: this process' own child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
    }
}
