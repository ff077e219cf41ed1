use luc_events::{Cgroup, Dev, Tgid, TraceEvent, WaitCause};
use luc_explain::{CallTimePart, FindingKind, RemedyKind, TraceReport};

use super::trace_simulation::{
    DirtyBurst, JournalParameters, SimulatedOp, SimulatedProgram, TraceSimulation,
};
use super::{END_NS, explain_events, explained, program};

pub(crate) const DEV: Dev = Dev(8 << 20 | 1);

fn first(report: &TraceReport) -> FindingKind {
    report.findings.first().unwrap_or_else(|| panic!("nothing found: {report:#?}")).kind
}

fn assert_close(found: u64, truth: u64, what: &str) {
    let difference = found.abs_diff(truth) as f64;
    assert!(difference <= 0.01 * truth.max(1_000_000) as f64, "{what}: {found}, truth {truth}");
}

/// Every fsync's parts sum to its time, and each part is what the model knows.
pub(crate) fn assert_split_is_true(report: &TraceReport, truth: &super::TrueSyncTimes) {
    let syncs = &report.file_systems[0].syncs;
    assert_eq!(syncs.parts.sum(), syncs.latency.total_ns);
    assert_eq!(syncs.latency.count, truth.syncs);
    assert_close(syncs.latency.total_ns, truth.total_ns, "total");
    assert_close(syncs.parts.get(CallTimePart::DataWriteback), truth.data_ns, "data writeback");
    assert_close(syncs.parts.get(CallTimePart::Predecessor), truth.predecessor_ns, "predecessor");
    assert_close(syncs.parts.get(CallTimePart::FastCommit), truth.fast_ns, "fast commit");
    if truth.fast_ns == 0 {
        assert_close(syncs.parts.get(CallTimePart::Start), truth.start_ns, "start");
        let phases = [CallTimePart::Locking, CallTimePart::Flushing, CallTimePart::Logging];
        let own_ns: u64 = phases.iter().map(|&part| syncs.parts.get(part)).sum();
        assert_close(own_ns, truth.own_ns, "own commit");
    }
}

#[test]
fn a_lone_caller_is_device_bound() {
    let ops = [
        SimulatedOp::Compute(100_000),
        SimulatedOp::Write { shared: false },
        SimulatedOp::Fsync { data_ns: 500_000 },
    ];
    let (report, truth) = explained(JournalParameters::plain(DEV), &[program(100, 1, &ops)], None);
    assert_split_is_true(&report, &truth);
    assert_eq!(first(&report), FindingKind::DeviceBound);
    assert!(!report.file_systems[0].batching.would_help);
}

#[test]
fn two_alternating_groups_are_synchronization_bound() {
    let ops = [SimulatedOp::Compute(100_000), SimulatedOp::Fsync { data_ns: 500_000 }];
    let (report, truth) = explained(JournalParameters::plain(DEV), &[program(100, 16, &ops)], None);
    assert_split_is_true(&report, &truth);
    assert_eq!(first(&report), FindingKind::SynchronizationBound);
    let model = &report.file_systems[0].fsync_model;
    let waited = truth.commits_waited as f64 / truth.syncs as f64;
    assert!((model.commits_waited - waited).abs() < 0.02, "{model:?} {waited}");
    assert!(model.our_error < 0.05, "{model:?}");
    assert_eq!(report.remedies[0].kind, RemedyKind::Gate);
    assert!(report.file_systems[0].batching.would_help);
    // They take turns without a rest, whoever comes first.
    assert!(report.file_systems[0].spread.late < 20, "{:?}", report.file_systems[0].spread);
    assert!(report.findings[0].sentence.contains("do not serve"), "{:?}", report.findings[0]);
}

/// Four callers that come 100 us apart whenever the journal has rested. The first one starts a commit, and the others
/// wait for that and for their own.
#[test]
fn callers_that_come_spread_after_a_rest_are_told() {
    const REST_NS: u64 = 100_000_000;
    // The first one is served a commit earlier, and rests for so much longer.
    const COMMIT_NS: u64 = 12_200_000;
    let caller = |number: u64, rest_ns: u64| {
        let ops = [SimulatedOp::Fsync { data_ns: 0 }, SimulatedOp::Think(rest_ns)];
        program(100 + number as u32, 1, &ops)
    };
    let mut programs = vec![caller(0, REST_NS + COMMIT_NS)];
    programs.extend((1..4).map(|number| caller(number, REST_NS + number * 100_000)));
    let (report, truth) = explained(JournalParameters::plain(DEV), &programs, None);
    assert_split_is_true(&report, &truth);
    let spread = &report.file_systems[0].spread;
    // All but the first burst, before which nothing is known.
    assert!(spread.bursts > 50, "{spread:?}");
    assert_eq!(spread.in_time, spread.bursts, "{spread:?}");
    assert!(spread.late.abs_diff(3 * spread.bursts) <= 3, "{spread:?}");
    assert!((150_000..=250_000).contains(&spread.late_by_ns), "{spread:?}");
    // Nobody is left who could come late.
    assert!(spread.fall_at_most < 0.01, "{spread:?}");
    let found = &report.findings[0];
    assert_eq!(found.kind, FindingKind::SynchronizationBound);
    assert!(found.sentence.contains("one after another"), "{found:?}");
    let late = |what: &str| what.contains("came too late");
    let late = found.evidence.iter().find(|figure| late(figure.what));
    let share = late.unwrap().value;
    assert!((0.74..=0.76).contains(&share), "{share}");
}

/// Callers that a gate brings together are in time for the commit that the first of them starts.
#[test]
fn callers_that_come_together_after_a_rest_are_in_time() {
    let setting = JournalParameters { gate: 4, ..JournalParameters::plain(DEV) };
    let ops = [SimulatedOp::Think(100_000_000), SimulatedOp::Fsync { data_ns: 0 }];
    let (report, _) = explained(setting, &[program(100, 4, &ops)], None);
    let spread = &report.file_systems[0].spread;
    assert!(spread.bursts > 50, "{spread:?}");
    assert_eq!(spread.in_time, 4 * spread.bursts, "{spread:?}");
    assert_eq!(spread.late, 0, "{spread:?}");
}

/// More commits than are remembered by number come between a call and its being taken in.
#[test]
fn a_quick_disk_is_split_as_well() {
    let setting = JournalParameters {
        locking_ns: 1_000,
        flushing_ns: 2_000,
        logging_ns: 30_000,
        ..JournalParameters::plain(DEV)
    };
    let ops = [SimulatedOp::Compute(5_000), SimulatedOp::Fsync { data_ns: 10_000 }];
    let (report, truth) = explained(setting, &[program(100, 4, &ops)], None);
    assert!(truth.syncs > 100_000, "{truth:?}");
    assert_split_is_true(&report, &truth);
    assert_eq!(report.file_systems[0].syncs.without_commit, 0);
}

#[test]
fn processes_with_small_files_are_not_each_others_culprits() {
    let ops = [SimulatedOp::Compute(100_000), SimulatedOp::Fsync { data_ns: 500_000 }];
    let programs: Vec<SimulatedProgram> =
        (0..8).map(|number| program(100 + number, 1, &ops)).collect();
    let (report, _) = explained(JournalParameters::plain(DEV), &programs, None);
    assert_eq!(first(&report), FindingKind::SynchronizationBound);
    assert!(report.findings.iter().all(|finding| finding.kind != FindingKind::SomeoneElsesData));
}

#[test]
fn a_culprit_that_dirties_much_is_named_with_its_cgroup() {
    let ops = [
        SimulatedOp::Compute(100_000),
        SimulatedOp::Think(5_000_000),
        SimulatedOp::Fsync { data_ns: 500_000 },
    ];
    for intervals_per_s in [30, 100] {
        let burst =
            DirtyBurst { process: 900, cgroup: 77, bytes_per_interval: 3 << 20, intervals_per_s };
        let setting = JournalParameters { ns_per_byte: 10.0, ..JournalParameters::plain(DEV) };
        let (report, truth) = explained(setting, &[program(100, 1, &ops)], Some(burst));
        assert_split_is_true(&report, &truth);
        assert_eq!(first(&report), FindingKind::SomeoneElsesData, "{intervals_per_s} {report:#?}");
        let finding = &report.findings[0];
        let culprit = finding.culprit.as_ref().unwrap();
        assert_eq!((culprit.process, culprit.cgroup), (Tgid(900), Cgroup(77)));
        assert_eq!(finding.victim.as_ref().unwrap().process, Tgid(100));
        // What the culprit cost is what fsyncs would not have taken without it.
        let (quiet, _) = explained(setting, &[program(100, 1, &ops)], None);
        let mean = |report: &TraceReport| report.file_systems[0].syncs.latency.mean_ns;
        let truth_ns = (mean(&report) - mean(&quiet)) * truth.syncs;
        let error = finding.cost_ns.abs_diff(truth_ns) as f64 / truth_ns as f64;
        assert!(error < 0.25, "{intervals_per_s}: {} {truth_ns}", finding.cost_ns);
    }
}

#[test]
fn writers_beside_a_log_writer_are_write_delay_bound() {
    let log = [SimulatedOp::Compute(200_000), SimulatedOp::Fsync { data_ns: 300_000 }];
    let overwrite = [SimulatedOp::Think(2_000_000), SimulatedOp::Write { shared: true }];
    let programs = [program(100, 1, &log), program(200, 12, &overwrite)];
    let (report, truth) = explained(JournalParameters::plain(DEV), &programs, None);
    assert_split_is_true(&report, &truth);
    assert_eq!(first(&report), FindingKind::WriteDelayBound);
    let writes = &report.file_systems[0].calls["write"];
    assert!(writes.delayed > 0 && writes.parts.sum() == writes.latency.total_ns);
    assert!(report.remedies.iter().any(|remedy| remedy.kind == RemedyKind::CopyOut));
    // Whose commits they waited for.
    let blamed = report.blame.iter().find(|blame| blame.victim.process == Tgid(200)).unwrap();
    assert_eq!(blamed.culprit.process, Tgid(100));
    // Algorithm 4.2 has these writes in its blocked classes.
    let model = &report.file_systems[0].write_model;
    assert_eq!(model.x.blocked, 0, "{model:?}");
    assert_eq!(model.y.blocked + model.z.blocked, writes.delayed);
}

#[test]
fn a_directory_lock_convoy_is_named() {
    let ops = [SimulatedOp::Compute(50_000), SimulatedOp::Create { hold_ns: 400_000 }];
    let (report, _) = explained(JournalParameters::plain(DEV), &[program(100, 8, &ops)], None);
    assert_eq!(first(&report), FindingKind::DirectoryLock);
}

#[test]
fn pressure_on_the_journal_is_named() {
    let ops = [
        SimulatedOp::Compute(50_000),
        SimulatedOp::Checkpoint(30_000_000),
        SimulatedOp::Fsync { data_ns: 0 },
    ];
    let (report, _) = explained(JournalParameters::plain(DEV), &[program(100, 1, &ops)], None);
    assert_eq!(first(&report), FindingKind::CheckpointPressure);
    assert!(report.remedies.iter().any(|remedy| remedy.kind == RemedyKind::LargerJournal));
}

#[test]
fn fast_commits_are_told_from_full_ones() {
    let setting = JournalParameters { fast: true, ..JournalParameters::plain(DEV) };
    let ops = [SimulatedOp::Compute(100_000), SimulatedOp::Fsync { data_ns: 500_000 }];
    let (report, truth) = explained(setting, &[program(100, 1, &ops)], None);
    assert_split_is_true(&report, &truth);
    assert_eq!(first(&report), FindingKind::FastCommitBound);
    assert!(!report.file_systems[0].batching.would_help);
    assert!(report.warnings.iter().any(|warning| warning.sentence.contains("fast_commit")));
}

#[test]
fn two_file_systems_are_kept_apart() {
    let other = Dev::new(8, 2);
    let groups = [SimulatedOp::Compute(100_000), SimulatedOp::Fsync { data_ns: 500_000 }];
    let lone = [SimulatedOp::Compute(100_000), SimulatedOp::Fsync { data_ns: 100_000 }];
    let (mut events, first_truth) =
        TraceSimulation::new(JournalParameters::plain(DEV), &[program(100, 8, &groups)], None)
            .play(END_NS);
    let quick = JournalParameters { logging_ns: 3_000_000, ..JournalParameters::plain(other) };
    let (more, second_truth) =
        TraceSimulation::new(quick, &[program(500, 1, &lone)], None).play(END_NS);
    events.extend(more);
    events.sort_by_key(TraceEvent::time_ns);
    let report = explain_events(events);
    let by_dev = |dev| report.file_systems.iter().find(|found| found.dev == dev).unwrap();
    assert_eq!(by_dev(DEV).syncs.latency.count, first_truth.syncs);
    assert_eq!(by_dev(other).syncs.latency.count, second_truth.syncs);
    assert_close(
        by_dev(DEV).syncs.parts.get(CallTimePart::Predecessor),
        first_truth.predecessor_ns,
        "first",
    );
    assert_eq!(by_dev(other).syncs.parts.get(CallTimePart::Predecessor), 0);
    assert_eq!(first(&report), FindingKind::SynchronizationBound);
    assert_eq!(report.findings[0].dev, Some(DEV));
}

#[test]
fn a_program_that_computes_is_told_so() {
    let ops = [SimulatedOp::Compute(50_000_000), SimulatedOp::Write { shared: false }];
    let (report, _) = explained(JournalParameters::plain(DEV), &[program(100, 4, &ops)], None);
    assert_eq!(first(&report), FindingKind::NotStorage);
}

#[test]
fn a_quota_of_processor_time_is_named_first() {
    let ops = [SimulatedOp::Compute(1_000_000), SimulatedOp::Think(9_000_000)];
    let world = TraceSimulation::new(JournalParameters::plain(DEV), &[program(100, 1, &ops)], None);
    let (mut events, _) = world.play(END_NS);
    for event in &mut events {
        if let TraceEvent::OffCpuWait(wait) = event {
            wait.cause = WaitCause::Throttled;
        }
    }
    let report = explain_events(events);
    assert_eq!(first(&report), FindingKind::Throttled);
    let found = &report.findings[0];
    assert!((0.85..=1.0).contains(&found.share), "{found:?}");
    let account = &report.accounts.processes[0];
    assert_eq!(account.blocked["throttled"], found.cost_ns);
    assert_eq!(account.storage_ns, 0);
}

#[test]
fn accounts_close() {
    let ops = [
        SimulatedOp::Compute(1_000_000),
        SimulatedOp::Think(2_000_000),
        SimulatedOp::Write { shared: true },
        SimulatedOp::Create { hold_ns: 100_000 },
        SimulatedOp::Fsync { data_ns: 500_000 },
    ];
    let (report, _) = explained(JournalParameters::plain(DEV), &[program(100, 8, &ops)], None);
    let accounts = &report.accounts;
    assert_eq!(accounts.threads.len(), 8);
    for account in accounts.threads.iter().chain(&accounts.processes).chain(&accounts.cgroups) {
        let known = account.user_ns
            + account.system_ns
            + account.runnable_ns
            + account.idle_ns
            + account.blocked.values().sum::<u64>();
        let sum = known.cast_signed() + account.unaccounted_ns;
        assert_eq!(sum, account.wall_ns.cast_signed());
        // The last call of each thread was still under way.
        let open = account.unaccounted_ns.unsigned_abs() as f64 / account.wall_ns as f64;
        assert!(open < 0.01, "{account:?}");
    }
}
