//! The C library's own functions behind the interposed ones.

use std::ffi::{CStr, c_int, c_long, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

static FSYNC: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static FDATASYNC: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static MSYNC: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static PRCTL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static SYSCALL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Looks the functions up; to be called while the process is still single-threaded.
pub(crate) fn resolve() {
    for (name, place) in [
        (c"fsync", &FSYNC),
        (c"fdatasync", &FDATASYNC),
        (c"msync", &MSYNC),
        (c"prctl", &PRCTL),
        (c"syscall", &SYSCALL),
    ] {
        place.store(next(name), Relaxed);
    }
}

fn next(name: &CStr) -> *mut c_void {
    // SAFETY: a C string and a pseudo handle that exists wherever LD_PRELOAD does.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

type OfDescriptor = unsafe extern "C-unwind" fn(c_int) -> c_int;
type OfMapping = unsafe extern "C-unwind" fn(*mut c_void, usize, c_int) -> c_int;

pub(crate) fn fsync(fd: c_int) -> c_int {
    of_descriptor(&FSYNC, libc::SYS_fsync, fd)
}

pub(crate) fn fdatasync(fd: c_int) -> c_int {
    of_descriptor(&FDATASYNC, libc::SYS_fdatasync, fd)
}

fn of_descriptor(place: &AtomicPtr<c_void>, number: c_long, fd: c_int) -> c_int {
    let found = place.load(Relaxed);
    if found.is_null() {
        // Another library's constructor calls before ours has run: the kernel's call itself.
        // SAFETY: a plain integer.
        return unsafe { libc::syscall(number, fd) as c_int };
    }
    // SAFETY: the C library's function of this name has this signature.
    let function = unsafe { std::mem::transmute::<*mut c_void, OfDescriptor>(found) };
    // SAFETY: any integer may be passed; a bad descriptor is an error.
    unsafe { function(fd) }
}

pub(crate) fn msync(address: *mut c_void, length: usize, flags: c_int) -> c_int {
    let found = MSYNC.load(Relaxed);
    if found.is_null() {
        // SAFETY: the kernel checks the range; it writes the mapping's pages out and changes nothing.
        return unsafe { libc::syscall(libc::SYS_msync, address, length, flags) as c_int };
    }
    // SAFETY: the C library's function of this name has this signature.
    let function = unsafe { std::mem::transmute::<*mut c_void, OfMapping>(found) };
    // SAFETY: passed on as given by the program.
    unsafe { function(address, length, flags) }
}

type Prctl = unsafe extern "C-unwind" fn(c_int, c_ulong, c_ulong, c_ulong, c_ulong) -> c_int;
type Syscall =
    unsafe extern "C-unwind" fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long;

/// # Safety
///
/// As the C library's `prctl`.
pub(crate) unsafe fn prctl(option: c_int, arguments: [c_ulong; 4]) -> c_int {
    let function = found(&PRCTL, c"prctl");
    // SAFETY: the C library's function of this name takes an `int` and up to four `unsigned long`.
    let function = unsafe { std::mem::transmute::<*mut c_void, Prctl>(function) };
    let [a, b, c, d] = arguments;
    // SAFETY: passed on as given by the program.
    unsafe { function(option, a, b, c, d) }
}

/// # Safety
///
/// As the C library's `syscall`.
pub(crate) unsafe fn syscall(number: c_long, arguments: [c_long; 6]) -> c_long {
    let function = found(&SYSCALL, c"syscall");
    // SAFETY: the C library's function of this name takes a number and up to six `long`.
    let function = unsafe { std::mem::transmute::<*mut c_void, Syscall>(function) };
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: passed on as given by the program.
    unsafe { function(number, a, b, c, d, e, f) }
}

/// The function behind `place`, looked up now if another library's constructor calls before ours has run.
fn found(place: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = place.load(Relaxed);
    if known.is_null() {
        place.store(next(name), Relaxed);
    }
    place.load(Relaxed)
}
