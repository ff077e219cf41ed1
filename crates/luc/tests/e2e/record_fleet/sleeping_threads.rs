//! Threads that slept before the trace began, and that still sleep when it ends: what they wait for, and who has it.

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use luc_events::tables::{AsleepThread, NO_CALL, OffCpuWait, ThreadInfo};
use luc_events::{Pid, WaitCause};
use serde_json::Value;

use super::running_program::RunningProgram;
use super::trace_checks::RecordedRows;
use crate::common::fleet_recording::FleetRecording;
use crate::common::{LUC, is_root, stderr};

/// A running `locks.c`, whose waiter sleeps.
fn locks(kind: &str, under: &[&str]) -> RunningProgram {
    let mut locks = RunningProgram::start("locks", &[kind], under);
    assert_eq!(locks.line(), "waits");
    locks
}

/// The thread of this name below a process; the program itself may be started by another one.
fn called(recorded: &RecordedRows, name: &str) -> Pid {
    let mut threads: Vec<&ThreadInfo> =
        recorded.tasks.iter().filter(|row| row.comm == name).collect();
    threads.sort_by_key(|row| row.thread);
    threads.dedup_by_key(|row| row.thread);
    assert_eq!(threads.len(), 1, "{name}: {threads:?}");
    threads[0].thread
}

fn rows_of(recorded: &RecordedRows, thread: Pid) -> Vec<&AsleepThread> {
    let rows = recorded.asleep.iter();
    rows.filter(|row| row.thread == thread).collect()
}

/// One test at a time, since all threads here have the same names.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// The holder of a lock that was taken before the trace, and is held until after its end.
fn held(kind: &str, under: &[&str]) {
    if !is_root() {
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let locks = locks(kind, under);
    let recording = FleetRecording::start(&["--all"]);
    let trace = recording.stop();
    drop(locks);
    let fleet = Command::new(LUC)
        .args(["fleet", "why", "waiter", "--json"])
        .arg(trace.path())
        .output()
        .expect("luc runs");
    assert!(fleet.status.success(), "{}", stderr(&fleet));
    let why: Value = serde_json::from_slice(&fleet.stdout).expect("JSON");
    let recorded = RecordedRows::read(&trace.path(), &trace.text);
    let (holder, waiter) = (called(&recorded, "holder"), called(&recorded, "waiter"));
    let rows = rows_of(&recorded, waiter);
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in rows {
        assert_eq!((row.holder, row.cause), (holder, WaitCause::Futex), "{row:?}");
        assert_ne!(row.call, NO_CALL, "{row:?}");
        assert!(0 < row.since_ns && row.since_ns < recorded.start_ns, "{row:?}");
    }
    let links = why["links"].as_array().expect("links");
    assert_eq!(links.len(), 2, "{why}");
    assert_eq!(links[0]["cause"], "futex", "{why}");
    assert_eq!(links[0]["depends_on_next"], "it has the lock", "{why}");
    assert_eq!(links[1]["thread"], holder.0, "{why}");
    assert_eq!(why["is_deadlock"], false, "{why}");
}

#[test]
fn the_holder_of_a_lock_taken_before_the_trace_is_named() {
    held("plain", &[]);
}

#[test]
fn the_holder_of_a_recursive_lock_is_named() {
    held("recursive", &[]);
}

#[test]
fn the_holder_of_a_lock_with_priority_inheritance_is_named() {
    held("inherit", &[]);
}

/// There, threads call themselves by other numbers.
#[test]
fn the_holder_of_a_lock_in_a_container_is_named() {
    held("plain", &["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]);
}

#[test]
fn a_wait_that_began_before_the_trace_ends_in_it() {
    if !is_root() {
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut locks = locks("plain", &[]);
    let recording = FleetRecording::start(&["--all"]);
    // The holder gives the lock away.
    locks.go_on();
    assert_eq!(locks.line(), "done");
    let recorded = RecordedRows::of(recording);
    drop(locks);
    let (holder, waiter) = (called(&recorded, "holder"), called(&recorded, "waiter"));
    let rows = rows_of(&recorded, waiter);
    assert_eq!(rows.len(), 1, "{rows:?}");
    let wait = recorded.waits.iter().find(|row| row.thread == waiter);
    let wait = wait.expect("a row");
    assert_eq!((wait.waker, wait.cause), (holder, WaitCause::Futex), "{wait:?}");
    assert_eq!(wait.off_ns, rows[0].at_ns, "{wait:?}");
    assert!(wait.off_ns >= recorded.start_ns && wait.woken_ns > wait.off_ns, "{wait:?}");
}

#[test]
fn a_thread_that_reads_is_shown_with_its_connection() {
    if !is_root() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let port = listener.local_addr().expect("an address").port();
    let client = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    let (mut server, _) = listener.accept().expect("accepted");
    let reader = thread::Builder::new()
        .name("reads-it".to_owned())
        .spawn(move || server.read(&mut [0]))
        .expect("a thread");
    thread::sleep(Duration::from_millis(100));
    let recorded = RecordedRows::of(FleetRecording::start(&["--all"]));
    drop(client);
    assert_eq!(reader.join().expect("joined").expect("read"), 0);
    let rows = rows_of(&recorded, called(&recorded, "reads-it"));
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in rows {
        assert_eq!((row.cause, row.holder), (WaitCause::PipeSocket, Pid(0)), "{row:?}");
        let end = &recorded.connections[&row.connection];
        assert_eq!(end.local_port, u32::from(port), "{end:?}");
    }
}

/// A thread may be woken just before the trace ends, and get no processor before that. It sleeps in no row of
/// `asleep` then, but its sleep has a row of `wait`.
#[test]
fn a_sleep_that_nobody_sees_the_end_of_has_a_row() {
    if !is_root() {
        return;
    }
    let recording = FleetRecording::start(&["--all"]);
    let [mut sleeper, mut spinner] = [
        ["taskset", "-c", "0", "sleep", "0.5"].as_slice(),
        // The fair scheduler's share of that processor comes once a second.
        &[
            "timeout",
            "1.5",
            "taskset",
            "-c",
            "0",
            "chrt",
            "--fifo",
            "1",
            "sh",
            "-c",
            "while :; do :; done",
        ],
    ]
    .map(|words| {
        thread::sleep(Duration::from_millis(200));
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).spawn().expect("it runs")
    });
    thread::sleep(Duration::from_millis(600));
    let recorded = RecordedRows::of(recording);
    for child in [&mut sleeper, &mut spinner] {
        child.wait().expect("it ends");
    }
    let of_sleeper =
        |row: &&OffCpuWait| row.thread.0 == sleeper.id() && row.cause == WaitCause::Sleep;
    let rows: Vec<&OffCpuWait> = recorded.waits.iter().filter(of_sleeper).collect();
    assert_eq!(rows.len(), 1, "{rows:?}");
    let (woken_ns, on_ns) = (rows[0].woken_ns, rows[0].on_ns);
    assert!(rows[0].off_ns < woken_ns && woken_ns < on_ns, "{rows:?}");
    assert_eq!(rows[0].processor, 0, "it comes to none: {rows:?}");
    assert!(on_ns <= recorded.end_ns, "{rows:?}");
}
