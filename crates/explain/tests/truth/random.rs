//! Whatever a trace says, also nonsense: no panic, and sums that close.

use luc_events::codes::{CallKind, CommitKind, Direction, SyncKind, WaitState};
use luc_events::tables::{Call, Commit, Data, Handle, Sync, Task, Wait};
use luc_events::{Cause, Cgroup, Dev, Event, Inode, Pid, Tgid, Transaction};
use proptest::prelude::*;

use super::cases::{DEV, assert_split_is_true};
use super::world::{Op, Setting};
use super::{explain_events, explained, program};

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0u64..2_000_000_000, 1 => Just(0), 1 => any::<u64>()]
}

/// Any event of few threads on few devices.
fn event() -> impl Strategy<Value = Event> {
    let ids = (0u32..4, 0u32..3, 0u64..2, 0u32..2, 0u32..6);
    (
        0u8..7,
        ids,
        [time(), time(), time(), time()],
        any::<[u8; 2]>(),
        0u64..1 << 22,
    )
        .prop_map(
            |(table, (thread, process, cgroup, dev, transaction), times, codes, bytes)| {
                let (thread, process, cgroup) = (Pid(thread), Tgid(process), Cgroup(cgroup));
                let (dev, transaction) = (Dev(dev), Transaction(transaction));
                let [first, second, third, last] = times;
                let code = |count: usize| usize::from(codes[0]) % count;
                match table {
                    0 => Sync {
                        thread,
                        process,
                        cgroup,
                        dev,
                        kind: SyncKind::ALL[code(SyncKind::ALL.len())],
                        enter_ns: first,
                        exit_ns: last,
                        wanted_enter: transaction,
                        wanted_exit: Transaction(u32::from(codes[1] % 8)),
                        ..Sync::default()
                    }
                    .into(),
                    1 => Commit {
                        dev,
                        transaction,
                        start_ns: first,
                        locking_ns: first,
                        flushing_ns: second,
                        logging_ns: third,
                        end_ns: last,
                        asked_by: thread,
                        asked_by_process: process,
                        kind: CommitKind::ALL[code(2)],
                        ..Commit::default()
                    }
                    .into(),
                    2 => Handle {
                        at_ns: last,
                        dev,
                        transaction,
                        thread,
                        process,
                        cgroup,
                        count: 1,
                        dirtied: u32::from(codes[1]),
                        total_ns: first,
                        ..Handle::default()
                    }
                    .into(),
                    3 => Wait {
                        thread,
                        process,
                        cgroup,
                        off_ns: first,
                        woken_ns: second,
                        on_ns: last,
                        state: WaitState::ALL[usize::from(codes[1]) % WaitState::ALL.len()],
                        cause: Cause::ALL[code(Cause::ALL.len())],
                        ..Wait::default()
                    }
                    .into(),
                    4 => Call {
                        thread,
                        process,
                        cgroup,
                        dev,
                        kind: CallKind::ALL[code(CallKind::ALL.len())],
                        enter_ns: first,
                        exit_ns: last,
                        bytes,
                        ..Call::default()
                    }
                    .into(),
                    5 => Data {
                        at_ns: last,
                        dev,
                        inode: Inode(u64::from(codes[1] % 4)),
                        thread,
                        process,
                        cgroup,
                        bytes,
                        direction: Direction::ALL[code(Direction::ALL.len())],
                    }
                    .into(),
                    _ => Task {
                        at_ns: last,
                        thread,
                        process,
                        cgroup,
                        start_ns: first,
                        exit_ns: second,
                        user_ns: third,
                        comm: "x".to_owned(),
                        ..Task::default()
                    }
                    .into(),
                }
            },
        )
}

proptest! {
    #[test]
    fn nonsense_is_survived(events in prop::collection::vec(event(), 0..200), sort in any::<bool>()) {
        let mut events = events;
        if sort {
            events.sort_by_key(Event::time_ns);
        }
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

/// What a thread of some kind does, in a round.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        (1_000u64..3_000_000).prop_map(Op::Think),
        (1_000u64..500_000).prop_map(Op::Compute),
        any::<bool>().prop_map(|shared| Op::Write { shared }),
        (1_000u64..100_000).prop_map(|hold_ns| Op::Create { hold_ns }),
    ];
    (prop::collection::vec(op, 0..4), 0u64..2_000_000).prop_map(|(mut ops, data_ns)| {
        ops.push(Op::Compute(10_000));
        ops.push(Op::Fsync { data_ns });
        ops
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever threads do beside each other, the split is what happened.
    #[test]
    fn any_world_is_split_truly(
        first in ops(),
        second in ops(),
        threads in (1u32..12, 0u32..12),
        (locking_ns, flushing_ns, logging_ns) in (0u64..500_000, 1u64..500_000, 300_000u64..20_000_000),
        fast in any::<bool>(),
    ) {
        let setting = Setting { locking_ns, flushing_ns, logging_ns, fast, ..Setting::plain(DEV) };
        let programs = [program(100, threads.0, &first), program(500, threads.1, &second)];
        let (report, truth) = explained(setting, &programs, None);
        assert_split_is_true(&report, &truth);
    }
}
