//! Symbols of a C library that may be missing.

use core::arch::asm;
use core::ffi::{CStr, c_char, c_int, c_ulong, c_void};

/// The address of a symbol that a library of the process defines; null if none does.
#[cfg(target_arch = "x86_64")]
macro_rules! weak {
    ($name:literal) => {{
        let address: *mut c_void;
        // SAFETY: loads the address that the loader has written for the symbol.
        unsafe {
            asm!(
                concat!(".weak ", $name),
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(nostack, pure, readonly, preserves_flags),
            );
        }
        address
    }};
}

/// The address of a symbol that a library of the process defines; null if none does.
#[cfg(target_arch = "aarch64")]
macro_rules! weak {
    ($name:literal) => {{
        let address: *mut c_void;
        // SAFETY: loads the address that the loader has written for the symbol.
        unsafe {
            asm!(
                concat!(".weak ", $name),
                concat!("adrp {0}, :got:", $name),
                concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                out(reg) address,
                options(nostack, pure, readonly, preserves_flags),
            );
        }
        address
    }};
}

/// A function at an address that [`weak`] gave.
macro_rules! function {
    ($name:literal as $type:ty) => {{
        let address = weak!($name);
        // SAFETY: null is `None`; otherwise the C library's function of this name has this signature.
        unsafe { core::mem::transmute::<*mut c_void, Option<$type>>(address) }
    }};
}

/// Sets the calling thread's `errno`, if there is one.
pub(crate) fn set_errno(value: c_int) {
    if let Some(place) = errno_location() {
        // SAFETY: the C library gives every thread its own valid location.
        unsafe { *place = value };
    }
}

/// The calling thread's `errno`; 0 if there is none.
pub(crate) fn errno() -> c_int {
    // SAFETY: as in `set_errno`.
    errno_location().map_or(0, |place| unsafe { *place })
}

fn errno_location() -> Option<*mut c_int> {
    let location = function!("__errno_location" as unsafe extern "C" fn() -> *mut c_int)?;
    // SAFETY: it has no arguments.
    Some(unsafe { location() })
}

/// The next function of this name behind the library; null if there is none.
pub(crate) fn next(name: &CStr) -> *mut c_void {
    type Find = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
    match function!("dlsym" as Find) {
        // SAFETY: a C string and a pseudo handle that exists wherever `dlsym` does.
        Some(find) => unsafe { find(libc::RTLD_NEXT, name.as_ptr()) },
        None => core::ptr::null_mut(),
    }
}

/// The process' environment; null if it is not known.
pub(crate) fn environment() -> *const *const c_char {
    let place = weak!("environ").cast::<*const *const c_char>();
    if place.is_null() {
        return core::ptr::null();
    }
    // SAFETY: the C library's variable of this name.
    unsafe { *place }
}

/// The effective user that this process was started as; `None` if it is not known. Without a system call: a filter may
/// kill for `geteuid`, which the dynamic loader does not make.
pub(crate) fn user_at_start() -> Option<u32> {
    auxiliary(libc::AT_EUID).map(|user| user as u32)
}

/// A value of the auxiliary vector (getauxval(3)); `None` without a C library that reads it.
pub(crate) fn auxiliary(kind: c_ulong) -> Option<c_ulong> {
    let find = function!("getauxval" as unsafe extern "C" fn(c_ulong) -> c_ulong)?;
    // SAFETY: no memory of ours.
    Some(unsafe { find(kind) })
}

/// Sets a variable of the environment, if there is a C library. To be called while the process has one thread.
pub(crate) fn set_variable(name: &CStr, value: &CStr) {
    type Set = unsafe extern "C" fn(*const c_char, *const c_char, c_int) -> c_int;
    if let Some(set) = function!("setenv" as Set) {
        // SAFETY: two C strings; the caller's process has one thread.
        unsafe { set(name.as_ptr(), value.as_ptr(), 1) };
    }
}
