//! Threads that slept before the trace began, and that still sleep when it ends: what they wait for, and who has it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use luc_events::tables::{Asleep, NO_CALL, Task};
use luc_events::{Cause, Pid};
use serde_json::Value;

use super::common::{LUC, is_root, stderr};
use super::programs;
use super::recording::Recording;
use super::trace::Recorded;

/// A running `locks.c`, which is ended.
struct Locks {
    program: Child,
    output: BufReader<std::process::ChildStdout>,
    _folder: tempfile::TempDir,
}

impl Locks {
    /// When this returns, the waiter sleeps. `under` are words before the command.
    fn start(kind: &str, under: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let path = programs::compiled("locks", folder.path());
        let mut words: Vec<&str> = under.to_vec();
        words.extend([path.as_str(), kind]);
        let mut program = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("locks runs");
        let output = BufReader::new(program.stdout.take().expect("piped"));
        let mut locks = Self {
            program,
            output,
            _folder: folder,
        };
        assert_eq!(locks.line(), "waits");
        locks
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// The holder gives the lock away, and the waiter has had it when this returns.
    fn release(&mut self) {
        let input = self.program.stdin.as_mut().expect("piped");
        input.write_all(b"\n").expect("written");
        assert_eq!(self.line(), "done");
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        drop(self.program.stdin.take());
        let _ = self.program.wait();
    }
}

/// The thread of this name below a process; the program itself may be started by another one.
fn called(recorded: &Recorded, name: &str) -> Pid {
    let mut threads: Vec<&Task> = recorded
        .tasks
        .iter()
        .filter(|row| row.comm == name)
        .collect();
    threads.sort_by_key(|row| row.thread);
    threads.dedup_by_key(|row| row.thread);
    assert_eq!(threads.len(), 1, "{name}: {threads:?}");
    threads[0].thread
}

fn rows_of(recorded: &Recorded, thread: Pid) -> Vec<&Asleep> {
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
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let locks = Locks::start(kind, under);
    let recording = Recording::start(&["--all"]);
    let trace = recording.stop();
    drop(locks);
    let fleet = Command::new(LUC)
        .args(["fleet", "why", "waiter", "--json"])
        .arg(trace.path())
        .output()
        .expect("luc runs");
    assert!(fleet.status.success(), "{}", stderr(&fleet));
    let why: Value = serde_json::from_slice(&fleet.stdout).expect("JSON");
    let recorded = Recorded::read(&trace.path(), &trace.text);
    let (holder, waiter) = (called(&recorded, "holder"), called(&recorded, "waiter"));
    let rows = rows_of(&recorded, waiter);
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in rows {
        assert_eq!((row.holder, row.cause), (holder, Cause::Futex), "{row:?}");
        assert_ne!(row.call, NO_CALL, "{row:?}");
        assert!(
            0 < row.since_ns && row.since_ns < recorded.start_ns,
            "{row:?}"
        );
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
    held(
        "plain",
        &["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"],
    );
}

#[test]
fn a_wait_that_began_before_the_trace_ends_in_it() {
    if !is_root() {
        return;
    }
    let _alone = ALONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut locks = Locks::start("plain", &[]);
    let recording = Recording::start(&["--all"]);
    locks.release();
    let recorded = Recorded::of(recording);
    drop(locks);
    let (holder, waiter) = (called(&recorded, "holder"), called(&recorded, "waiter"));
    let rows = rows_of(&recorded, waiter);
    assert_eq!(rows.len(), 1, "{rows:?}");
    let wait = recorded.waits.iter().find(|row| row.thread == waiter);
    let wait = wait.expect("a row");
    assert_eq!((wait.waker, wait.cause), (holder, Cause::Futex), "{wait:?}");
    assert_eq!(wait.off_ns, rows[0].at_ns, "{wait:?}");
    assert!(
        wait.off_ns >= recorded.start_ns && wait.woken_ns > wait.off_ns,
        "{wait:?}"
    );
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
    let recorded = Recorded::of(Recording::start(&["--all"]));
    drop(client);
    assert_eq!(reader.join().expect("joined").expect("read"), 0);
    let rows = rows_of(&recorded, called(&recorded, "reads-it"));
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in rows {
        assert_eq!(
            (row.cause, row.holder),
            (Cause::PipeSocket, Pid(0)),
            "{row:?}"
        );
        let end = &recorded.connections[&row.connection];
        assert_eq!(end.local_port, u32::from(port), "{end:?}");
    }
}
