//! Findings of time that threads lose beside files and disks. Times are in milliseconds.

use luc_events::event_kinds::{CommitKind, SyncKind, WaitState};
use luc_events::tables::{BriefWait, FsyncCall, JournalCommit, OffCpuWait, ThreadInfo};
use luc_events::{Dev, Pid, Tgid, TraceEvent, WaitCause};
use luc_explain::{Actor, Analysis, Finding, FindingKind, TraceReport};

use super::trace_simulation::TraceSimulation;

const DEV: Dev = Dev(8 << 20 | 1);
pub(super) const MS: u64 = 1_000_000;
/// Length of each story.
pub(super) const END: u64 = 9_000;
pub(super) const CLIENT: u32 = 0;
/// Parent of all processes.
const PARENT: u32 = 10;

/// Rows of a story.
#[derive(Default)]
pub(super) struct Story {
    pub(super) events: Vec<TraceEvent>,
}

impl Story {
    /// Adds a thread that computes for some time in all.
    pub(super) fn thread(&mut self, thread: u32, process: u32, comm: &str, computes: u64) {
        let row = |at_ns, user_ns| ThreadInfo {
            at_ns,
            thread: Pid(thread),
            process: Tgid(process),
            parent: Tgid(PARENT),
            comm: comm.to_owned(),
            user_ns,
            ..ThreadInfo::default()
        };
        self.events.push(row(0, 0).into());
        self.events.push(row(END * MS, computes * MS).into());
    }

    pub(super) fn process(&mut self, process: u32, comm: &str, computes: u64) {
        self.thread(process, process, comm, computes);
    }

    /// Adds a wait; `times` are off, woken and on.
    pub(super) fn wait(&mut self, thread: [u32; 2], cause: WaitCause, times: [u64; 3], waker: u32) {
        let [off_ns, woken_ns, on_ns] = times.map(|at| at * MS);
        let state = match cause {
            WaitCause::Preempted => WaitState::Preempted,
            _ => WaitState::Interruptible,
        };
        self.events.push(
            OffCpuWait {
                thread: Pid(thread[0]),
                process: Tgid(thread[1]),
                off_ns,
                woken_ns,
                on_ns,
                state,
                cause,
                waker: Pid(waker),
                processor: 1,
                ..OffCpuWait::default()
            }
            .into(),
        );
    }

    /// Adds a wait of a process' only thread, which is on a processor when it is woken.
    pub(super) fn blocked(
        &mut self,
        process: u32,
        cause: WaitCause,
        [off, on]: [u64; 2],
        waker: u32,
    ) {
        self.wait([process; 2], cause, [off, on, on], waker);
    }

    fn sync(&mut self, process: u32, [enter, exit]: [u64; 2]) {
        self.events.push(
            FsyncCall {
                thread: Pid(process),
                process: Tgid(process),
                dev: DEV,
                kind: SyncKind::Fdatasync,
                enter_ns: enter * MS,
                exit_ns: exit * MS,
                ..FsyncCall::default()
            }
            .into(),
        );
    }

    pub(super) fn report(self) -> TraceReport {
        let mut events = self.events;
        events.sort_by_key(TraceEvent::time_ns);
        let mut analysis = Analysis::new(TraceSimulation::description(END * MS));
        events.into_iter().for_each(|event| analysis.add(event));
        analysis.finish()
    }
}

pub(super) fn first(report: &TraceReport) -> &Finding {
    report.findings.first().unwrap_or_else(|| panic!("nothing found: {report:#?}"))
}

pub(super) fn name(actor: &Option<Actor>) -> (&str, u32) {
    actor.as_ref().map_or(("", 0), |actor| (actor.comm.as_str(), actor.process.0))
}

pub(super) fn assert_share(finding: &Finding, share: f64) {
    assert!((finding.share - share).abs() < 0.01, "{share} {finding:#?}");
}

/// Adds what a client's requests make of the time of a process: it waits for them, except for the turns.
fn wait_for_client(story: &mut Story, process: u32, turns: impl Iterator<Item = [u64; 2]>) {
    let mut since = 0;
    for [from, to] in turns {
        if since < from {
            story.blocked(process, WaitCause::Poll, [since, from], CLIENT);
        }
        since = to;
    }
}

/// Of eight backends one at a time is in fdatasync, and the others wait for a lock that it has. Each is idle for a
/// tenth of the time.
///
/// Without a commit the file system has no journal of jbd2.
fn database_behind_flushes(has_commit: bool) -> TraceReport {
    let mut story = Story::default();
    let backends = || 11..19_u32;
    for backend in backends() {
        story.process(backend, "postgres", 90);
    }
    if has_commit {
        story.events.push(
            JournalCommit {
                dev: DEV,
                start_ns: 1,
                locking_ns: 1,
                flushing_ns: 2,
                logging_ns: 3,
                end_ns: 4,
                kind: CommitKind::Full,
                ..JournalCommit::default()
            }
            .into(),
        );
    }
    for turn in 0..END / 100 {
        let begin = 100 * turn;
        let writer = 11 + (turn % 8) as u32;
        for backend in backends() {
            story.blocked(backend, WaitCause::Poll, [begin, begin + 10], CLIENT);
            let wait = [begin + 11, begin + 99];
            if backend == writer {
                story.sync(backend, [begin + 11, begin + 100]);
                story.blocked(backend, WaitCause::Flush, wait, 0);
            } else {
                story.blocked(backend, WaitCause::Futex, wait, writer);
            }
        }
    }
    story.report()
}

#[test]
fn a_database_behind_its_flushes_is_said_to_be() {
    let report = database_behind_flushes(true);
    let found = first(&report);
    assert_eq!(found.kind, FindingKind::DeviceBound, "{:#?}", report.findings);
    // 88 ms of 89 that each works, and the last millisecond of its call.
    assert_share(found, 88.0 / 89.0);
    assert_eq!(name(&found.victim).0, "postgres");
    let working = &report.working;
    assert_eq!(working.behind_storage_ns, 7 * 88 * END / 100 * MS);
    assert!(report.findings.iter().all(|found| found.kind != FindingKind::NotStorage));
}

#[test]
fn flushes_of_a_file_system_without_a_journal_are_the_device_s() {
    let report = database_behind_flushes(false);
    let found = first(&report);
    assert_eq!(found.kind, FindingKind::DeviceBound, "{:#?}", report.findings);
    assert_share(found, 88.0 / 89.0);
}

/// Its reads have no rows of calls.
#[test]
fn a_reader_waits_for_the_disk() {
    let mut story = Story::default();
    story.process(11, "dd", END / 10);
    for begin in (0..END).step_by(10) {
        story.blocked(11, WaitCause::Device, [begin, begin + 9], 0);
    }
    let report = story.report();
    let found = first(&report);
    assert_eq!(found.kind, FindingKind::DeviceBound, "{:#?}", report.findings);
    assert_eq!(name(&found.victim), ("dd", 11));
    assert_share(found, 0.9);
}

#[test]
fn who_is_stopped_and_who_sent_the_signal_is_named() {
    let mut story = Story::default();
    story.process(4711, "bash", 0);
    for backend in 11..15 {
        story.process(backend, "postgres", 300);
        for turn in 0..END / 900 {
            let begin = 900 * turn;
            story.blocked(backend, WaitCause::Stopped, [begin, begin + 600], 4711);
            story.blocked(backend, WaitCause::Poll, [begin + 630, begin + 900], CLIENT);
        }
    }
    let report = story.report();
    let found = first(&report);
    assert_eq!(found.kind, FindingKind::Stopped);
    assert_share(found, 600.0 / 630.0);
    assert_eq!(found.cost_ns, 4 * 600 * END / 900 * MS);
    assert_eq!(name(&found.culprit), ("bash", 4711));
    let sentence =
        "postgres (4 processes) are stopped by signals or a debugger; bash (4711) sent SIGCONT";
    assert_eq!(found.sentence, sentence);
}

/// A server that is woken each 100 ms and runs 80 ms later, as a hog has its processor.
fn kept_from_its_processor(is_hog_recorded: bool) -> TraceReport {
    let mut story = Story::default();
    story.process(11, "server", 900);
    for turn in 0..END / 100 {
        let begin = 100 * turn;
        story.wait([11; 2], WaitCause::PipeSocket, [begin, begin + 10, begin + 90], CLIENT);
        if is_hog_recorded {
            story.wait([66; 2], WaitCause::Preempted, [begin + 90, 0, begin + 100], 0);
        }
    }
    if is_hog_recorded {
        story.process(66, "hog", 8_000);
    }
    story.report()
}

#[test]
fn who_has_the_processor_is_named_if_that_is_recorded() {
    let report = kept_from_its_processor(true);
    let found = first(&report);
    assert_eq!(found.kind, FindingKind::ProcessorBound, "{:#?}", report.findings);
    assert_eq!((name(&found.victim), name(&found.culprit)), (("server", 11), ("hog", 66)));
    assert!(found.sentence.ends_with("is ready to run, but hog (66) has the processor"));
    let report = kept_from_its_processor(false);
    let found = first(&report);
    assert_eq!((found.kind, name(&found.culprit)), (FindingKind::ProcessorBound, ("", 0)));
    assert_share(found, 80.0 / 90.0);
}

/// A backend of a database has a lock and sleeps; the others wait for its signal in `poll`, as for their clients.
#[test]
fn a_lock_that_another_backend_hands_over_is_its_holders() {
    let mut story = Story::default();
    story.process(PARENT, "postgres", 0);
    for backend in 11..15 {
        story.process(backend, "postgres", 90);
        let turns = (0..END / 900).map(|turn| [900 * turn + 100, 900 * turn + 710]);
        wait_for_client(&mut story, backend, turns);
    }
    story.process(20, "postgres", 90);
    for turn in 0..END / 900 {
        let [from, to] = [900 * turn + 101, 900 * turn + 700];
        // A timer ends its sleep.
        story.blocked(20, WaitCause::Poll, [from, to], 0);
        story.blocked(20, WaitCause::Poll, [to + 5, from + 899], CLIENT);
        for backend in 11..15 {
            story.blocked(backend, WaitCause::Poll, [from, to], 20);
        }
    }
    let report = story.report();
    let found = first(&report);
    assert_eq!(found.kind, FindingKind::Lock, "{:#?}", report.findings);
    assert_eq!(found.cost_ns, 4 * 599 * END / 900 * MS);
    assert_eq!(name(&found.culprit), ("postgres", 20));
    assert!(found.sentence.contains("that postgres (20) has, which sleeps"), "{found:?}");
}

#[test]
fn a_mutex_whose_holder_computes_is_a_lock() {
    let mut story = Story::default();
    for (thread, computes) in [(11, 100), (12, 4_500)] {
        story.thread(thread, 11, "server", computes);
    }
    for turn in 0..END / 100 {
        let begin = 100 * turn;
        story.wait([11, 11], WaitCause::PipeSocket, [begin, begin + 45, begin + 45], CLIENT);
        story.wait([12, 11], WaitCause::PipeSocket, [begin, begin + 45, begin + 45], CLIENT);
        story.wait([11, 11], WaitCause::Futex, [begin + 46, begin + 95, begin + 95], 12);
        story.wait([12, 11], WaitCause::Futex, [begin + 95, begin + 96, begin + 96], 11);
    }
    let report = story.report();
    let found = first(&report);
    assert_eq!(found.kind, FindingKind::Lock, "{:#?}", report.findings);
    assert!(
        found.sentence.ends_with("that another of its threads has, which computes meanwhile"),
        "{found:?}"
    );
}

#[test]
fn a_server_that_sleeps_at_work_is_told_so() {
    let mut story = Story::default();
    story.process(11, "server", 90);
    for turn in 0..END / 100 {
        let begin = 100 * turn;
        story.blocked(11, WaitCause::PipeSocket, [begin, begin + 20], CLIENT);
        story.blocked(11, WaitCause::Sleep, [begin + 21, begin + 91], 0);
    }
    let report = story.report();
    let found = first(&report);
    assert_eq!((found.kind, name(&found.victim)), (FindingKind::Timer, ("server", 11)));
    assert_share(found, 70.0 / 71.0);
}

/// Workers of a pool wait for a thread that polls and hands requests over; another one sleeps in a loop.
#[test]
fn idle_threads_accuse_nobody() {
    let mut story = Story::default();
    for (thread, computes) in [(11, 900), (12, 90), (13, 90), (14, 9)] {
        story.thread(thread, 11, "server", computes);
    }
    for turn in 0..END / 100 {
        let begin = 100 * turn;
        story.wait([11, 11], WaitCause::Poll, [begin, begin + 90, begin + 90], CLIENT);
        for worker in [12, 13] {
            story.wait([worker, 11], WaitCause::Futex, [begin, begin + 99, begin + 99], 11);
        }
        story.wait([14, 11], WaitCause::Sleep, [begin, begin + 99, begin + 99], 0);
    }
    let report = story.report();
    assert_eq!(first(&report).kind, FindingKind::NotStorage, "{:#?}", report.findings);
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.working.total_ns, report.working.computed_ns);
}

/// Brief waits have no wakers: their cause is not known, and said so.
#[test]
fn brief_waits_for_locks_are_unknown() {
    let mut story = Story::default();
    story.process(11, "server", 900);
    for turn in 0..END / 100 {
        let begin = 100 * turn;
        story.blocked(11, WaitCause::PipeSocket, [begin, begin + 50], CLIENT);
        story.events.push(
            BriefWait {
                thread: Pid(11),
                process: Tgid(11),
                since_ns: (begin + 51) * MS,
                until_ns: (begin + 100) * MS,
                cause: WaitCause::Futex,
                count: 80,
                blocked_ns: 40 * MS,
                ..BriefWait::default()
            }
            .into(),
        );
    }
    let report = story.report();
    let found = first(&report);
    assert_eq!(found.kind, FindingKind::NotStorage, "{:#?}", report.findings);
    assert_eq!(report.working.unknown_ns, 40 * END / 100 * MS);
    let told = found.evidence.iter().find(|figure| figure.what.contains("unknown cause"));
    assert_eq!(told.map(|figure| figure.value), Some(0.8));
}
