//! A client's file descriptors, by number, and its buffer.

use std::fs::File;
use std::sync::Arc;

use luc_stats::seeded_random;
use rand::Rng;

/// A flowop may name this many slots by number.
const NUMBERED: usize = 128;
/// Alignment of addresses that `O_DIRECT` requires, bytes.
const ALIGNMENT: usize = 4096;

/// An open file, or the last file that was open.
#[derive(Debug, Default)]
pub(super) struct DescriptorSlot {
    pub(super) file: Option<Arc<File>>,
    /// Fileset and index of the file; kept after a close.
    pub(super) identity: Option<(usize, usize)>,
}

/// Open files of one client, by descriptor number.
#[derive(Debug)]
pub(super) struct DescriptorTable {
    slots: Vec<DescriptorSlot>,
    /// The default slot of the fileset named last.
    latest: usize,
    /// Whether all filesets share one default slot, as in Filebench.
    single: bool,
    nexts: Vec<Next>,
}

/// A client's way through a fileset by `opennext`.
#[derive(Debug, Default)]
struct Next {
    /// The file to look at first.
    file: usize,
    /// Slots of its own, from this one on.
    first: usize,
    /// 0: none used yet.
    slots: usize,
    turn: usize,
}

impl DescriptorTable {
    pub(super) fn new(filesets: usize, single: bool) -> Self {
        Self {
            slots: (0..=NUMBERED + filesets).map(|_| DescriptorSlot::default()).collect(),
            latest: 0,
            single,
            nexts: (0..filesets).map(|_| Next::default()).collect(),
        }
    }

    /// Returns the number of the slot that `fd` and a fileset mean.
    pub(super) fn number(&mut self, fd: usize, files: Option<usize>) -> usize {
        if fd > 0 {
            return fd;
        }
        if let (false, Some(files)) = (self.single, files) {
            self.latest = NUMBERED + files;
        }
        self.latest
    }

    /// Returns the number of the next slot in turn for `opennext`: one per file of the fileset, which stays open.
    pub(super) fn next(&mut self, files: usize, entries: usize) -> usize {
        let next = &mut self.nexts[files];
        if next.slots == 0 {
            next.slots = turns(entries);
            next.first = self.slots.len();
            let more = next.first + next.slots;
            self.slots.resize_with(more, DescriptorSlot::default);
        }
        next.turn = (next.turn + 1) % next.slots;
        next.first + next.turn
    }

    /// Returns the first file that `opennext` looks at; the caller stores where the next search begins.
    pub(super) fn next_file(&mut self, files: usize) -> &mut usize {
        &mut self.nexts[files].file
    }

    pub(super) fn get(&mut self, number: usize) -> &mut DescriptorSlot {
        &mut self.slots[number]
    }

    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }
}

/// Returns slots that `opennext` keeps open of a fileset.
pub(super) fn turns(entries: usize) -> usize {
    entries.clamp(1, NUMBERED)
}

/// Random bytes to write, and room to read into; aligned for direct I/O.
#[derive(Debug, Default)]
pub(super) struct TransferBuffer {
    bytes: Vec<u8>,
}

impl TransferBuffer {
    pub(super) fn of(&mut self, length: usize, random: &mut impl Rng) -> &mut [u8] {
        if self.bytes.len() < length + ALIGNMENT {
            self.bytes = seeded_random::bytes(random, length + ALIGNMENT);
        }
        let start = self.bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        &mut self.bytes[start..start + length]
    }

    /// Returns `length` bytes, if there are that many.
    pub(super) fn view(&self, length: usize) -> Option<&[u8]> {
        let start = self.bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        self.bytes.get(start..start + length)
    }
}
