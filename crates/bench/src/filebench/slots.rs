//! A client's file descriptors, by number, and its buffer.

use std::fs::File;

use rand::Rng;

use crate::random;

/// Numbers that a flowop may name.
const NUMBERED: usize = 128;
/// What `O_DIRECT` asks of addresses, bytes.
const ALIGNMENT: usize = 4096;

/// An open file, or what was open last.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) file: Option<File>,
    /// Fileset and index of the file; kept after a close.
    pub(super) identity: Option<(usize, usize)>,
}

/// All slots of a client.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// The default slot of the fileset named last.
    latest: usize,
    /// One default slot for all filesets, as Filebench has it.
    single: bool,
}

impl Slots {
    pub(super) fn new(filesets: usize, single: bool) -> Self {
        Self {
            slots: (0..=NUMBERED + filesets).map(|_| Slot::default()).collect(),
            latest: 0,
            single,
        }
    }

    /// The number of the slot that `fd` and a fileset mean.
    pub(super) fn number(&mut self, fd: usize, files: Option<usize>) -> usize {
        if fd > 0 {
            return fd;
        }
        if let (false, Some(files)) = (self.single, files) {
            self.latest = NUMBERED + files;
        }
        self.latest
    }

    pub(super) fn get(&mut self, number: usize) -> &mut Slot {
        &mut self.slots[number]
    }
}

/// Random bytes to write, and room to read into; aligned for direct I/O.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
}

impl Buffer {
    /// `length` bytes.
    pub(super) fn of(&mut self, length: usize, random: &mut impl Rng) -> &mut [u8] {
        if self.bytes.len() < length + ALIGNMENT {
            self.bytes = random::bytes(random, length + ALIGNMENT);
        }
        let start = self.bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        &mut self.bytes[start..start + length]
    }
}
