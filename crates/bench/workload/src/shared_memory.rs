//! Memory shared with forked clients: one anonymous mapping seen as a slice of atomics.

use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Types that all-zero bytes are a value of, and that many processes may change at once.
///
/// # Safety
/// Zero bytes must be a valid value, and every change must go through atomics.
pub(crate) unsafe trait Shareable: Sync {}

// SAFETY: zero is a value of every atomic integer.
unsafe impl Shareable for AtomicU32 {}
// SAFETY: zero is a value of every atomic integer.
unsafe impl Shareable for AtomicU64 {}

/// A zeroed slice that stays shared with every process forked after its creation. Only pages that
/// are touched take memory.
#[derive(Debug)]
pub(crate) struct SharedSlice<T: Shareable> {
    start: NonNull<T>,
    length: usize,
    bytes: usize,
}

// SAFETY: the mapping is plain memory of `T`s, which are `Sync` by `Shareable`.
unsafe impl<T: Shareable> Send for SharedSlice<T> {}
// SAFETY: as above; only shared references are handed out.
unsafe impl<T: Shareable> Sync for SharedSlice<T> {}

impl<T: Shareable> SharedSlice<T> {
    /// Maps `length` zeroed elements. Errors: the system's, from `mmap`.
    pub(crate) fn new(length: usize) -> io::Result<Self> {
        let bytes = length
            .checked_mul(size_of::<T>())
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?
            .max(1);
        // SAFETY: a fresh anonymous mapping; no existing memory is touched.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(address.cast::<T>())
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { start, length, bytes })
    }
}

impl<T: Shareable> Deref for SharedSlice<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `start` is a live, page-aligned mapping of `length` zero-initialised `T`s, for
        // which zero is valid; it is unmapped only when `self` is dropped.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T: Shareable> Drop for SharedSlice<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, with its length; no reference outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
