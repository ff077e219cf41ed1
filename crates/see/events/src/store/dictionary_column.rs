//! A column of few different values: Parquet's dictionary encoding, made here, as the Parquet library takes several
//! times as long for each value.
//!
//! One page has the values, each once. One page has their indices, as Parquet's hybrid of runs and packed bits
//! (<https://parquet.apache.org/docs/file-format/data-pages/encodings/>).

use std::io::Write as _;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter as _};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::column_value::{ColumnValue, PhysicalType as _};

/// Minimum length of equal indices that are stored as a run.
const MIN_RUN_LENGTH: usize = 32;
/// Bits are packed in groups of this many indices.
const GROUP: usize = 8;
/// Initial size of the table of values, a power of two.
const INITIAL_SLOTS: usize = 256;

/// A column chunk in the making.
#[derive(Debug, Default)]
pub(crate) struct DictionaryChunk {
    entries: Entries,
    /// Distinct values in Parquet's plain encoding.
    plain: Vec<u8>,
    /// Index of each row's value.
    indices: Vec<u32>,
}

impl DictionaryChunk {
    pub(crate) fn with_capacity(rows: usize) -> Self {
        Self { indices: Vec::with_capacity(rows), ..Self::default() }
    }

    /// Adds the next row's value, identified by `key`.
    #[inline]
    pub(crate) fn add<C: ColumnValue>(&mut self, value: &C, key: u64) {
        let (index, is_new) = self.entries.find(key);
        if is_new {
            C::Physical::write_plain(&value.store(), &mut self.plain);
        }
        self.indices.push(index);
    }

    /// Returns the bytes of the chunk, and its description for the footer.
    pub(crate) fn finish(self, column: ColumnDescPtr) -> ParquetResult<(Bytes, ColumnCloseResult)> {
        let Self { entries, plain, indices } = self;
        encode(&entries, plain, &indices, column)
    }
}

fn encode(
    entries: &Entries,
    plain: Vec<u8>,
    indices: &[u32],
    column: ColumnDescPtr,
) -> ParquetResult<(Bytes, ColumnCloseResult)> {
    let dictionary = Page::DictionaryPage {
        buf: Bytes::from(plain),
        num_values: entries.keys.len() as u32,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    };
    let data = Page::DataPage {
        buf: Bytes::from(hybrid(indices, entries.keys.len())),
        num_values: indices.len() as u32,
        encoding: Encoding::RLE_DICTIONARY,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    };
    let mut sink = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut sink);
    let mut offsets = Vec::new();
    for page in [dictionary, data] {
        let length = page.buffer().len();
        let written = pages.write_page(CompressedPage::new(page, length))?;
        offsets.push(written.offset.cast_signed());
    }
    sink.flush()?;
    let bytes = sink.into_inner()?;
    let length = bytes.len() as i64;
    let metadata = ColumnChunkMetaData::builder(column)
        .set_compression(Compression::UNCOMPRESSED)
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
        .set_num_values(indices.len() as i64)
        .set_total_compressed_size(length)
        .set_total_uncompressed_size(length)
        .set_dictionary_page_offset(Some(offsets[0]))
        .set_data_page_offset(offsets[1])
        .build()?;
    let close = ColumnCloseResult {
        bytes_written: bytes.len() as u64,
        rows_written: indices.len() as u64,
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    Ok((Bytes::from(bytes), close))
}

/// Values by key, in the order of their first rows: a hash table with open addressing.
#[derive(Debug, Default)]
struct Entries {
    keys: Vec<u64>,
    /// Index in `keys`, plus 1; 0: free. A power of two of them, at most half in use.
    slots: Vec<u32>,
    /// The last value: many columns repeat it.
    last: Option<(u64, u32)>,
}

impl Entries {
    /// Returns the index of a value, and whether it is new.
    #[inline]
    fn find(&mut self, key: u64) -> (u32, bool) {
        if let Some((last, index)) = self.last
            && last == key
        {
            return (index, false);
        }
        let found = self.find_any(key);
        self.last = Some((key, found.0));
        found
    }

    fn find_any(&mut self, key: u64) -> (u32, bool) {
        if 2 * self.keys.len() >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot_of(key);
        match self.slots[slot] {
            0 => {
                self.keys.push(key);
                let number = self.keys.len() as u32;
                self.slots[slot] = number;
                (number - 1, true)
            }
            number => (number - 1, false),
        }
    }

    /// Returns the slot of a value, or the free slot for it.
    fn slot_of(&self, key: u64) -> usize {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let mask = self.slots.len() - 1;
        let mut slot = (key.wrapping_mul(FACTOR) >> 32) as usize & mask;
        loop {
            match self.slots[slot] {
                0 => return slot,
                number if self.keys[number as usize - 1] == key => return slot,
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    fn grow(&mut self) {
        let slots = (4 * self.slots.len()).max(INITIAL_SLOTS);
        self.slots = vec![0; slots];
        for index in 0..self.keys.len() {
            let slot = self.slot_of(self.keys[index]);
            self.slots[slot] = index as u32 + 1;
        }
    }
}

/// Indices below `bound`, with the width of their bits before them.
fn hybrid(indices: &[u32], bound: usize) -> Vec<u8> {
    let width = usize::BITS - bound.saturating_sub(1).leading_zeros();
    let mut out = Vec::with_capacity(indices.len() * width as usize / 8 + 16);
    out.push(width as u8);
    let mut packed_from = 0;
    let mut next = 0;
    while next < indices.len() {
        let value = indices[next];
        let run = indices[next..].iter().take_while(|&&other| other == value).count();
        if run >= MIN_RUN_LENGTH {
            pack(&indices[packed_from..next], width, &mut out);
            number((run as u64) << 1, &mut out);
            out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
            next += run;
            packed_from = next;
        } else {
            // Only the last packed run may end within a group.
            next += GROUP;
        }
    }
    pack(&indices[packed_from..], width, &mut out);
    out
}

/// A packed run, filled up with zeros to whole groups.
fn pack(indices: &[u32], width: u32, out: &mut Vec<u8>) {
    if indices.is_empty() {
        return;
    }
    let groups = indices.len().div_ceil(GROUP);
    number((groups as u64) << 1 | 1, out);
    let end = out.len() + groups * width as usize;
    let (mut bits, mut count) = (0_u64, 0);
    for &index in indices {
        bits |= u64::from(index) << count;
        count += width;
        if count >= 32 {
            out.extend_from_slice(&(bits as u32).to_le_bytes());
            bits >>= 32;
            count -= 32;
        }
    }
    out.extend_from_slice(&bits.to_le_bytes());
    out.resize(end, 0);
}

/// A number in groups of 7 bits, the lowest first (ULEB128).
fn number(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the indices of a page by the format.
    fn read(bytes: &[u8], count: usize) -> Vec<u32> {
        let width = u32::from(bytes[0]);
        let mut at = 1;
        let mut indices = Vec::new();
        while indices.len() < count {
            let (mut head, mut shift) = (0_u64, 0);
            loop {
                let byte = bytes[at];
                at += 1;
                head |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            if head & 1 == 0 {
                let length = width.div_ceil(8) as usize;
                let mut value = [0; 4];
                value[..length].copy_from_slice(&bytes[at..at + length]);
                at += length;
                let run = (head >> 1) as usize;
                indices.extend(std::iter::repeat_n(u32::from_le_bytes(value), run));
            } else {
                let values = (head >> 1) as usize * GROUP;
                for value in 0..values {
                    let index = (0..width).fold(0, |index, bit| {
                        let place = value * width as usize + bit as usize;
                        index | u32::from(bytes[at + place / 8] >> (place % 8) & 1) << bit
                    });
                    indices.push(index);
                }
                at += values * width as usize / 8;
            }
        }
        assert_eq!(at, bytes.len());
        indices.truncate(count);
        indices
    }

    #[test]
    fn indices_come_back() {
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32
        };
        for bound in [1, 2, 3, 8, 9, 255, 256, 257, 65_536, 65_537] {
            for count in [1, 7, 8, 31, 32, 33, 1000] {
                let mut indices: Vec<u32> = Vec::new();
                while indices.len() < count {
                    let run = if random() % 3 == 0 { random() % 90 } else { 1 };
                    let index = random() % bound as u32;
                    indices.extend(std::iter::repeat_n(index, run as usize));
                }
                indices.truncate(count);
                assert_eq!(read(&hybrid(&indices, bound), count), indices, "{bound} {count}");
            }
        }
    }

    #[test]
    fn one_value_takes_no_room() {
        assert!(hybrid(&[0; 65_536], 1).len() < 8);
    }

    #[test]
    fn each_value_has_one_index() {
        let mut entries = Entries::default();
        let keys = || (0..5000).map(|key: u64| key * key);
        for key in keys() {
            entries.find(key);
        }
        for (index, key) in keys().enumerate() {
            assert_eq!(entries.find(key), (index as u32, false));
        }
        assert_eq!(entries.find(u64::MAX), (5000, true));
    }
}
