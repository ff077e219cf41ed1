//! Shared files as values.

pub use luc_rounds::shared_file::*;

/// Copies the bytes of a shared file into a value; `None` if they are not of its layout.
#[must_use]
pub fn from_bytes<T: Shareable>(bytes: &[u8]) -> Option<Box<T>> {
    if bytes.len() != size_of::<T>() {
        return None;
    }
    let mut value: Box<std::mem::MaybeUninit<T>> = Box::new_uninit();
    // SAFETY: as many bytes are read as the value has room for, and any bytes are a valid `Shareable`.
    unsafe {
        value.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        Some(value.assume_init())
    }
}
