//! The calls on open files, straight to the kernel: those of the C library are cancellation points, which
//! costs a twentieth of a short read.

use std::fs::File;
use std::io;

use rustix::io::{Errno, pread, pwrite, read as read_on, retry_on_intr, write};

#[inline]
pub(super) fn read_at(file: &File, data: &mut [u8], offset: u64) -> io::Result<u64> {
    let bytes = retry_on_intr(|| pread(file, &mut *data, offset))?;
    Ok(bytes as u64)
}

#[inline]
pub(super) fn read(file: &File, data: &mut [u8]) -> io::Result<u64> {
    let bytes = retry_on_intr(|| read_on(file, &mut *data))?;
    Ok(bytes as u64)
}

/// Calls `pwrite` until all of `data` is written.
#[inline]
pub(super) fn write_at(file: &File, data: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < data.len() {
        done +=
            require_progress(retry_on_intr(|| pwrite(file, &data[done..], offset + done as u64)))?;
    }
    Ok(())
}

/// Calls `write` until all of `data` is written.
#[inline]
pub(super) fn write_all(file: &File, data: &[u8]) -> io::Result<()> {
    let mut done = 0;
    while done < data.len() {
        done += require_progress(retry_on_intr(|| write(file, &data[done..])))?;
    }
    Ok(())
}

#[inline]
pub(super) fn stat(file: &File) -> io::Result<()> {
    rustix::fs::fstat(file)?;
    Ok(())
}

/// The bytes that a write wrote; none would go on for ever.
fn require_progress(written: Result<usize, Errno>) -> io::Result<usize> {
    match written? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        bytes => Ok(bytes),
    }
}
