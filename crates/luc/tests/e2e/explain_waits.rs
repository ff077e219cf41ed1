//! Waits of ordinary programs for others of them: for locks of files, for readers of pipes. Needs root and BTF.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::is_root;
use crate::explain_frozen::explained;

/// Records a script in a folder of its own, and returns the first finding.
fn first(script: &str) -> Option<Value> {
    if !is_root() || !Path::new("/sys/kernel/btf/vmlinux").exists() {
        luc_testkit::skipped!("this needs root and the kernel's BTF");
        return None;
    }
    let folder = TempDir::new().expect("a folder");
    let report = explained(&format!("cd {}; {script}", folder.path().display()));
    Some(report["findings"][0].clone())
}

#[test]
fn who_has_a_file_s_lock_is_named() {
    let Some(found) = first("flock lock sleep 2 & sleep 0.2; flock lock true") else {
        return;
    };
    assert_eq!(found["kind"], "lock", "{found:#}");
    assert_eq!(found["victim"]["comm"], "flock", "{found:#}");
    let sentence = found["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("a lock of a file"), "{sentence}");
}

#[test]
fn who_does_not_read_a_pipe_is_named() {
    let script = "dd if=/dev/zero bs=64k count=8 status=none | (sleep 2; exec cat) >/dev/null";
    let Some(found) = first(script) else {
        return;
    };
    assert_eq!([&found["kind"], &found["victim"]["comm"]], ["full_pipe", "dd"], "{found:#}");
}

#[test]
fn who_kills_a_stopped_process_has_not_let_it_go_on() {
    let script =
        "sleep 100 & stopped=$!; sleep 0.2; kill -STOP $stopped; sleep 1; kill -KILL $stopped";
    let Some(found) = first(script) else {
        return;
    };
    assert_eq!([&found["kind"], &found["victim"]["comm"]], ["stopped", "sleep"], "{found:#}");
    assert!(found["culprit"].is_null(), "{found:#}");
}
