//! Finds a file's block on its disk (Documentation/filesystems/fiemap.rst).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

use luc_disk::ByteRange;

/// `_IOWR('f', 11, struct fiemap)` of linux/fs.h.
const FS_IOC_FIEMAP: libc::c_ulong = 0xC020_660B;
/// The place on the disk is not known.
const FIEMAP_EXTENT_UNKNOWN: u32 = 0x2;

/// `struct fiemap` with one `struct fiemap_extent`.
#[repr(C)]
#[derive(Default)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extent: Extent,
}

#[repr(C)]
#[derive(Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// Returns the bytes of the disk that hold `len` bytes of the file from `offset` on.
pub(super) fn of_block(file: &File, offset: u64, len: u64) -> io::Result<ByteRange> {
    let mut map = Fiemap { start: offset, length: len, count: 1, ..Fiemap::default() };
    // SAFETY: the ioctl reads and writes a `struct fiemap` with room for one extent, which `map` mirrors.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let Extent { logical, physical, length, flags, .. } = map.extent;
    let is_whole = map.mapped == 1 && logical <= offset && offset + len <= logical + length;
    if !is_whole || flags & FIEMAP_EXTENT_UNKNOWN != 0 {
        return Err(io::Error::other("the file system does not say where a file's block lies"));
    }
    let start_bytes = physical + (offset - logical);
    Ok(ByteRange { start_bytes, end_bytes: start_bytes + len })
}
