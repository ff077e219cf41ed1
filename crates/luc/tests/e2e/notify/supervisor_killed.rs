//! SIGKILL of the supervisor, of its keeper and of the programs, many times under load. No call fails that would not
//! without luc, and none hangs. LUC_NOTIFY_KILLS is how often each is killed.

use std::thread::sleep;
use std::time::Duration;

use crate::notify::keeper::{next_keeper, until_gone};
use crate::notify::many_callers::{FOR_EVER_MS, NotifyDisk, signal};

/// Number of kills of each, without LUC_NOTIFY_KILLS.
const KILLS: u64 = 6;

fn kills() -> u64 {
    let asked = std::env::var("LUC_NOTIFY_KILLS").ok();
    asked.map_or(KILLS, |text| text.parse().expect("a number"))
}

/// A pause that differs from kill to kill, so that each finds the supervisor at something else.
fn pause(kill: u64) {
    sleep(Duration::from_micros(40_000 + kill * 7_919 % 90_000));
}

/// A pause shorter than it takes to start, that differs from kill to kill.
fn at_the_start(kill: u64) {
    sleep(Duration::from_micros(kill * 977 % 4_000));
}

/// Time for which programs go on after what served them was killed.
const AFTERWARDS: Duration = Duration::from_millis(400);

const OPTIONS: [&str; 3] = ["--quiet", "--policy", "delay:5ms"];

#[test]
fn a_killed_supervisor_harms_nobody() {
    let Some(place) = NotifyDisk::new("kill-supervisor") else {
        return;
    };
    for kill in 0..kills() {
        let mut run = place.start_crowd(&OPTIONS, "8");
        run.until_executed();
        let keeper = next_keeper(run.id(), None);
        pause(kill);
        signal("KILL", run.id());
        sleep(AFTERWARDS);
        place.until_called();
        run.end().assert_unharmed();
        until_gone(keeper);
    }
}

#[test]
fn a_supervisor_that_is_killed_at_its_start_harms_nobody() {
    let Some(place) = NotifyDisk::new("kill-start") else {
        return;
    };
    for kill in 0..kills() {
        let mut run = place.start_crowd(&OPTIONS, "8");
        run.until_executed();
        at_the_start(kill);
        signal("KILL", run.id());
        place.until_called();
        run.end().assert_unharmed();
    }
}

#[test]
fn a_keeper_that_is_killed_at_its_start_harms_nobody() {
    let Some(place) = NotifyDisk::new("kill-keeper-start") else {
        return;
    };
    for kill in 0..kills() {
        let mut run = place.start_crowd(&OPTIONS, "8");
        let keeper = next_keeper(run.id(), None);
        at_the_start(kill);
        signal("KILL", keeper);
        run.until_executed();
        let keeper = next_keeper(run.id(), Some(keeper));
        place.until_called();
        run.end().assert_unharmed();
        until_gone(keeper);
    }
}

#[test]
fn killed_keepers_harm_nobody() {
    let Some(place) = NotifyDisk::new("kill-keeper") else {
        return;
    };
    let mut run = place.start_crowd(&OPTIONS, "8");
    run.until_executed();
    let mut keeper = None;
    for kill in 0..kills() {
        let next = next_keeper(run.id(), keeper);
        signal("KILL", next);
        pause(kill);
        keeper = Some(next);
    }
    place.until_called();
    run.end().assert_unharmed();
}

#[test]
fn killed_programs_harm_no_other() {
    let Some(place) = NotifyDisk::new("kill-programs") else {
        return;
    };
    // One crowd that stays, and beside it, one after the other, crowds that are killed.
    let script = format!(
        "p={}; $p crowd 4 {FOR_EVER_MS} 1000 & until [ -s crowd-$!-0 ]; do sleep 0.01; done; i=0; \
         while [ $i -lt $1 ]; do \
         $p crowd 4 {FOR_EVER_MS} 1000 >/dev/null & sleep 0.0$((4 + i % 6)); kill -KILL $!; i=$((i + 1)); done; \
         : >over; wait",
        place.notified
    );
    let words = ["sh", "-c", &script, "sh", &kills().to_string()];
    let options = [&OPTIONS[..], &["--reach", "notify"]].concat();
    place.start(&options, &words).counted().assert_unharmed();
}
