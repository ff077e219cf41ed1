use super::*;
use crate::model::test_support::{SplitMixNumbers, request};

const CAPACITY: u64 = 250_000_000_000;

fn drive() -> HddModel {
    HddParameters::default().check().expect("sane defaults");
    HddModel::new(HddParameters::default(), CAPACITY)
}

/// Returns the mean time of requests at random positions, one after the other, in milliseconds.
fn mean_random_ms(drive: &mut HddModel, kind: DiskRequestKind) -> f64 {
    let mut random = SplitMixNumbers::new(1);
    let (mut now, mut sum, count) = (0, 0, 20_000);
    for _ in 0..count {
        let offset = random.below(CAPACITY / 4096 - 1) * 4096;
        let done = drive.complete_at_ns(now, request(kind, offset, 4096));
        sum += done - now;
        now = done + random.below(1_000_000);
    }
    sum as f64 / f64::from(count) / 1e6
}

#[test]
fn a_random_read_is_a_seek_and_half_a_revolution() {
    // 8.5 ms + 4.17 ms + overhead.
    let mean_ms = mean_random_ms(&mut drive(), DiskRequestKind::Read);
    assert!((12.5..=13.1).contains(&mean_ms), "{mean_ms}");
}

#[test]
fn without_a_cache_so_is_a_write() {
    let parameters = HddParameters { cache_bytes: 0, ..HddParameters::default() };
    let mean_ms = mean_random_ms(&mut HddModel::new(parameters, CAPACITY), DiskRequestKind::Write);
    assert!((13.5..=14.1).contains(&mean_ms), "{mean_ms}");
}

fn sequential_mb_per_second(from: u64, kind: DiskRequestKind) -> f64 {
    let mut drive = drive();
    let len = 128 << 10;
    let mut now = drive.complete_at_ns(0, request(kind, from, len));
    let start = now;
    let count = 4_000;
    for step in 1..=count {
        now = drive.complete_at_ns(now, request(kind, from + step * len, len));
    }
    if kind == DiskRequestKind::Write {
        now = drive.complete_at_ns(now, request(DiskRequestKind::Flush, 0, 0));
    }
    (count * len) as f64 * 1e3 / (now - start) as f64
}

#[test]
fn sequential_rates_are_the_zones() {
    let outer = sequential_mb_per_second(0, DiskRequestKind::Read);
    assert!((121.0..=126.0).contains(&outer), "{outer}");
    let inner = sequential_mb_per_second(CAPACITY - (1 << 30), DiskRequestKind::Read);
    assert!((57.0..=61.0).contains(&inner), "{inner}");
    let written = sequential_mb_per_second(0, DiskRequestKind::Write);
    assert!((110.0..=126.0).contains(&written), "{written}");
}

#[test]
fn the_cache_absorbs_writes_and_a_flush_pays_in_elevator_order() {
    let mut drive = drive();
    let mut random = SplitMixNumbers::new(2);
    let mut now = 0;
    for _ in 0..100 {
        let offset = random.below(CAPACITY / 4096) * 4096;
        let done = drive.complete_at_ns(now, request(DiskRequestKind::Write, offset, 4096));
        assert!(done - now < 200_000, "a cached write is quick");
        now = done;
    }
    let flush_ms =
        (drive.complete_at_ns(now, request(DiskRequestKind::Flush, 0, 0)) - now) as f64 / 1e6;
    // In order of arrival it would be about 1370 ms.
    assert!((400.0..=1000.0).contains(&flush_ms), "{flush_ms}");
    now += 2_000_000_000;
    let empty = drive.complete_at_ns(now, request(DiskRequestKind::Flush, 0, 0)) - now;
    assert!(empty < 1_000_000, "{empty}");
}

#[test]
fn rewriting_a_block_durably_takes_a_revolution() {
    let mut drive = drive();
    let mut now = 0;
    let rounds = 200;
    for _ in 0..rounds {
        now = drive.complete_at_ns(now, request(DiskRequestKind::Write, 8192, 4096));
        now = drive.complete_at_ns(now, request(DiskRequestKind::Flush, 0, 0));
    }
    let mean_ms = now as f64 / f64::from(rounds) / 1e6;
    assert!((8.2..=8.5).contains(&mean_ms), "{mean_ms}");
}

#[test]
fn an_idle_drive_destages_by_itself() {
    let mut drive = drive();
    drive.complete_at_ns(0, request(DiskRequestKind::Write, CAPACITY / 2, 4096));
    let later = 1_000_000_000;
    assert!(drive.complete_at_ns(later, request(DiskRequestKind::Flush, 0, 0)) - later < 1_000_000);
}
