//! Tests that bad input is refused in one line, with the reason and the next step.

use std::fs;
use std::path::{Path, PathBuf};

use luc_events::TraceEvent;
use luc_events::event_kinds::MessageDirection;
use luc_events::store::TraceWriter;
use luc_events::tables::TraceDescription;
use luc_fleet::RecordedHost;
use tempfile::TempDir;

use crate::planted_hosts::{BEGIN_NS, PlantedClock, host, message, talk};
use crate::run_luc_fleet::{fleet, json_of, names, refusal, text, text_of};

fn add<T: Clone + Into<TraceEvent>>(writer: &mut TraceWriter, rows: &[T]) {
    for row in rows {
        writer.add(row.clone()).expect("written");
    }
}

pub(crate) fn write(folder: &Path, name: &str, recorded: &RecordedHost) -> PathBuf {
    let path = folder.join(name);
    let begin =
        TraceDescription { at_ns: recorded.trace.start_ns, end_ns: 0, ..recorded.trace.clone() };
    let mut writer = TraceWriter::create(&path, begin).expect("created");
    add(&mut writer, &recorded.connections);
    add(&mut writer, &recorded.messages);
    add(&mut writer, &recorded.packets);
    add(&mut writer, &recorded.clocks);
    add(&mut writer, &recorded.tasks);
    let end = TraceDescription { at_ns: recorded.trace.end_ns, ..recorded.trace.clone() };
    writer.finish(end).expect("written");
    path
}

/// Two good traces of hosts that talk.
fn two() -> (TempDir, [PathBuf; 2]) {
    let folder = tempfile::tempdir().expect("a directory");
    let clocks =
        [PlantedClock::default(), PlantedClock { offset_ns: 5_000_000, ..PlantedClock::default() }];
    let (mut one, mut two) = (host("one", &clocks[0], 1), host("two", &clocks[1], 1));
    talk([&mut one, &mut two], [&clocks[0], &clocks[1]], 1, 1);
    let at = |clock: usize, ms: i64| clocks[clock].monotonic_ns(BEGIN_NS + ms * 1_000_000);
    one.messages.push(message(1, at(0, 100), MessageDirection::Sent, 0, 40));
    two.messages.push(message(1, at(1, 101), MessageDirection::Received, 0, 40));
    two.messages.push(message(1, at(1, 103), MessageDirection::Sent, 0, 9));
    one.messages.push(message(1, at(0, 104), MessageDirection::Received, 0, 9));
    let paths = [write(folder.path(), "a", &one), write(folder.path(), "b", &two)];
    (folder, paths)
}

#[test]
fn good_traces_are_read_and_named() {
    let (_folder, [a, b]) = two();
    let fit = json_of(fleet(&["fit", text(&a), &format!("db={}", text(&b)), "--json"]));
    assert_eq!((&fit["hosts"][0]["name"], &fit["hosts"][1]["name"]), (&"one".into(), &"db".into()));
    assert!(fit["pairs"][0]["offset"]["low_ns"].is_i64(), "{fit}");
    let shown = text_of(fleet(&["explain", text(&a), text(&b)]));
    assert!(shown.contains("Request 1: 4 ms of oned on one"), "{shown}");
    let all = json_of(fleet(&["explain", text(&a), text(&b), "--json"]));
    assert_eq!(all["request"]["request"]["time_ns"], 4_000_000);
}

#[test]
fn what_is_no_trace_of_a_fleet_is_refused() {
    let (folder, [a, _]) = two();
    let line = refusal(&["explain", "/nonexistent/trace"]);
    assert!(line.contains("/nonexistent/trace: no trace is here"), "{line}");
    let line = refusal(&["explain", text(folder.path())]);
    assert!(line.contains("no trace is here"), "{line}");
    let plain = RecordedHost { clocks: Vec::new(), ..host("plain", &PlantedClock::default(), 1) };
    let plain = write(folder.path(), "plain", &plain);
    let line = refusal(&["fit", text(&a), text(&plain)]);
    assert!(line.contains(text(&plain)) && line.contains("luc record --fleet"), "{line}");
}

#[test]
fn threads_and_times_that_are_not_there_are_refused() {
    let (_folder, [a, b]) = two();
    let (a, b) = (text(&a), text(&b));
    for (words, part) in [
        (&["why", "7@three", a, b][..], "the traces are of one, two"),
        (&["why", "7", a, b], "write it like 7@HOST"),
        (&["why", "8@one", a, b], "no thread 8 in the trace of one"),
        (&["why", "none", a], "no thread none"),
        (&["why", "@one", a], "names no thread"),
        (&["why", "7", "--at", "9m", a], "after the end of the trace"),
        (&["why", "7", "--at", "soon", a], "soon"),
    ] {
        let line = refusal(words);
        assert!(line.contains(part), "{line}");
    }
    let shown = text_of(fleet(&["why", "oned@one", a, b]));
    assert!(shown.contains("oned 7 on one"), "{shown}");
}

#[test]
fn hosts_that_are_the_same_are_refused() {
    let (folder, [a, b]) = two();
    let line = refusal(&["explain", text(&a), text(&a)]);
    assert!(line.contains("same boot"), "{line}");
    let line = refusal(&["explain", text(&a), &format!("other={}", text(&a))]);
    assert!(line.contains("same boot"), "{line}");
    let line = refusal(&["explain", text(&a), &format!("one={}", text(&b))]);
    assert!(line.contains("named one") && line.contains(&format!("OTHER={}", text(&b))), "{line}");
    // Without a socket in common the boot tells.
    let booted = |name: &str, realtime_offset_ns| {
        let mut recorded = host(name, &PlantedClock::default(), 1);
        recorded.trace.realtime_offset_ns = realtime_offset_ns;
        recorded.trace.boottime_offset_ns = 1_000;
        recorded
    };
    let hour = write(folder.path(), "hour", &booted("x", 3_600_000_000_000));
    let same = write(folder.path(), "same", &booted("x", 3_600_000_500_000));
    let later = write(folder.path(), "later", &booted("x", 7_200_000_000_000));
    let line = refusal(&["fit", &format!("p={}", text(&hour)), &format!("q={}", text(&same))]);
    assert!(line.contains("same boot"), "{line}");
    let line = refusal(&["fit", text(&hour), text(&later)]);
    assert!(line.contains("named x"), "{line}");
    let shown = text_of(fleet(&["fit", text(&hour), &format!("y={}", text(&later))]));
    assert!(shown.contains("y: not known: no connection"), "{shown}");
}

#[test]
fn mistakes_of_the_command_line_are_one_line() {
    let (_folder, [a, b]) = two();
    for (words, part) in [
        (&["fit", text(&a)][..], "two hosts or more"),
        (&["fit"], "--help"),
        (&["explain", text(&a), "--frob"], "--frob"),
        (&["explain", "=x"], "no name before the '='"),
        (
            &["explain", text(&a), text(&b), "--request", "0"],
            "there is no request 0: 1 have an answer",
        ),
        (&["explain", text(&a), text(&b), "--request", "x"], "--request"),
        (&["frob"], "frob"),
    ] {
        let line = refusal(words);
        assert!(line.contains(part), "{line}");
    }
}

#[test]
fn reports_are_whole_files_or_none() {
    let (folder, [a, b]) = two();
    let (a, b) = (text(&a), text(&b));
    let path = |name: &str| folder.path().join(name);
    let (page, trace, spans) = (path("page.html"), path("all.pftrace"), path("spans.json"));
    fs::create_dir(path("folder")).expect("made");
    for (words, part) in [
        (&["report", a, b][..], "--html <FILE>"),
        (&["report", a, b, "--html", text(&path("folder"))], "not a regular file"),
        (&["report", a, b, "--otlp", text(&path("none/x"))], "cannot be written"),
        (
            &["report", a, b, "--html", text(&page), "--otlp", text(&page)],
            "two formats cannot go to one file",
        ),
        (
            &["report", a, b, "--html", text(&page), "--otlp", text(&path("./page.html"))],
            "two formats cannot go to one file",
        ),
        (&["report", a, b, "--html", text(&page), "--request", "9"], "there is no request 9"),
    ] {
        let line = refusal(words);
        assert!(line.contains(part), "{line}");
        assert_eq!(names(folder.path()), ["a", "b", "folder"]);
    }
    fs::write(&page, "old").expect("written");
    let output = fleet(&[
        "report",
        "--html",
        text(&page),
        "--perfetto",
        text(&trace),
        "--otlp",
        text(&spans),
        a,
        b,
    ]);
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{said}");
    assert_eq!(said.lines().count(), 3, "{said}");
    let files = ["a", "all.pftrace", "b", "folder", "page.html", "spans.json"];
    assert_eq!(names(folder.path()), files);
    let shown = fs::read_to_string(&page).expect("readable");
    assert!(shown.contains("Request 1: 4 ms of oned on one"), "{shown}");
    let piped = fleet(&["report", "--otlp", "-", "--request", "1", a, b]);
    assert_eq!(piped.stdout, fs::read(&spans).expect("readable"));
}

#[test]
fn clocks_that_cannot_be_are_refused() {
    let (folder, [a, _]) = two();
    let few = |name: &str, change: fn(&mut RecordedHost)| {
        let mut recorded = host(name, &PlantedClock::default(), 1);
        change(&mut recorded);
        write(folder.path(), name, &recorded)
    };
    let single = few("single", |recorded| recorded.clocks.truncate(1));
    let back = few("back", |recorded| recorded.clocks[3].raw_ns = 5);
    let far = few("far", |recorded| recorded.clocks[3].raw_ns = u64::MAX);
    for (path, part) in [(single, "1 samples"), (back, "do not advance"), (far, "73 years")] {
        let line = refusal(&["fit", text(&a), text(&path)]);
        assert!(line.contains(text(&path)) && line.contains(part), "{line}");
    }
}

/// Each file in turn, cut and changed at many places.
#[test]
fn damage_is_named() {
    let (_folder, [a, b]) = two();
    for table in ["connection", "message", "packet", "clock_sample", "task", "trace"] {
        let file = fs::read_dir(&a)
            .expect("listed")
            .map(|entry| entry.expect("an entry").path())
            .find(|path| {
                let name = path.file_name().and_then(|name| name.to_str());
                name.is_some_and(|name| name.starts_with(&format!("{table}-")))
            });
        let file = file.expect("the table's file");
        let whole = fs::read(&file).expect("read");
        let mut damaged: Vec<Vec<u8>> = [0, 3, 24, whole.len() / 2, whole.len() - 1]
            .map(|length| whole[..length].to_vec())
            .into();
        for at in [0, 8, 20, 30, whole.len() / 2, whole.len() - 10] {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            damaged.push(bytes);
        }
        for bytes in damaged {
            fs::write(&file, &bytes).expect("written");
            let line = refusal(&["explain", text(&a), text(&b)]);
            assert!(line.contains(text(&a)), "{line}");
        }
        // Another version: one digit and right checksums.
        let line = refusal_of_version(&file, &whole, [text(&a), text(&b)]);
        assert!(line.contains("schema version 9") && line.contains(text(&a)), "{line}");
        fs::write(&file, &whole).expect("written");
    }
    assert!(fleet(&["explain", text(&a), text(&b)]).status.success());
}

fn refusal_of_version(file: &Path, whole: &[u8], traces: [&str; 2]) -> String {
    let mut bytes = whole.to_vec();
    let footer = u64::from_le_bytes(bytes[8..16].try_into().expect("8 bytes")) as usize;
    let key = b"luc.schema";
    let mut windows = bytes[footer..].windows(key.len());
    let at = footer + windows.position(|found| found == key).expect("the key");
    // The value's length and its only digit follow.
    bytes[at + key.len() + 2] = b'9';
    let crc = crc32fast::hash(&bytes[footer..]);
    bytes[16..20].copy_from_slice(&crc.to_le_bytes());
    let crc = crc32fast::hash(&bytes[4..20]);
    bytes[20..24].copy_from_slice(&crc.to_le_bytes());
    fs::write(file, &bytes).expect("written");
    refusal(&["explain", traces[0], traces[1]])
}
