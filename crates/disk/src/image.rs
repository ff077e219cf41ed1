//! The disk's contents: zeroed memory of which only touched pages cost anything.

use std::io;
use std::ptr::NonNull;

/// Bytes per bit of the map of touched ranges.
const GRANULE_BYTES: usize = 64 << 10;

/// A private anonymous mapping with a coarse map of what was ever written, so that untouched
/// ranges are known to be zeroes without faulting their pages in.
#[derive(Debug)]
pub(crate) struct Image {
    base: NonNull<u8>,
    len: usize,
    touched: Vec<u64>,
}

// SAFETY: the mapping is owned by this value alone and is reached only through `&self` (reads)
// and `&mut self` (writes), so moving it to another thread is as sound as moving a `Vec<u8>`.
unsafe impl Send for Image {}

impl Image {
    /// A zeroed image.
    ///
    /// # Errors
    /// The address space is exhausted, or `len` is 0.
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no
        // existing memory; the result is checked below.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the range is the mapping just made. Huge pages are declined because zeroing
        // 2 MiB inside one 4 KiB write would show up as a latency of the disk; it is only advice.
        unsafe { libc::madvise(base, len, libc::MADV_NOHUGEPAGE) };
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at zero"))?;
        Ok(Self {
            base,
            len,
            touched: vec![0; len.div_ceil(GRANULE_BYTES).div_ceil(64)],
        })
    }

    /// Bytes in the image.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The whole image.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `base` maps `len` readable, initialised (zeroed) bytes for as long as `self`
        // lives, and `&self` excludes writers.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }

    /// Overwrites `data.len()` bytes from `offset`. The range must lie inside the image.
    pub(crate) fn write(&mut self, offset: usize, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        for granule in offset / GRANULE_BYTES..=(offset + data.len() - 1) / GRANULE_BYTES {
            self.touched[granule / 64] |= 1 << (granule % 64);
        }
        self.bytes_mut()[offset..offset + data.len()].copy_from_slice(data);
    }

    /// The parts of a range that may differ from zero, as `(offset, len)` of at most a granule.
    pub(crate) fn touched_parts(&self, offset: usize, len: usize) -> Vec<(usize, usize)> {
        let end = offset + len;
        let mut parts = Vec::new();
        let mut at = offset;
        while at < end {
            let granule = at / GRANULE_BYTES;
            let stop = end.min((granule + 1) * GRANULE_BYTES);
            if self.touched[granule / 64] & (1 << (granule % 64)) != 0 {
                parts.push((at, stop - at));
            }
            at = stop;
        }
        parts
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` excludes every other access.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and length and nothing borrows it now.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_is_zero_and_untouched() {
        let mut image = Image::new(1 << 20).expect("maps");
        assert!(image.bytes().iter().all(|b| *b == 0));
        assert!(image.touched_parts(0, 1 << 20).is_empty());
        image.write(GRANULE_BYTES - 1, &[1, 2]);
        assert_eq!(&image.bytes()[GRANULE_BYTES - 1..=GRANULE_BYTES], &[1, 2]);
        assert_eq!(
            image.touched_parts(100, 1 << 19),
            vec![(100, GRANULE_BYTES - 100), (GRANULE_BYTES, GRANULE_BYTES)]
        );
    }
}
