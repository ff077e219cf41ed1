use super::*;

fn plan(directory: &Path) -> InitialWrite {
    InitialWrite {
        directory: directory.to_path_buf(),
        clients: 3,
        kind: ClientKind::Thread,
        file_size_bytes: 4096,
        record_size_bytes: 1024,
        include: TimedChildCalls::default(),
        directory_per_client: false,
        rounds: 2,
        arrivals: None,
        copy_ns_per_kib: 0,
        seed: 1,
        no_fsync: false,
    }
}

#[test]
fn every_child_writes_its_file_in_every_round() {
    let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
    let report = run(&plan(parent.path()), &mut |_| {}).expect("run");
    let counts: Vec<u64> = report.operations.iter().map(|row| row.count).collect();
    assert_eq!(counts, [6, 24, 6, 6, 6]);
    assert_eq!(report.rounds.len(), 2);
    assert!(!report.interrupted);
    assert_eq!(fs::read_dir(parent.path()).expect("list").count(), 0);
}

#[test]
fn children_in_directories_of_their_own_arrive_later() {
    let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
    let plan = InitialWrite {
        directory_per_client: true,
        arrivals: Some(Arrivals::Exponential(100_000)),
        ..plan(parent.path())
    };
    let report = run(&plan, &mut |_| {}).expect("run");
    assert_eq!(report.rounds.len(), 2);
    assert!(report.directory_per_client);
    assert_eq!(report.arrivals, plan.arrivals);
    assert_eq!(fs::read_dir(parent.path()).expect("list").count(), 0);
}

#[test]
fn what_is_included_is_timed() {
    let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
    let sums = |include| {
        let plan = InitialWrite { include, clients: 1, rounds: 1, ..plan(parent.path()) };
        let report = run(&plan, &mut |_| {}).expect("run");
        let sum = |row: &LatencyFigures| row.mean_us * row.count as f64;
        let [_, write, fsync, close, child] = &report.operations[..] else {
            panic!("five operations")
        };
        (sum(child), sum(write), sum(write) + sum(fsync), sum(write) + sum(fsync) + sum(close))
    };
    let equal = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
    let (child, writes, ..) = sums(TimedChildCalls::default());
    equal(child, writes);
    let (child, _, synced, _) = sums(TimedChildCalls { fsync: true, close: false });
    equal(child, synced);
    let (child, .., closed) = sums(TimedChildCalls { fsync: true, close: true });
    equal(child, closed);
}

#[test]
fn copying_takes_its_time_whatever_the_processor_does() {
    let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
    let plan = InitialWrite { copy_ns_per_kib: 1_000_000, ..plan(parent.path()) };
    let report = run(&plan, &mut |_| {}).expect("run");
    assert_eq!(report.copy_ns_per_kib, 1_000_000);
    // A write is of a KiB, a child's file of four.
    let least_us = |operation: usize| report.operations[operation].p50_us;
    assert!(least_us(WRITE) > 990.0 && least_us(CHILD) > 3960.0, "{report:?}");
}

#[test]
fn blocked_children_are_those_that_take_ten_times_as_long() {
    let times: Vec<AtomicU64> =
        [0, 1_000, 0, 9_999, 0, 10_000, 500, 90_000].map(AtomicU64::new).into();
    assert_eq!(throughput(1024, &times).blocked_children, 2);
}

#[test]
fn children_and_parent_see_different_rates() {
    // 100 KiB each: one child in the first second, the other in the fourth quarter of the next.
    let times: Vec<AtomicU64> =
        [0, 1_000_000_000, 1_750_000_000, 2_000_000_000].map(AtomicU64::new).into();
    let round = throughput(100 << 10, &times);
    assert!((round.children_kib_per_second - (100.0 + 400.0)).abs() < 1e-9);
    assert!((round.parent_kib_per_second - 100.0).abs() < 1e-9);
}

#[test]
fn sizes_and_numbers_are_checked() {
    let good = plan(Path::new("/x"));
    for (bad, words) in [
        (InitialWrite { clients: 0, ..good.clone() }, "--threads 0"),
        (InitialWrite { rounds: 0, ..good.clone() }, "--rounds 0"),
        (InitialWrite { record_size_bytes: 1000, ..good.clone() }, "--record-size 1000"),
        (InitialWrite { record_size_bytes: 0, ..good.clone() }, "--record-size 0"),
    ] {
        let error = run(&bad, &mut |_| {}).expect_err(words);
        assert!(error.to_string().contains(words), "{error}");
    }
}
