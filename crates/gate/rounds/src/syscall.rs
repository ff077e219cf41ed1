//! System calls by instruction: nothing that another library can interpose, no `errno`, no cancellation point.

use core::arch::asm;
use core::ffi::{c_int, c_long};

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
        let (process, closed) = unsafe {
            (
                call(libc::SYS_getpid, []),
                call(libc::SYS_close, [usize::MAX]),
            )
        };
        assert_eq!(process, Ok(std::process::id() as usize));
        assert_eq!(closed, Err(Errno(libc::EBADF)));
    }
}
