//! The volatile write cache: what a power cut takes, and what it may leave.
//!
//! There is one image, the newest contents, and an ordered log of what each unflushed write
//! overwrote. A flush then costs nothing but forgetting the log; a cut walks it backwards. The
//! log also holds every intermediate version of a sector, from which a seeded cut picks.

use std::collections::{HashMap, VecDeque};
use std::io;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::image::Image;

/// Bytes that a disk persists atomically: it writes a sector or it does not (T10 SBC, ACS-4).
pub const SECTOR_BYTES: usize = 512;

static ZEROES: [u8; 64 << 10] = [0; 64 << 10];

/// What a power cut did to the sectors that were not flushed. A sector is counted once, however
/// many unflushed writes it had.
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

/// One unflushed write: where, and where in the arena its before-image lies.
#[derive(Debug)]
struct Entry {
    sequence: u64,
    offset: usize,
    len: usize,
    /// `None` when the range was never written before: it goes back to zeroes.
    saved_at: Option<usize>,
}

/// Contents with a bounded volatile cache in front of the medium.
#[derive(Debug)]
pub(crate) struct Store {
    image: Image,
    /// Before-images, a ring of twice the cache's size.
    arena: Image,
    capacity: usize,
    log: VecDeque<Entry>,
    next_sequence: u64,
    /// First free byte of the ring.
    head: usize,
    unflushed_bytes: u64,
}

impl Store {
    /// A zeroed disk of `size` bytes, all of it durable, with a cache of `cache` bytes (0: every
    /// write is durable at once).
    ///
    /// # Errors
    /// The address space is exhausted.
    pub(crate) fn new(size: usize, cache: usize) -> io::Result<Self> {
        Ok(Self {
            image: Image::new(size)?,
            arena: Image::new((2 * cache).max(1))?,
            capacity: cache,
            log: VecDeque::with_capacity(16 << 10),
            next_sequence: 0,
            head: 0,
            unflushed_bytes: 0,
        })
    }

    /// The newest contents.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.image.bytes()
    }

    /// Bytes written and not yet durable.
    pub(crate) fn unflushed_bytes(&self) -> u64 {
        self.unflushed_bytes
    }

    /// Writes into the cache. What no longer fits beside it is destaged, oldest first.
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

    /// A mark of everything written so far, for [`Store::flush`].
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

    /// The power goes. Without a seed every unflushed write is gone. With one, each sector of
    /// the unflushed writes is drawn apart from the others: it keeps one of the versions it had
    /// since the last flush, or its flushed contents. Nothing is unflushed afterwards.
    pub(crate) fn cut(&mut self, seed: Option<u64>) -> CutReport {
        let mut report = CutReport {
            unflushed_writes: self.log.len() as u64,
            ..CutReport::default()
        };
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

    /// Saves what a write is about to overwrite.
    fn remember(&mut self, offset: usize, len: usize) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        if len > self.capacity {
            // Larger than the cache: it goes to the medium, and what it might overtake before it.
            self.flush(sequence);
            return;
        }
        while self.unflushed_bytes as usize + len > self.capacity {
            self.destage_oldest();
        }
        let untouched = self.image.is_untouched(offset, len);
        let saved_at = (!untouched).then(|| self.save(offset, len));
        self.log.push_back(Entry {
            sequence,
            offset,
            len,
            saved_at,
        });
        self.unflushed_bytes += len as u64;
    }

    /// Copies a range of the image into the ring. Where.
    ///
    /// No live before-image is in the way: with this one they are at most `capacity` bytes, no
    /// write is longer than that, and the ring has twice as many. So the part left over at its
    /// end when one does not fit there is never needed.
    fn save(&mut self, offset: usize, len: usize) -> usize {
        if self.head + len > self.arena.len() {
            self.head = 0;
        }
        let start = self.head;
        self.arena
            .write(start, &self.image.bytes()[offset..offset + len]);
        self.head += len;
        start
    }

    fn destage_oldest(&mut self) {
        if let Some(entry) = self.log.pop_front() {
            self.unflushed_bytes -= entry.len as u64;
        }
    }
}

/// How many versions a sector with `written` of them goes back: even odds for the newest, for
/// the flushed contents, and for anything between.
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

fn sectors(entry: &Entry) -> std::ops::Range<usize> {
    entry.offset / SECTOR_BYTES..(entry.offset + entry.len).div_ceil(SECTOR_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECTORS: usize = 64;

    #[derive(Debug, Clone)]
    enum Step {
        Write { sector: usize, sectors: usize },
        Discard { sector: usize, sectors: usize },
        Mark,
        Flush,
    }

    fn step() -> impl Strategy<Value = Step> {
        let range = (0..SECTORS).prop_flat_map(|at| (Just(at), 1..=(SECTORS - at).min(12)));
        prop_oneof![
            6 => range.clone().prop_map(|(sector, sectors)| Step::Write { sector, sectors }),
            1 => range.prop_map(|(sector, sectors)| Step::Discard { sector, sectors }),
            1 => Just(Step::Mark),
            1 => Just(Step::Flush),
        ]
    }

    /// For each sector every content that it may have after a cut, oldest first; the last is the
    /// newest. What is the oldest allowed moves up at a flush.
    struct Reference {
        versions: Vec<Vec<(u64, u8)>>,
        sequence: u64,
    }

    impl Reference {
        fn new() -> Self {
            Self {
                versions: vec![vec![(0, 0)]; SECTORS],
                sequence: 1,
            }
        }

        fn write(&mut self, sector: usize, sectors: usize, content: u8) {
            for versions in &mut self.versions[sector..sector + sectors] {
                versions.push((self.sequence, content));
            }
            self.sequence += 1;
        }

        fn flush(&mut self, mark: u64) {
            for versions in &mut self.versions {
                let durable = versions.iter().rposition(|(sequence, _)| *sequence < mark);
                versions.drain(..durable.unwrap_or(0));
            }
        }
    }

    fn content(store: &Store, sector: usize) -> u8 {
        let bytes = &store.bytes()[sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES];
        assert!(
            bytes.iter().all(|byte| *byte == bytes[0]),
            "a sector is never torn"
        );
        bytes[0]
    }

    /// Runs the steps on both; returns them with the mark of the last `Mark` done as a flush.
    fn run(steps: &[Step], cache: usize) -> (Store, Reference) {
        let mut store = Store::new(SECTORS * SECTOR_BYTES, cache).expect("maps");
        let mut reference = Reference::new();
        let mut marks = (0, 1);
        for (number, step) in steps.iter().enumerate() {
            match *step {
                Step::Write { sector, sectors } => {
                    let byte = (number % 255) as u8 + 1;
                    store.write(sector * SECTOR_BYTES, &vec![byte; sectors * SECTOR_BYTES]);
                    reference.write(sector, sectors, byte);
                }
                Step::Discard { sector, sectors } => {
                    store.discard(sector * SECTOR_BYTES, sectors * SECTOR_BYTES);
                    reference.write(sector, sectors, 0);
                }
                Step::Mark => marks = (store.mark(), reference.sequence),
                Step::Flush => {
                    store.flush(marks.0);
                    reference.flush(marks.1);
                }
            }
        }
        (store, reference)
    }

    proptest! {
        #[test]
        fn reads_see_the_newest(steps in prop::collection::vec(step(), 0..60), cache in 0usize..20) {
            let (store, reference) = run(&steps, cache * 1024);
            for sector in 0..SECTORS {
                let newest = reference.versions[sector].last().expect("never empty").1;
                prop_assert_eq!(content(&store, sector), newest);
            }
        }

        #[test]
        fn a_cut_loses_all_that_was_not_flushed(steps in prop::collection::vec(step(), 0..60)) {
            let (mut store, reference) = run(&steps, 1 << 20);
            let report = store.cut(None);
            prop_assert_eq!(report.kept_sectors + report.stale_sectors, 0);
            for sector in 0..SECTORS {
                prop_assert_eq!(content(&store, sector), reference.versions[sector][0].1);
            }
            prop_assert_eq!(store.unflushed_bytes(), 0);
        }

        #[test]
        fn a_seeded_cut_leaves_legal_versions(
            steps in prop::collection::vec(step(), 0..60),
            cache in 0usize..20,
            seed: u64,
        ) {
            let (mut store, reference) = run(&steps, cache * 1024);
            store.cut(Some(seed));
            for sector in 0..SECTORS {
                let found = content(&store, sector);
                let legal = &reference.versions[sector];
                prop_assert!(legal.iter().any(|(_, content)| *content == found), "{sector}");
            }
            let (mut again, _) = run(&steps, cache * 1024);
            again.cut(Some(seed));
            prop_assert_eq!(store.bytes(), again.bytes(), "a seed decides");
            // The disk works on.
            store.write(0, &[7; SECTOR_BYTES]);
            store.flush(store.mark());
            store.cut(Some(seed));
            prop_assert_eq!(content(&store, 0), 7);
        }

        #[test]
        fn the_cache_is_bounded(steps in prop::collection::vec(step(), 0..60), cache in 0usize..20) {
            let (store, _) = run(&steps, cache * 1024);
            prop_assert!(store.unflushed_bytes() <= cache as u64 * 1024);
        }
    }

    #[test]
    fn a_seeded_cut_keeps_loses_and_reorders() {
        let mut store = Store::new(SECTORS * SECTOR_BYTES, 1 << 20).expect("maps");
        for version in 1..=3 {
            store.write(0, &[version; SECTORS * SECTOR_BYTES]);
        }
        let report = store.cut(Some(42));
        let count = |version| {
            (0..SECTORS)
                .filter(|at| content(&store, *at) == version)
                .count()
        };
        assert_eq!(report.kept_sectors as usize, count(3));
        assert_eq!(report.stale_sectors as usize, count(1) + count(2));
        assert_eq!(report.lost_sectors as usize, count(0));
        assert_eq!(report.unflushed_writes, 3);
        assert!((0..=3).all(|version| count(version) > 0), "{report:?}");
    }

    #[test]
    fn without_a_cache_writes_are_durable() {
        let mut store = Store::new(SECTORS * SECTOR_BYTES, 0).expect("maps");
        store.write(0, &[9; SECTOR_BYTES]);
        assert_eq!(store.cut(None), CutReport::default());
        assert_eq!(content(&store, 0), 9);
    }
}
