//! Maps a shared file: created as zeros, owned by its user, raw system calls only.
//!
//! Only `luc run` creates files ([`create`]); programs under the gate map what is there ([`map`]). So a
//! program's limits on the size of files, or a full /dev/shm, cannot end it in the middle of a call.

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

// SAFETY: atomics and numbers throughout; each `control` has its owner protocol.
unsafe impl Shareable for crate::rounds::Arena {}
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

/// Maps the file at `path`, made as zeros if it does not exist, with all of its memory allocated. The
/// mapping stays until the process ends. Changes `errno`.
///
/// # Errors
///
/// [`MapError`]; nothing stays open or mapped then. `ENOSPC` if the file system has no room.
pub fn create<T: Shareable>(path: &CStr) -> Result<&'static T, MapError> {
    open_and_map(path, libc::O_CREAT)
}

/// As [`create`], but the file has to be there. Async-signal-safe.
///
/// # Errors
///
/// [`MapError`]; nothing stays open or mapped then.
pub fn map<T: Shareable>(path: &CStr) -> Result<&'static T, MapError> {
    open_and_map(path, 0)
}

/// A value of its own from the bytes of a shared file; `None` if they are not of its layout.
#[must_use]
pub fn from_bytes<T: Shareable>(bytes: &[u8]) -> Option<Box<T>> {
    if bytes.len() != size_of::<T>() {
        return None;
    }
    let mut value: Box<std::mem::MaybeUninit<T>> = Box::new_uninit();
    // SAFETY: as many bytes are read as the value has room for, and any bytes are a valid `Shareable`.
    unsafe {
        value
            .as_mut_ptr()
            .cast::<u8>()
            .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        Some(value.assume_init())
    }
}

fn open_and_map<T: Shareable>(path: &CStr, creation: c_int) -> Result<&'static T, MapError> {
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW | creation;
    // SAFETY: `path` is a C string; the descriptor is checked.
    let fd = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    if fd < 0 {
        return Err(MapError::System(sys::errno()));
    }
    let size = size_of::<T>() as libc::off_t;
    let mapped = if creation == 0 {
        is_ours(fd, &[size])
    } else {
        is_ours(fd, &[0, size]).and_then(|()| allocate(fd, size))
    }
    .and_then(|()| map_descriptor(fd));
    // SAFETY: `fd` was opened above and is not used again; a mapping outlives its descriptor.
    unsafe { libc::close(fd) };
    mapped
}

/// Whether `fd` is a regular file of this user alone, of one of these `sizes` in bytes.
fn is_ours(fd: c_int, sizes: &[libc::off_t]) -> Result<(), MapError> {
    // SAFETY: all-zero is a valid `stat`.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is valid for writes.
    if unsafe { libc::fstat(fd, &raw mut stat) } != 0 {
        return Err(MapError::System(sys::errno()));
    }
    let regular = stat.st_mode & libc::S_IFMT == libc::S_IFREG;
    if !regular || stat.st_uid != sys::user_at_start() || stat.st_mode & 0o077 != 0 {
        return Err(MapError::NotOurs);
    }
    if !sizes.contains(&stat.st_size) {
        return Err(MapError::OtherLayout);
    }
    Ok(())
}

/// Gives `fd` all of its `size` bytes. A page that tmpfs cannot give at the first touch is SIGBUS in
/// whoever touches it, so none may be left to be given then. Several processes may do this at once: the
/// file is zeros for all of them.
fn allocate(fd: c_int, size: libc::off_t) -> Result<(), MapError> {
    // SAFETY: all-zero is a valid `rlimit`.
    let mut limit: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: `limit` is valid for writes.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    if limit.rlim_cur < size as libc::rlim_t {
        // Asking all the same would end this process by SIGXFSZ.
        return Err(MapError::System(libc::EFBIG));
    }
    // SAFETY: plain integers.
    if unsafe { libc::fallocate(fd, 0, 0, size) } == 0 {
        Ok(())
    } else {
        Err(MapError::System(sys::errno()))
    }
}

/// Maps the whole of a file whose size was checked by [`is_ours`] or set by [`allocate`].
fn map_descriptor<T: Shareable>(fd: c_int) -> Result<&'static T, MapError> {
    let size = size_of::<T>();
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
