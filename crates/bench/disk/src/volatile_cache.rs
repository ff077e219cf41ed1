//! The volatile write cache, and the effect of a power cut on it.
//!
//! There is one image, with the newest contents, and an ordered log of what each unflushed write overwrote. A flush
//! only drops entries of the log; a cut walks it backwards. The log also holds every intermediate version of a sector,
//! from which a seeded cut picks.

use std::collections::{HashMap, VecDeque};
use std::io;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::disk_image::{DiskImage, PageKind};

/// Bytes that a disk persists atomically: it writes a sector or it does not (T10 SBC, ACS-4).
pub const SECTOR_BYTES: usize = 512;

static ZEROES: [u8; 64 << 10] = [0; 64 << 10];

/// Effect of a power cut on unflushed sectors. A sector is counted once, however many unflushed writes it had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutReport {
    /// Unflushed sectors whose newest contents persisted.
    pub kept_sectors: u64,
    /// Unflushed sectors that went back to an older unflushed version.
    pub stale_sectors: u64,
    /// Unflushed sectors that went back to their flushed contents.
    pub lost_sectors: u64,
    /// Writes and discards that were in the cache.
    pub unflushed_writes: u64,
}

/// One unflushed write: its range, and the place of its before-image in the arena.
#[derive(Debug)]
struct LogEntry {
    sequence: u64,
    offset: usize,
    len: usize,
    /// Place in the arena; `None` if the range was never written before and goes back to zeroes.
    saved_at: Option<usize>,
}

/// Contents with a bounded volatile cache in front of the medium.
#[derive(Debug)]
pub(crate) struct VolatileCache {
    image: DiskImage,
    /// Before-images, a ring of twice the cache's size.
    arena: DiskImage,
    capacity: usize,
    log: VecDeque<LogEntry>,
    next_sequence: u64,
    /// First free byte of the ring.
    head: usize,
    unflushed_bytes: u64,
}

impl VolatileCache {
    /// Creates a zeroed, durable disk of `size` bytes in these pages. `cache` is the size of its cache; with 0 every
    /// write is durable at once.
    ///
    /// # Errors
    /// The address space is exhausted, or there are too few huge pages.
    pub(crate) fn new(size: usize, cache: usize, pages: PageKind) -> io::Result<Self> {
        Ok(Self {
            image: DiskImage::new(size, pages)?,
            arena: DiskImage::new((2 * cache).max(1), pages)?,
            capacity: cache,
            log: VecDeque::with_capacity(16 << 10),
            next_sequence: 0,
            head: 0,
            unflushed_bytes: 0,
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.image.bytes()
    }

    /// Returns bytes written and not yet durable.
    pub(crate) fn unflushed_bytes(&self) -> u64 {
        self.unflushed_bytes
    }

    /// Writes into the cache. Older writes that no longer fit are destaged, oldest first.
    pub(crate) fn write(&mut self, offset: usize, data: &[u8]) {
        self.remember(offset, data.len());
        self.image.write(offset, data);
    }

    /// Zeroes a range, volatile as a write is; parts that were never written cost nothing.
    pub(crate) fn discard(&mut self, offset: usize, len: usize) {
        for (at, len) in self.image.touched_parts(offset, len, ZEROES.len()) {
            self.write(at, &ZEROES[..len]);
        }
    }

    /// Returns a mark of everything written so far, for [`VolatileCache::flush`].
    pub(crate) fn mark(&self) -> u64 {
        self.next_sequence
    }

    /// Makes every write before `mark` durable.
    pub(crate) fn flush(&mut self, mark: u64) {
        while self.log.front().is_some_and(|entry| entry.sequence < mark) {
            self.destage_oldest();
        }
        if self.log.is_empty() {
            // Start over where the arena's pages are warm.
            self.head = 0;
        }
    }

    /// Cuts the power. Without a seed every unflushed write is gone. With one, each sector of
    /// the unflushed writes is drawn apart from the others: it keeps one of the versions it had
    /// since the last flush, or its flushed contents. Nothing is unflushed afterwards.
    pub(crate) fn cut(&mut self, seed: Option<u64>) -> CutReport {
        let mut report =
            CutReport { unflushed_writes: self.log.len() as u64, ..CutReport::default() };
        // Steps back that each sector takes; counted first so that the walk below, newest write
        // first, can stop a sector at its version.
        let mut versions: HashMap<usize, u32> = HashMap::new();
        let mut order = Vec::new();
        for entry in &self.log {
            for sector in sectors(entry) {
                let count = versions.entry(sector).or_insert_with(|| {
                    order.push(sector);
                    0
                });
                *count += 1;
            }
        }
        let mut random = seed.map(ChaCha8Rng::seed_from_u64);
        for sector in order {
            let Some(steps) = versions.get_mut(&sector) else {
                continue;
            };
            let written = *steps;
            if let Some(random) = &mut random {
                *steps = draw(random, written);
            }
            match *steps {
                0 => report.kept_sectors += 1,
                back if back == written => report.lost_sectors += 1,
                _ => report.stale_sectors += 1,
            }
        }
        while let Some(entry) = self.log.pop_back() {
            for sector in sectors(&entry) {
                let Some(steps) = versions.get_mut(&sector).filter(|steps| **steps > 0) else {
                    continue;
                };
                *steps -= 1;
                let start = entry.offset.max(sector * SECTOR_BYTES);
                let end = (entry.offset + entry.len).min((sector + 1) * SECTOR_BYTES);
                let before = match entry.saved_at {
                    None => &ZEROES[..end - start],
                    Some(saved_at) => {
                        let saved_at = saved_at + (start - entry.offset);
                        &self.arena.bytes()[saved_at..saved_at + (end - start)]
                    }
                };
                self.image.write(start, before);
            }
        }
        self.head = 0;
        self.unflushed_bytes = 0;
        report
    }

    /// Saves the bytes that a write is about to overwrite.
    fn remember(&mut self, offset: usize, len: usize) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        if len > self.capacity {
            // Larger than the cache: it goes to the medium, after everything that it might overtake.
            self.flush(sequence);
            return;
        }
        while self.unflushed_bytes as usize + len > self.capacity {
            self.destage_oldest();
        }
        let untouched = self.image.is_untouched(offset, len);
        let saved_at = (!untouched).then(|| self.save(offset, len));
        self.log.push_back(LogEntry { sequence, offset, len, saved_at });
        self.unflushed_bytes += len as u64;
    }

    /// Copies a range of the image into the ring, and returns its place.
    ///
    /// No live before-image is in the way. With this one they are at most `capacity` bytes, and no write is longer
    /// than that. The ring has twice as many bytes. So the rest at the ring's end, if one does not fit there, is
    /// never needed.
    fn save(&mut self, offset: usize, len: usize) -> usize {
        if self.head + len > self.arena.len() {
            self.head = 0;
        }
        let start = self.head;
        self.arena.write(start, &self.image.bytes()[offset..offset + len]);
        self.head += len;
        start
    }

    fn destage_oldest(&mut self) {
        if let Some(entry) = self.log.pop_front() {
            self.unflushed_bytes -= entry.len as u64;
        }
    }
}

/// Draws the number of versions that a sector with `written` of them goes back: equal odds for the newest, for the
/// flushed contents, and for anything between.
fn draw(random: &mut ChaCha8Rng, written: u32) -> u32 {
    let word = random.next_u32();
    if written == 1 {
        return word & 1;
    }
    match word % 3 {
        0 => 0,
        1 => written,
        _ => 1 + (word / 3) % (written - 1),
    }
}

fn sectors(entry: &LogEntry) -> std::ops::Range<usize> {
    entry.offset / SECTOR_BYTES..(entry.offset + entry.len).div_ceil(SECTOR_BYTES)
}

#[cfg(test)]
mod tests;
