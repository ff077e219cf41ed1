//! Looks an address up in `/proc/self/maps`, with a fixed buffer and raw system calls.

use crate::sys;

/// Bytes read at a time.
const CHUNK: usize = 1024;

/// A file that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedFile {
    /// Its file system, as `st_dev`.
    pub device: u64,
    /// Its inode's number.
    pub inode: u64,
}

/// The list of mappings cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// The file mapped at `address`; `None` if none is. Async-signal-safe.
///
/// # Errors
///
/// [`Unreadable`], as where no descriptor is free.
pub fn file_at(address: usize) -> Result<Option<MappedFile>, Unreadable> {
    let fd = sys::open_to_read(c"/proc/self/maps").ok_or(Unreadable)?;
    let mut search = Search::new(address as u64);
    let mut chunk = [0u8; CHUNK];
    let found = loop {
        let read = match sys::read(fd, &mut chunk) {
            None => break Err(Unreadable),
            Some(0) => break Ok(None),
            Some(read) => read,
        };
        if let Some(file) = search.feed(&chunk[..read.min(CHUNK)]) {
            break Ok(file);
        }
    };
    sys::close(fd);
    found
}

/// Reads lines `START-END PERMISSIONS OFFSET MAJOR:MINOR INODE PATH`, byte by byte and across chunks. All numbers
/// but the inode's are hexadecimal.
struct Search {
    address: u64,
    field: Field,
    number: u64,
    start: u64,
    inside: bool,
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
        Self {
            address,
            field: Field::Start,
            number: 0,
            start: 0,
            inside: false,
            major: 0,
            minor: 0,
        }
    }

    /// `Some` as soon as the address' line has been seen, with the file if one is mapped there.
    fn feed(&mut self, bytes: &[u8]) -> Option<Option<MappedFile>> {
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
                Field::End => self.inside = (self.start..self.number).contains(&self.address),
                Field::Major => self.major = self.number,
                Field::Minor => self.minor = self.number,
                Field::Inode if self.inside => {
                    let device = libc::makedev(self.major as u32, self.minor as u32);
                    let inode = self.number;
                    return Some((device != 0).then_some(MappedFile { device, inode }));
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
        MAPS.chunks(chunk).find_map(|bytes| search.feed(bytes))
    }

    #[test]
    fn addresses_are_found_however_the_text_is_cut() {
        let file = MappedFile {
            device: libc::makedev(7, 2),
            inode: 12,
        };
        for chunk in [1, 7, 40, 4_096] {
            assert_eq!(look_up(0x7f12_a000_0000, chunk), Some(Some(file)));
            assert_eq!(look_up(0x7f12_a00f_ffff, chunk), Some(Some(file)));
            assert_eq!(look_up(0x7f12_a010_0000, chunk), None);
            assert_eq!(look_up(0x7f12_b000_0000, chunk), Some(None));
        }
    }

    #[test]
    fn this_program_is_mapped_from_its_own_file_system() {
        use std::os::unix::fs::MetadataExt as _;
        let code = this_program_is_mapped_from_its_own_file_system as *const () as usize;
        let program = std::env::current_exe().unwrap().metadata().unwrap();
        let expected = MappedFile {
            device: program.dev(),
            inode: program.ino(),
        };
        assert_eq!(file_at(code), Ok(Some(expected)));
    }

    proptest! {
        #[test]
        fn no_text_panics(bytes in proptest::collection::vec(any::<u8>(), 0..500), address: u64) {
            let _ = Search::new(address).feed(&bytes);
        }
    }
}
