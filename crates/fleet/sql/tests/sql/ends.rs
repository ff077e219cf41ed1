//! A query that is ended leaves nothing behind.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::Asked;

/// A query that takes minutes: all pairs of waits.
const ENDLESS: &str = "select count(*) from wait a cross join wait b cross join wait c where a.on_ns + b.on_ns + c.on_ns > 7";

#[test]
fn ctrl_c_ends_a_query() {
    let asked = Asked::small();
    for signal in [Signal::INT, Signal::TERM] {
        let mut child = asked
            .command(&[ENDLESS])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("run");
        // It has begun when its directory is there.
        while std::fs::read_dir(asked.temporary()).expect("listed").count() == 0 {
            assert!(child.try_wait().expect("asked").is_none());
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(300));
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("an id"), signal).expect("sent");
        let out = child.wait_with_output().expect("ended");
        assert_eq!(out.status.code(), Some(130));
        assert_eq!(out.stdout, b"");
        assert_eq!(String::from_utf8_lossy(&out.stderr), "luc-fleet-sql: interrupted\n");
        asked.assert_nothing_is_left();
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let asked = Asked::small();
    let mut child = asked
        .command(&["--csv", "select a.* from wait a cross join wait b"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("run");
    drop(child.stdout.take());
    let out = child.wait_with_output().expect("ended");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(String::from_utf8_lossy(&out.stderr), "");
    asked.assert_nothing_is_left();
}
