//! Figures that the policy must reach on the simulated disks. Virtual time makes them exact.

use super::super::auto_throttle::{AutoThrottle, AutoThrottleConfig, DiskPrior, TaskSequence};
use super::super::forecast::FinalSync;
use super::super::wise_throttling::{WiseConfig, WisePolicy};
use super::{BLOCK, CheckedRun, MS, NeverFreeze, TaskWork, TestDisk, alone_ns, run};

const MB: u64 = 1_000_000;
const LIMIT_NS: u64 = 3_600_000 * MS;

fn auto(prior: DiskPrior, sequence: TaskSequence) -> AutoThrottle {
    AutoThrottle::new(AutoThrottleConfig { prior, sequence, ..AutoThrottleConfig::default() })
}

/// Runs tasks under the default policy.
fn under_auto(disk: TestDisk, specs: &[TaskWork]) -> CheckedRun {
    let prior = match disk {
        TestDisk::Arm | TestDisk::Pair => DiskPrior::Engaged,
        TestDisk::Flash | TestDisk::Cloud => DiskPrior::Together,
    };
    let outcome = run(disk, specs, &mut auto(prior, TaskSequence::FairSojourn), LIMIT_NS);
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    outcome
}

struct Figures {
    /// Makespan over the sum of the times alone: 1 is the limit of a lossless disk. For equal tasks that start
    /// together, it is also the worst finish over that under fair sharing.
    all_done: f64,
    /// Throughput over that without a policy.
    against_none: f64,
    weighted_speedup: f64,
}

fn figures(disk: TestDisk, specs: &[TaskWork], outcome: &CheckedRun) -> Figures {
    let alone = alone_ns(disk, specs);
    let sum = alone.iter().sum::<u64>() as f64;
    let none = run(disk, specs, &mut NeverFreeze, LIMIT_NS);
    let figures = Figures {
        all_done: outcome.makespan_ns() as f64 / sum,
        against_none: none.makespan_ns() as f64 / outcome.makespan_ns() as f64,
        weighted_speedup: outcome.weighted_speedup(&alone),
    };
    println!(
        "{disk:?} {} tasks: all done {:.3}, against none {:.2}, WS {:.3}",
        specs.len(),
        figures.all_done,
        figures.against_none,
        figures.weighted_speedup
    );
    figures
}

const ANY: Figures = Figures { all_done: f64::INFINITY, against_none: 0.0, weighted_speedup: 0.0 };

/// Checks figures under the default policy. `all_done` is an upper bound, the others are lower bounds.
fn check(disk: TestDisk, specs: &[TaskWork], bounds: Figures) {
    let figures = figures(disk, specs, &under_auto(disk, specs));
    assert!(figures.all_done <= bounds.all_done);
    assert!(figures.against_none >= bounds.against_none);
    assert!(figures.weighted_speedup >= bounds.weighted_speedup);
}

#[test]
fn streams_on_an_arm_run_one_after_the_other() {
    // Rows 1 to 5. The best tuned rival loses nothing at best, and is fair: its weighted speed-up is 1.
    for (n, weighted_speedup, against_none) in [(4, 2.0, 5.0), (8, 2.5, 7.0)] {
        let bounds = Figures { all_done: 1.03, against_none, weighted_speedup };
        check(TestDisk::Arm, &vec![TaskWork::stream(192 * MB); n], bounds);
    }
}

#[test]
fn short_streams_are_done_before_anybody_starves() {
    let bounds = Figures { all_done: 1.04, weighted_speedup: 2.4, ..ANY };
    check(TestDisk::Arm, &vec![TaskWork::stream(48 * MB); 8], bounds);
}

#[test]
fn streams_of_unknown_size_lose_order_but_no_bandwidth() {
    for (n, weighted_speedup) in [(4, 2.0), (8, 2.5)] {
        let bounds = Figures { all_done: 1.04, weighted_speedup, ..ANY };
        check(TestDisk::Arm, &vec![TaskWork::stream(192 * MB).unknown(); n], bounds);
    }
}

#[test]
fn long_streams_of_unknown_size_are_served_in_classes() {
    // Each leaves the first class, of 4 s; a short one that comes late passes them all.
    let mut specs = vec![TaskWork::stream(1_500 * MB).unknown(); 3];
    specs.push(TaskWork::stream(50 * MB).unknown().from(26_000 * MS));
    let outcome = under_auto(TestDisk::Arm, &specs);
    let alone = alone_ns(TestDisk::Arm, &specs);
    assert!(outcome.makespan_ns() as f64 <= 1.03 * alone.iter().sum::<u64>() as f64);
    assert!(outcome.took_ns[3] <= alone[3] + 1_000 * MS, "{} ms", outcome.took_ns[3] / MS);
}

#[test]
fn weights_and_sizes_decide_who_is_first() {
    let heavy = TaskWork { weight: 800, ..TaskWork::stream(200 * MB) };
    let specs = [TaskWork::stream(100 * MB), heavy, TaskWork::stream(40 * MB)];
    let outcome = under_auto(TestDisk::Arm, &specs);
    assert!(outcome.finish_ns[1] < outcome.finish_ns[0], "{:?}", outcome.finish_ns);
    assert!(outcome.finish_ns[2] < outcome.finish_ns[0], "{:?}", outcome.finish_ns);
}

#[test]
fn ablations_keep_the_bandwidth_and_lose_the_order() {
    let specs = vec![TaskWork::stream(192 * MB); 4];
    let by = |sequence| {
        let outcome = run(TestDisk::Arm, &specs, &mut auto(DiskPrior::Engaged, sequence), LIMIT_NS);
        figures(TestDisk::Arm, &specs, &outcome)
    };
    let turns = by(TaskSequence::RoundRobin);
    let fcfs = by(TaskSequence::Arrival);
    assert!(turns.all_done <= 1.05 && fcfs.all_done <= 1.03);
    assert!(fcfs.weighted_speedup >= 2.0);
    assert!(turns.weighted_speedup <= 1.4);
}

#[test]
fn the_papers_rules_suspend_nobody_where_all_are_slow() {
    // Each delivers a fraction of what it wants, so the sum of what is delivered looks harmless.
    let specs = vec![TaskWork::stream(192 * MB); 4];
    let mut wise = WisePolicy::new(WiseConfig::paper(105e6, Vec::new()));
    let outcome = run(TestDisk::Arm, &specs, &mut wise, LIMIT_NS);
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    assert_eq!(outcome.orders, 0);
}

#[test]
fn tasks_that_think_run_one_at_a_time_on_an_arm() {
    let bounds = Figures { all_done: 1.03, against_none: 3.5, ..ANY };
    check(TestDisk::Arm, &vec![TaskWork::stream(32 * MB).pausing(2 * MS); 4], bounds);
}

#[test]
fn tasks_compute_while_others_have_the_disk() {
    // Each reads for 0.32 s and computes for 0.8 s, eight times: three fit side by side, which would be 0.33.
    let bounds = Figures { all_done: 0.5, against_none: 1.5, ..ANY };
    let task = TaskWork::stream(8 * 32 * BLOCK * 8).computing(256, 800 * MS);
    check(TestDisk::Arm, &vec![task; 3], bounds);
}

#[test]
fn a_pair_of_arms_runs_two_once_that_was_tried() {
    // One at a time would be 1, two 0.5.
    let bounds = Figures { all_done: 0.7, against_none: 7.0, ..ANY };
    check(TestDisk::Pair, &vec![TaskWork::stream(2_000 * MB); 4], bounds);
}

#[test]
fn saturating_tasks_on_flash_and_in_the_cloud_gain_by_order_alone() {
    // Row 17.
    for disk in [TestDisk::Flash, TestDisk::Cloud] {
        let bounds = Figures { against_none: 0.99, weighted_speedup: 1.7, ..ANY };
        check(disk, &vec![TaskWork::stream(2_000 * MB).deep(16); 4], bounds);
    }
}

#[test]
fn short_tasks_on_flash_and_in_the_cloud_gain_by_order_as_well() {
    // Each takes a fifth to a third of a second alone.
    for (disk, bytes) in [(TestDisk::Flash, 400 * MB), (TestDisk::Cloud, 64 * MB)] {
        // The policy sees that a task has ended at its next look, up to 10 ms later.
        let bounds = Figures { against_none: 0.97, weighted_speedup: 1.7, ..ANY };
        check(disk, &vec![TaskWork::stream(bytes).deep(16); 4], bounds);
    }
}

#[test]
fn tasks_that_are_not_like_the_first_are_let_run_together_again() {
    // The first saturates the disk alone; each of the others leaves most of it, and they do not hurt each other.
    let mut specs = vec![TaskWork::stream(3_000 * MB).deep(16)];
    specs.extend(vec![TaskWork::stream(300 * MB); 3]);
    check(TestDisk::Flash, &specs, Figures { against_none: 0.9, ..ANY });
}

#[test]
fn nothing_is_done_where_nothing_is_gained() {
    // Row 15: one task anywhere; tasks that flash serves side by side.
    for (disk, n) in [
        (TestDisk::Arm, 1),
        (TestDisk::Cloud, 1),
        (TestDisk::Flash, 1),
        (TestDisk::Flash, 2),
        (TestDisk::Flash, 6),
    ] {
        check(disk, &vec![TaskWork::stream(400 * MB); n], Figures { against_none: 0.99, ..ANY });
    }
    let light = vec![TaskWork::random(200).pausing(20 * MS); 4];
    let outcome = under_auto(TestDisk::Flash, &light);
    assert_eq!(outcome.orders, 0, "a disk that is mostly idle is not contended");
}

#[test]
fn a_protected_client_hardly_notices_three_streams() {
    // Row 9.
    let client = TaskWork::client(30 * MS);
    let alone = run(
        TestDisk::Arm,
        &[client, TaskWork::stream(BLOCK).from(20_000 * MS)],
        &mut NeverFreeze,
        20_000 * MS,
    );
    let mut specs = vec![client];
    specs.extend(vec![TaskWork::stream(100_000 * MB); 3]);
    let mut auto = auto(DiskPrior::Engaged, TaskSequence::FairSojourn);
    let beside = run(TestDisk::Arm, &specs, &mut auto, 20_000 * MS);
    let ratio = beside.mean_latency_ns(0) / alone.mean_latency_ns(0);
    let batch_bytes = beside.bytes[1..].iter().sum::<u64>();
    let batch_mb_per_s = batch_bytes as f64 / beside.end_ns as f64 * 1e3;
    println!("mean latency {ratio:.3} of that alone, batch {batch_mb_per_s:.2} MB/s");
    assert!(ratio <= 1.1);
    assert!(batch_mb_per_s >= 1.0);
    assert!(beside.bytes[1..].iter().all(|bytes| *bytes > 0), "everybody gets something");
}

#[test]
fn a_percentile_that_is_to_be_held_is_held_and_batch_gets_what_it_leaves() {
    // Batch in a gap is in the way of the next request, which then takes 17 ms instead of 12.
    let beside = |p99_ms: u64| {
        let client = TaskWork { p99_ns: Some(p99_ms * MS), ..TaskWork::client(20 * MS) };
        let mut specs = vec![client];
        specs.extend(vec![TaskWork::stream(100_000 * MB); 3]);
        let mut auto = auto(DiskPrior::Engaged, TaskSequence::FairSojourn);
        let outcome = run(TestDisk::Arm, &specs, &mut auto, 60_000 * MS);
        assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
        let all = &outcome.latencies_ns[0];
        let long = all.iter().filter(|ns| **ns > p99_ms * MS).count() as f64 / all.len() as f64;
        let batch_bytes = outcome.bytes[1..].iter().sum::<u64>();
        let mb_per_s = batch_bytes as f64 / outcome.end_ns as f64 * 1e3;
        println!("p99 of {p99_ms} ms: {long:.4} are longer, batch {mb_per_s:.2} MB/s");
        (long, mb_per_s)
    };
    let (tight, loose) = (beside(15), beside(30));
    assert!(tight.0 <= 0.012 && loose.0 <= 0.01);
    assert!(loose.1 >= 10.0 * tight.1);
}

#[test]
fn batch_uses_what_a_rare_client_leaves() {
    let mut specs = vec![TaskWork::client(400 * MS)];
    specs.extend(vec![TaskWork::stream(100_000 * MB); 3]);
    let outcome = run(
        TestDisk::Arm,
        &specs,
        &mut auto(DiskPrior::Engaged, TaskSequence::FairSojourn),
        20_000 * MS,
    );
    let batch_mb_per_s =
        outcome.bytes[1..].iter().sum::<u64>() as f64 / outcome.end_ns as f64 * 1e3;
    println!("batch {batch_mb_per_s:.2} MB/s beside a rare client");
    assert!(batch_mb_per_s >= 90.0);
}

/// Describes a task that writes a file and fsyncs it at its end.
fn writer(bytes: u64) -> TaskWork {
    let last_call = FinalSync { bytes, request_bytes: 4 * BLOCK, jumps: 0.0 };
    TaskWork { last_call: Some(last_call), ..TaskWork::stream(bytes).unknown() }
}

#[test]
fn a_task_whose_last_fsync_ended_while_it_was_frozen_may_exit() {
    let mut specs = vec![TaskWork::stream(300 * MB)];
    specs.extend(vec![writer(30 * MB).from(10 * MS); 3]);
    let outcome = under_auto(TestDisk::Arm, &specs);
    // The fsyncs go on while the reader has its turn; nobody waits for the end of that.
    for took_ns in &outcome.took_ns[1..] {
        assert!(*took_ns < outcome.took_ns[0] / 2, "{:?}", outcome.took_ns);
    }
}

#[test]
fn a_shorter_task_passes_before_the_turn_is_over() {
    // The random reader is believed to be the shortest, until it is seen how slow it is.
    let random = TaskWork { request_bytes: BLOCK / 2, jumps: 1.0, ..TaskWork::stream(8 * MB) };
    let specs = [random, TaskWork::stream(10 * MB).from(20 * MS)];
    let outcome = under_auto(TestDisk::Arm, &specs);
    assert!(outcome.took_ns[1] < 400 * MS, "{:?}", outcome.took_ns);
}

#[test]
fn tasks_of_unknown_size_are_not_last() {
    // Row 7: a mix of readers that think, of a random reader, of a writer and of copies, as on the evaluation's page.
    let copy = |bytes| TaskWork { bytes: 2 * bytes, is_size_known: true, ..writer(bytes) };
    let think = |mb| TaskWork::stream(mb * MB).pausing(2 * MS);
    let random = TaskWork { request_bytes: BLOCK / 2, jumps: 1.0, ..TaskWork::stream(16 * MB) };
    let specs = [
        think(64),
        random,
        copy(32 * MB),
        think(64),
        think(8),
        writer(8 * MB),
        think(16),
        copy(16 * MB),
    ];
    let specs: Vec<TaskWork> =
        (0_u64..).zip(specs).map(|(i, spec)| spec.from(i * 10 * MS)).collect();
    check(TestDisk::Arm, &specs, Figures { all_done: 1.03, weighted_speedup: 2.5, ..ANY });
}

#[test]
fn mixed_tasks_gain_together() {
    // Row 7: streams, random readers, tasks that think and tasks that compute, beside each other.
    let mixes = [
        vec![
            TaskWork::stream(200 * MB),
            TaskWork::stream(100 * MB),
            TaskWork::random(400),
            TaskWork::stream(20 * MB).pausing(5 * MS),
        ],
        vec![
            TaskWork::random(500),
            TaskWork::random(500),
            TaskWork::random(500),
            TaskWork::stream(300 * MB),
        ],
        vec![
            TaskWork::stream(60 * MB).computing(64, 300 * MS),
            TaskWork::stream(60 * MB).computing(64, 300 * MS),
            TaskWork::stream(200 * MB).unknown(),
            TaskWork::stream(10 * MB).pausing(30 * MS),
        ],
    ];
    for specs in mixes {
        let alone = alone_ns(TestDisk::Arm, &specs);
        let outcome = under_auto(TestDisk::Arm, &specs);
        let none = run(TestDisk::Arm, &specs, &mut NeverFreeze, LIMIT_NS);
        let (with, without) = (outcome.weighted_speedup(&alone), none.weighted_speedup(&alone));
        let took = outcome.took_ns.iter().zip(&none.took_ns);
        let worst = took.map(|(with, without)| *with as f64 / *without as f64).fold(0.0, f64::max);
        println!("mix: WS {with:.2}, without {without:.2}, worst task {worst:.2}");
        assert!(with >= 2.0 * without);
        assert!(outcome.makespan_ns() as f64 <= 0.8 * none.makespan_ns() as f64);
        // A task that thinks for 30 ms after each request is not waited for, and its next request is out of turn.
        assert!(worst <= 1.7);
    }
}
