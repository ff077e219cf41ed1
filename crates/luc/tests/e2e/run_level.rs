//! `luc run --level` as a program, on a directory tree that stands for a machine: needs no module and no privileges.

use crate::common::fake_machine;

use std::fs;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};

use crate::common::{compiled_statically, stderr, stdout, until};
use fake_machine::{FakeMachine, kill, luc, run, with_own_journal};
use serde_json::Value;

/// A run of a command that syncs a file, then goes on until its standard input ends.
fn start(fake: &FakeMachine, words: &[&str]) -> Child {
    let mut command = luc(fake, &["run"]);
    command.args(words).args(["--", "sh", "-c"]);
    let script = "dd if=/dev/zero of=\"$0\" bs=1k count=1 conv=fsync status=none; echo; read line";
    command
        .arg(script)
        .arg(fake.path("/synced"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("luc starts");
    child.stdout.as_mut().expect("piped").read_exact(&mut [0]).expect("synced");
    child
}

/// Ends a run, and gives what it printed.
fn finish(mut child: Child) -> String {
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("waited for");
    assert_eq!(output.status.code(), Some(1), "read at the end of its input");
    stderr(&output)
}

#[test]
fn a_run_lends_settings_where_it_goes_and_nowhere_else() {
    let fake = with_own_journal();
    let json = fake.path("/report.json");
    let child = start(&fake, &["--level", "kernel", "--json", json.to_str().expect("plain")]);
    until("the loan", || fake.read("own-8", "policy") == "auto");
    assert_eq!(fake.read("own-8", "copy_out"), "auto");
    assert_eq!(fake.read("other-8", "policy"), "off");
    let status = stdout(&run(&fake, &["kernel", "status"]));
    assert!(status.contains("auto*"), "{status}");
    fake.write("/sys/kernel/luc/own-8/stats/fsyncs", "1710\n");
    fake.write("/sys/kernel/luc/own-8/stats/commits_by_fsync", "110\n");
    let text = finish(child);
    assert!(text.contains("kernel module, policy auto, copy-out auto: 160 fsyncs"), "{text}");
    assert!(text.contains("16.0 for each"), "{text}");
    assert_eq!(fake.read("own-8", "policy"), "off");
    assert_eq!(fake.read("own-8", "copy_out"), "off");
    let report: Value = serde_json::from_slice(&fs::read(json).expect("report")).expect("JSON");
    assert_eq!(report["level"], "kernel");
    assert_eq!(report["policy"], "off");
    assert_eq!(report["kernel"][0]["stats"]["fsyncs"], 160);
    assert_eq!(report["kernel"][0]["is_lent"], true);
    assert_eq!(report["kernel"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_static_program_s_file_system_is_found_too() {
    let fake = with_own_journal();
    let source = fake.path("/waiter.c");
    let program = fake.path("/waiter");
    fake.write(
        "/waiter.c",
        "#include <fcntl.h>\n#include <unistd.h>\n\
         int main(int n, char **a) { char c; return open(a[1], O_CREAT | O_WRONLY, 0600) < 0 || \
         read(0, &c, 1) < 0; }\n",
    );
    if !compiled_statically(&source, &program) {
        return;
    }
    let mut child = luc(&fake, &["run", "--level", "kernel", "--quiet", "--"])
        .arg(&program)
        .arg(fake.path("/written"))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("luc starts");
    until("the loan", || fake.read("own-8", "policy") == "auto");
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("waited for");
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    assert_eq!(fake.read("own-8", "policy"), "off");
}

#[test]
fn a_killed_run_is_cleaned_up_by_its_watcher() {
    let fake = with_own_journal();
    let mut child = start(&fake, &["--level", "both"]);
    until("the loan", || fake.read("own-8", "policy") == "auto");
    // What ends every luc does not end the watcher before its work is done.
    if let Some(watcher) = watcher_of(&child) {
        for signal in ["-TERM", "-HUP", "-INT", "-QUIT", "-PIPE"] {
            let sent = Command::new("kill").args([signal, &watcher.to_string()]).status();
            assert!(sent.expect("kill").success(), "{signal}");
        }
    }
    kill(&mut child);
    until("the restoration", || fake.read("own-8", "policy") == "off");
    until("the end of the record", || !fake.path("/run/luc/kernel/record.json").exists());
}

/// The watcher that a run has started.
fn watcher_of(run: &Child) -> Option<u32> {
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    let children = fs::read_to_string(children).ok()?;
    children.split_whitespace().find_map(|child| {
        let words = fs::read(format!("/proc/{child}/cmdline")).ok()?;
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        words.contains("kernel watch").then(|| child.parse().ok())?
    })
}

#[test]
fn a_run_killed_with_its_watcher_is_cleaned_up_by_the_next_luc() {
    let fake = with_own_journal();
    let mut child = start(&fake, &["--level", "kernel"]);
    until("the loan", || fake.read("own-8", "policy") == "auto");
    let Some(watcher) = watcher_of(&child) else {
        kill(&mut child);
        luc_testkit::skipped!("this kernel has no /proc/PID/task/TID/children");
        return;
    };
    Command::new("kill").args(["-KILL", &watcher.to_string()]).status().expect("kill");
    kill(&mut child);
    assert_eq!(fake.read("own-8", "policy"), "auto");
    let output = run(&fake, &["run", "--quiet", "--", "true"]);
    assert_eq!(
        (output.status.code(), stderr(&output)),
        (Some(0), "luc: settings of luc.ko on 1 journal: restored\n".to_owned())
    );
    assert_eq!(fake.read("own-8", "policy"), "off");
}

#[test]
fn two_runs_do_not_restore_each_other_s_settings_away() {
    let fake = with_own_journal();
    let mut first = start(&fake, &["--level", "kernel"]);
    until("the first loan", || fake.read("own-8", "policy") == "auto");
    let second = start(&fake, &["--level", "kernel", "--policy", "pid:8"]);
    until("the second loan", || fake.read("own-8", "policy") == "pid");
    kill(&mut first);
    until("the first holder's end", || {
        let record = fs::read_to_string(fake.path("/run/luc/kernel/record.json"));
        record.is_ok_and(|text| text.matches("\"holder\"").count() == 1)
    });
    assert_eq!(fake.read("own-8", "policy"), "pid");
    assert_eq!(fake.read("own-8", "copy_out"), "auto");
    // The module stays as long as somebody lends its settings.
    let text = stderr(&run(&fake, &["kernel", "unload", "--timeout", "0s"]));
    assert!(text.contains(&format!("luc run (process {}) on own-8", second.id())), "{text}");
    finish(second);
    assert_eq!(fake.read("own-8", "policy"), "off");
    assert_eq!(fake.read("own-8", "set_point"), "0");
}

#[test]
fn the_gate_stands_aside_where_the_module_batches() {
    let fake = with_own_journal();
    let script = "echo \"$LUC_GATE_COUNT_ONLY $LUC_GATE_POLICY\"";
    let words = ["run", "--quiet", "--", "sh", "-c", script];
    let own = fake.own_device();
    let message = stdout(&run(&fake, &words));
    let (devices, policy) = message.trim().split_once(' ').expect("two words");
    let mut devices: Vec<_> = devices.split(',').collect();
    devices.sort_unstable();
    let mut expected = vec![own.as_str(), "7:99"];
    expected.sort_unstable();
    assert_eq!((devices, policy), (expected, "auto"));
    let message = stdout(&run(&fake, &[&["run", "--level", "gate"], &words[1..]].concat()));
    assert_eq!(message.trim(), "auto");
}

#[test]
fn a_comparison_switches_the_module_off_for_the_other_side() {
    let fake = with_own_journal();
    let log = fake.path("/log");
    let policy = fake.path("/sys/kernel/luc/own-8/policy");
    let script = format!(
        "dd if=/dev/zero of=\"$0\" bs=1k count=1 conv=fsync status=none; \
         sleep 0.2; cat '{}' >>'{}'",
        policy.display(),
        log.display()
    );
    fake.write("/sys/kernel/luc/own-8/policy", "delay\n");
    let synced = fake.path("/synced");
    let output = run(
        &fake,
        &[
            "run",
            "--level",
            "kernel",
            "--no-why",
            "--compare",
            "2",
            "--",
            "sh",
            "-c",
            &script,
            synced.to_str().expect("plain"),
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let log = fs::read_to_string(log).expect("log");
    let mut policies: Vec<_> = log.lines().collect();
    policies.sort_unstable();
    assert_eq!(policies, ["auto", "auto", "off", "off"]);
    assert_eq!(fake.read("own-8", "policy"), "delay");
    assert!(stderr(&output).contains("without the kernel module"), "{}", stderr(&output));
}
