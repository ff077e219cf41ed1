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

/// Contents that each sector may have after a cut, oldest first; the last is the newest. A flush removes versions that
/// are no longer allowed.
struct Reference {
    versions: Vec<Vec<(u64, u8)>>,
    sequence: u64,
}

impl Reference {
    fn new() -> Self {
        Self { versions: vec![vec![(0, 0)]; SECTORS], sequence: 1 }
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

fn content(store: &VolatileCache, sector: usize) -> u8 {
    let bytes = &store.bytes()[sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES];
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a sector is never torn");
    bytes[0]
}

/// Runs the steps on both; returns them with the mark of the last `Mark` done as a flush.
fn run(steps: &[Step], cache: usize) -> (VolatileCache, Reference) {
    let mut store =
        VolatileCache::new(SECTORS * SECTOR_BYTES, cache, PageKind::Ordinary).expect("maps");
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
    let mut store =
        VolatileCache::new(SECTORS * SECTOR_BYTES, 1 << 20, PageKind::Ordinary).expect("maps");
    for version in 1..=3 {
        store.write(0, &[version; SECTORS * SECTOR_BYTES]);
    }
    let report = store.cut(Some(42));
    let count = |version| (0..SECTORS).filter(|at| content(&store, *at) == version).count();
    assert_eq!(report.kept_sectors as usize, count(3));
    assert_eq!(report.stale_sectors as usize, count(1) + count(2));
    assert_eq!(report.lost_sectors as usize, count(0));
    assert_eq!(report.unflushed_writes, 3);
    assert!((0..=3).all(|version| count(version) > 0), "{report:?}");
}

#[test]
fn without_a_cache_writes_are_durable() {
    let mut store =
        VolatileCache::new(SECTORS * SECTOR_BYTES, 0, PageKind::Ordinary).expect("maps");
    store.write(0, &[9; SECTOR_BYTES]);
    assert_eq!(store.cut(None), CutReport::default());
    assert_eq!(content(&store, 0), 9);
}
