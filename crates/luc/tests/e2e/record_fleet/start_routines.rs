//! Functions that threads run, their creators, and the programs that processes run.

use std::ops::RangeInclusive;
use std::process::Command;

use luc_events::tables::{OffCpuWait, ThreadStart};
use luc_events::{Pid, Tgid, WaitCause};

use super::compiled_programs;
use super::running_program::RunningProgram;
use super::trace_checks::RecordedRows;
use crate::common::fleet_recording::FleetRecording;
use crate::common::is_root;

pub(crate) const THREADS: usize = 50;

/// The process that runs the program of this name.
fn process_of(recorded: &RecordedRows, name: &str) -> Tgid {
    let path = format!("/{name}");
    let mut found = recorded.programs.iter().filter(|row| row.path.ends_with(&path));
    let first = found.next().expect("a row of the program");
    assert!(found.all(|row| row.process == first.process), "two of them");
    first.process
}

/// The starts of the threads of that process.
pub(crate) fn starts<'r>(recorded: &'r RecordedRows, name: &str) -> (Tgid, Vec<&'r ThreadStart>) {
    let process = process_of(recorded, name);
    let starts = recorded.starts.iter();
    (process, starts.filter(|row| row.process == process).collect())
}

fn functions_are_known(under: &[&str]) {
    if !is_root() {
        return;
    }
    let mut program = RunningProgram::start("threads", &[], under);
    assert_eq!(program.line(), "ready");
    let recording = FleetRecording::start(&["--all"]);
    program.go_on();
    assert_eq!(program.line(), "done");
    let recorded = RecordedRows::of(recording);
    drop(program);
    let (process, starts) = starts(&recorded, "threads");
    let of = |routine: &str| -> Vec<&&ThreadStart> {
        let starts = starts.iter();
        starts.filter(|row| row.routine == routine).collect()
    };
    let (old, new) = (of("stay"), of("end_at_once"));
    assert_eq!((old.len(), new.len()), (1, THREADS), "{starts:?}");
    assert_eq!(starts.len(), 1 + THREADS, "{starts:?}");
    assert_eq!(old[0].creator, Pid(0));
    assert!(old[0].start_ns < recorded.start_ns, "{old:?}");
    for row in new {
        assert_eq!(row.creator, Pid(process.0), "{row:?}");
        assert!(row.module.ends_with("/threads"), "{row:?}");
        assert!(row.start_ns > recorded.start_ns, "{row:?}");
    }
}

/// One test at a time, since all programs here have one name.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[test]
fn functions_of_threads_old_and_new_are_known() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    functions_are_known(&[]);
}

/// There, paths and process ids are others.
#[test]
fn functions_of_threads_in_a_container_are_known() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    functions_are_known(&["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]);
}

/// On another processor a thread comes into the queue when its waker has gone on already.
#[test]
fn a_wake_up_has_the_time_of_its_waker() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let program = compiled_programs::compiled("posts", folder.path());
    let recording = FleetRecording::start(&["--all"]);
    let output = Command::new(program).output().expect("it runs");
    let recorded = RecordedRows::of(recording);
    let text = String::from_utf8(output.stdout).expect("text");
    let wake_ups: Vec<RangeInclusive<u64>> = text
        .lines()
        .map(|line| {
            let (before, after) = line.split_once(' ').expect("two times");
            before.parse().expect("a time")..=after.parse().expect("a time")
        })
        .collect();
    let threads = recorded.tasks.iter().filter(|row| row.comm == "waits");
    let threads: Vec<Pid> = threads.map(|row| row.thread).collect();
    // One that is woken on its way to sleep is ready from when it leaves its processor.
    let is_of_thread = |row: &&OffCpuWait| {
        threads.contains(&row.thread) && row.cause == WaitCause::Futex && row.woken_ns > row.off_ns
    };
    let waits: Vec<&OffCpuWait> = recorded.waits.iter().filter(is_of_thread).collect();
    // A post finds the thread awake if it has not come back yet.
    assert!(waits.len() > wake_ups.len() / 2, "{waits:?}");
    for wait in waits {
        let is_in = wake_ups.iter().any(|one| one.contains(&wait.woken_ns));
        assert!(is_in, "{wait:?} {wake_ups:?}");
    }
}

/// A timer's interrupt comes in the name of the thread that computes.
#[test]
fn who_is_interrupted_wakes_nobody() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let program = compiled_programs::compiled("timeouts", folder.path());
    let recording = FleetRecording::start(&["--all"]);
    let output = Command::new(program).output().expect("it runs");
    assert!(output.status.success());
    let recorded = RecordedRows::of(recording);
    let threads = recorded.tasks.iter().filter(|row| row.comm == "waits");
    let threads: Vec<Pid> = threads.map(|row| row.thread).collect();
    let is_of_thread =
        |row: &&OffCpuWait| threads.contains(&row.thread) && row.cause == WaitCause::Poll;
    let waits: Vec<&OffCpuWait> = recorded.waits.iter().filter(is_of_thread).collect();
    assert!(waits.len() > 25, "{waits:?}");
    for wait in waits {
        assert!(wait.waker.is_none(), "{wait:?}");
    }
}

#[test]
fn what_an_interpreter_runs_is_known() {
    if !is_root() {
        return;
    }
    if Command::new("perl").arg("-v").output().is_err() {
        luc_testkit::skipped!("perl is not installed");
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let script = folder.path().join("waits.pl");
    std::fs::write(&script, "$| = 1; print qq(ready\n); <STDIN>;").expect("written");
    let words = ["perl", "-w", script.to_str().expect("plain"), "secret"];
    let mut program = RunningProgram::of(&words);
    assert_eq!(program.line(), "ready");
    let recorded = RecordedRows::of(FleetRecording::start(&["--all"]));
    let rows = recorded.programs.iter();
    let script = script.to_str().expect("plain");
    let rows: Vec<_> = rows.filter(|row| row.script == script).collect();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert!(rows[0].path.contains("perl"), "{rows:?}");
}
