//! Maps a shared file: created as zeros, owned by its user, raw system calls only.

use std::ffi::{CStr, c_int};
use std::ptr::NonNull;

use crate::sys;

/// A type that may be mapped from a file of zeros.
///
/// # Safety
///
/// All bit patterns, all zeros among them, are valid, and every access is safe while other processes
/// change the memory (atomics, or cells with an owner protocol).
pub unsafe trait Shareable {}

// SAFETY: atomics and numbers throughout; `control` has its owner protocol.
unsafe impl Shareable for crate::rounds::Rounds {}
// SAFETY: atomics throughout.
unsafe impl Shareable for crate::figures::RunFigures {}

/// Why a shared file cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// A system call failed with this `errno`.
    System(c_int),
    /// The file belongs to somebody else, may be written by others, or is no regular file.
    NotOurs,
    /// The file's size is not that of the expected layout.
    OtherLayout,
}

/// Maps the file at `path`, made as zeros if it does not exist. The mapping stays until the process
/// ends. Async-signal-safe; changes `errno`.
///
/// # Errors
///
/// [`MapError`]; nothing stays open or mapped then.
pub fn map<T: Shareable>(path: &CStr) -> Result<&'static T, MapError> {
    open_and_map(path, libc::O_CREAT)
}

/// As [`map`], but the file has to be there.
///
/// # Errors
///
/// [`MapError`]; nothing stays open or mapped then.
pub fn map_existing<T: Shareable>(path: &CStr) -> Result<&'static T, MapError> {
    open_and_map(path, 0)
}

/// Gives a mapping back that nobody else has been shown. Async-signal-safe; changes `errno`.
///
/// # Safety
///
/// `mapped` comes from [`map`] or [`map_existing`], and neither it nor a copy of it is used again.
pub unsafe fn unmap<T: Shareable>(mapped: &'static T) {
    let address = std::ptr::from_ref(mapped).cast_mut().cast();
    // SAFETY: by the caller's promise a whole mapping that nobody uses any more.
    unsafe { libc::munmap(address, size_of::<T>()) };
}

fn open_and_map<T: Shareable>(path: &CStr, creation: c_int) -> Result<&'static T, MapError> {
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW | creation;
    // SAFETY: `path` is a C string; the descriptor is checked.
    let fd = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    if fd < 0 {
        return Err(MapError::System(sys::errno()));
    }
    let mapped = map_descriptor(fd);
    // SAFETY: `fd` was opened above and is not used again; a mapping outlives its descriptor.
    unsafe { libc::close(fd) };
    mapped
}

fn map_descriptor<T: Shareable>(fd: c_int) -> Result<&'static T, MapError> {
    let size = size_of::<T>();
    // SAFETY: all-zero is a valid `stat`.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is valid for writes.
    if unsafe { libc::fstat(fd, &raw mut stat) } != 0 {
        return Err(MapError::System(sys::errno()));
    }
    // SAFETY: no arguments, no failure.
    let user = unsafe { libc::geteuid() };
    let regular = stat.st_mode & libc::S_IFMT == libc::S_IFREG;
    if !regular || stat.st_uid != user || stat.st_mode & 0o077 != 0 {
        return Err(MapError::NotOurs);
    }
    if stat.st_size == 0 {
        // Several processes may do this at once: the file is zeros for all of them.
        // SAFETY: plain integers.
        if unsafe { libc::ftruncate(fd, size as libc::off_t) } != 0 {
            return Err(MapError::System(sys::errno()));
        }
    } else if stat.st_size != size as libc::off_t {
        return Err(MapError::OtherLayout);
    }
    // SAFETY: a fresh shared mapping at an address of the kernel's choice.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            fd,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(MapError::System(sys::errno()));
    }
    let pointer = NonNull::new(address.cast::<T>()).ok_or(MapError::System(libc::ENOMEM))?;
    // SAFETY: page-aligned, `size` bytes long, never unmapped; `T` is `Shareable`, so any content is
    // valid and may change under us.
    Ok(unsafe { pointer.as_ref() })
}
