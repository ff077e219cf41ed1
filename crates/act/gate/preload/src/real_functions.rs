//! The C library's own functions behind the interposed ones, or those of other libraries that interpose them, too.
//!
//! They are cancellation points: a cancelled thread unwinds through the frames here. None of these holds anything to
//! drop. The calls are made by assembly, about whose unwinding the compiler assumes nothing.

use core::arch::asm;
use core::ffi::{CStr, c_int, c_long, c_ulong, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use luc_rounds::raw_syscall::{Errno, call_always};

use crate::weak_symbols;

/// A function that is looked up once.
struct Function {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Function {
    const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(core::ptr::null_mut()) }
    }

    fn resolve(&self) {
        self.found.store(weak_symbols::next(self.name), Relaxed);
    }

    /// Calls the function. Makes the system call itself if no library has the function, or another library's
    /// constructor calls before ours has run.
    fn call(&self, number: c_long, arguments: [usize; 6]) -> isize {
        let found = self.found.load(Relaxed);
        if !found.is_null() {
            // SAFETY: the function of this name takes integers and pointers, passed on as given by the program.
            return unsafe { call_function(found, arguments) };
        }
        as_c(raw(number, arguments))
    }
}

/// A system call with the program's own arguments.
fn raw(number: c_long, arguments: [usize; 6]) -> Result<usize, Errno> {
    // SAFETY: passed on as given by the program.
    unsafe { call_always(number, arguments) }
}

/// The result as a C library returns it.
pub(crate) fn as_c(result: Result<usize, Errno>) -> isize {
    match result {
        Ok(value) => value as isize,
        Err(Errno(errno)) => {
            weak_symbols::set_errno(errno);
            -1
        }
    }
}

static FSYNC: Function = Function::new(c"fsync");
static FDATASYNC: Function = Function::new(c"fdatasync");
static MSYNC: Function = Function::new(c"msync");
static PRCTL: Function = Function::new(c"prctl");
static SYSCALL: Function = Function::new(c"syscall");

/// Looks the functions up, while the process has one thread. Later this would wait for a thread that loads a library,
/// and take the program's `dlerror` away.
pub(crate) fn resolve() {
    for function in [&FSYNC, &FDATASYNC, &MSYNC, &PRCTL, &SYSCALL] {
        function.resolve();
    }
}

pub(crate) fn fsync(fd: c_int) -> c_int {
    FSYNC.call(libc::SYS_fsync, [fd as usize, 0, 0, 0, 0, 0]) as c_int
}

pub(crate) fn fdatasync(fd: c_int) -> c_int {
    FDATASYNC.call(libc::SYS_fdatasync, [fd as usize, 0, 0, 0, 0, 0]) as c_int
}

pub(crate) fn msync(address: *mut c_void, length: usize, flags: c_int) -> c_int {
    let arguments = [address as usize, length, flags as usize, 0, 0, 0];
    MSYNC.call(libc::SYS_msync, arguments) as c_int
}

pub(crate) fn prctl(option: c_int, [a, b, c, d]: [c_ulong; 4]) -> c_int {
    let [a, b, c, d] = [a, b, c, d].map(|word| word as usize);
    PRCTL.call(libc::SYS_prctl, [option as usize, a, b, c, d, 0]) as c_int
}

pub(crate) fn syscall(number: c_long, arguments: [c_long; 6]) -> c_long {
    let arguments = arguments.map(|word| word as usize);
    let found = SYSCALL.found.load(Relaxed);
    if found.is_null() {
        return as_c(raw(number, arguments)) as c_long;
    }
    type Syscall = unsafe extern "C" fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long;
    // SAFETY: the C library's function of this name has this signature; it is no cancellation point.
    let function = unsafe { core::mem::transmute::<*mut c_void, Syscall>(found) };
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: passed on as given by the program.
    unsafe { function(number, a, b, c, d, e, f) }
}

/// # Safety
/// `function` takes up to six integers or pointers by the C library's convention, valid as these are.
#[cfg(target_arch = "x86_64")]
unsafe fn call_function(function: *mut c_void, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let result;
    // SAFETY: as the caller promises. Without `nostack` the stack is aligned for a call.
    unsafe {
        asm!(
            "call {function}",
            function = in(reg) function,
            inlateout("rdi") a => _,
            inlateout("rsi") b => _,
            inlateout("rdx") c => _,
            inlateout("rcx") d => _,
            inlateout("r8") e => _,
            inlateout("r9") f => _,
            // As functions with optional arguments want it: none of them is a float.
            inlateout("rax") 0_usize => result,
            clobber_abi("C"),
        );
    }
    result
}

/// # Safety
/// `function` takes up to six integers or pointers by the C library's convention, valid as these are.
#[cfg(target_arch = "aarch64")]
unsafe fn call_function(function: *mut c_void, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let result;
    // SAFETY: as the caller promises. Without `nostack` the stack is aligned for a call.
    unsafe {
        asm!(
            "blr {function}",
            function = in(reg) function,
            inlateout("x0") a => result,
            inlateout("x1") b => _,
            inlateout("x2") c => _,
            inlateout("x3") d => _,
            inlateout("x4") e => _,
            inlateout("x5") f => _,
            clobber_abi("C"),
        );
    }
    result
}
