//! `luc run` as a program: statuses, signals, reports and refusals. Needs no privileges.

use crate::common;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{LUC, compiled_statically, refusal, stderr};
use serde_json::Value;

fn luc(words: &[&str]) -> Command {
    let mut command = Command::new(LUC);
    command.arg("run").args(words);
    command
}

fn run(words: &[&str]) -> Output {
    luc(words).output().expect("luc starts")
}

#[test]
fn output_and_status_are_the_command_s() {
    let output = run(&["--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout, b"out\n");
    assert!(stderr(&output).starts_with("err\n"), "{}", stderr(&output));
}

#[test]
fn a_deadly_signal_becomes_128_and_its_number() {
    let output = run(&["--", "sh", "-c", "kill -KILL $$"]);
    assert_eq!(output.status.code(), Some(137));
}

/// As root the run is recorded too, by threads that must leave the signals alone.
#[test]
fn signals_are_passed_on() {
    let script = "trap 'exit 42' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = luc(&["--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("luc starts");
    let mut ready = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut ready).expect("ready");
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill");
    let status = child.wait().expect("waited for");
    assert_eq!((status.code(), status.signal()), (Some(42), None));
}

#[test]
fn quiet_says_nothing() {
    let output = run(&["--quiet", "--", "true"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}

#[test]
fn an_unsynchronized_run_is_reported_as_such() {
    let output = run(&["--", "true"]);
    assert!(
        stderr(&output).contains("no fsync, fdatasync or msync was seen"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_report_is_there_as_json() {
    let place = tempfile::tempdir().expect("directory");
    let json = place.path().join("report.json");
    let file = place.path().join("file");
    let words = ["--json", json.to_str().expect("plain"), "--", "dd", "if=/dev/zero", "bs=1k"];
    let of = format!("of={}", file.display());
    let output = run(&[&words[..], &["count=1", "conv=fsync", "status=none", &of]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: Value =
        serde_json::from_slice(&std::fs::read(json).expect("report")).expect("JSON");
    assert_eq!(report["ending"]["exited"], 0);
    assert_eq!(report["processes"], 1);
    assert_eq!(report["file_systems"][0]["fsyncs"], 1);
}

/// The command has ended and a signal is there when `luc run` gets a processor again.
#[test]
fn a_signal_at_the_command_s_end_costs_no_figures() {
    let place = tempfile::tempdir().expect("directory");
    let json = place.path().join("report.json");
    let script = "kill -STOP $PPID; kill -TERM $PPID; \
                  (until grep -q ') Z ' /proc/$$/stat; do sleep 0.01; done; kill -CONT $PPID) & exit 7";
    let words = ["--quiet", "--json", json.to_str().expect("plain"), "--", "sh", "-c", script];
    let output = run(&words);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    let report: Value =
        serde_json::from_slice(&std::fs::read(json).expect("report")).expect("JSON");
    assert_eq!(report["ending"]["exited"], 7);
}

#[test]
fn a_killed_run_leaves_the_report_s_file_as_it_was() {
    let place = tempfile::tempdir().expect("directory");
    let (old, new) = (place.path().join("old.json"), place.path().join("new.json"));
    std::fs::write(&old, "old").expect("written");
    for json in [&old, &new] {
        let json = json.to_str().expect("plain");
        let output = run(&["--quiet", "--json", json, "--", "sh", "-c", "kill -KILL $PPID"]);
        assert_eq!(output.status.signal(), Some(9), "{}", stderr(&output));
    }
    assert_eq!(std::fs::read(&old).expect("there"), b"old");
    assert_eq!(std::fs::read_dir(place.path()).expect("readable").count(), 1);
}

#[test]
fn a_report_s_file_keeps_its_rights_and_its_names() {
    let place = tempfile::tempdir().expect("directory");
    let (json, other) = (place.path().join("report.json"), place.path().join("other"));
    std::fs::write(&json, "old, and longer than nothing").expect("written");
    let words = |json: &Path| {
        let json = json.to_str().expect("plain").to_owned();
        ["--quiet".to_owned(), "--json".to_owned(), json, "true".to_owned()]
    };
    let written = |json: &Path| {
        let words = words(json);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(run(&words).status.code(), Some(0));
        let text = std::fs::read(json).expect("report");
        serde_json::from_slice::<Value>(&text).expect("JSON");
        std::fs::metadata(json).expect("there")
    };
    std::fs::set_permissions(&json, std::fs::Permissions::from_mode(0o662)).expect("set");
    assert_eq!(written(&json).mode() & 0o777, 0o662);
    std::fs::hard_link(&json, &other).expect("linked");
    assert_eq!(written(&json).nlink(), 2);
}

#[test]
fn what_is_no_file_is_written_to_as_it_is() {
    let output = run(&["--quiet", "--json", "/dev/stdout", "--", "echo", "first"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let json = text.strip_prefix("first\n").expect("the command's output");
    let report: Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(report["ending"]["exited"], 0);
    assert!(Path::new("/dev/stdout").is_symlink());
}

#[test]
fn a_report_that_cannot_be_written_costs_no_failure_of_the_command() {
    let place = tempfile::tempdir().expect("directory");
    let folder = place.path().join("folder");
    let json = folder.join("report.json");
    let json = json.to_str().expect("plain");
    for (status, expected) in [(7, 7), (0, 2)] {
        let script = format!("rm -rf {}; exit {status}", folder.display());
        for options in [&["--no-why"][..], &["--no-why", "--compare", "1"]] {
            std::fs::create_dir(&folder).expect("made");
            let words = ["--json", json, "--", "sh", "-c", &script];
            let output = run(&[options, &words].concat());
            let text = stderr(&output);
            assert!(text.contains("report.json cannot be written"), "{text}");
            assert_eq!(output.status.code(), Some(expected), "{options:?}: {text}");
        }
    }
}

/// Copies of a program that others than its owner may only execute.
#[test]
fn programs_that_may_not_be_read_run() {
    let place = tempfile::tempdir().expect("directory");
    let library = Path::new(LUC).with_file_name("libluc_gate_preload.so");
    let of_user = common::is_root();
    let luc = || {
        if of_user { common::as_nobody(place.path()) } else { Command::new(LUC) }
    };
    let program = |name: &str, mode| {
        let path = place.path().join(name);
        let copied = Command::new("cp").arg("/usr/bin/env").arg(&path).status();
        assert!(copied.expect("cp runs").success());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
        path.to_str().expect("plain").to_owned()
    };
    let copied = Command::new("cp").arg(library).arg(place.path()).status();
    assert!(copied.expect("cp runs").success());
    let hidden = program("hidden", 0o111);
    let output = luc()
        .args(["run", "--level", "gate", "--", &hidden, "sh", "-c", "exit 7"])
        .output()
        .expect("luc starts");
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(stderr(&output).contains("hidden may not be read"), "{}", stderr(&output));
    if of_user {
        let privileged = program("privileged", 0o4111);
        let output = luc()
            .args(["run", "--level", "gate", "--check", "--", &privileged])
            .output()
            .expect("luc starts");
        assert!(refusal(&output).contains("it is set-user-ID"));
    }
}

#[test]
fn a_command_runs_where_the_folder_is_gone() {
    let place = tempfile::tempdir().expect("directory");
    let script = "cd \"$0\" && rmdir \"$0\" && exec \"$1\" run --quiet -- sh -c 'exit 7'";
    let folder = place.path().join("folder");
    std::fs::create_dir(&folder).expect("made");
    let output = Command::new("sh")
        .args(["-c", script])
        .args([&folder, Path::new(LUC)])
        .output()
        .expect("sh starts");
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
}

#[test]
fn a_command_runs_without_proc() {
    if !common::is_root() {
        return;
    }
    let script = "mount -t tmpfs none /proc && exec \"$0\" run -- sh -c 'exit 7'";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, LUC])
        .output()
        .expect("unshare runs");
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(stderr(&output).contains("the gate was not used"), "{}", stderr(&output));
}

#[test]
fn a_comparison_gives_ratios_with_intervals() {
    let place = tempfile::tempdir().expect("directory");
    let json = place.path().join("report.json");
    let words = ["--compare", "3", "--json", json.to_str().expect("plain"), "--", "true"];
    let output = run(&words);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("run time"), "{}", stderr(&output));
    assert!(stderr(&output).contains("with / without (range of 3)"), "{}", stderr(&output));
    let report: Value =
        serde_json::from_slice(&std::fs::read(json).expect("report")).expect("JSON");
    assert_eq!(report["with"].as_array().map(Vec::len), Some(3));
    assert_eq!(report["without"].as_array().map(Vec::len), Some(3));
    assert!(report["run_time_s"]["ratio"]["ratio"].as_f64().is_some_and(|r| r > 0.0), "{report}");
    assert_eq!(report["run_time_s"]["ratio"]["range_of"], 3, "{report}");
}

#[test]
fn bad_input_is_one_line_and_status_2() {
    let directory = tempfile::tempdir().expect("directory");
    let file = directory.path().join("plain");
    std::fs::write(&file, "no program").expect("written");
    let missing = directory.path().join("no/such/file.json");
    for (words, reason) in [
        (vec!["--", "/no/such/program"], "/no/such/program"),
        (vec!["--", "no-such-program-anywhere"], "no-such-program-anywhere"),
        (vec!["--", file.to_str().expect("plain")], "plain"),
        (vec!["--", "/"], "directory"),
        (vec!["--policy", "fast", "--", "true"], "no such policy"),
        (vec!["--policy", "delay:1", "--", "true"], "delay"),
        (vec!["--policy", "off", "--compare", "2", "--", "true"], "compare"),
        (vec!["--compare", "0", "--", "true"], "0"),
        (vec!["--json", missing.to_str().expect("plain"), "--", "true"], "cannot be written"),
        (vec![], "COMMAND"),
    ] {
        let text = refusal(&run(&words));
        assert!(text.contains(reason), "{words:?}: {text}");
    }
}

#[test]
fn a_static_program_runs_and_is_named() {
    let place = tempfile::tempdir().expect("directory");
    let source = place.path().join("quiet.c");
    let program = place.path().join("quiet");
    std::fs::write(&source, "int main(void) { return 3; }\n").expect("written");
    if !compiled_statically(&source, &program) {
        return;
    }
    let output = run(&["--", program.to_str().expect("plain")]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("linked statically"), "{}", stderr(&output));
}

/// Needs root: without it no run is recorded.
#[test]
fn a_short_command_does_not_wait_for_its_recorder() {
    if !common::is_root() {
        return;
    }
    let place = tempfile::tempdir().expect("directory");
    let of = format!("of={}", place.path().join("file").display());
    let dd = ["--", "dd", "if=/dev/zero", "bs=1k", "count=1"];
    let output = run(&[&dd[..], &["conv=fsync", "status=none", &of]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("the command had ended before the recorder was ready"),
        "{}",
        stderr(&output)
    );
}

/// Orphans of the command come to the first process of a namespace.
#[test]
fn the_first_process_of_a_container_reaps_orphans() {
    if !common::is_root() {
        return;
    }
    let zombie = "grep -qs ') Z 1 ' /proc/[0-9]*/stat";
    let script = format!(
        "(sh -c 'exit 0' & sh -c 'exit 0' &) ; for i in $(seq 3000); do {zombie} || exit 42; sleep 0.01; done"
    );
    let output = Command::new("unshare")
        .args(["--fork", "--pid", "--mount-proc", LUC, "run", "--quiet", "--"])
        .args(["sh", "-c", &script])
        .output()
        .expect("unshare runs");
    assert_eq!(output.status.code(), Some(42), "{}", stderr(&output));
    // Its signals are the command's.
    let script = "trap 'exit 43' TERM; kill -TERM 1; while :; do sleep 0.05; done";
    let status = Command::new("unshare")
        .args(["--fork", "--pid", "--mount-proc", LUC, "run", "--quiet", "--"])
        .args(["sh", "-c", script])
        .status()
        .expect("unshare runs");
    assert_eq!(status.code(), Some(43));
}

#[test]
fn check_says_how_a_command_would_be_reached() {
    let said = |words: &[&str]| {
        let output = run(&[&["--level", "gate", "--check"], words].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = said(&["--", "true"]);
    assert!(text.contains("true: by the library"), "{text}");
    let place = tempfile::tempdir().expect("directory");
    let script = place.path().join("script");
    std::fs::write(&script, "#!/bin/sh\nexit 9\n").expect("written");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("set");
    let text = said(&["--", script.to_str().expect("plain")]);
    assert!(text.contains("(a script of "), "{text}");
    assert!(text.contains("sh): by the library"), "{text}");
}

/// AddressSanitizer refuses to start behind another library, unless it is told that this is meant.
#[test]
fn programs_with_a_sanitizer_start_and_are_reached() {
    let place = tempfile::tempdir().expect("directory");
    let (source, program) = (place.path().join("checked.c"), place.path().join("checked"));
    let text = "#include <fcntl.h>\n#include <unistd.h>\n\
                int main(int n, char **a) { return fsync(open(a[1], O_CREAT | O_WRONLY, 0600)); }\n";
    std::fs::write(&source, text).expect("written");
    let compiled =
        Command::new("cc").args(["-fsanitize=address", "-o"]).args([&program, &source]).status();
    if !compiled.is_ok_and(|status| status.success()) {
        luc_testkit::skipped!("cc has no AddressSanitizer here");
        return;
    }
    let json = place.path().join("report.json");
    let script = format!("{0} {0}.1 && {0} {0}.2", program.display());
    let json_word = json.to_str().expect("plain");
    let output = run(&["--no-why", "--json", json_word, "--", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: Value =
        serde_json::from_slice(&std::fs::read(json).expect("report")).expect("JSON");
    assert_eq!(report["file_systems"][0]["fsyncs"], 2, "{report:#}");
}

#[test]
fn a_run_s_own_figures_are_gone_with_it() {
    let output = run(&["--", "sh", "-c", "echo \"$LUC_GATE_RUN\""]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let figures = Path::new(text.trim());
    let name = figures.file_name().expect("a path").to_string_lossy();
    assert!(name.starts_with("run-"), "{text}");
    // The directory itself may be in use by another run.
    assert!(!figures.exists(), "{text}");
}
