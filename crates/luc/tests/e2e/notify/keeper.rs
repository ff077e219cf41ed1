//! Tasks of the keeper: a supervisor that is gone or stands still, and programs that outlive their `luc run`.

use std::thread::sleep;
use std::time::Duration;

use crate::common::until;
use crate::notify::many_callers::{FOR_EVER_MS, NotifyDisk, children, signal};

/// Waits until a `luc run` has a keeper, another one than `before`, and returns its number. One that was killed may
/// still be there.
pub(crate) fn next_keeper(luc: u32, before: Option<u32>) -> u32 {
    let mut keeper = None;
    until("a keeper", || {
        let found = children(luc);
        let is_next =
            |(number, name): &&(u32, String)| name == "luc-keeper" && Some(*number) != before;
        keeper = found.iter().find(is_next).map(|&(number, _)| number);
        keeper.is_some()
    });
    keeper.expect("found")
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
    let Some(place) = NotifyDisk::new("stopped") else {
        return;
    };
    let options = ["--quiet", "--policy", "delay:5ms"];
    let mut run = place.start_crowd(&options, "8");
    run.until_executed();
    place.until_called();
    sleep(Duration::from_millis(500));
    signal("STOP", run.id());
    sleep(Duration::from_millis(1500));
    signal("CONT", run.id());
    run.end().assert_unharmed();
    assert!(run.status().success());
}

#[test]
fn programs_that_outlive_their_run_go_on_and_the_keeper_ends_with_them() {
    let Some(place) = NotifyDisk::new("outlived") else {
        return;
    };
    let script = format!(
        "{} crowd 4 {FOR_EVER_MS} 1000 >outlived.out 2>outlived.err & sleep 0.5",
        place.notified
    );
    let options = ["--reach", "notify", "--policy", "delay:2ms"];
    let (_, report, said) = place.report(&options, &["sh", "-c", &script]);
    let keeper = report["notified"]["keeper"].as_u64().expect("a keeper") as u32;
    assert!(said.contains("luc-keeper"), "{said}");
    place.until_called();
    std::fs::write(place.over(), "").expect("written");
    let output = format!("{}/outlived.out", place.disk.mount());
    let read = || std::fs::read_to_string(&output).unwrap_or_default();
    until("the end of the crowd", || read().contains("longest_ms"));
    crate::notify::many_callers::CrowdCounts::of(&read()).assert_unharmed();
    until_gone(keeper);
}

#[test]
fn a_keeper_that_is_killed_is_replaced() {
    let Some(place) = NotifyDisk::new("replaced") else {
        return;
    };
    let options = ["--quiet", "--policy", "delay:5ms"];
    let mut run = place.start_crowd(&options, "8");
    run.until_executed();
    let first = next_keeper(run.id(), None);
    signal("KILL", first);
    let keeper = next_keeper(run.id(), Some(first));
    // It works as the first one would have.
    sleep(Duration::from_millis(200));
    signal("KILL", run.id());
    run.end().assert_unharmed();
    until_gone(keeper);
}

#[test]
fn the_keeper_is_locked_in_memory_and_has_nothing_of_its_parent_open() {
    let Some(place) = NotifyDisk::new("memory") else {
        return;
    };
    let mut run = place.start_crowd(&["--quiet"], "1");
    let keeper = next_keeper(run.id(), None);
    let open = || std::fs::read_dir(format!("/proc/{keeper}/fd")).map_or(0, Iterator::count);
    // The listener, its socket and its parent's pidfd.
    until("three files", || open() == 3);
    let status = std::fs::read_to_string(format!("/proc/{keeper}/status")).expect("status");
    let locked = status.lines().find(|line| line.starts_with("VmLck:"));
    assert!(locked.is_some_and(|line| !line.ends_with(" 0 kB")), "{status}");
    run.until_executed();
    place.until_called();
    run.end().assert_unharmed();
    until_gone(keeper);
}
