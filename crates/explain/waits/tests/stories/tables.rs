//! From the tables of a trace to roots, as `luc explain` asks for them.

use std::collections::BTreeMap;

use luc_events::tables::{AsleepThread, FsyncCall, OffCpuWait, ProcessProgram, ThreadInfo};
use luc_events::{Pid, Tgid, WaitCause};
use luc_waits::{
    GraphThread, OneClock, RootKind, RootSums, ThreadTables, TimeSpan, TraceIndex, TraceRows,
    TraceThread, TraceThreads, WaitEnd, WaitGraph, WaitLabels,
};

use crate::story::{MS, words};

const POSTMASTER: u32 = 10;
const BEGIN: u64 = 1_000 * MS;

fn task(thread: u32, parent: u32, start_ns: u64) -> ThreadInfo {
    ThreadInfo {
        at_ns: BEGIN + MS,
        thread: Pid(thread),
        process: Tgid(thread),
        parent: Tgid(parent),
        comm: "postgres".to_owned(),
        start_ns,
        ..ThreadInfo::default()
    }
}

fn program(process: u32) -> ProcessProgram {
    ProcessProgram {
        at_ns: BEGIN + MS,
        process: Tgid(process),
        path: "/usr/lib/postgresql/bin/postgres".to_owned(),
        ..ProcessProgram::default()
    }
}

fn wait(thread: u32, cause: WaitCause, [off, woken, on]: [u64; 3], waker: u32) -> OffCpuWait {
    OffCpuWait {
        thread: Pid(thread),
        process: Tgid(thread),
        off_ns: BEGIN + off * MS,
        woken_ns: BEGIN + woken * MS,
        on_ns: BEGIN + on * MS,
        cause,
        waker: Pid(waker),
        ..OffCpuWait::default()
    }
}

/// Eight backends commit in turn: one is in fdatasync with the lock of the log, the others wait for that lock. Each
/// flush takes 7 ms, and each turn 8 ms.
#[test]
fn a_database_behind_its_flushes_is_said_to_be() {
    const BACKENDS: u32 = 8;
    const TURNS: u64 = 100;
    let backends = || 11..11 + BACKENDS;
    let mut tasks = vec![task(POSTMASTER, 1, 5)];
    tasks.extend(backends().map(|backend| task(backend, POSTMASTER, 7)));
    let programs: Vec<ProcessProgram> = (POSTMASTER..11 + BACKENDS).map(program).collect();
    let span = TimeSpan::new(BEGIN, BEGIN + 8 * TURNS * MS);
    let tables = ThreadTables { tasks: &tasks, programs: &programs, span: Some(span), starts: &[] };
    let ports = BTreeMap::from([(11, ["5432".to_owned()].into())]);
    let mut threads = TraceThreads::new(tables, &ports);
    let mut rows = TraceRows::default();
    for turn in 0..TURNS {
        let writer = 11 + (turn % u64::from(BACKENDS)) as u32;
        let begin = 8 * turn;
        rows.syncs.push(threads.sync(&FsyncCall {
            thread: Pid(writer),
            enter_ns: BEGIN + begin * MS,
            exit_ns: BEGIN + (begin + 7) * MS,
            ..FsyncCall::default()
        }));
        // An interrupt ends the wait for the disk, with the name of any thread.
        let flush = wait(writer, WaitCause::Flush, [begin, begin + 7, begin + 7], 12);
        rows.waits.extend(threads.wait(&flush));
        for other in backends().filter(|&other| other != writer) {
            let lock = wait(other, WaitCause::Futex, [begin, begin + 7, begin + 7], writer);
            rows.waits.extend(threads.wait(&lock));
        }
    }
    let backend = |number| GraphThread {
        trace: TraceIndex(0),
        thread: threads.known_at(Pid(number), BEGIN).expect("a backend"),
    };
    let backends: Vec<GraphThread> = backends().map(backend).collect();
    let mut labels = WaitLabels::default();
    rows.threads = threads.facts(&mut labels);
    let graph = WaitGraph::new(vec![rows], Vec::new(), labels, Box::new(OneClock)).expect("few");
    let mut sums = RootSums::default();
    for thread in backends {
        sums.add(&graph.roots_of(thread, span));
    }
    let all_ns = u64::from(BACKENDS) * 8 * TURNS * MS;
    assert_eq!(sums.total_ns(), all_ns);
    let first = sums.by_time()[0];
    assert_eq!(words(&graph, &first.root), "fsync postgres:5432 postgres");
    assert_eq!(first.ns, all_ns / 8 * 7);
    assert_eq!(sums.causes(&first.root)[0].cause, Some(WaitCause::Flush));
}

#[test]
fn rows_of_threads_become_waits() {
    let tasks = [task(11, POSTMASTER, 7), task(12, POSTMASTER, BEGIN + 50 * MS)];
    let span = TimeSpan::new(BEGIN, BEGIN + 100 * MS);
    let tables = ThreadTables { tasks: &tasks, span: Some(span), ..ThreadTables::default() };
    let mut threads = TraceThreads::new(tables, &BTreeMap::new());
    let [first, second] = [11, 12].map(|number| threads.known_at(Pid(number), BEGIN));
    // 1. A wait whose waker no table has.
    let futex = threads.wait(&wait(11, WaitCause::Futex, [1, 2, 3], 99)).expect("in order");
    assert_eq!((Some(futex.thread), futex.woken_ns), (first, Some(BEGIN + 2 * MS)));
    let stranger = futex.waker.expect("a waker");
    assert_eq!(threads.at(Pid(99), BEGIN), stranger);
    // 2. The processor of others, and a wait whose wake-up was not seen.
    let preempted = threads.wait(&wait(11, WaitCause::Preempted, [4, 4, 5], 0)).expect("in order");
    assert_eq!((preempted.cause, preempted.woken_ns), (WaitCause::Preempted, None));
    let unseen = OffCpuWait { woken_ns: 0, ..wait(11, WaitCause::Poll, [6, 0, 8], 0) };
    let unseen = threads.wait(&unseen).expect("in order");
    assert_eq!((unseen.woken_ns, unseen.waker), (Some(BEGIN + 8 * MS), None));
    // 3. Times that contradict each other.
    assert_eq!(threads.wait(&wait(11, WaitCause::Futex, [9, 8, 7], 0)), None);
    // 4. Sleeps that were seen at the begin and at the end.
    let asleep = |at: u64, since: u64| AsleepThread {
        at_ns: BEGIN + at * MS,
        since_ns: BEGIN + since * MS,
        thread: Pid(12),
        cause: WaitCause::Futex,
        holder: Pid(11),
        ..AsleepThread::default()
    };
    assert_eq!(threads.unfinished(&asleep(1, 0), None), None);
    let cut = threads.unfinished(&asleep(99, 60), None).expect("at the end");
    assert_eq!((Some(cut.thread), cut.waker, cut.end), (second, first, WaitEnd::Unfinished));
    assert_eq!([cut.off_ns, cut.on_ns], [BEGIN + 60 * MS, BEGIN + 100 * MS]);
    // 5. Facts.
    let mut labels = WaitLabels::default();
    let facts = threads.facts(&mut labels);
    let facts_of = |thread: TraceThread| facts[thread.0 as usize];
    assert!(!facts_of(stranger).is_recorded && facts_of(futex.thread).is_recorded);
    let second = facts_of(cut.thread);
    assert_eq!(second.started_ns, Some(BEGIN + 50 * MS));
    assert_eq!(labels.name(second.service), "postgres");
    assert_eq!(facts_of(futex.thread).started_ns, None);
}

#[test]
fn a_mutex_held_when_the_trace_ends_is_its_holders() {
    let tasks = [task(11, POSTMASTER, 7), task(12, POSTMASTER, 7)];
    let span = TimeSpan::new(BEGIN, BEGIN + 100 * MS);
    let tables = ThreadTables { tasks: &tasks, span: Some(span), ..ThreadTables::default() };
    let mut threads = TraceThreads::new(tables, &BTreeMap::new());
    let asleep = AsleepThread {
        at_ns: BEGIN + 100 * MS,
        since_ns: BEGIN + 20 * MS,
        thread: Pid(12),
        cause: WaitCause::Futex,
        holder: Pid(11),
        ..AsleepThread::default()
    };
    let waits = vec![threads.unfinished(&asleep, None).expect("at the end")];
    let thread = waits[0].thread;
    let mut labels = WaitLabels::default();
    let rows = TraceRows { threads: threads.facts(&mut labels), waits, ..TraceRows::default() };
    let graph = WaitGraph::new(vec![rows], Vec::new(), labels, Box::new(OneClock)).expect("few");
    let thread = GraphThread { trace: TraceIndex(0), thread };
    let found = graph.roots_of(thread, TimeSpan::new(BEGIN + 20 * MS, BEGIN + 100 * MS));
    // Its holder computes, and does not wait for work.
    assert_eq!(found.parts.len(), 1);
    assert_eq!(found.parts[0].root.kind, RootKind::Computes);
    assert_ne!(found.parts[0].thread, Some(thread));
}

#[test]
fn threads_are_known_when_their_rows_come() {
    let mut threads = TraceThreads::since(BEGIN);
    // 1. A wait that comes before the row of its thread.
    let early = threads.wait(&wait(11, WaitCause::Futex, [1, 2, 3], 99)).expect("in order");
    for (thread, parent, start_ns) in [(POSTMASTER, 1, 5), (11, POSTMASTER, 7), (12, POSTMASTER, 8)]
    {
        threads.see(&task(thread, parent, start_ns));
    }
    assert_eq!(threads.known_at(Pid(11), BEGIN), Some(early.thread));
    // 2. Backends are relatives, and no stranger is.
    let [first, second, stranger] = [11, 12, 99].map(|number| threads.at(Pid(number), BEGIN));
    assert!(threads.are_relatives(first, second) && !threads.are_relatives(first, first));
    assert!(!threads.are_relatives(first, stranger));
    // 3. A number that the kernel used again, and an end.
    threads.see(&ThreadInfo { exit_ns: BEGIN + 30 * MS, ..task(12, POSTMASTER, 8) });
    threads.see(&task(12, POSTMASTER, BEGIN + 40 * MS));
    let again = threads.at(Pid(12), BEGIN + 50 * MS);
    assert_ne!(again, second);
    let mut labels = WaitLabels::default();
    let facts = threads.facts(&mut labels);
    let facts_of = |thread: TraceThread| facts[thread.0 as usize];
    assert_eq!(facts_of(second).ended_ns, Some(BEGIN + 30 * MS));
    assert_eq!(facts_of(again).started_ns, Some(BEGIN + 40 * MS));
    assert_eq!(labels.name(facts_of(first).service), "postgres");
    assert_eq!(facts_of(first).process, 11);
    assert!(facts_of(first).is_recorded && !facts_of(second).is_recorded);
}
