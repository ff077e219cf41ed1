//! SIGKILL of the supervisor, of its keeper and of the programs, many times under load: no call fails that would not
//! without luc, and none hangs. LUC_NOTIFY_KILLS is how often each is killed.

use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use crate::common::until;
use crate::crowd::{Counted, Place, children, counted, signal};
use crate::keeper::{keeper_of, until_gone};

/// How often each is killed, unless it is said.
const KILLS: u64 = 6;

fn kills() -> u64 {
    let asked = std::env::var("LUC_NOTIFY_KILLS").ok();
    asked.map_or(KILLS, |text| text.parse().expect("a number"))
}

/// A pause that differs from kill to kill, so that each finds the supervisor at something else.
fn pause(kill: u64) {
    sleep(Duration::from_micros(40_000 + kill * 7_919 % 90_000));
}

fn end(mut run: Child) -> Counted {
    let counted = counted(&mut run);
    run.wait().expect("waited for");
    counted
}

const OPTIONS: [&str; 3] = ["--quiet", "--policy", "delay:5ms"];

#[test]
fn a_killed_supervisor_harms_nobody() {
    let Some(place) = Place::new("kill-supervisor") else {
        return;
    };
    for kill in 0..kills() {
        let run = place.start(&OPTIONS, &place.crowd("8", "500"));
        until("the keeper", || keeper_of(run.id()).is_some());
        let keeper = keeper_of(run.id()).expect("a keeper");
        pause(kill);
        signal("KILL", run.id());
        end(run).assert_unharmed();
        until_gone(keeper);
    }
}

#[test]
fn a_supervisor_that_is_killed_at_its_start_harms_nobody() {
    let Some(place) = Place::new("kill-start") else {
        return;
    };
    for kill in 0..kills() {
        let run = place.start(&OPTIONS, &place.crowd("8", "100"));
        let crowd = || {
            let found = children(run.id());
            found.iter().any(|(_, name)| name == "notified")
        };
        until("the program", crowd);
        sleep(Duration::from_micros(kill * 977 % 4_000));
        signal("KILL", run.id());
        end(run).assert_unharmed();
    }
}

#[test]
fn killed_keepers_harm_nobody() {
    let Some(place) = Place::new("kill-keeper") else {
        return;
    };
    let milliseconds = (2_000 + kills() * 600).to_string();
    let run = place.start(&OPTIONS, &place.crowd("8", &milliseconds));
    for kill in 0..kills() {
        until("the next keeper", || keeper_of(run.id()).is_some());
        signal("KILL", keeper_of(run.id()).expect("a keeper"));
        pause(kill);
    }
    end(run).assert_unharmed();
}

#[test]
fn killed_programs_harm_no_other() {
    let Some(place) = Place::new("kill-programs") else {
        return;
    };
    // One crowd that stays, and beside it, one after the other, crowds that are killed.
    let script = format!(
        "p={}; $p crowd 4 $1 1000 & i=0; while [ $i -lt $2 ]; do \
         $p crowd 4 60000 1000 >/dev/null & sleep 0.0$((4 + i % 6)); kill -KILL $!; i=$((i + 1)); done; wait",
        place.notified
    );
    let (milliseconds, count) = ((500 + kills() * 80).to_string(), kills().to_string());
    let words = ["sh", "-c", &script, "sh", &milliseconds, &count];
    let options = [&OPTIONS[..], &["--reach", "notify"]].concat();
    let run = place.start(&options, &words);
    end(run).assert_unharmed();
}
