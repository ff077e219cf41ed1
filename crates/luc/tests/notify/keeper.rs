//! What the keeper is for: a supervisor that is gone or stands still, and programs that outlive their `luc run`.

use std::thread::sleep;
use std::time::Duration;

use crate::common::until;
use crate::crowd::{Place, children, counted, signal};

/// The keeper of a `luc run`.
pub(crate) fn keeper_of(luc: u32) -> Option<u32> {
    let found = children(luc);
    let keeper = found.iter().find(|(_, name)| name == "luc-keeper");
    keeper.map(|&(number, _)| number)
}

/// Waits until a process has ended.
pub(crate) fn until_gone(process: u32) {
    until("the keeper's end", || {
        let state = std::fs::read_to_string(format!("/proc/{process}/stat"));
        state.map_or(true, |state| state.contains(") Z "))
    });
}

#[test]
fn a_supervisor_that_stands_still_hangs_nobody() {
    let Some(place) = Place::new("stopped") else {
        return;
    };
    let options = ["--quiet", "--policy", "delay:5ms"];
    let mut run = place.start(&options, &place.crowd("8", "4000"));
    until("the keeper", || keeper_of(run.id()).is_some());
    sleep(Duration::from_millis(500));
    signal("STOP", run.id());
    sleep(Duration::from_millis(1500));
    signal("CONT", run.id());
    counted(&mut run).assert_unharmed();
    assert!(run.wait().expect("waited for").success());
}

#[test]
fn programs_that_outlive_their_run_go_on_and_the_keeper_ends_with_them() {
    let Some(place) = Place::new("outlived") else {
        return;
    };
    let script = format!(
        "{} crowd 4 2500 1000 >outlived.out 2>outlived.err & sleep 0.5",
        place.notified
    );
    let options = ["--reach", "notify", "--policy", "delay:2ms"];
    let (_, report, said) = place.report(&options, &["sh", "-c", &script]);
    let keeper = report["notified"]["keeper"].as_u64().expect("a keeper") as u32;
    assert!(said.contains("luc-keeper"), "{said}");
    let output = format!("{}/outlived.out", place.disk.mount());
    let read = || std::fs::read_to_string(&output).unwrap_or_default();
    until("the end of the crowd", || read().contains("longest_ms"));
    crate::crowd::Counted::of(&read()).assert_unharmed();
    until_gone(keeper);
}

#[test]
fn a_keeper_that_is_killed_is_replaced() {
    let Some(place) = Place::new("replaced") else {
        return;
    };
    let options = ["--quiet", "--policy", "delay:5ms"];
    let mut run = place.start(&options, &place.crowd("8", "6000"));
    until("the keeper", || keeper_of(run.id()).is_some());
    let first = keeper_of(run.id()).expect("a keeper");
    signal("KILL", first);
    let is_another = || keeper_of(run.id()).is_some_and(|keeper| keeper != first);
    until("another keeper", is_another);
    // It works as the first one would have.
    let keeper = keeper_of(run.id()).expect("a keeper");
    sleep(Duration::from_millis(200));
    signal("KILL", run.id());
    run.wait().expect("waited for");
    counted(&mut run).assert_unharmed();
    until_gone(keeper);
}

#[test]
fn the_keeper_is_locked_in_memory_and_has_nothing_of_its_parent_open() {
    let Some(place) = Place::new("memory") else {
        return;
    };
    let mut run = place.start(&["--quiet"], &place.crowd("1", "1500"));
    until("the keeper", || keeper_of(run.id()).is_some());
    let keeper = keeper_of(run.id()).expect("a keeper");
    let open = || std::fs::read_dir(format!("/proc/{keeper}/fd")).map_or(0, Iterator::count);
    // The listener, its socket and its parent's pidfd.
    until("three files", || open() == 3);
    let status = std::fs::read_to_string(format!("/proc/{keeper}/status")).expect("status");
    let locked = status.lines().find(|line| line.starts_with("VmLck:"));
    assert!(
        locked.is_some_and(|line| !line.ends_with(" 0 kB")),
        "{status}"
    );
    counted(&mut run).assert_unharmed();
    run.wait().expect("waited for");
    until_gone(keeper);
}
