//! Ends of a recording by `luc record`: by itself, interrupted, killed, refused. Needs root, FUSE, loop devices and
//! BTF; skipped, with the reason, where they are missing.

use crate::common;

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{RecordedDisk, refusal, rows, stderr, until, without_privileges};
use luc_events::tables::FsyncCall;

/// Starts a recording of everything in the background, and waits until it records.
fn in_background(bench: &RecordedDisk, out: &str) -> Child {
    let child =
        bench.command(&["record", "--out", out]).stderr(Stdio::piped()).spawn().expect("luc runs");
    until("recording begins", || programs_of(child.id()) > 0);
    child
}

/// BPF programs that process `id` holds, by its open files.
fn programs_of(id: u32) -> usize {
    let Ok(files) = fs::read_dir(format!("/proc/{id}/fd")) else {
        return 0;
    };
    files
        .flatten()
        .filter(|file| {
            fs::read_link(file.path()).is_ok_and(|target| target.ends_with("anon_inode:bpf_link"))
        })
        .count()
}

#[test]
fn ctrl_c_ends_a_recording() {
    let Some(bench) = RecordedDisk::new("interrupt") else {
        return;
    };
    let out = bench.path("trace");
    let child = in_background(&bench, &out);
    let script = bench.syncs(5);
    let worked = Command::new("sh").args(["-c", &script]).status();
    assert!(worked.expect("sh runs").success());
    signal(&child, "INT");
    let output = child.wait_with_output().expect("it ends");
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(message.contains("recorded in"), "{message}");
    let reader = bench.open(&out);
    assert!(reader.trace().end_ns > reader.trace().start_ns);
    let dev = common::dev(&bench, &reader);
    let syncs = rows::<FsyncCall>(&reader);
    assert_eq!(syncs.iter().filter(|sync| sync.dev == dev).count(), 5);
}

#[test]
fn a_killed_recorder_leaves_a_readable_trace_and_nothing_else() {
    let Some(bench) = RecordedDisk::new("killed") else {
        return;
    };
    let out = bench.path("trace");
    let mut child = in_background(&bench, &out);
    let script = bench.syncs(5);
    let worked = Command::new("sh").args(["-c", &script]).status();
    assert!(worked.expect("sh runs").success());
    until("rows are written", || {
        fs::read_dir(&out).is_ok_and(|files| {
            files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("sync-"))
        }) && rows::<FsyncCall>(&bench.open(&out)).len() >= 5
    });
    child.kill().expect("killed");
    child.wait().expect("reaped");
    let reader = bench.open(&out);
    assert_eq!(reader.trace().end_ns, 0);
    assert!(rows::<FsyncCall>(&reader).len() >= 5);
    assert_eq!(programs_left(), 0, "the kernel has taken the programs back");
}

/// Programs of the recorder that are loaded in the kernel, by anyone.
fn programs_left() -> usize {
    let mut left = 0;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(5) {
        left = libbpf_rs::query::ProgInfoIter::default()
            .filter(|program| program.name.to_string_lossy() == "jbd2_end_commit")
            .count();
        if left == 0 {
            break;
        }
        sleep(Duration::from_millis(50));
    }
    left
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

#[test]
fn the_exit_status_is_the_command_s() {
    let Some(bench) = RecordedDisk::new("status") else {
        return;
    };
    let out = bench.path("trace");
    let output = bench.luc(&["record", "-q", "--out", &out, "--", "sh", "-c", "exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    let again = bench.luc(&["record", "-q", "--out", &out, "--", "true"]);
    refusal(&again);
}

#[test]
fn without_privileges_one_line_says_so() {
    let words = ["record", "--out", "/nonexistent/trace", "--", "true"];
    let message = refusal(&without_privileges(&words));
    assert!(message.contains("needs root"), "{message}");
}
