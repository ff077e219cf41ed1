//! `luc top` end to end, in a terminal. It has to show known work on an emulated disk, bear resizes and signals, and
//! give the terminal back. Needs root, FUSE, loop devices and BTF; skipped, with the reason, where they are missing.

mod disk_sharing;
mod top_terminal;

use std::io::Read as _;
use std::process::{Child, Command, Stdio};

use crate::common::{LUC, RecordedDisk, refusal, until, without_privileges};
use rustix::process::{Pid, Signal, kill_process};
use top_terminal::TopTerminal;

/// Four threads that create and fsync files, until dropped.
fn load(bench: &RecordedDisk) -> Load {
    let arguments = [
        "bench",
        "metarates",
        "--dir",
        &bench.mount(),
        "--threads",
        "4",
        "--seconds",
        "600",
        "--file-size",
        "1k",
    ];
    let child = bench.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Load(child.expect("luc runs"))
}

struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        // SIGTERM, so that it removes its files.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// A program that does not outlive a test that fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Commits per second of the file system whose line begins so, if there are any.
fn commits_per_s(lines: &[String], mount: &str) -> Option<f64> {
    let lines = lines.iter().filter(|line| line.starts_with(mount));
    let rate = |line: &String| {
        let mut words = line.split_whitespace().skip(1);
        words.find_map(|word| word.parse::<f64>().ok())
    };
    lines.filter_map(rate).find(|rate| *rate > 0.0)
}

#[test]
fn it_shows_commits_bears_resizes_and_stops_and_gives_the_terminal_back() {
    let Some(bench) = RecordedDisk::new("view") else {
        return;
    };
    let mount = bench.mount();
    let _load = load(&bench);
    let mut terminal = TopTerminal::open(&bench, &["--delay", "500ms"], 120, 30);
    let rate = terminal.wait("a rate of commits", |lines| commits_per_s(lines, &mount));
    assert!(rate < 1_000.0, "a flush takes 6 ms: {rate}");
    terminal.wait("the keys", |lines| lines[29].contains("F1Help").then_some(()));
    terminal.wait("the caller", |lines| {
        let line = lines.iter().find(|line| line.trim_end().ends_with(" luc"))?;
        line.contains('%').then_some(())
    });

    terminal.resize(20, 5);
    terminal.wait("a tiny view", |lines| lines[4].contains("F1Help").then_some(()));
    terminal.resize(90, 40);
    terminal.wait("a larger view", |lines| {
        commits_per_s(lines, &mount[..16])?;
        lines[39].contains("F1Help").then_some(())
    });

    terminal.press("?");
    terminal.wait("the help", |lines| lines.concat().contains("any other key").then_some(()));
    terminal.press("x");

    terminal.signal(Signal::TSTP);
    until("the stop", || terminal.is_stopped());
    assert!(terminal.is_as_it_was(), "stopped, it has given the terminal back");
    terminal.resize(100, 30);
    terminal.signal(Signal::CONT);
    terminal.wait("the view after the stop", |lines| commits_per_s(lines, &mount[..16]));
    assert!(!terminal.is_as_it_was());

    terminal.press("q");
    assert_eq!(terminal.end(), (Some(0), true));

    let mut terminal = TopTerminal::open(&bench, &[], 80, 24);
    terminal.wait("the view", |lines| lines[0].contains("luc top").then_some(()));
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.end(), (Some(0), true));
}

#[test]
fn it_ends_with_its_terminal() {
    let Some(bench) = RecordedDisk::new("hangup") else {
        return;
    };
    let (child, mut master) = top_terminal::start(&bench, &[], 80, 24);
    let mut top = Killed(child);
    let mut message = [0; 16];
    master.read_exact(&mut message).expect("it draws");
    drop(master);
    until("the end", || top.0.try_wait().expect("ours").is_some());
}

#[test]
fn lines_and_json_are_for_scripts() {
    let Some(bench) = RecordedDisk::new("batch") else {
        return;
    };
    let mount = bench.mount();
    let _load = load(&bench);
    let output = bench
        .luc(&["top", "--batch", "--json", "--count", "2", "--delay", "1s", "--device", &mount]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        let found = line["file_systems"].as_array().expect("a list");
        let found = found
            .iter()
            .find(|found| found["mount_point"] == mount.as_str())
            .expect("the mounted file system");
        let figure = |name: &str| found[name].as_f64().unwrap_or(0.0);
        assert!(figure("commits_per_s") > 0.0, "{found}");
        // Each commit takes a flush, and serves as many as wait.
        assert!(figure("syncs_per_commit") > 1.0, "{found}");
        assert!(figure("syncs_per_s") > figure("commits_per_s"), "{found}");
        assert!(figure("commit_ns") > 6e6, "{found}");
        let processes = line["processes"].as_array().expect("a list");
        let caller = processes.iter().find(|process| process["comm"] == "luc");
        let lost_ns = caller.expect("the caller")["lost_ns_per_s"].as_f64();
        // Four threads cannot lose more than four seconds a second.
        assert!((1e9..4.4e9).contains(&lost_ns.unwrap_or(0.0)), "{line}");
        assert_eq!(line["machine"]["lost"], 0);
    }
    let output = bench.luc(&["top", "--once", "--delay", "500ms"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert!(commits_per_s(&lines, &mount).is_some(), "{text}");
}

#[test]
fn a_trace_recorded_as_summary_is_explained() {
    let Some(bench) = RecordedDisk::new("summary") else {
        return;
    };
    let (mount, trace) = (bench.mount(), bench.path("trace"));
    let load = load(&bench);
    let recorded = bench.luc(&["record", "-q", "--summary", "--duration", "3s", "--out", &trace]);
    assert!(recorded.status.success(), "{recorded:?}");
    drop(load);
    let output = bench.luc(&["explain", "--json", &trace]);
    assert!(output.status.success(), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["trace"]["mode"], "summary");
    let found = &report["file_systems"][0];
    assert_eq!(found["mount_point"], mount.as_str());
    let mean_ns = |of: &serde_json::Value| of["mean_ns"].as_u64().unwrap_or(0);
    let commit_ns = mean_ns(&found["commits"]["full"]);
    assert!(commit_ns > 6_000_000, "{found}");
    assert!(mean_ns(&found["syncs"]["latency"]) > commit_ns, "{found}");
    let findings = report["findings"].as_array().expect("a list");
    let is_one = |kind: &str| findings.iter().any(|finding| finding["kind"] == kind);
    assert!(is_one("synchronization_bound") && is_one("device_bound"), "{findings:?}");
}

#[test]
fn what_cannot_be_shown_is_said_in_one_line() {
    let luc = |arguments: &[&str]| {
        let output = Command::new(LUC).args(arguments).output();
        refusal(&output.expect("luc runs"))
    };
    assert!(luc(&["top"]).contains("--batch"));
    assert!(luc(&["top", "--json"]).contains("--batch"));
    assert!(luc(&["top", "--once", "--delay", "1ns"]).contains("250ms"));
    assert!(refusal(&without_privileges(&["top", "--once"])).contains("needs root"));
}
