//! Names in findings: the actor that lost most, and the one that filled the journal, held a transaction or dirtied
//! data. Also each commit in full.

use luc_events::event_kinds::{CommitKind, DataDirection, FileCallKind, WaitState};
use luc_events::tables::{
    FileCall, FileData, JournalCommit, JournalHandle, OffCpuWait, ThreadInfo,
};
use luc_events::{Cgroup, Dev, Inode, Pid, Tgid, TraceEvent, Transaction, WaitCause};
use luc_explain::{
    Analysis, AnalysisObserver, CallTimePart, CommitDetail, FindingKind, TraceReport,
};

use super::trace_simulation::{JournalParameters, SimulatedOp, TraceSimulation};
use super::{END_NS, program};

const DEV: Dev = Dev(8 << 20 | 1);
const MS: u64 = 1_000_000;
/// Difference between a process' cgroup and its number.
const CGROUP: u64 = 1_000;

/// A write of `process` that is blocked from `from_ms` to `to_ms`.
fn blocked(process: u32, from_ms: u64, to_ms: u64, cause: WaitCause) -> [TraceEvent; 2] {
    let (thread, process, cgroup) =
        (Pid(process), Tgid(process), Cgroup(CGROUP + u64::from(process)));
    let wait = OffCpuWait {
        thread,
        process,
        cgroup,
        off_ns: from_ms * MS,
        woken_ns: to_ms * MS,
        on_ns: to_ms * MS,
        state: WaitState::Uninterruptible,
        cause,
        ..OffCpuWait::default()
    };
    let call = FileCall {
        thread,
        process,
        cgroup,
        kind: FileCallKind::Write,
        enter_ns: from_ms * MS,
        exit_ns: to_ms * MS,
        dev: DEV,
        inode: Inode(1),
        bytes: 4_096,
        errno: 0,
    };
    [wait.into(), call.into()]
}

/// Handles of `process` in transaction 5.
fn handles(process: u32, count: u32, dirtied: u32, total_ns: u64) -> TraceEvent {
    JournalHandle {
        at_ns: 70 * MS,
        dev: DEV,
        transaction: Transaction(5),
        thread: Pid(process),
        process: Tgid(process),
        cgroup: Cgroup(CGROUP + u64::from(process)),
        count,
        dirtied,
        total_ns,
        ..JournalHandle::default()
    }
    .into()
}

/// Transaction 5, committed on request of process 300; its handles end after 60 ms.
fn commit() -> TraceEvent {
    JournalCommit {
        dev: DEV,
        transaction: Transaction(5),
        asked_ns: 9 * MS,
        asked_by: Pid(300),
        asked_by_process: Tgid(300),
        start_ns: 10 * MS,
        locking_ns: 10 * MS,
        flushing_ns: 70 * MS,
        logging_ns: 71 * MS,
        end_ns: 73 * MS,
        kind: CommitKind::Full,
        blocks_logged: 4,
        ..JournalCommit::default()
    }
    .into()
}

fn dirtied(process: u32, bytes: u64) -> TraceEvent {
    FileData {
        at_ns: 20 * MS,
        dev: DEV,
        inode: Inode(u64::from(process)),
        thread: Pid(process),
        process: Tgid(process),
        cgroup: Cgroup(CGROUP + u64::from(process)),
        bytes,
        direction: DataDirection::Dirtied,
    }
    .into()
}

fn report(events: Vec<TraceEvent>) -> TraceReport {
    let mut events = events;
    events.sort_by_key(TraceEvent::time_ns);
    let mut analysis = Analysis::new(TraceSimulation::description(100 * MS));
    events.into_iter().for_each(|event| analysis.add(event));
    analysis.finish()
}

/// Returns the first finding's kind, victim and culprit, and checks the actors' cgroups.
fn first_finding(report: &TraceReport) -> (FindingKind, Option<u32>, Option<u32>) {
    let first = report.findings.first().unwrap();
    let process = |actor: &luc_explain::Actor| {
        assert_eq!(actor.cgroup.0, CGROUP + u64::from(actor.process.0));
        actor.process.0
    };
    let victim = first.victim.as_ref().map(process);
    (first.kind, victim, first.culprit.as_ref().map(process))
}

#[test]
fn who_fills_the_journal_is_named_and_who_waits_for_space() {
    // The filler waits longer than its victim, and a commit that a third one asked for runs meanwhile.
    let mut events = vec![commit(), handles(900, 500, 600, MS), handles(100, 2, 3, MS)];
    events.extend(blocked(100, 10, 60, WaitCause::Checkpoint));
    events.extend(blocked(900, 5, 75, WaitCause::Checkpoint));
    let report = report(events);
    let expected = (FindingKind::CheckpointPressure, Some(100), Some(900));
    assert_eq!(first_finding(&report), expected);
    let held = &report.file_systems[0].held;
    assert!(held.iter().all(|held| held.part != CallTimePart::Checkpoint), "{held:?}");
}

#[test]
fn who_fills_the_journal_alone_is_its_own_victim() {
    let mut events = vec![commit(), handles(900, 500, 600, MS)];
    events.extend(blocked(900, 5, 75, WaitCause::Checkpoint));
    let expected = (FindingKind::CheckpointPressure, Some(900), Some(900));
    assert_eq!(first_finding(&report(events)), expected);
}

#[test]
fn a_lock_up_is_the_doing_of_the_longest_handle_not_of_who_asked() {
    // Many short handles were open longer in all than the one that the others wait for.
    let mut events = vec![
        commit(),
        handles(200, 1_000, 9, 100 * MS),
        handles(900, 1, 1, 60 * MS),
        handles(300, 2, 2, MS),
    ];
    events.extend(blocked(200, 11, 70, WaitCause::TransactionLocked));
    let expected = (FindingKind::LockUp, Some(200), Some(900));
    assert_eq!(first_finding(&report(events)), expected);
}

#[test]
fn throttling_is_the_doing_of_who_makes_most_dirty() {
    let mut events = vec![dirtied(100, 1 << 20), dirtied(900, 100 << 20)];
    events.extend(blocked(100, 30, 80, WaitCause::DirtyThrottle));
    events.extend(blocked(900, 25, 90, WaitCause::DirtyThrottle));
    let expected = (FindingKind::DirtyThrottling, Some(100), Some(900));
    assert_eq!(first_finding(&report(events)), expected);
}

/// Sees commits when all about them is known.
#[derive(Default)]
struct Settled(Vec<CommitDetail>);

impl AnalysisObserver for Settled {
    fn wants_settled(&self) -> bool {
        true
    }

    fn settled(&mut self, commit: &CommitDetail) {
        self.0.push(commit.clone());
    }
}

#[test]
fn each_commit_is_told_in_full() {
    let task = ThreadInfo {
        thread: Pid(300),
        process: Tgid(300),
        comm: "asker".to_owned(),
        cgroup: Cgroup(CGROUP + 300),
        ..ThreadInfo::default()
    };
    let mut written = Vec::new();
    for direction in [DataDirection::Dirtied, DataDirection::WrittenByFlusher] {
        written.push(TraceEvent::from(FileData {
            direction,
            dev: DEV,
            at_ns: 60 * MS,
            inode: Inode(4),
            thread: Pid(900),
            process: Tgid(900),
            cgroup: Cgroup(CGROUP + 900),
            bytes: 5_000,
        }));
    }
    let mut events =
        vec![TraceEvent::from(task), commit(), handles(900, 7, 3, MS), handles(100, 1, 2, MS)];
    events.extend(written);
    events.sort_by_key(TraceEvent::time_ns);
    let mut settled = Settled::default();
    let mut analysis = Analysis::with_observer(TraceSimulation::description(END_NS), &mut settled);
    events.into_iter().for_each(|event| analysis.add(event));
    let report = analysis.finish();
    assert_eq!(settled.0.len(), 1);
    for detail in [&settled.0[0], &report.file_systems[0].commits.longest[0]] {
        assert_eq!(detail.transaction, Transaction(5));
        assert_eq!((detail.duration_ns, detail.locking_ns), (63 * MS, 60 * MS));
        assert_eq!((detail.flushing_ns, detail.logging_ns), (MS, 2 * MS));
        let asker = detail.asked_by.as_ref().unwrap();
        assert_eq!((asker.comm.as_str(), asker.cgroup.0), ("asker", CGROUP + 300));
        let by: Vec<_> = (detail.by.iter())
            .map(|by| (by.actor.process.0, by.handles, by.blocks, by.data_bytes))
            .collect();
        assert_eq!(by, [(900, 7, 3, 5_000), (100, 1, 2, 0)]);
    }
}

#[test]
fn every_commit_is_shown_once_with_the_fsyncs_that_it_served() {
    let ops = [SimulatedOp::Compute(50_000), SimulatedOp::Fsync { data_ns: 10_000 }];
    // More commits than are remembered.
    let setting = JournalParameters {
        locking_ns: 1_000,
        flushing_ns: 2_000,
        logging_ns: 300_000,
        ..JournalParameters::plain(DEV)
    };
    let (events, truth) =
        TraceSimulation::new(setting, &[program(100, 6, &ops)], None).play(END_NS);
    let commits =
        events.iter().filter(|event| matches!(event, TraceEvent::JournalCommit(_))).count();
    let mut settled = Settled::default();
    let mut analysis = Analysis::with_observer(TraceSimulation::description(END_NS), &mut settled);
    events.into_iter().for_each(|event| analysis.add(event));
    let report = analysis.finish();
    assert!(commits > 5_000, "{commits}");
    assert_eq!(settled.0.len(), commits);
    assert!(settled.0.is_sorted_by_key(|commit| commit.transaction.0));
    let served: u64 = settled.0.iter().map(|commit| u64::from(commit.served)).sum();
    assert_eq!(served, truth.syncs);
    let longest = &report.file_systems[0].commits.longest;
    let most = settled.0.iter().map(|commit| commit.duration_ns).max();
    assert_eq!(Some(longest[0].duration_ns), most);
    assert!(longest.is_sorted_by(|a, b| a.duration_ns >= b.duration_ns));
}
