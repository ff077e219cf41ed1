//! Findings of waits that no idle thread has, and of those that only seem to be for a lock. Times are in milliseconds.

use luc_events::event_kinds::WaitState;
use luc_events::tables::{AsleepThread, BlockRequest, MountedFileSystem, OffCpuWait, ThreadInfo};
use luc_events::{Dev, Pid, Tgid, TraceEvent, WaitCause};
use luc_explain::FindingKind;

use super::lost_time::{CLIENT, END, MS, Story, assert_share, first, name};

const DEV: Dev = Dev(8 << 20 | 1);

/// Adds a wait of a process' only thread for a file system.
fn in_disk_sleep(story: &mut Story, process: u32, cause: WaitCause, [off, on]: [u64; 2]) {
    let row = OffCpuWait {
        thread: Pid(process),
        process: Tgid(process),
        off_ns: off * MS,
        woken_ns: on * MS,
        on_ns: on * MS,
        state: WaitState::Uninterruptible,
        cause,
        dev: DEV,
        ..OffCpuWait::default()
    };
    story.events.push(row.into());
}

fn request(story: &mut Story, process: u32, [from, to]: [u64; 2]) {
    let row = BlockRequest {
        dev: DEV,
        bytes: 4096,
        insert_ns: from * MS,
        issue_ns: from * MS,
        complete_ns: to * MS,
        issuer: Pid(process),
        issuer_process: Tgid(process),
        ..BlockRequest::default()
    };
    story.events.push(row.into());
}

fn mounted(story: &mut Story, kind: &str) {
    let row = MountedFileSystem {
        dev: DEV,
        disk: DEV,
        kind: kind.to_owned(),
        mount_point: "/srv".to_owned(),
        ..MountedFileSystem::default()
    };
    story.events.push(row.into());
}

/// A process that waits for another one all along, by a cause.
fn waits_for(cause: WaitCause, computes: u64) -> Story {
    let mut story = Story::default();
    story.process(11, "waiter", 10);
    story.process(12, "holder", computes);
    // It has rows of its own.
    story.blocked(12, WaitCause::Sleep, [1, 3], 0);
    story.blocked(11, cause, [100, END - 100], 12);
    story
}

#[test]
fn a_file_s_lock_is_its_holder_s_also_if_that_computes() {
    let report = waits_for(WaitCause::Flock, END).report();
    let found = first(&report);
    assert_eq!(found.kind, FindingKind::Lock, "{:#?}", report.findings);
    assert_eq!([name(&found.victim), name(&found.culprit)], [("waiter", 11), ("holder", 12)]);
    assert_eq!(found.cost_ns, (END - 200) * MS);
    let sentence = "waiter (11) waits for a lock of a file (flock or fcntl) that holder (12) has, which computes \
                    meanwhile";
    assert_eq!(found.sentence, sentence);
}

#[test]
fn who_does_not_read_from_a_full_pipe_is_named() {
    let mut story = waits_for(WaitCause::FullPipe, 10);
    story.blocked(12, WaitCause::Sleep, [50, END - 150], 0);
    let report = story.report();
    let found = first(&report);
    assert_eq!(found.kind, FindingKind::FullPipe, "{:#?}", report.findings);
    let sentence =
        "waiter (11) waits until holder (12) reads from a full pipe, which sleeps meanwhile";
    assert_eq!(found.sentence, sentence);
}

#[test]
fn a_wait_that_lasts_longer_than_the_trace_is_found() {
    let mut story = Story::default();
    story.process(11, "waiter", 0);
    story.process(12, "holder", 0);
    let row = AsleepThread {
        at_ns: END * MS,
        thread: Pid(11),
        process: Tgid(11),
        since_ns: 1,
        state: WaitState::Interruptible,
        cause: WaitCause::Flock,
        holder: Pid(12),
        ..AsleepThread::default()
    };
    story.events.push(row.into());
    let report = story.report();
    let found = first(&report);
    assert_eq!(found.kind, FindingKind::Lock, "{:#?}", report.findings);
    assert_eq!(name(&found.culprit), ("holder", 12));
    assert_share(found, 1.0);
}

/// A program that writes 20 blocks in a second. Each block reaches the disk late.
fn written_late(late: u64) -> Story {
    let mut story = Story::default();
    story.process(11, "dd", 10);
    mounted(&mut story, "ext4");
    for begin in (0..END).step_by(50) {
        in_disk_sleep(&mut story, 11, WaitCause::Device, [begin, begin + 50]);
        request(&mut story, 11, [begin + late, begin + 49]);
    }
    story
}

#[test]
fn requests_that_a_limit_holds_back_are_not_the_disk_s() {
    let report = written_late(47).report();
    let found = first(&report);
    assert_eq!(found.kind, FindingKind::HeldBack, "{:#?}", report.findings);
    assert_eq!(name(&found.victim), ("dd", 11));
    assert!(found.share > 0.95, "{found:#?}");
    assert_eq!(first(&written_late(2).report()).kind, FindingKind::DeviceBound);
}

/// Waits for completions, while the process has requests at the disk or has none.
fn completions(has_requests: bool) -> FindingKind {
    let mut story = Story::default();
    story.process(11, "fio", 90);
    story.process(12, "other", 90);
    for begin in (0..END).step_by(10) {
        request(&mut story, if has_requests { 11 } else { 12 }, [begin, begin + 9]);
        story.blocked(11, WaitCause::AsyncIo, [begin, begin + 9], 0);
    }
    first(&story.report()).kind
}

#[test]
fn asynchronous_io_is_the_disk_s_as_far_as_there_are_requests() {
    assert_eq!(completions(true), FindingKind::DeviceBound);
    assert_eq!(completions(false), FindingKind::NotStorage);
}

#[test]
fn a_file_system_of_others_is_no_disk() {
    for kind in ["nfs4", "fuse.sshfs"] {
        let mut story = Story::default();
        story.process(11, "cp", 10);
        mounted(&mut story, kind);
        in_disk_sleep(&mut story, 11, WaitCause::Device, [10, END]);
        let report = story.report();
        let found = first(&report);
        assert_eq!(found.kind, FindingKind::FileServer, "{:#?}", report.findings);
    }
}

#[test]
fn memory_that_the_kernel_frees_is_the_limit_s() {
    let mut story = Story::default();
    story.process(11, "dd", 10);
    in_disk_sleep(&mut story, 11, WaitCause::MemoryLimit, [10, END]);
    let report = story.report();
    assert_eq!(first(&report).kind, FindingKind::MemoryLimit, "{:#?}", report.findings);
}

/// A thread of process 11 waits for thread 12, which sleeps, and ends or lives on.
fn joins(ends: bool) -> Vec<FindingKind> {
    let mut story = Story::default();
    story.thread(11, 11, "main", 10);
    let worker = |at_ns, exit_ns| ThreadInfo {
        at_ns,
        thread: Pid(12),
        process: Tgid(11),
        comm: "worker".to_owned(),
        exit_ns,
        ..ThreadInfo::default()
    };
    story.events.push(worker(0, 0).into());
    story.wait([12, 11], WaitCause::Sleep, [1, 8_000, 8_000], 0);
    story.wait([11, 11], WaitCause::Futex, [1, 8_000, 8_000], 12);
    story.events.push(worker(8_000 * MS + 1, if ends { 8_000 * MS + 1 } else { 0 }).into());
    story.report().findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn a_join_is_no_lock() {
    assert!(!joins(true).contains(&FindingKind::Lock));
    assert!(joins(false).contains(&FindingKind::Lock));
}

#[test]
fn who_kills_a_stopped_thread_has_not_let_it_go_on() {
    let mut story = Story::default();
    story.process(4711, "bash", 0);
    let victim = |at_ns, exit_ns| ThreadInfo {
        at_ns,
        thread: Pid(11),
        process: Tgid(11),
        comm: "py".to_owned(),
        exit_ns,
        ..ThreadInfo::default()
    };
    story.events.push(victim(0, 0).into());
    story.blocked(11, WaitCause::Stopped, [10, 8_000], 4711);
    story.events.push(victim(8_001 * MS, 8_001 * MS).into());
    // An older recorder saw it again before its parent had waited for it.
    story.events.push(victim(8_002 * MS, 0).into());
    let report = story.report();
    assert_eq!(first(&report).sentence, "py (11) is stopped by signals or a debugger");
}

/// A database's first process hears of its children by signals.
#[test]
fn a_server_s_first_process_waits_for_no_lock() {
    let mut story = Story::default();
    story.process(10, "postgres", 10);
    story.process(11, "postgres", 100);
    story.process(12, "postgres", 100);
    story.blocked(12, WaitCause::Sleep, [5, 6_000], 0);
    story.blocked(10, WaitCause::Poll, [10, 6_000], 12);
    story.blocked(11, WaitCause::Poll, [20, 6_000], 12);
    for process in [10, 11] {
        story.blocked(process, WaitCause::Poll, [6_100, 9_000], CLIENT);
    }
    let report = story.report();
    let found = first(&report);
    assert_eq!(found.kind, FindingKind::Lock, "{:#?}", report.findings);
    assert_eq!(name(&found.victim), ("postgres", 11));
    assert_eq!(found.cost_ns, 5_980 * MS);
}

#[test]
fn what_a_recorded_process_does_is_said_if_nothing_else_is_found() {
    let story = waits_for(WaitCause::Futex, 90);
    let events = story.events.into_iter();
    let mut description = super::trace_simulation::TraceSimulation::description(END * MS);
    description.filters = "process 11".to_owned();
    let mut analysis = luc_explain::Analysis::new(description);
    let mut events: Vec<TraceEvent> = events.collect();
    events.sort_by_key(TraceEvent::time_ns);
    events.into_iter().for_each(|event| analysis.add(event));
    let report = analysis.finish();
    let sentence = "little time goes into files and disks: waiter (11) waits for other threads (a lock, a condition, or \
                    new work) for 97 % of its time";
    assert_eq!(first(&report).sentence, sentence);
}
