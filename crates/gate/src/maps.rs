//! Looks an address up in `/proc/self/maps`, with a fixed buffer and raw system calls.

/// Bytes read at a time.
const CHUNK: usize = 1024;

/// The device (as `st_dev`) of the file mapped at `address`; `None` if no file is, or if the list of
/// mappings cannot be read. Async-signal-safe; changes `errno`.
pub fn device_at(address: usize) -> Option<u64> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: a C string; the descriptor is checked.
    let fd = unsafe { libc::open(c"/proc/self/maps".as_ptr(), flags) };
    if fd < 0 {
        return None;
    }
    let mut search = Search::new(address as u64);
    let mut chunk = [0u8; CHUNK];
    let found = loop {
        // SAFETY: `chunk` is valid for writes of its length.
        let read = unsafe { libc::read(fd, chunk.as_mut_ptr().cast(), chunk.len()) };
        let Ok(read @ 1..) = usize::try_from(read) else {
            break None;
        };
        if let Some(device) = search.feed(&chunk[..read.min(CHUNK)]) {
            break device;
        }
    };
    // SAFETY: opened above and not used again.
    unsafe { libc::close(fd) };
    found
}

/// Reads lines `START-END PERMISSIONS OFFSET MAJOR:MINOR INODE PATH`, numbers in hexadecimal, byte by
/// byte and across chunks.
struct Search {
    address: u64,
    field: Field,
    number: u64,
    start: u64,
    inside: bool,
    major: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Field {
    Start,
    End,
    Permissions,
    Offset,
    Major,
    Minor,
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
        }
    }

    /// `Some` as soon as the address' line has been seen, with the device if a file is mapped there.
    fn feed(&mut self, bytes: &[u8]) -> Option<Option<u64>> {
        for &byte in bytes {
            if byte == b'\n' {
                *self = Self::new(self.address);
                continue;
            }
            let next = match (self.field, byte) {
                (Field::Start, b'-') => Field::End,
                (Field::End, b' ') => Field::Permissions,
                (Field::Permissions, b' ') => Field::Offset,
                (Field::Offset, b' ') => Field::Major,
                (Field::Major, b':') => Field::Minor,
                (Field::Minor, b' ') => Field::Rest,
                _ => {
                    if let Some(digit) = (byte as char).to_digit(16) {
                        self.number = self.number << 4 | u64::from(digit);
                    }
                    continue;
                }
            };
            match self.field {
                Field::Start => self.start = self.number,
                Field::End => self.inside = (self.start..self.number).contains(&self.address),
                Field::Major => self.major = self.number,
                Field::Minor if self.inside => {
                    let device = libc::makedev(self.major as u32, self.number as u32);
                    return Some((device != 0).then_some(device));
                }
                _ => {}
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

    fn look_up(address: u64, chunk: usize) -> Option<Option<u64>> {
        let mut search = Search::new(address);
        MAPS.chunks(chunk).find_map(|bytes| search.feed(bytes))
    }

    #[test]
    fn addresses_are_found_however_the_text_is_cut() {
        for chunk in [1, 7, 40, 4_096] {
            assert_eq!(
                look_up(0x7f12_a000_0000, chunk),
                Some(Some(libc::makedev(7, 2)))
            );
            assert_eq!(
                look_up(0x7f12_a00f_ffff, chunk),
                Some(Some(libc::makedev(7, 2)))
            );
            assert_eq!(look_up(0x7f12_a010_0000, chunk), None);
            assert_eq!(look_up(0x7f12_b000_0000, chunk), Some(None));
        }
    }

    #[test]
    fn this_program_is_mapped_from_its_own_file_system() {
        use std::os::unix::fs::MetadataExt as _;
        let code = this_program_is_mapped_from_its_own_file_system as *const () as usize;
        let program = std::env::current_exe().unwrap().metadata().unwrap();
        assert_eq!(device_at(code), Some(program.dev()));
    }

    proptest! {
        #[test]
        fn no_text_panics(bytes in proptest::collection::vec(any::<u8>(), 0..500), address: u64) {
            let _ = Search::new(address).feed(&bytes);
        }
    }
}
