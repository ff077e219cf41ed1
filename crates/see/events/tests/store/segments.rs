//! Rows become segments, and segments one file per table; a killed recorder loses the last of them at most.

use std::fs;

use luc_events::store::{SEGMENT_ROWS, TraceReader, TraceWriter};
use luc_events::tables::{LostEvents, OffCpuWait, TableRow};
use proptest::prelude::*;

use super::store_fixtures::{description, part_files, read, wait_row};

#[test]
fn segments_are_merged_into_one_file_per_table_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(directory.path(), description(0)).unwrap();
    for at in 0..100 {
        writer.add(wait_row(at)).unwrap();
        writer.flush().unwrap();
    }
    writer.finish(description(100)).unwrap();
    assert_eq!(part_files(directory.path(), "wait"), ["wait-000001-000100.parquet"]);
    let waits = read::<OffCpuWait>(directory.path());
    assert_eq!(waits, (0..100).map(wait_row).collect::<Vec<_>>());
}

#[test]
fn a_full_segment_is_written_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(directory.path(), description(0)).unwrap();
    for at in 0..=SEGMENT_ROWS as u64 {
        writer.add(wait_row(at)).unwrap();
    }
    assert_eq!(read::<OffCpuWait>(directory.path()).len(), SEGMENT_ROWS);
}

#[test]
fn what_was_flushed_survives_a_killed_recorder() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(directory.path(), description(0)).unwrap();
    for at in 0..40 {
        writer.add(wait_row(at)).unwrap();
        writer.flush().unwrap();
    }
    writer.add(wait_row(99)).unwrap();
    // Killed here, in the middle of writing the next segment.
    std::mem::forget(writer);
    fs::write(directory.path().join(".wait-000041-000041.parquet.tmp"), b"PAR1LUC1").unwrap();

    let reader = TraceReader::open(directory.path()).unwrap();
    assert_eq!(reader.trace().end_ns, 0);
    assert_eq!(read::<OffCpuWait>(directory.path()).len(), 40);
}

#[test]
fn a_recorder_killed_while_merging_leaves_no_row_twice() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(directory.path(), description(0)).unwrap();
    for at in 0..3 {
        writer.add(wait_row(at)).unwrap();
        writer.flush().unwrap();
    }
    let kept = directory.path().join("wait-000002-000002.parquet");
    let copy = fs::read(&kept).unwrap();
    writer.finish(description(9)).unwrap();
    fs::write(&kept, copy).unwrap();
    assert_eq!(read::<OffCpuWait>(directory.path()).len(), 3);
}

#[test]
fn a_missing_segment_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(directory.path(), description(0)).unwrap();
    for at in 0..3 {
        writer.add(wait_row(at)).unwrap();
        writer.flush().unwrap();
    }
    fs::remove_file(directory.path().join("wait-000002-000002.parquet")).unwrap();
    let error = TraceReader::open(directory.path()).unwrap().rows::<OffCpuWait>().unwrap_err();
    assert!(error.to_string().contains("segment 2 of table wait is missing"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// However late rows come and wherever segments end, the reader gives them in order.
    #[test]
    fn rows_come_back_in_the_order_of_their_times(
        times in prop::collection::vec(0u64..10_000, 1..300),
        flush_every in 1usize..50,
        finish in any::<bool>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = TraceWriter::create(directory.path(), description(0)).unwrap();
        for (index, &at) in times.iter().enumerate() {
            writer.add(wait_row(at)).unwrap();
            if index % flush_every == 0 {
                writer.flush().unwrap();
            }
        }
        if finish {
            writer.finish(description(1)).unwrap();
        } else {
            writer.flush().unwrap();
        }
        let found: Vec<u64> = read::<OffCpuWait>(directory.path()).iter().map(TableRow::time_ns).collect();
        let mut expected = times;
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn rows_of_equal_times_keep_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(directory.path(), description(0)).unwrap();
    for count in 0..10 {
        let row = LostEvents { at_ns: 7, count, place: String::new() };
        writer.add(row).unwrap();
        if count % 2 == 1 {
            writer.flush().unwrap();
        }
    }
    let counts: Vec<u64> =
        read::<LostEvents>(directory.path()).iter().map(|row| row.count).collect();
    assert_eq!(counts, (0..10).collect::<Vec<_>>());
}
