//! `luc report` end to end: all formats of a trace with names that would do harm, and the page in a real browser. It
//! also has to refuse bad requests, and to leave nothing behind. The browser test is skipped, with the reason, where
//! there is no Chromium.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use luc_events::event_kinds::{SyncKind, WaitState};
use luc_events::store::TraceWriter;
use luc_events::tables::{
    FsyncCall, JournalCommit, JournalHandle, MountedFileSystem, OffCpuWait, ThreadInfo,
    TraceDescription,
};
use luc_events::{Dev, Pid, Tgid, Transaction, WaitCause};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

const COMMIT_NS: u64 = 10_000_000;
const DEV: Dev = Dev(7 << 20);
const COMM: &str = "</script><b>x";

fn trace() -> TraceDescription {
    TraceDescription {
        host: "test".to_owned(),
        kernel: "6.18".to_owned(),
        processors: 2,
        command: "work <one> & \"two\"".to_owned(),
        mode: "events".to_owned(),
        start_ns: 1,
        ..TraceDescription::default()
    }
}

/// A trace in which two groups of four threads wait for each other's commits.
fn write_trace(folder: &Path, commits: u32) -> PathBuf {
    let path = folder.join("work.trace");
    let mut writer = TraceWriter::create(&path, trace()).expect("made");
    let mount_point = "/srv/<mail>".to_owned();
    let file_system = MountedFileSystem {
        at_ns: 1,
        dev: DEV,
        kind: "ext4".to_owned(),
        mount_point,
        journal_blocks: 16_384,
        block_bytes: 4_096,
        ..MountedFileSystem::default()
    };
    writer.add(file_system).expect("added");
    for thread in 1..=8 {
        let task = ThreadInfo {
            at_ns: 2,
            thread: Pid(100 + thread),
            process: Tgid(101),
            comm: COMM.to_owned(),
            ..ThreadInfo::default()
        };
        writer.add(task).expect("added");
    }
    for number in 2..commits {
        let start_ns = u64::from(number) * COMMIT_NS;
        let end_ns = start_ns + COMMIT_NS - 100_000;
        let transaction = Transaction(number);
        let commit = JournalCommit {
            dev: DEV,
            transaction,
            start_ns,
            locking_ns: start_ns,
            flushing_ns: start_ns + 10_000,
            logging_ns: start_ns + 20_000,
            end_ns,
            ..JournalCommit::default()
        };
        for thread in 0..4 {
            let id = (Pid(101 + number % 2 * 4 + thread), Tgid(101));
            // It began during the commit before.
            let enter_ns = start_ns - COMMIT_NS + 200_000;
            let exit_ns = end_ns + 50_000;
            let handle = JournalHandle {
                at_ns: enter_ns,
                dev: DEV,
                transaction,
                thread: id.0,
                process: id.1,
                count: 1,
                dirtied: 2,
                ..JournalHandle::default()
            };
            let wait = OffCpuWait {
                thread: id.0,
                process: id.1,
                off_ns: enter_ns + 1_000,
                woken_ns: end_ns,
                on_ns: end_ns + 20_000,
                state: WaitState::Uninterruptible,
                cause: WaitCause::CommitWait,
                dev: DEV,
                transaction,
                ..OffCpuWait::default()
            };
            let sync = FsyncCall {
                thread: id.0,
                process: id.1,
                dev: DEV,
                kind: SyncKind::Fsync,
                enter_ns,
                exit_ns,
                wanted_enter: transaction,
                wanted_exit: transaction,
                ..FsyncCall::default()
            };
            writer.add(handle).expect("added");
            writer.add(wait).expect("added");
            writer.add(sync).expect("added");
        }
        writer.add(commit).expect("added");
    }
    let end_ns = u64::from(commits + 1) * COMMIT_NS;
    writer.finish(TraceDescription { end_ns, ..trace() }).expect("finished");
    path
}

fn luc(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_luc"));
    command.current_dir(folder);
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    luc(folder).args(arguments).output().expect("luc runs")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().display().to_string()).collect();
    names.sort();
    names
}

#[test]
fn all_formats_come_from_one_reading() {
    let folder = tempfile::tempdir().expect("a directory");
    write_trace(folder.path(), 300);
    let options = "report work.trace --html a.html --perfetto a.pftrace --openmetrics a.prom --json a.json --text a.txt";
    // What was there is replaced.
    fs::write(folder.path().join("a.html"), "old").expect("written");
    let output = run(folder.path(), &options.split(' ').collect::<Vec<_>>());
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert_eq!(message.lines().count(), 5, "{message}");
    let expected = ["a.html", "a.json", "a.pftrace", "a.prom", "a.txt", "work.trace"];
    assert_eq!(names(folder.path()), expected);

    let read = |name: &str| fs::read(folder.path().join(name)).expect("readable");
    let explained = run(folder.path(), &["explain", "work.trace", "--json"]).stdout;
    assert_eq!(read("a.json"), explained);
    assert_eq!(read("a.txt"), run(folder.path(), &["explain", "work.trace"]).stdout);
    assert!(read("a.html").starts_with(b"<!doctype html>"));
    assert!(read("a.prom").ends_with(b"# EOF\n"));
    assert!(read("a.pftrace").windows(6).any(|found| found == b"commit"));
    let piped = run(folder.path(), &["report", "work.trace", "--json", "-"]);
    assert_eq!(piped.stdout, explained);

    // Without an option: the page, named after the trace.
    let output = run(folder.path(), &["report", "work.trace/"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(read("work.trace.html"), read("a.html"));
}

/// The key figures of a page, by name.
fn figures(page: &str) -> BTreeMap<String, f64> {
    page.split("data-figure=\"")
        .skip(1)
        .filter_map(|rest| {
            let (name, rest) = rest.split_once('"')?;
            let (_, rest) = rest.split_once("data-value=\"")?;
            let (value, _) = rest.split_once('"')?;
            Some((name.to_owned(), value.parse().ok()?))
        })
        .collect()
}

#[test]
fn a_browser_shows_the_page_with_the_figures_of_explain() {
    let folder = tempfile::tempdir().expect("a directory");
    write_trace(folder.path(), 150);
    let output = run(folder.path(), &["report", "work.trace", "--html", "page.html"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let Some(dom) = luc_testkit::page::in_browser(&folder.path().join("page.html")) else {
        return;
    };

    let json = run(folder.path(), &["explain", "work.trace", "--json"]).stdout;
    let report: Value = serde_json::from_slice(&json).expect("JSON");
    let found = &report["file_systems"][0];
    let figures = figures(&dom);
    for (name, expected) in [
        ("syncs", &found["syncs"]["latency"]["count"]),
        ("sync_mean_ns", &found["syncs"]["latency"]["mean_ns"]),
        ("sync_p99_ns", &found["syncs"]["latency"]["p99_ns"]),
        ("predecessor_ns", &found["syncs"]["parts"]["predecessor"]),
        ("commits", &found["commits"]["full"]["count"]),
        ("syncs_per_commit", &found["commits"]["syncs_per_commit"]),
    ] {
        let expected = expected.as_f64().expect("a number");
        assert!(expected > 0.0, "{name}");
        assert_eq!(figures.get(name), Some(&expected), "{name}");
    }
    let kind = report["findings"][0]["kind"].as_str().expect("a finding");
    assert!(dom.contains(&format!("data-finding=\"{kind}\"")), "{kind}");
    // The script has run: the timeline is there, with a choice of periods.
    let (_, timeline) = dom.split_once("data-timeline=\"0\"").expect("a timeline");
    let (tag, inside) = timeline.split_once('>').expect("a tag");
    assert!(!tag.contains("hidden"), "{tag}");
    assert!(inside.contains("<option value=\"0\">the whole trace"), "it has a period");
    // Names are shown as they are and are no markup.
    assert!(dom.contains("&lt;/script&gt;&lt;b&gt;x (101)"));
    assert!(!dom.contains("<b>x"));
}

#[test]
fn what_is_no_file_is_not_overwritten() {
    let folder = tempfile::tempdir().expect("a directory");
    write_trace(folder.path(), 10);
    fs::create_dir(folder.path().join("folder")).expect("made");
    let before = names(folder.path());
    for (options, named) in [
        ("--html folder", "folder"),
        ("--json /dev/null", "/dev/null"),
        ("--text missing/file", "missing/file"),
        ("--html same --json same", "same"),
        ("--html page --json folder", "folder"),
    ] {
        let mut arguments = vec!["report", "work.trace"];
        arguments.extend(options.split(' '));
        let output = run(folder.path(), &arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{options}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains(named), "{message}");
        assert_eq!(names(folder.path()), before, "{options}");
    }
    let output = run(folder.path(), &["report", "folder"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("no trace is here"), "{message}");
    assert_eq!(names(folder.path()), before);
}

#[test]
fn a_link_is_followed() {
    let folder = tempfile::tempdir().expect("a directory");
    write_trace(folder.path(), 10);
    let (target, link) = (folder.path().join("target"), folder.path().join("link"));
    fs::write(&target, "old").expect("written");
    std::os::unix::fs::symlink(&target, &link).expect("linked");
    let output = run(folder.path(), &["report", "work.trace", "--json", "link"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(link.is_symlink());
    assert!(fs::read(&target).expect("readable").starts_with(b"{"));
}

/// Writes a page to a file and a Perfetto trace to a pipe.
fn into_a_pipe(folder: &Path) -> Child {
    luc(folder)
        .args(["report", "work.trace", "--html", "page.html"])
        .args(["--perfetto", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("luc runs")
}

#[test]
fn ctrl_c_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a directory");
    write_trace(folder.path(), 3_000);
    // Nobody reads the pipe yet, so that it stops in the middle of the trace.
    let mut child = into_a_pipe(folder.path());
    let begin = Instant::now();
    while names(folder.path()).len() < 2 {
        assert!(begin.elapsed() < Duration::from_secs(60), "it begins");
        sleep(Duration::from_millis(5));
    }
    let id = rustix::process::Pid::from_child(&child);
    kill_process(id, Signal::INT).expect("sent");
    // It can go on now, and sees the signal.
    let mut out = Vec::new();
    let mut pipe = child.stdout.take().expect("a pipe");
    pipe.read_to_end(&mut out).expect("read");
    let output = child.wait_with_output().expect("it ends");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert_eq!(names(folder.path()), ["work.trace"]);
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let folder = tempfile::tempdir().expect("a directory");
    write_trace(folder.path(), 3_000);
    let mut child = into_a_pipe(folder.path());
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert_eq!(message, "");
    assert_eq!(names(folder.path()), ["work.trace"]);
}
