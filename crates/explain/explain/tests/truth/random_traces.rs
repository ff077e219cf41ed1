//! Random traces, also impossible ones: no panic, and sums that close.

use luc_testkit::events::events;
use proptest::prelude::*;

use super::planted_cases::{DEV, assert_split_is_true};
use super::trace_simulation::{JournalParameters, SimulatedOp};
use super::{explain_events, explained, program};

proptest! {
    #[test]
    fn nonsense_is_survived(events in events()) {
        let report = explain_events(events);
        for file_system in &report.file_systems {
            for calls in file_system.calls.values() {
                prop_assert_eq!(calls.parts.sum(), calls.latency.total_ns);
            }
            prop_assert_eq!(file_system.syncs.parts.sum(), file_system.syncs.latency.total_ns);
        }
        serde_json::to_string(&report).unwrap();
    }
}

/// Draws the operations of a thread's round.
fn ops() -> impl Strategy<Value = Vec<SimulatedOp>> {
    let op = prop_oneof![
        (1_000u64..3_000_000).prop_map(SimulatedOp::Think),
        (1_000u64..500_000).prop_map(SimulatedOp::Compute),
        any::<bool>().prop_map(|shared| SimulatedOp::Write { shared }),
        (1_000u64..100_000).prop_map(|hold_ns| SimulatedOp::Create { hold_ns }),
    ];
    (prop::collection::vec(op, 0..4), 0u64..2_000_000).prop_map(|(mut ops, data_ns)| {
        ops.push(SimulatedOp::Compute(10_000));
        ops.push(SimulatedOp::Fsync { data_ns });
        ops
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For any threads side by side, the split is what happened.
    #[test]
    fn any_world_is_split_truly(
        first in ops(),
        second in ops(),
        threads in (1u32..12, 0u32..12),
        (locking_ns, flushing_ns, logging_ns) in (0u64..500_000, 1u64..500_000, 300_000u64..20_000_000),
        fast in any::<bool>(),
    ) {
        let setting = JournalParameters { locking_ns, flushing_ns, logging_ns, fast, ..JournalParameters::plain(DEV) };
        let programs = [program(100, threads.0, &first), program(500, threads.1, &second)];
        let (report, truth) = explained(setting, &programs, None);
        assert_split_is_true(&report, &truth);
    }
}
