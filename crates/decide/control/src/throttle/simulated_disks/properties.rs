//! Properties that hold for every mix of tasks on every disk, in any order.

use proptest::prelude::*;

use super::super::auto_throttle::{AutoThrottle, AutoThrottleConfig, DiskPrior, TaskSequence};
use super::super::fair_sojourn::FairSharing;
use super::super::policy_input::{TaskClass, TaskId};
use super::{CheckedRun, MS, TaskWork, TestDisk, alone_ns, run};

const MB: u64 = 1_000_000;
/// Longest freeze of all batch on an idle disk, ns: until a task was seen to be idle (20 ms), and two looks. The
/// longest quiet time is added after a protected request.
const STALL_NS: u64 = 40 * MS;
const QUIET_NS: u64 = 50 * MS;
/// Time limit of a run, longer than any mix without a client takes.
const LIMIT_NS: u64 = 120_000 * MS;

fn batch() -> impl Strategy<Value = TaskWork> {
    let kind = prop_oneof![
        (1_u64..120).prop_map(|mb| TaskWork::stream(mb * MB)),
        (1_u64..60, 1_u64..8).prop_map(|(mb, depth)| TaskWork::stream(mb * MB).deep(depth as u32)),
        (1_u64..1_500).prop_map(TaskWork::random),
        (1_u64..12, 1_u64..60).prop_map(|(mb, ms)| TaskWork::stream(mb * MB).pausing(ms * MS)),
        (4_u64..40, 8_u64..64, 1_u64..300)
            .prop_map(|(mb, requests, ms)| TaskWork::stream(mb * MB).computing(requests, ms * MS)),
    ];
    (kind, 0_u64..3_000, any::<bool>(), 1_u32..4).prop_map(|(spec, start_ms, is_known, weight)| {
        TaskWork { start_ns: start_ms * MS, is_size_known: is_known, weight: weight * 100, ..spec }
    })
}

fn others() -> impl Strategy<Value = Vec<TaskWork>> {
    let p99 = prop::option::of(1_u64..80);
    let client = (5_u64..200, p99).prop_map(|(ms, p99_ms)| TaskWork {
        p99_ns: p99_ms.map(|ms| ms * MS),
        ..TaskWork::client(ms * MS)
    });
    let ignored = (5_u64..50)
        .prop_map(|ms| TaskWork { class: TaskClass::Ignored, ..TaskWork::client(ms * MS) });
    prop_oneof![
        3 => Just(Vec::new()),
        1 => client.clone().prop_map(|client| vec![client]),
        1 => ignored.clone().prop_map(|ignored| vec![ignored]),
        1 => (client, ignored).prop_map(|(client, ignored)| vec![client, ignored]),
    ]
}

fn disk() -> impl Strategy<Value = TestDisk> {
    prop_oneof![
        3 => Just(TestDisk::Arm),
        1 => Just(TestDisk::Pair),
        1 => Just(TestDisk::Flash),
        1 => Just(TestDisk::Cloud),
    ]
}

fn config() -> impl Strategy<Value = AutoThrottleConfig> {
    let sequence = prop_oneof![
        3 => Just(TaskSequence::FairSojourn),
        1 => Just(TaskSequence::Arrival),
        1 => Just(TaskSequence::RoundRobin),
    ];
    let prior = prop_oneof![Just(DiskPrior::Engaged), Just(DiskPrior::Together)];
    (sequence, prior, 1_u64..6, 0_u64..3).prop_map(|(sequence, prior, frozen_s, floor)| {
        AutoThrottleConfig {
            sequence,
            prior,
            max_frozen_ns: frozen_s * 1_000 * MS,
            starve_ns: frozen_s * 1_000 * MS,
            batch_floor: floor as f64 / 10.0,
            ..AutoThrottleConfig::default()
        }
    })
}

fn holds(
    outcome: &CheckedRun,
    specs: &[TaskWork],
    config: &AutoThrottleConfig,
) -> Result<(), TestCaseError> {
    prop_assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    let longest_ns = outcome.longest_frozen_ns.iter().copied().max().unwrap_or(0);
    prop_assert!(longest_ns <= config.max_frozen_ns, "frozen for {} ms", longest_ns / MS);
    let has_client = specs.iter().any(|spec| spec.class == TaskClass::Protected);
    let allowed_ns = STALL_NS + if has_client { QUIET_NS } else { 0 };
    prop_assert!(
        outcome.idle_frozen_ns <= allowed_ns,
        "all frozen for {} ms",
        outcome.idle_frozen_ns / MS
    );
    for (spec, finish_ns) in specs.iter().zip(&outcome.finish_ns) {
        prop_assert!(
            has_client || spec.bytes == u64::MAX || *finish_ns > 0,
            "{:?} did not end",
            spec
        );
    }
    Ok(())
}

/// Time of each task under weighted fair sharing of a lossless disk, ns.
fn fair_ns(disk: TestDisk, specs: &[TaskWork]) -> Vec<u64> {
    let at_once: Vec<TaskWork> = specs.iter().map(|spec| spec.from(0)).collect();
    let alone_ns = alone_ns(disk, &at_once);
    let mut fair = FairSharing::default();
    let mut took_ns = vec![0; specs.len()];
    let mut now_ns = 0;
    while took_ns.contains(&0) {
        for (i, spec) in specs.iter().enumerate() {
            if (now_ns..now_ns + MS).contains(&spec.start_ns) {
                fair.arrive(TaskId(i as u32), spec.weight, alone_ns[i], now_ns);
            }
        }
        now_ns += MS;
        fair.advance(MS, now_ns, |_| true);
        for finish in fair.finishes(now_ns) {
            if finish.finish_ns <= now_ns {
                took_ns[finish.task.0 as usize] = finish.finish_ns - finish.arrived_ns;
                fair.leave(finish.task, 0);
            }
        }
    }
    took_ns
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn streams_of_known_size_are_not_later_than_under_fair_sharing(
        streams in prop::collection::vec((10_u64..250, 0_u64..4_000, 1_u32..4), 2..7),
    ) {
        let specs: Vec<TaskWork> = streams
            .into_iter()
            .map(|(mb, start_ms, weight)| TaskWork {
                weight: weight * 100,
                ..TaskWork::stream(mb * MB).from(start_ms * MS)
            })
            .collect();
        let outcome = run(TestDisk::Arm, &specs, &mut AutoThrottle::new(AutoThrottleConfig::default()), LIMIT_NS);
        // A turn that is not ended for the next, and what a disk with an arm loses, which fair sharing does not here.
        let lost_ns = 600 * MS + 60 * MS * specs.len() as u64;
        for (took_ns, fair_ns) in outcome.took_ns.iter().zip(fair_ns(TestDisk::Arm, &specs)) {
            let bound_ns = fair_ns + fair_ns / 10 + lost_ns;
            prop_assert!(*took_ns > 0 && *took_ns <= bound_ns, "{} ms, fair {} ms", took_ns / MS, fair_ns / MS);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bounds_hold_for_every_mix(
        disk in disk(),
        config in config(),
        batch in prop::collection::vec(batch(), 1..7),
        others in others(),
    ) {
        let specs: Vec<TaskWork> = batch.into_iter().chain(others).collect();
        let outcome = run(disk, &specs, &mut AutoThrottle::new(config), LIMIT_NS);
        holds(&outcome, &specs, &config)?;
    }
}
