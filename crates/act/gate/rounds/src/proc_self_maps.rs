//! Looks an address up in `/proc/self/maps`, with a fixed buffer and raw system calls.
//!
//! Since Linux 6.11 the kernel answers for one address. Before, the list is read, which takes the longer the more there
//! is mapped: in a process with very much, it is given up.

use core::ffi::c_int;

use crate::call_path_syscalls;
use crate::raw_syscall::Errno;

/// Bytes read at a time.
const CHUNK: usize = 1024;

/// Reads, at most: some 700 mappings, in about 0.1 ms.
const MOST_READS: usize = 64;

/// A mapping of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryMapping {
    /// The first address of the mapping.
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    /// The file; `None` if it is none.
    pub file: Option<MappedFile>,
}

/// A file that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedFile {
    /// Its file system, as `st_dev`.
    pub device: u64,
    pub inode: u64,
}

/// The list of mappings cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapsUnreadable;

/// The mapping at `address`; `None` if there is none. Async-signal-safe.
///
/// # Errors
///
/// [`MapsUnreadable`], as where no descriptor is free, or too much is mapped.
pub fn mapping_at(address: usize) -> Result<Option<MemoryMapping>, MapsUnreadable> {
    let fd = call_path_syscalls::open_to_read(c"/proc/self/maps").ok_or(MapsUnreadable)?;
    let found = match Query::ask(fd, address as u64) {
        Err(Errno(libc::ENOTTY | libc::EINVAL)) => search(fd, address as u64),
        Err(Errno(libc::ENOENT)) => Ok(None),
        Err(_) => Err(MapsUnreadable),
        Ok(mapping) => Ok(Some(mapping)),
    };
    call_path_syscalls::close(fd);
    found
}

/// The file mapped at `address`; `None` if none is. Async-signal-safe.
///
/// # Errors
///
/// As [`mapping_at`].
pub fn file_at(address: usize) -> Result<Option<MappedFile>, MapsUnreadable> {
    Ok(mapping_at(address)?.and_then(|mapping| mapping.file))
}

/// `struct procmap_query` of include/uapi/linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    vma_flags: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    major: u32,
    minor: u32,
    name_size: u32,
    build_id_size: u32,
    name_address: u64,
    build_id_address: u64,
}

/// `_IOWR('f', 17, struct procmap_query)` on most architectures; where the number differs the list is read.
const PROCMAP_QUERY: u32 = 0xc068_6611;

impl Query {
    fn ask(fd: c_int, address: u64) -> Result<MemoryMapping, Errno> {
        let mut query = Self { size: size_of::<Self>() as u64, address, ..Self::default() };
        // SAFETY: the kernel reads and writes `query`, which says its size, and wants no name.
        unsafe { call_path_syscalls::ioctl(fd, PROCMAP_QUERY, &raw mut query as usize) }?;
        Ok(MemoryMapping {
            start: query.start,
            end: query.end,
            file: file_of(query.major, query.minor, query.inode),
        })
    }
}

fn file_of(major: u32, minor: u32, inode: u64) -> Option<MappedFile> {
    let device = libc::makedev(major, minor);
    (device != 0).then_some(MappedFile { device, inode })
}

/// Searches the list for the mapping of an address.
fn search(fd: c_int, address: u64) -> Result<Option<MemoryMapping>, MapsUnreadable> {
    let mut search = Search::new(address);
    let mut chunk = [0u8; CHUNK];
    for _ in 0..MOST_READS {
        let read = match call_path_syscalls::read(fd, &mut chunk) {
            None => return Err(MapsUnreadable),
            Some(0) => return Ok(None),
            Some(read) => read,
        };
        if let Some(mapping) = search.feed(&chunk[..read.min(CHUNK)]) {
            return Ok(Some(mapping));
        }
    }
    Err(MapsUnreadable)
}

/// Reads lines `START-END PERMISSIONS OFFSET MAJOR:MINOR INODE PATH`, byte by byte and across chunks. All numbers
/// but the inode's are hexadecimal.
struct Search {
    address: u64,
    field: Field,
    number: u64,
    start: u64,
    end: u64,
    major: u64,
    minor: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Field {
    Start,
    End,
    Permissions,
    Offset,
    Major,
    Minor,
    Inode,
    Rest,
}

impl Search {
    fn new(address: u64) -> Self {
        Self { address, field: Field::Start, number: 0, start: 0, end: 0, major: 0, minor: 0 }
    }

    /// The mapping, as soon as the address' line has been seen.
    fn feed(&mut self, bytes: &[u8]) -> Option<MemoryMapping> {
        for &byte in bytes {
            let next = match (self.field, byte) {
                (Field::Inode, b' ' | b'\n') => Field::Rest,
                (_, b'\n') => {
                    *self = Self::new(self.address);
                    continue;
                }
                (Field::Start, b'-') => Field::End,
                (Field::End, b' ') => Field::Permissions,
                (Field::Permissions, b' ') => Field::Offset,
                (Field::Offset, b' ') => Field::Major,
                (Field::Major, b':') => Field::Minor,
                (Field::Minor, b' ') => Field::Inode,
                _ => {
                    let radix = if self.field == Field::Inode { 10 } else { 16 };
                    if let Some(digit) = (byte as char).to_digit(radix) {
                        self.number = self
                            .number
                            .wrapping_mul(u64::from(radix))
                            .wrapping_add(u64::from(digit));
                    }
                    continue;
                }
            };
            match self.field {
                Field::Start => self.start = self.number,
                Field::End => self.end = self.number,
                Field::Major => self.major = self.number,
                Field::Minor => self.minor = self.number,
                Field::Inode if (self.start..self.end).contains(&self.address) => {
                    return Some(MemoryMapping {
                        start: self.start,
                        end: self.end,
                        file: file_of(self.major as u32, self.minor as u32, self.number),
                    });
                }
                _ => {}
            }
            if byte == b'\n' {
                *self = Self::new(self.address);
                continue;
            }
            self.field = next;
            self.number = 0;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAPS: &[u8] = b"\
55d0c0a00000-55d0c0a22000 r--p 00000000 fe:00 1311 /usr/bin/cat\n\
7f12a0000000-7f12a0100000 rw-s 00000000 07:02 12 /mnt/a file - with: dashes\n\
7f12b0000000-7f12b0021000 rw-p 00000000 00:00 0 \n";

    fn look_up(address: u64, chunk: usize) -> Option<Option<MappedFile>> {
        let mut search = Search::new(address);
        let found = MAPS.chunks(chunk).find_map(|bytes| search.feed(bytes));
        found.map(|mapping| mapping.file)
    }

    /// Of tests that look at this process' mappings, one at a time: one of them makes very many.
    static MAPPINGS: std::sync::Mutex<()> = std::sync::Mutex::new(());

    #[test]
    fn the_list_and_the_kernel_s_answer_agree() {
        let _alone = MAPPINGS.lock().unwrap();
        let place = 5_u64;
        let code = the_list_and_the_kernel_s_answer_agree as *const () as usize;
        for address in [code, &raw const place as usize, 0, usize::MAX] {
            let fd = call_path_syscalls::open_to_read(c"/proc/self/maps").unwrap();
            let listed = search(fd, address as u64);
            call_path_syscalls::close(fd);
            let asked = mapping_at(address);
            if let (Ok(Some(listed)), Ok(Some(asked))) = (listed, asked) {
                // A stack grows.
                assert_eq!((listed.end, listed.file), (asked.end, asked.file));
            } else {
                assert_eq!(listed, asked);
            }
        }
    }

    #[test]
    fn addresses_are_found_however_the_text_is_cut() {
        let file = MappedFile { device: libc::makedev(7, 2), inode: 12 };
        for chunk in [1, 7, 40, 4_096] {
            assert_eq!(look_up(0x7f12_a000_0000, chunk), Some(Some(file)));
            assert_eq!(look_up(0x7f12_a00f_ffff, chunk), Some(Some(file)));
            assert_eq!(look_up(0x7f12_a010_0000, chunk), None);
            assert_eq!(look_up(0x7f12_b000_0000, chunk), Some(None));
        }
    }

    #[test]
    fn a_long_list_is_given_up() {
        const PAGE: usize = 4096;
        const PAGES: usize = 4000;
        let _alone = MAPPINGS.lock().unwrap();
        // SAFETY: a fresh mapping at an address of the kernel's choice; below, parts of it get other rights, so that
        // each page is a mapping of its own, and all of it is unmapped.
        let begin = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGES * PAGE,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(begin, libc::MAP_FAILED);
        for page in (0..PAGES).step_by(2) {
            // SAFETY: a page of the mapping, which nobody uses.
            unsafe { libc::mprotect(begin.byte_add(page * PAGE), PAGE, libc::PROT_NONE) };
        }
        let search_for = |address| {
            let fd = call_path_syscalls::open_to_read(c"/proc/self/maps").unwrap();
            let found = search(fd, address);
            call_path_syscalls::close(fd);
            found
        };
        // The stack is among the last ones.
        let place = 5_u64;
        assert_eq!(search_for(&raw const place as u64), Err(MapsUnreadable));
        // SAFETY: as mapped above.
        unsafe { libc::munmap(begin, PAGES * PAGE) };
    }

    #[test]
    fn this_program_is_mapped_from_its_own_file_system() {
        use std::os::unix::fs::MetadataExt as _;
        let code = this_program_is_mapped_from_its_own_file_system as *const () as usize;
        let program = std::env::current_exe().unwrap().metadata().unwrap();
        let expected = MappedFile { device: program.dev(), inode: program.ino() };
        assert_eq!(file_at(code), Ok(Some(expected)));
    }

    proptest! {
        #[test]
        fn no_text_panics(bytes in proptest::collection::vec(any::<u8>(), 0..500), address: u64) {
            let _ = Search::new(address).feed(&bytes);
        }
    }
}
