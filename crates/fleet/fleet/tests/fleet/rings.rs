//! Rings: read as one recording, by window; kept; `pulled` from directories, other hosts and object stores.

mod pulled_windows;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use luc_events::event_kinds::MessageDirection;
use luc_events::tables::TraceDescription;
use luc_fleet::RecordedHost;
use tempfile::TempDir;

use crate::planted_hosts::{BEGIN_NS, PlantedClock, host, message, talk};
use crate::refusals::write;
use crate::run_luc_fleet::{json_of, names, refusal_of, text_of};

/// Begin of the traces, CLOCK_REALTIME.
const BEGIN: &str = "2023-11-14T22:13:20Z";
const BEGIN_REAL_NS: u64 = 1_700_000_000_000_000_000;

/// The part of a recording from one time to another. What there is stands in each part.
fn part(recorded: &RecordedHost, [from_ns, to_ns]: [u64; 2]) -> RecordedHost {
    let is_in = |at_ns: u64| (from_ns..to_ns).contains(&at_ns);
    let mut part = recorded.clone();
    part.trace = TraceDescription { start_ns: from_ns, end_ns: to_ns, ..part.trace };
    part.messages.retain(|row| is_in(row.at_ns));
    part.packets.retain(|row| is_in(row.at_ns));
    // A sample at a cut is in both parts.
    part.clocks.retain(|row| (from_ns..=to_ns).contains(&row.at_ns));
    part
}

/// Two hosts that talk for two seconds, each as a trace and as a ring of two segments.
struct Planted {
    folder: TempDir,
    rings: [PathBuf; 2],
}

impl Planted {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let ahead = PlantedClock { offset_ns: 5_000_000, ..PlantedClock::default() };
        let clocks = [PlantedClock::default(), ahead];
        let mut hosts = [host("one", &clocks[0], 2), host("two", &clocks[1], 2)];
        {
            let [one, two] = &mut hosts;
            talk([one, two], [&clocks[0], &clocks[1]], 1, 2);
        }
        let at = |clock: usize, ms: i64| clocks[clock].monotonic_ns(BEGIN_NS + ms * 1_000_000);
        // The second request is under way at the cut.
        for (number, ms) in [(0, 100), (1, 998)] {
            let (asked, answered) = (number * 40, number * 9);
            hosts[0].messages.extend([
                message(1, at(0, ms), MessageDirection::Sent, asked, 40),
                message(1, at(0, ms + 4), MessageDirection::Received, answered, 9),
            ]);
            hosts[1].messages.extend([
                message(1, at(1, ms + 1), MessageDirection::Received, asked, 40),
                message(1, at(1, ms + 3), MessageDirection::Sent, answered, 9),
            ]);
        }
        let write = |number: usize| {
            let recorded = &mut hosts[number].clone();
            recorded.trace.realtime_offset_ns = BEGIN_REAL_NS - at(number, 0);
            let ring = folder.path().join(format!("ring-{number}"));
            fs::create_dir(&ring).expect("made");
            let [begin, middle, end] = [0, 1000, 2000].map(|ms| at(number, ms));
            write(&ring, "segment-0001-000004", &part(recorded, [begin, middle]));
            write(&ring, "segment-0001-000005", &part(recorded, [middle, end]));
            write(folder.path(), &format!("trace-{number}"), recorded);
            ring
        };
        let rings = [0, 1].map(write);
        Self { folder, rings }
    }

    /// Runs luc-fleet with a program `ssh` that is this script.
    fn fleet(&self, words: &[&str], ssh: &str) -> Command {
        let programs = self.folder.path().join("programs");
        if !programs.exists() {
            fs::create_dir(&programs).expect("made");
            symlink(env!("CARGO_BIN_EXE_luc-fleet"), programs.join("luc-fleet")).expect("made");
        }
        let path = programs.join("ssh");
        fs::write(&path, format!("#!/bin/sh\n{ssh}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
        let mut command = Command::new(env!("CARGO_BIN_EXE_luc-fleet"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.fleet(words, "exit 9").output().expect("luc-fleet runs")
    }

    /// Runs a command that must be refused in one line, and leave nothing.
    fn refusal(&self, words: &[&str], ssh: &str) -> String {
        let before = names(self.folder.path());
        let line = refusal_of(self.fleet(words, ssh).output().expect("luc-fleet runs"));
        let after: Vec<String> = names(self.folder.path());
        let new: Vec<_> = after.iter().filter(|name| !before.contains(name)).collect();
        assert!(new.iter().all(|name| *name == "programs"), "{new:?}");
        line
    }
}

/// `ssh HOST -- COMMAND...`, for hosts that are directories here.
const SSH: &str =
    r#"echo "$@" >> ssh-words; [ "$2" = -- ] || exit 8; cd "$1" && shift 2 && exec "$@""#;

#[test]
fn a_ring_is_read_as_one_recording() {
    let planted = Planted::new();
    let whole = json_of(planted.run(&["explain", "trace-0", "trace-1", "--json", "--rows"]));
    let ring = json_of(planted.run(&["explain", "ring-0", "ring-1", "--json", "--rows"]));
    for part in ["connections", "messages", "requests", "request", "rows", "services"] {
        assert_eq!(ring[part], whole[part], "{part}");
    }
    assert_eq!(whole["request"]["request"]["time_ns"], 4_000_000);
    let fits = [["trace-0", "trace-1"], ["ring-0", "ring-1"]]
        .map(|[one, two]| json_of(planted.run(&["fit", one, two, "--json"])));
    assert_eq!(fits[0]["pairs"], fits[1]["pairs"]);
}

#[test]
fn a_window_is_made_of_whole_segments() {
    let planted = Planted::new();
    let count = |words: &[&str]| {
        let words = [&["explain", "ring-0", "ring-1", "--json", "--rows"], words].concat();
        let all = json_of(planted.run(&words));
        all["rows"]["requests"].as_array().expect("rows").len()
    };
    // Each request has a row of its client and one of its server.
    assert_eq!(count(&["--from", BEGIN]), 4);
    assert_eq!(count(&["--to", "1700000000.5"]), 4);
    // The begin of the second request is in the first segment, its end in the second.
    assert_eq!(count(&["--around", "1700000001.7", "--span", "1s"]), 0);
    let line = planted.refusal(&["explain", "ring-0", "--from", "1700000009"], "");
    assert!(line.contains("from 2023-11-14T22:13:20Z to 2023-11-14T22:13:22Z"), "{line}");
    let line = planted.refusal(&["explain", "trace-0", "--from", BEGIN], "");
    assert!(line.contains("one trace, and no ring"), "{line}");
    fs::rename(
        planted.rings[0].join("segment-0001-000005"),
        planted.rings[0].join("segment-0001-000006"),
    )
    .expect("renamed");
    let line = planted.refusal(&["explain", "ring-0"], "");
    assert!(line.contains("segment 5 is missing"), "{line}");
}

#[test]
fn what_is_kept_stays_when_the_ring_goes_on() {
    let planted = Planted::new();
    let output = planted.run(&["freeze", "ring-0", "--around", BEGIN]);
    assert!(output.status.success(), "{output:?}");
    for name in ["segment-0001-000004", "segment-0001-000005"] {
        fs::remove_dir_all(planted.rings[0].join(name)).expect("removed");
    }
    let kept = "ring-0/kept/20231114T221320Z";
    let all = json_of(planted.run(&["explain", kept, "trace-1", "--json"]));
    assert_eq!(all["request"]["request"]["time_ns"], 4_000_000);
    let line = planted.refusal(&["freeze", kept, "--from", "1800000000"], "");
    assert!(line.contains("nothing of this window"), "{line}");
    assert_eq!(names(&planted.rings[0]), ["kept"]);
}

#[test]
fn what_became_slow_is_kept_but_not_too_often() {
    let planted = Planted::new();
    let ring = planted.folder.path().join("busy");
    fs::create_dir(&ring).expect("made");
    let clock = PlantedClock::default();
    let begin_ns = clock.monotonic_ns(BEGIN_NS);
    // Of the eight segments the last two are slow.
    let segment = |number: u64| {
        let mut recorded = host("one", &clock, 1);
        let mut client = host("client", &clock, 1);
        talk([&mut client, &mut recorded], [&clock, &clock], 1, 1);
        let millisecond_ns = if number < 7 { 1_000_000 } else { 9_000_000 };
        for request in 0..60 {
            let at_ns = begin_ns + request * 15_000_000;
            recorded.messages.extend([
                message(1, at_ns, MessageDirection::Received, request * 40, 40),
                message(1, at_ns + millisecond_ns, MessageDirection::Sent, request * 9, 9),
            ]);
        }
        let since_ns = number * 1_000_000_000;
        recorded.trace.realtime_offset_ns = BEGIN_REAL_NS + since_ns - begin_ns;
        let hidden = write(&ring, ".new", &recorded);
        fs::rename(hidden, ring.join(format!("segment-0001-{number:06}"))).expect("renamed");
    };
    (1..=6).for_each(segment);
    let words = ["watch", "busy", "--most", "1", "--span", "2s"];
    let mut command = planted.fleet(&words, "");
    let mut child = command.stderr(Stdio::piped()).spawn().expect("runs");
    (7..=8).for_each(segment);
    let mut said = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut line = || said.next().expect("a line").expect("text");
    assert_eq!(line(), "luc-fleet: oned at port 80: p99 is 9 ms, and was 1 ms");
    assert!(line().contains(": 2 segments, "));
    assert!(line().contains("p99 is 9 ms"));
    assert_eq!(line(), "luc-fleet: not kept: 1 are kept of a day");
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
    assert!(child.wait().expect("it ends").success());
    let kept = ring.join("kept");
    assert_eq!(names(&kept), ["20231114T221326Z"]);
    assert_eq!(names(&kept.join("20231114T221326Z")).len(), 2);
}

/// Host with a ring of eight segments of a second; its requests are slow in the last two. It answers at port 80, and
/// asks 10.0.0.3:90 for each request. `write_segment` writes segments of the host and of 10.0.0.3.
struct Slowing {
    clock: PlantedClock,
    begin_ns: u64,
}

impl Slowing {
    fn new() -> Self {
        let clock = PlantedClock::default();
        let begin_ns = clock.monotonic_ns(BEGIN_NS);
        Self { clock, begin_ns }
    }

    fn write_segment(&self, number: u64, [front, back]: [&Path; 2]) {
        let clocks = [&self.clock, &self.clock];
        let [mut client, mut one, mut two] =
            ["client", "one", "two"].map(|name| host(name, &self.clock, 1));
        talk([&mut client, &mut one], clocks, 1, 1);
        talk([&mut one, &mut two], clocks, 2, 1);
        for connection in one.connections.iter_mut().filter(|row| row.connection.0 == 2) {
            (connection.remote_address, connection.remote_port) = ("10.0.0.3".to_owned(), 90);
        }
        for connection in &mut two.connections {
            (connection.local_address, connection.local_port) = ("10.0.0.3".to_owned(), 90);
        }
        let long_ns = if number < 7 { 1_000_000 } else { 9_000_000 };
        for request in 0..60 {
            let at_ns = |share: u64| self.begin_ns + request * 15_000_000 + long_ns * share / 4;
            let (asked, answered) = (request * 40, request * 9);
            one.messages.extend([
                message(1, at_ns(0), MessageDirection::Received, asked, 40),
                message(2, at_ns(1), MessageDirection::Sent, asked, 40),
                message(2, at_ns(3), MessageDirection::Received, answered, 9),
                message(1, at_ns(4), MessageDirection::Sent, answered, 9),
            ]);
            two.messages.extend([
                message(2, at_ns(2), MessageDirection::Received, asked, 40),
                message(2, at_ns(2) + 1, MessageDirection::Sent, answered, 9),
            ]);
        }
        let since_ns = number * 1_000_000_000;
        for (recorded, ring) in [(&mut two, back), (&mut one, front)] {
            recorded.trace.realtime_offset_ns = BEGIN_REAL_NS + since_ns - self.begin_ns;
            let hidden = write(ring, ".new", recorded);
            fs::rename(hidden, ring.join(format!("segment-0001-{number:06}"))).expect("renamed");
        }
    }
}

#[test]
fn hosts_that_were_asked_keep_the_same_time() {
    let planted = Planted::new();
    let rings = ["front", "at-10.0.0.3/ring"].map(|name| planted.folder.path().join(name));
    for ring in &rings {
        fs::create_dir_all(ring).expect("made");
    }
    let [front, back] = [rings[0].as_path(), rings[1].as_path()];
    let slowing = Slowing::new();
    (1..=6).for_each(|number| slowing.write_segment(number, [front, back]));
    let ssh = "echo \"$@\" >> ssh-words; while [ \"$1\" != -- ]; do host=$1; shift; done; shift
        cd \"at-$host\" && exec \"$@\"";
    let words = ["watch", "front", "--most", "1", "--span", "2s"];
    let hosts = ["--host", "10.0.0.3:ring", "--host", "10.0.0.4:ring"];
    let mut command = planted.fleet(&[&words[..], &hosts[..]].concat(), ssh);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("runs");
    slowing.write_segment(7, [front, back]);
    let mut said = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut line = || said.next().expect("a line").expect("text");
    assert!(line().contains("p99 is 9 ms"));
    assert!(line().contains("front/kept/"));
    let there = line();
    assert!(there.starts_with("luc-fleet: 10.0.0.3 says: luc-fleet: ring/kept/"), "{there}");
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(killed.expect("kill runs").success());
    assert!(child.wait().expect("it ends").success());
    // The one that was asked, once, by the port that was asked; a second more on either side.
    let said = fs::read_to_string(planted.folder.path().join("ssh-words")).expect("read");
    let options = "-oBatchMode=yes -oConnectTimeout=10 -oServerAliveInterval=5";
    let window = "--from 1700000005.000000001 --to 1700000008.999999999";
    let words = format!("{options} 10.0.0.3 -- luc-fleet freeze {window} --called-by 90 ring\n");
    assert_eq!(said, words);
    assert_eq!(names(&back.join("kept")).len(), 1);
}

#[test]
fn what_is_kept_says_whom_services_asked() {
    let planted = Planted::new();
    let rings = ["front", "back"].map(|name| planted.folder.path().join(name));
    for ring in &rings {
        fs::create_dir(ring).expect("made");
    }
    Slowing::new().write_segment(1, [&rings[0], &rings[1]]);
    let called =
        |ring: &str, port: &str| text_of(planted.run(&["freeze", ring, "--called-by", port]));
    assert_eq!(called("front", "80"), "10.0.0.3:90\n");
    // It is kept already, and nobody answers at this port.
    assert_eq!(called("front", "81"), "");
    assert_eq!(called("back", "90"), "");
    let line = planted.refusal(&["watch", "front", "--host", "back"], "");
    assert!(line.contains("a host is wanted"), "{line}");
    let line = planted.refusal(&["watch", "front", "--host", "nobody.invalid:ring"], "");
    assert!(line.contains("no address is known"), "{line}");
}
