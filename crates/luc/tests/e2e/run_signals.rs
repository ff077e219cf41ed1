//! Signals and inherited state below `luc run`: they are as without it. Needs a C compiler; what needs root says so.

use crate::common;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use crate::common::{LUC, stderr, stdout};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

const RUN: [&str; 3] = ["run", "--quiet", "--"];

fn parent(folder: &Path) -> PathBuf {
    let program = folder.join("parent");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/state_for_command.c");
    let compiled = Command::new("cc")
        .args(["-Wall", "-Wextra", "-O1", "-o"])
        .args([&program, &source])
        .status();
    assert!(compiled.expect("cc starts").success());
    program
}

/// Waits for a command to say that it is ready.
fn wait_until_ready(child: &mut Child) -> BufReader<ChildStdout> {
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    output
}

/// A terminal: the end that a person has, and the one that programs have.
fn terminal() -> (OwnedFd, OwnedFd) {
    let person =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&person).expect("granted");
    unlockpt(&person).expect("unlocked");
    let name = ptsname(&person, Vec::new()).expect("a name");
    let path = Path::new(OsStr::from_bytes(name.as_bytes()));
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let programs = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).expect("opened");
    (person, programs)
}

/// `luc run` as the leader of a session on a terminal, and the person's end of it.
fn on_terminal(words: &[&str]) -> (Child, File) {
    let (person, programs) = terminal();
    // Whoever runs the tests may ignore it, as nohup does.
    let child = Command::new("env")
        .args(["--default-signal=HUP", "setsid", "--ctty", LUC])
        .args(RUN)
        .args(words)
        .stdin(programs)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("setsid starts");
    (child, person.into())
}

/// Returns what the command wrote after it was ready, once nobody has its output any more, and its status.
fn ended(mut child: Child, mut output: BufReader<ChildStdout>) -> (String, Option<i32>) {
    let mut text = String::new();
    output.read_to_string(&mut text).expect("readable");
    let status = child.wait().expect("waited for");
    assert_eq!(status.signal(), None);
    (text, status.code())
}

/// `timeout` makes a process group of its own after it has started.
#[test]
fn a_terminal_s_signal_comes_to_a_command_in_its_own_group() {
    let words = ["timeout", "60", "sh", "-c", "echo ready; exec sleep 60"];
    let (mut child, mut person) = on_terminal(&words);
    let output = wait_until_ready(&mut child);
    person.write_all(b"\x03").expect("typed");
    let (text, status) = ended(child, output);
    assert_eq!((text.as_str(), status), ("", Some(130)));
}

#[test]
fn a_terminal_s_signal_comes_once_to_a_command_in_luc_s_group() {
    let script = "trap 'echo came' INT; echo ready; read line; read line; exit 5";
    let (mut child, mut person) = on_terminal(&["bash", "-c", script]);
    let mut output = wait_until_ready(&mut child);
    person.write_all(b"\x03").expect("typed");
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "came\n");
    person.write_all(b"a\nb\n").expect("typed");
    assert_eq!(ended(child, output), (String::new(), Some(5)));
}

/// The kernel tells the session's leader alone.
#[test]
fn a_terminal_that_goes_ends_the_command() {
    let (mut child, person) = on_terminal(&["sh", "-c", "echo ready; exec sleep 60"]);
    let output = wait_until_ready(&mut child);
    drop(person);
    let (text, status) = ended(child, output);
    assert_eq!((text.as_str(), status), ("", Some(129)));
}

#[test]
fn every_signal_that_a_command_can_catch_is_passed_on() {
    // PIPE, USR1, ALRM, ABRT, VTALRM, PROF, IO, PWR, XCPU, STKFLT, the lowest real-time ones and the last.
    for number in [13, 10, 14, 6, 26, 27, 29, 30, 24, 16, 34, 37, 64] {
        let script = format!(
            "trap 'exit 42' {number}; echo ready; for i in $(seq 600); do sleep 0.05; done"
        );
        let mut child = Command::new(LUC)
            .args(RUN)
            .args(["bash", "-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("luc starts");
        let output = wait_until_ready(&mut child);
        let sent =
            Command::new("kill").args([format!("-{number}"), child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
        assert_eq!(ended(child, output), (String::new(), Some(42)), "signal {number}");
    }
}

/// Runs words below `state_for_command.c`, with luc and without.
fn both(folder: &Path, left: &[&str], words: &[&str]) -> [Output; 2] {
    let parent = parent(folder);
    let output = |between: &[&str]| {
        let mut command = Command::new(&parent);
        command.args(left).arg("--").args(between).args(words);
        command.output().expect("it starts")
    };
    [output(&[&[LUC], &RUN[..]].concat()), output(&[])]
}

#[test]
fn a_command_has_the_state_that_its_parent_left() {
    let place = tempfile::tempdir().expect("a folder");
    // Root's runs share a descriptor from 250 on.
    let script = "grep -E '^(Sig[BCIP]|Shd|Umask|NoNewPrivs)' /proc/self/status; cat /proc/self/limits; nice; ulimit -n; \
                  ls /proc/self/fd | grep -v '^25'";
    let states: [&[&str]; 5] = [
        &[],
        &["ignore", "13", "ignore", "1", "ignore", "2", "ignore", "14"],
        &["ignore", "17"],
        &["block", "15", "block", "40", "close", "0", "limit", "300"],
        &["close", "2", "close", "0", "ignore", "13"],
    ];
    // Shells unblock signals and heed SIGCHLD.
    let status = ["grep", "-E", "^(Sig[BCIP]|Shd)", "/proc/self/status"];
    for left in states {
        for words in [&["sh", "-c", script][..], &status] {
            let [with, without] = both(place.path(), left, words);
            assert_eq!(stdout(&with), stdout(&without), "{left:?}");
            assert_eq!(with.status.code(), without.status.code(), "{left:?}");
            assert!(stdout(&with).contains("SigIgn"), "{left:?}");
        }
    }
    let [with, _] = both(place.path(), states[1], &status);
    let ignored = stdout(&with)
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:\t")?, 16).ok());
    // Who runs this test may ignore others.
    assert_eq!(ignored.map(|ignored| ignored & 0x3003), Some(0x3003));
}

#[test]
fn a_timer_that_the_parent_began_ends_the_command() {
    let place = tempfile::tempdir().expect("a folder");
    let words = ["bash", "-c", "trap 'exit 42' ALRM; for i in $(seq 600); do sleep 0.05; done"];
    for output in both(place.path(), &["alarm", "2000"], &words) {
        assert_eq!(output.status.code(), Some(42), "{}", stderr(&output));
    }
}

/// A filter refuses pidfd_open, the parent ignores SIGCHLD, or both.
#[test]
fn the_end_is_seen_without_pidfd_and_below_a_parent_that_ignores_sigchld() {
    let place = tempfile::tempdir().expect("a folder");
    let states: [&[&str]; 3] =
        [&["refuse", "434"], &["ignore", "17"], &["refuse", "434", "ignore", "17"]];
    for left in states {
        for output in both(place.path(), left, &["sh", "-c", "sleep 0.3; echo out; exit 7"]) {
            assert_eq!(output.status.code(), Some(7), "{left:?}: {}", stderr(&output));
            assert_eq!(stdout(&output), "out\n");
        }
    }
}

/// The kernel's signal at the end of luc's parent comes to luc, not to the command.
#[test]
fn the_parent_s_death_ends_the_command() {
    let place = tempfile::tempdir().expect("a folder");
    let parent = parent(place.path());
    let script = format!(
        "{} death 9 -- {LUC} run --quiet -- sh -c 'echo ready; exec sleep 60' & wait",
        parent.display()
    );
    let mut shell = Command::new("sh")
        .args(["-c", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("sh starts");
    let mut output = wait_until_ready(&mut shell);
    shell.kill().expect("killed");
    shell.wait().expect("waited for");
    let mut text = String::new();
    output.read_to_string(&mut text).expect("readable");
    assert_eq!(text, "");
}

#[test]
fn a_comparison_stops_though_the_command_ends_well() {
    let place = tempfile::tempdir().expect("a folder");
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let ran = place.path().join(format!("ran-{status}"));
        let script = format!(
            "trap 'exit 0' TERM INT; echo . >> {}; for i in $(seq 600); do sleep 0.05; done",
            ran.display()
        );
        let mut child = Command::new(LUC)
            .args(["run", "--quiet", "--compare", "3", "--", "bash", "-c", &script])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("luc starts");
        common::until("the first run", || ran.exists());
        let luc = Pid::from_child(&child);
        kill_process(luc, signal).expect("sent");
        let code = child.wait().expect("waited for").code();
        assert_eq!(code, Some(status));
        assert_eq!(std::fs::read_to_string(&ran).expect("runs"), ".\n");
    }
}

#[test]
fn each_run_of_a_comparison_has_the_whole_input() {
    let place = tempfile::tempdir().expect("a folder");
    let (input, counts) = (place.path().join("input"), place.path().join("counts"));
    let script = format!("wc -c >> {}", counts.display());
    let compared = |stdin: Stdio| {
        let output = Command::new(LUC)
            .args(["run", "--quiet", "--compare", "2", "--", "sh", "-c", &script])
            .stdin(stdin)
            .output()
            .expect("luc starts");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let found = std::fs::read_to_string(&counts).expect("counts");
        std::fs::remove_file(&counts).expect("removed");
        (found, stderr(&output))
    };
    std::fs::write(&input, "12\n4567").expect("written");
    let mut file = File::open(&input).expect("opened");
    // What somebody has read before is not given again.
    let mut line = [0; 3];
    file.read_exact(&mut line).expect("read");
    let (found, said) = compared(file.into());
    assert_eq!((found.as_str(), said.as_str()), ("4\n4\n4\n4\n", ""));
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(b"1234567").expect("written");
    drop(writer);
    let (found, said) = compared(reader.into());
    assert_eq!(found, "0\n0\n0\n0\n");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("all runs get /dev/null"), "{said}");
}
