//! Events per second on one core: `cargo bench -p luc-explain`. The trace is that of 64 callers of fsync
//! and 16 writers, most of it waits, as real traces are; first from memory, then from the store.

#![allow(clippy::expect_used)]

use std::time::Instant;

use luc_events::codes::{CallKind, SyncKind, WaitState};
use luc_events::store::{Reader, Writer};
use luc_events::tables::{Call, Commit, Handle, Sync, Trace, Wait};
use luc_events::{Cause, Cgroup, Dev, Event, Inode, Pid, Tgid, Transaction};
use luc_explain::{Analysis, explain};

const COMMITS: u64 = 20_000;
const CALLERS: u64 = 64;
const COMMIT_NS: u64 = 12_000_000;
const DEV: Dev = Dev(8 << 20 | 1);

fn wait(number: u64, off_ns: u64, on_ns: u64, cause: Cause) -> Event {
    Wait {
        thread: Pid(1_000 + number as u32),
        process: Tgid(1_000 + number as u32 / 8),
        cgroup: Cgroup(5),
        off_ns,
        woken_ns: on_ns - 10_000,
        on_ns,
        state: WaitState::Uninterruptible,
        cause,
        ..Wait::default()
    }
    .into()
}

/// One commit, the fsyncs of half of the callers, each with waits for data and commit and some others
/// before it, and writes.
fn commit(number: u64, events: &mut Vec<Event>) {
    let start_ns = 1_000_000 + number * COMMIT_NS;
    let end_ns = start_ns + COMMIT_NS - 50_000;
    let transaction = Transaction(100 + number as u32);
    for caller in (0..CALLERS).filter(|caller| caller % 2 == number % 2) {
        let enter_ns = start_ns.saturating_sub(COMMIT_NS) + 500_000 + caller * 20_000;
        for turn in 0..8 {
            let at_ns = enter_ns - 400_000 + turn * 40_000;
            events.push(wait(caller, at_ns, at_ns + 30_000, Cause::DirectoryLock));
        }
        events.push(wait(
            caller,
            enter_ns + 1_000,
            enter_ns + 400_000,
            Cause::DataWriteback,
        ));
        let on_ns = end_ns + 20_000 + caller * 1_000;
        events.push(wait(caller, enter_ns + 410_000, on_ns, Cause::CommitWait));
        let (thread, process) = (Pid(1_000 + caller as u32), Tgid(1_000 + caller as u32 / 8));
        events.push(
            Handle {
                at_ns: start_ns,
                dev: DEV,
                transaction,
                thread,
                process,
                count: 3,
                dirtied: 7,
                ..Handle::default()
            }
            .into(),
        );
        events.push(
            Sync {
                thread,
                process,
                cgroup: Cgroup(5),
                dev: DEV,
                inode: Inode(caller),
                kind: SyncKind::Fsync,
                enter_ns,
                exit_ns: on_ns + 2_000,
                wanted_enter: transaction,
                wanted_exit: transaction,
                ..Sync::default()
            }
            .into(),
        );
    }
    for writer in 0..64 {
        let exit_ns = start_ns + writer * 100_000;
        events.push(
            Call {
                thread: Pid(3_000 + writer as u32 % 16),
                process: Tgid(3_000),
                cgroup: Cgroup(6),
                kind: CallKind::Write,
                enter_ns: exit_ns - 5_000,
                exit_ns,
                dev: DEV,
                bytes: 4_096,
                ..Call::default()
            }
            .into(),
        );
    }
    events.push(
        Commit {
            dev: DEV,
            transaction,
            start_ns,
            locking_ns: start_ns,
            flushing_ns: start_ns + 10_000,
            logging_ns: start_ns + 50_000,
            end_ns,
            handles: 96,
            ..Commit::default()
        }
        .into(),
    );
}

fn main() {
    let description = Trace {
        end_ns: (COMMITS + 1) * COMMIT_NS,
        processors: 2,
        ..Trace::default()
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut writer = Writer::create(directory.path(), description.clone()).expect("a new trace");
    let mut count = 0;
    let mut events = Vec::new();
    for number in 0..COMMITS {
        commit(number, &mut events);
        count += events.len();
        for event in events.drain(..) {
            writer.add(event).expect("a full segment is written");
        }
    }
    writer
        .finish(description.clone())
        .expect("the trace is finished");
    let rate = |begin: Instant| count as f64 / begin.elapsed().as_secs_f64() / 1e6;
    println!("{:.1} million events", count as f64 / 1e6);
    for _ in 0..5 {
        let begin = Instant::now();
        let reader = Reader::open(directory.path()).expect("a trace");
        let report = explain(&reader).expect("an undamaged trace");
        let (rate, found) = (rate(begin), report.findings.len());
        println!("from disk   {rate:>6.2} million events/s ({found} findings)");
    }
    println!("peak memory so far {}", peak_memory());

    for number in 0..COMMITS {
        commit(number, &mut events);
    }
    events.sort_by_key(Event::time_ns);
    for _ in 0..3 {
        let events = events.clone();
        let begin = Instant::now();
        let mut analysis = Analysis::new(description.clone());
        for event in events {
            analysis.add(event);
        }
        let found = analysis.finish().findings.len();
        let rate = rate(begin);
        println!("from memory {rate:>6.2} million events/s ({found} findings)");
    }
}

/// The largest resident set of this process so far, as Linux says it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |line| line[6..].trim().to_owned())
}
