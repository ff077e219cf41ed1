//! A run leaves nothing behind, even when it is killed.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use common::{command, folder, is_root, wait_for_processes};
use rustix::process::{Pid, Signal, kill_process};

/// Time that the kernel may take to remove namespaces after their last process.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(60);
const EVERY: Duration = Duration::from_millis(20);

/// All processes of the twin that have this folder of truth.
fn processes(truth: &Path) -> BTreeSet<u32> {
    let truth = truth.display().to_string();
    let is_ours = |process: &u32| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("luc-twin") && line.contains(&truth)
    };
    let entries = fs::read_dir("/proc").expect("listed").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
}

/// The network namespaces that any thread is in.
fn namespaces() -> BTreeSet<u64> {
    let entries = fs::read_dir("/proc").expect("listed").flatten();
    entries
        .filter_map(|entry| fs::metadata(entry.path().join("ns/net")).ok())
        .map(|about| about.ino())
        .collect()
}

fn links() -> BTreeSet<String> {
    let entries = fs::read_dir("/sys/class/net").expect("listed").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < REMOVAL_TIMEOUT, "{what}");
        thread::sleep(EVERY);
    }
}

#[test]
fn a_killed_run_leaves_nothing() {
    if !is_root() {
        return;
    }
    let folder = folder();
    let truth = folder.path().join("truth");
    let before = links();
    let plant = format!("journal:{}", folder.path().display());
    let options = ["--documents", "500", "--requests", "100000", "--plant", &plant];
    let mut run = command(&truth, &options).stdout(Stdio::piped()).spawn().expect("it starts");
    wait_for_processes(&mut run);
    let all = processes(&truth);
    assert_eq!(all.len(), 5, "the run and four hosts");
    let theirs: BTreeSet<u64> = all
        .iter()
        .filter_map(|process| fs::metadata(format!("/proc/{process}/ns/net")).ok())
        .map(|about| about.ino())
        .collect();
    assert_eq!(theirs.len(), 5);
    // In the middle of the queries.
    thread::sleep(Duration::from_millis(300));
    run.kill().expect("killed");
    run.wait().expect("ended");
    wait_until("processes stay", || processes(&truth).is_empty());
    wait_until("namespaces stay", || namespaces().is_disjoint(&theirs));
    wait_until("links stay", || links().is_subset(&before));
    // No file of a plant, and no truth that is cut off.
    let left: Vec<_> = fs::read_dir(folder.path()).expect("listed").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(fs::read_dir(&truth).expect("listed").count(), 0);
}

#[test]
fn a_host_that_is_killed_ends_the_run() {
    if !is_root() {
        return;
    }
    for (role, serve) in [
        ("front-end", "thread"),
        ("back-end", "thread"),
        ("back-end", "pool:2"),
        ("back-end", "shared:2"),
    ] {
        kill_host(role, serve);
    }
}

fn kill_host(role: &str, serve: &str) {
    let folder = folder();
    let truth = folder.path().join("truth");
    let mut run =
        command(&truth, &["--documents", "500", "--requests", "100000", "--serve", serve])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
    wait_for_processes(&mut run);
    let host = processes(&truth)
        .into_iter()
        .find(|process| {
            let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&format!("\0{role}\0"))
        })
        .and_then(|process| Pid::from_raw(process as i32))
        .expect("a host");
    thread::sleep(Duration::from_millis(300));
    kill_process(host, Signal::KILL).expect("killed");
    let output = run.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("client has ended"), "{said}");
    wait_until("processes stay", || processes(&truth).is_empty());
}
