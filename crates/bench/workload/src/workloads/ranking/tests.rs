//! Tests of the probe and of its files, in a temporary directory.

use std::fs;

use tempfile::TempDir;

use super::probe_files::{ProbeFileCreation, create};
use super::*;

const MIB: u64 = 1 << 20;

fn made(directory: &TempDir, names: &[&str], spread: bool) -> ProbeFileCreation {
    let plan = ProbeFileCreation {
        files: names.iter().map(|name| directory.path().join(name)).collect(),
        size_bytes: MIB + 1,
        spread,
    };
    create(&plan).expect("files");
    plan
}

fn plan(file: PathBuf, direction: FileUse) -> RankingProbe {
    RankingProbe {
        file,
        block_bytes: 128 << 10,
        pace: ProbePace::Nops(0),
        direction,
        random: None,
        cold: false,
        interval_ns: 1_000_000_000,
        for_ns: None,
    }
}

fn report(plan: &RankingProbe) -> RankingReport {
    run(plan, &mut |_| {}).expect("a report")
}

#[test]
fn each_byte_is_read_once_whatever_the_block() {
    let directory = TempDir::new().expect("directory");
    let files = made(&directory, &["a"], false).files;
    for block_bytes in [32, 4096, 100_000, 128 << 10, 2 * MIB] {
        let plan = RankingProbe { block_bytes, ..plan(files[0].clone(), FileUse::Read) };
        let report = report(&plan);
        assert_eq!(report.bytes, MIB + 1, "{block_bytes}");
        assert_eq!(report.bytes_per_interval.iter().sum::<u64>(), MIB + 1);
        assert!(!report.interrupted && report.mb_per_second > 0.0);
    }
}

#[test]
fn blocks_in_random_order_are_each_used_once() {
    let directory = TempDir::new().expect("directory");
    let files = made(&directory, &["a"], false).files;
    let before = fs::read(&files[0]).expect("there");
    for direction in [FileUse::Read, FileUse::Write] {
        let plan = RankingProbe {
            random: Some(7),
            block_bytes: 10_000,
            ..plan(files[0].clone(), direction)
        };
        assert_eq!(report(&plan).bytes, MIB + 1);
    }
    assert!(fs::read(&files[0]).expect("there") == before);
    let order = shuffled(100, 7).expect("few");
    assert_eq!(order, shuffled(100, 7).expect("few"));
    assert_ne!(order, shuffled(100, 8).expect("few"));
    assert!(shuffled(u64::MAX, 7).is_err());
}

#[test]
fn pauses_take_their_time() {
    let directory = TempDir::new().expect("directory");
    let files = made(&directory, &["a"], false).files;
    let plan = RankingProbe {
        pace: ProbePace::Think(2_000_000),
        interval_ns: 5_000_000,
        ..plan(files[0].clone(), FileUse::Read)
    };
    let report = report(&plan);
    // Nine blocks, and a pause after each.
    assert!(report.measured_s >= 0.018, "{}", report.measured_s);
    assert!(report.bytes_per_interval.len() >= 3, "{report:?}");
    assert_eq!(report.think_us, 2000.0);
}

#[test]
fn a_probe_ends_after_its_time_and_tells_how_long_blocks_took() {
    let directory = TempDir::new().expect("directory");
    let files = made(&directory, &["a"], false).files;
    let plan = RankingProbe {
        block_bytes: 4096,
        random: Some(1),
        pace: ProbePace::Think(2_000_000),
        for_ns: Some(20_000_000),
        ..plan(files[0].clone(), FileUse::Read)
    };
    let report = report(&plan);
    let blocks = report.bytes / 4096;
    assert!((2..=11).contains(&blocks), "{blocks}");
    assert_eq!(report.latency.count, blocks);
    assert!(report.latency.max_us > 0.0 && !report.interrupted);
}

#[test]
fn a_writer_leaves_a_file_that_can_be_written_again() {
    let directory = TempDir::new().expect("directory");
    let files = made(&directory, &["a"], false).files;
    for block_bytes in [10, 128 << 10] {
        let plan = RankingProbe { block_bytes, ..plan(files[0].clone(), FileUse::Write) };
        assert_eq!(report(&plan).bytes, MIB + 1);
    }
    let about = fs::metadata(&files[0]).expect("there");
    assert_eq!(about.len(), MIB + 1);
}

#[test]
fn other_files_are_not_written_over() {
    let directory = TempDir::new().expect("directory");
    let file = directory.path().join("precious");
    for text in ["", "x", "a text that is longer than the mark"] {
        fs::write(&file, text).expect("written");
        let refused = run(&plan(file.clone(), FileUse::Write), &mut |_| {})
            .expect_err("not ours")
            .to_string();
        assert!(refused.contains("was not made by luc bench ranking"), "{refused}");
        assert_eq!(fs::read_to_string(&file).expect("there"), text);
    }
}

#[test]
fn options_out_of_range_are_named() {
    let fine = plan("/nowhere/x".into(), FileUse::Read);
    let of = |plan: RankingProbe| run(&plan, &mut |_| {}).expect_err("refused").to_string();
    let block_bytes = 0;
    assert!(of(RankingProbe { block_bytes, ..fine.clone() }).contains("--block 0"));
    let for_ns = Some(0);
    assert!(of(RankingProbe { for_ns, ..fine.clone() }).contains("--for"));
    let pace = ProbePace::Think(1 << 40);
    assert!(of(RankingProbe { pace, ..fine.clone() }).contains("--think"));
    let interval_ns = 0;
    assert!(of(RankingProbe { interval_ns, ..fine.clone() }).contains("--interval"));
    assert!(of(fine).contains("/nowhere/x"));
}

#[test]
fn the_log_has_a_number_for_each_interval() {
    let mut log = Log::begin(100);
    for (bytes, at_ns) in [(1, 0), (2, 99), (4, 100), (8, 350)] {
        log.add_at(bytes, at_ns);
    }
    assert_eq!(log.intervals, [3, 4, 0, 8]);
    assert_eq!(log.bytes, 15);
    log.add_at(16, u64::MAX);
    assert_eq!(log.intervals.len() as u64, MAX_INTERVALS);
}

#[test]
fn what_is_there_is_not_made_again_and_a_failure_leaves_nothing() {
    let directory = TempDir::new().expect("directory");
    made(&directory, &["a"], false);
    let path = |name: &str| directory.path().join(name);
    let creation =
        |files: Vec<PathBuf>, size_bytes| ProbeFileCreation { files, size_bytes, spread: false };
    for (plan, word) in [
        (creation(vec![path("b"), path("a")], MIB), "a: "),
        (creation(vec![path("b"), path("b")], MIB), "b: "),
        (creation(vec![path("b")], 5), "--create 5"),
        (creation(vec![path("b"), path("no/c")], MIB), "no/c"),
    ] {
        let error = create(&plan).expect_err(word).to_string();
        assert!(error.contains(word), "{error}");
    }
    let left: Vec<_> = fs::read_dir(directory.path()).expect("list").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
