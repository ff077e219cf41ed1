//! Sums whose meaning is known.

use luc_events::TraceEvent;
use luc_events::tables::{MountedFileSystem, ThreadInfo, TraceDescription};

use super::*;
use crate::analysis::Analysis;
use crate::findings::WarningKind;

const MS: u64 = 1_000_000;
const DEV: Dev = Dev(7);

fn row(what: SummarizedKind, cause: WaitCause, count: u64, each_ns: u64) -> TraceEvent {
    TraceEvent::from(SummaryCount {
        at_ns: 1_000 * MS,
        interval_ns: 1_000 * MS,
        dev: DEV,
        process: Tgid(if what == SummarizedKind::Commit { 0 } else { 5 }),
        what,
        cause,
        log2_ns: each_ns.ilog2(),
        count,
        total_ns: count * each_ns,
        ..SummaryCount::default()
    })
}

fn report(rows: Vec<TraceEvent>) -> TraceReport {
    let mut analysis = Analysis::new(TraceDescription {
        mode: "summary".to_owned(),
        end_ns: 1_000 * MS,
        ..TraceDescription::default()
    });
    analysis.add(TraceEvent::from(MountedFileSystem {
        dev: DEV,
        kind: "ext4".to_owned(),
        mount_point: "/srv".to_owned(),
        ..MountedFileSystem::default()
    }));
    analysis.add(TraceEvent::from(ThreadInfo {
        thread: luc_events::Pid(5),
        process: Tgid(5),
        comm: "mail".to_owned(),
        ..ThreadInfo::default()
    }));
    for row in rows {
        analysis.add(row);
    }
    analysis.finish()
}

#[test]
fn rates_means_and_processes_are_told() {
    let report = report(vec![
        row(SummarizedKind::Sync, WaitCause::Other, 100, 10 * MS),
        row(SummarizedKind::Commit, WaitCause::Other, 50, 6 * MS),
        row(SummarizedKind::Flush, WaitCause::Other, 50, 5 * MS),
    ]);
    let found = &report.file_systems[0];
    assert_eq!((found.syncs.latency.count, found.syncs.per_s), (100, 100.0));
    assert_eq!(found.syncs.latency.mean_ns, 10 * MS);
    let p99_ns = found.syncs.latency.p99_ns;
    assert!((10 * MS..20 * MS).contains(&p99_ns), "{p99_ns}");
    assert_eq!(found.commits.full.mean_ns, 6 * MS);
    assert_eq!(found.commits.syncs_per_commit, 2.0);
    assert_eq!(found.batching.unknown, Some(SUMMARY_REASON));
    let process = &report.processes[0];
    assert_eq!((process.actor.comm.as_str(), process.syncs), ("mail", 100));
    assert_eq!(report.disks[0].device["flush"].mean_ns, 5 * MS);
    assert!(report.warnings.iter().any(|warning| warning.kind == WarningKind::Incomplete
        && warning.sentence.contains("recorded as summary")));
}

#[test]
fn waiting_longer_than_a_commit_is_waiting_for_anothers() {
    let report = report(vec![
        row(SummarizedKind::Sync, WaitCause::Other, 100, 10 * MS),
        row(SummarizedKind::Commit, WaitCause::Other, 50, 6 * MS),
        row(SummarizedKind::Wait, WaitCause::CommitWait, 200, 5 * MS),
    ]);
    let first = &report.findings[0];
    assert_eq!(first.kind, FindingKind::SynchronizationBound);
    assert_eq!((first.cost_ns, first.share), (400 * MS, 0.4));
    let account = &report.accounts.processes[0];
    assert_eq!(account.blocked["commit_wait"], 1_000 * MS);
    assert_eq!(account.storage_ns, 1_000 * MS);
}

#[test]
fn a_lone_caller_waits_for_its_own_commit() {
    let report = report(vec![
        row(SummarizedKind::Sync, WaitCause::Other, 100, 7 * MS),
        row(SummarizedKind::Commit, WaitCause::Other, 100, 6 * MS),
        row(SummarizedKind::Wait, WaitCause::CommitWait, 100, 6 * MS),
    ]);
    let kinds: Vec<FindingKind> = report.findings.iter().map(|found| found.kind).collect();
    assert_eq!(kinds, [FindingKind::DeviceBound]);
}

#[test]
fn sums_beyond_all_measure_do_no_harm() {
    let rows = (0..3)
        .flat_map(|_| {
            [SummarizedKind::Sync, SummarizedKind::Commit, SummarizedKind::Wait].map(|what| {
                TraceEvent::from(SummaryCount {
                    what,
                    cause: WaitCause::CommitWait,
                    log2_ns: u32::MAX,
                    count: u64::MAX,
                    total_ns: u64::MAX,
                    ..SummaryCount::default()
                })
            })
        })
        .collect();
    assert_eq!(report(rows).file_systems[0].syncs.latency.max_ns, u64::MAX);
}
