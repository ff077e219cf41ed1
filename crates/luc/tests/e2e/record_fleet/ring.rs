//! `luc record --fleet --ring`: planted messages over several cuts, and recorders that are killed.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use luc_events::ring::{self, RingSegment, SegmentName};

use super::planted_exchange::{ConnectedPair, PlantedExchange, totals};
use super::trace_checks::RecordedRows;
use super::two_hosts::{SERVER_IPV4, TwoHosts};
use crate::common::fleet_recording::FleetRecording;
use crate::common::{LUC, TIMEOUT, refusal};

/// Options of a ring with short segments.
const OPTIONS: [&str; 5] = ["--all", "--ring", "5m", "--segment", "5s"];

/// Waits for `count` complete segments.
fn wait_for(directory: &Path, count: usize, mut meanwhile: impl FnMut()) {
    let began = Instant::now();
    while ring::names(directory).map_or(0, |names| names.len()) < count {
        assert!(began.elapsed() < 2 * TIMEOUT, "no segment comes");
        meanwhile();
    }
}

fn segments(directory: &Path) -> Vec<RingSegment> {
    ring::segments(directory).expect("a ring")
}

/// Reads one segment by itself.
fn alone(segment: &RingSegment) -> RecordedRows {
    RecordedRows::read(&segment.path, "one segment")
}

#[test]
fn no_byte_is_lost_or_doubled_at_a_cut() {
    let Some(place) = TwoHosts::new() else {
        return;
    };
    let recording = FleetRecording::start(&OPTIONS);
    let pair = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    let idle = ConnectedPair::new(&place, "0.0.0.0", SERVER_IPV4);
    let mut all: PlantedExchange = Vec::new();
    wait_for(&recording.path(), 3, || {
        let messages: PlantedExchange = (0..20).map(|size| (1 + size, 3 + 7 * size)).collect();
        pair.exchange(&messages);
        all.extend(messages);
        thread::sleep(Duration::from_millis(50));
    });
    let port = pair.client_port();
    let idle_port = idle.client_port();
    let trace = recording.stop();
    let segments = segments(&trace.path());
    assert!(segments.len() >= 4, "{segments:?}");
    let whole = RecordedRows::of_reader(&ring::as_one(&segments).expect("one trace"), &trace.text);
    let ends = whole.ends(place.client.inode(), place.server.inode(), port);
    whole.check_messages(&ends, [0, 0], totals(&all));
    let mut rows = 0;
    for (number, segment) in segments.iter().enumerate() {
        let (start_ns, end_ns) = (segment.trace.start_ns, segment.trace.end_ns);
        if let Some(next) = segments.get(number + 1) {
            assert_eq!(next.trace.start_ns, end_ns);
        }
        let part = alone(segment);
        rows += part.messages.len();
        // The segment says who and what its rows speak of.
        let threads: BTreeSet<_> = part.tasks.iter().map(|row| row.thread).collect();
        for row in &part.messages {
            assert!(part.connections.contains_key(&row.connection), "{row:?}");
            assert!(threads.contains(&row.thread), "{row:?}");
            assert!((start_ns..=end_ns).contains(&row.at_ns), "{row:?} {:?}", segment.trace);
        }
        for row in &part.waits {
            assert!((start_ns..=end_ns).contains(&row.on_ns), "{row:?} {:?}", segment.trace);
        }
        let clocks: BTreeSet<u64> = part.clocks.iter().map(|row| row.at_ns).collect();
        assert_eq!(clocks.len(), part.clocks.len());
        assert!(clocks.first().is_some_and(|&at_ns| at_ns < start_ns + 100_000_000));
        // Also what nothing happens on, and who sleeps all the time.
        for port in [port, idle_port] {
            part.ends(place.client.inode(), place.server.inode(), port);
        }
        assert!(!part.asleep.is_empty() && !part.programs.is_empty());
    }
    assert_eq!(rows, whole.messages.len());
}

/// Begins to record into a ring. When this returns, it does.
fn record(directory: &Path) -> Child {
    let mut luc = Command::new(LUC)
        .args(["record", "--fleet", "--out"])
        .arg(directory)
        .args(OPTIONS)
        .args(["--", "sh", "-c", "echo; exec sleep 600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("luc runs");
    let mut line = String::new();
    let out = luc.stdout.take().expect("piped");
    BufReader::new(out).read_line(&mut line).expect("a line");
    assert_eq!(line, "\n");
    luc
}

/// Kills a recorder, and the command that it leaves; returns what it had said.
fn kill(mut luc: Child) -> String {
    let children = format!("/proc/{0}/task/{0}/children", luc.id());
    let children = std::fs::read_to_string(children).expect("readable");
    luc.kill().expect("killed");
    for child in children.split_whitespace() {
        let _ = Command::new("kill").arg(child).status();
    }
    let output = luc.wait_with_output().expect("ended");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_killed_recorder_leaves_complete_segments() {
    if TwoHosts::new().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let directory = folder.path().join("ring");
    let luc = record(&directory);
    wait_for(&directory, 1, || thread::sleep(Duration::from_millis(50)));
    let second = Command::new(LUC)
        .args(["record", "--fleet", "--ring", "5m", "--duration", "1s", "--out"])
        .arg(&directory)
        .output()
        .expect("luc runs");
    assert!(refusal(&second).contains("another recorder is at work here"));
    kill(luc);
    let before = segments(&directory);
    assert!(!before.is_empty());
    let plain =
        Command::new(LUC).args(["record", "--out"]).arg(&directory).args(["--", "true"]).output();
    assert!(refusal(&plain.expect("luc runs")).contains("it is a ring"));
    for segment in &before {
        assert!(!alone(segment).clocks.is_empty());
    }
    let last = before[before.len() - 1].name;
    let luc = record(&directory);
    wait_for(&directory, before.len() + 1, || thread::sleep(Duration::from_millis(50)));
    let said = kill(luc);
    let torn = SegmentName { number: last.number + 1, ..last };
    let line = format!("{torn} is removed");
    assert!(said.contains(&line), "{said}");
    let after = segments(&directory);
    assert_eq!(after[before.len()].name, SegmentName { run: 2, number: 1 });
}

#[test]
fn what_a_ring_cannot_be_is_refused() {
    for (words, reason) in [
        (&["--fleet", "--ring", "1s", "--out", "r"][..], "shorter than a segment"),
        (&["--fleet", "--ring", "540m", "--out", "r"], "longer --segment"),
        (&["--fleet", "--ring", "1m", "--segment", "1s", "--out", "r"], "give 5s or more"),
        (&["--fleet", "--ring", "1m", "--ring-size", "1k", "--out", "r"], "16M or more"),
        (&["--fleet", "--ring", "1m"], "--out"),
        (&["--ring", "1m", "--out", "r"], "--fleet"),
    ] {
        let output = Command::new(LUC).arg("record").args(words).output();
        let text = refusal(&output.expect("luc runs"));
        assert!(text.contains(reason), "{words:?}: {text}");
    }
}
