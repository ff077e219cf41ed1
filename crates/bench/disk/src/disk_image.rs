//! The disk's contents: zeroed memory, whose pages are allocated when touched.
//!
//! In huge pages that the administrator has reserved (hugetlbfs), writes take no memory from the page cache. Free
//! memory for others stays as it was at the start.

use std::io;
use std::ptr::NonNull;

/// Bytes per bit of the map of touched pages.
const PAGE_BYTES: usize = 4096;
/// The huge pages that are used.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Kind of memory pages that hold the disk's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageKind {
    /// Ordinary memory, allocated when touched.
    Ordinary,
    /// Huge pages, all reserved at once.
    Huge,
}

/// A private anonymous mapping with a map of written pages. Ranges that were never written are known to be zeroes
/// without faulting their pages in.
#[derive(Debug)]
pub(crate) struct DiskImage {
    base: NonNull<u8>,
    len: usize,
    /// Bytes mapped: `len`, in whole pages.
    mapped: usize,
    touched: Vec<u64>,
}

// SAFETY: the mapping is owned by this value alone and is reached only through `&self` (reads)
// and `&mut self` (writes), so moving it to another thread is as sound as moving a `Vec<u8>`.
unsafe impl Send for DiskImage {}

impl DiskImage {
    /// Creates a zeroed image.
    ///
    /// # Errors
    /// The address space is exhausted, `len` is 0, or there are too few huge pages.
    pub(crate) fn new(len: usize, pages: PageKind) -> io::Result<Self> {
        // A huge page is reserved: without one a write would end the process.
        let (page_bytes, flags) = match pages {
            PageKind::Ordinary => (PAGE_BYTES, libc::MAP_NORESERVE),
            PageKind::Huge => (HUGE_PAGE_BYTES, libc::MAP_HUGETLB | libc::MAP_HUGE_2MB),
        };
        let mapped = len.next_multiple_of(page_bytes);
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no
        // existing memory; the result is checked below.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            return Err(match pages {
                PageKind::Ordinary => error,
                PageKind::Huge => io::Error::other(format!(
                    "{error}: {} huge pages of 2 MiB are needed, raise /proc/sys/vm/nr_hugepages",
                    mapped / HUGE_PAGE_BYTES
                )),
            });
        }
        if pages == PageKind::Ordinary {
            // SAFETY: the range is the mapping just made. Huge pages are declined because zeroing
            // 2 MiB inside one 4 KiB write would show up as a latency; it is only advice.
            unsafe { libc::madvise(base, mapped, libc::MADV_NOHUGEPAGE) };
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at zero"))?;
        Ok(Self { base, len, mapped, touched: vec![0; len.div_ceil(PAGE_BYTES).div_ceil(64)] })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

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
        for page in pages(offset, data.len()) {
            self.touched[page / 64] |= 1 << (page % 64);
        }
        self.bytes_mut()[offset..offset + data.len()].copy_from_slice(data);
    }

    /// Returns whether a range was never written, and so is zeroes.
    pub(crate) fn is_untouched(&self, offset: usize, len: usize) -> bool {
        len == 0 || !pages(offset, len).any(|page| self.is_touched(page))
    }

    /// Returns the parts of a range that may differ from zero, as `(offset, len)` of at most `max_len`.
    pub(crate) fn touched_parts(
        &self,
        offset: usize,
        len: usize,
        max_len: usize,
    ) -> Vec<(usize, usize)> {
        let end = offset + len;
        let mut parts: Vec<(usize, usize)> = Vec::new();
        let mut at = offset;
        while at < end {
            let page = at / PAGE_BYTES;
            let stop = end.min((page + 1) * PAGE_BYTES);
            if self.touched[page / 64] == 0 {
                // Nothing here nor in the rest of the map's word.
                at = end.min((page / 64 + 1) * 64 * PAGE_BYTES);
                continue;
            }
            if self.is_touched(page) {
                match parts.last_mut() {
                    Some((start, len)) if *start + *len == at && *len + PAGE_BYTES <= max_len => {
                        *len += stop - at;
                    }
                    _ => parts.push((at, stop - at)),
                }
            }
            at = stop;
        }
        parts
    }

    fn is_touched(&self, page: usize) -> bool {
        self.touched[page / 64] & (1 << (page % 64)) != 0
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` excludes every other access.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

/// Returns the pages that a range of at least one byte lies in.
fn pages(offset: usize, len: usize) -> std::ops::RangeInclusive<usize> {
    offset / PAGE_BYTES..=(offset + len - 1) / PAGE_BYTES
}

impl Drop for DiskImage {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and length and nothing borrows it now.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_is_zero_and_untouched() {
        let mut image = DiskImage::new(1 << 20, PageKind::Ordinary).expect("maps");
        assert!(image.bytes().iter().all(|b| *b == 0));
        assert!(image.is_untouched(0, 1 << 20));
        image.write(PAGE_BYTES - 1, &[1, 2]);
        image.write(100 * PAGE_BYTES, &[3; 3 * PAGE_BYTES]);
        assert_eq!(&image.bytes()[PAGE_BYTES - 1..=PAGE_BYTES], &[1, 2]);
        assert!(!image.is_untouched(0, 1));
        assert!(image.is_untouched(2 * PAGE_BYTES, PAGE_BYTES));
        assert_eq!(
            image.touched_parts(100, (1 << 20) - 100, 2 * PAGE_BYTES),
            vec![
                (100, 2 * PAGE_BYTES - 100),
                (100 * PAGE_BYTES, 2 * PAGE_BYTES),
                (102 * PAGE_BYTES, PAGE_BYTES)
            ]
        );
    }
}
