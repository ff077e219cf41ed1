//! `luc attach`: processes that run already.

use std::path::Path;
use std::process::Command;

use crate::common::{refusal, stderr, until};
use crate::containers::bundle::{self, PLACE};
use crate::containers::systemd_machine::SystemdMachine;
use crate::containers::{are_reached, kill_lucd, status};

/// Starts a command as a unit; the number of its first process.
fn start(machine: &SystemdMachine, unit: &str, options: &str, command: &str) -> String {
    machine.get(&format!(
        "systemd-run --quiet --collect --unit={unit} -p WorkingDirectory={PLACE}/data {options} \
         -p StandardOutput=append:{PLACE}/{unit}.log -p StandardError=append:{PLACE}/{unit}.log {command}"
    ));
    machine.get(&format!("systemctl show -P MainPID {unit}"))
}

#[test]
fn a_process_that_runs_is_attached_and_notices_nothing() {
    let Some(machine) = bundle::machine("attach") else {
        return;
    };
    // Signals all the time, which the stopped thread gets as well.
    let notified = format!("{PLACE}/lower/bin/notified");
    let crowd = format!("{notified} crowd 8 600000 1000 storm");
    let process = start(&machine, "crowd", "", &crowd);
    let text = refusal(&machine.run(&format!("luc attach {process}")));
    assert!(text.contains("say so by --permanently"), "{text}");
    // A shell that waits, and its child that sleeps: calls that are made again, one of them for the time that is left.
    let words = "sleep 3 & echo $! >child; wait $!; echo $?";
    machine.write(&format!("{PLACE}/words"), words);
    let shell = start(&machine, "shell", "-p Type=exec", &format!("/bin/busybox sh {PLACE}/words"));
    machine.until(&format!("test -s {PLACE}/data/child"));
    let child = machine.get(&format!("cat {PLACE}/data/child"));
    machine.get(&format!("luc attach {shell} --permanently && luc attach {child} --permanently"));

    machine.get(&format!("luc attach {process} --permanently"));
    let name = format!("pid-{process}");
    assert!(are_reached(&machine, &name, 1), "{:?}", status(&machine, &name));
    until("a common round", || {
        let status = status(&machine, &name).unwrap_or_default();
        let gate = &status["file_systems"][0]["gate"];
        gate["gated"].as_u64() > Some(0)
    });
    let text = refusal(&machine.run(&format!("luc attach {process} --permanently")));
    assert!(text.contains("is under a filter of system calls"), "{text}");
    kill_lucd(&machine);
    until("its process", || are_reached(&machine, &name, 1));
    machine.get(&format!("touch {PLACE}/data/over"));
    for unit in ["crowd", "shell"] {
        machine.until(&format!("! systemctl is-active {unit}"));
    }
    let said = machine.get(&format!("cat {PLACE}/crowd.log"));
    assert!(said.contains("slow 0 failed 0"), "{said}");
    assert_eq!(machine.get(&format!("cat {PLACE}/shell.log")), "0");
    crate::containers::assert_nothing_is_left(&machine);
}

#[test]
fn go_programs_are_attached_at_any_moment() {
    let Some(machine) = bundle::machine("attach-go") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("crowd");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/goroutines_syncing.go");
    let built = Command::new("go")
        .args(["build", "-o"])
        .args([&program, &source])
        .envs([("CGO_ENABLED", "0"), ("GOFLAGS", "-mod=mod")])
        .env("GOCACHE", folder.path().join("cache"))
        .output();
    let Ok(built) = built else {
        luc_testkit::skipped!("go is not installed");
        return;
    };
    assert!(built.status.success(), "{}", stderr(&built));
    machine.copy(&program, &format!("{PLACE}/go-crowd"));
    machine.get("systemctl start lucd");
    for turn in 0..10 {
        let unit = format!("go{turn}");
        let process = start(&machine, &unit, "-p Type=exec", &format!("{PLACE}/go-crowd 8 1000"));
        machine.get(&format!("luc attach {process} --permanently"));
        machine.until(&format!("! systemctl is-active {unit}"));
        let said = machine.get(&format!("cat {PLACE}/{unit}.log"));
        assert!(said.contains(" slow 0 failed 0 ") && !said.contains("calls 0"), "{said}");
    }
    crate::containers::assert_nothing_is_left(&machine);
}

/// Signals at any moment between the first and the last of what `luc attach` does.
#[test]
fn an_attach_that_is_interrupted_harms_nobody() {
    let Some(machine) = bundle::machine("attach-interrupted") else {
        return;
    };
    machine.get("systemctl start lucd");
    for turn in 0..8 {
        let unit = format!("calls{turn}");
        let crowd = format!("{PLACE}/lower/bin/notified crowd 2 500 1000");
        let process = start(&machine, &unit, "", &crowd);
        let milliseconds = 4 * turn;
        machine.run(&format!(
            "timeout --signal=INT 0.{milliseconds:03} luc attach {process} --permanently"
        ));
        machine.until(&format!("! systemctl is-active {unit}"));
        let said = machine.get(&format!("cat {PLACE}/{unit}.log"));
        assert!(said.contains(" slow 0 failed 0 "), "{milliseconds} ms: {said}");
    }
    crate::containers::assert_nothing_is_left(&machine);
}

#[test]
fn what_cannot_be_attached_goes_on_as_it_was() {
    let Some(machine) = bundle::machine("attach-refused") else {
        return;
    };
    let sleep = "/bin/busybox sleep 60";
    let refused = |process: &str, expected: &str| {
        let before =
            machine.run(&format!("grep -E 'Seccomp|NoNewPrivs|SigBlk' /proc/{process}/status"));
        let text = refusal(&machine.run(&format!("luc attach {process} --permanently")));
        assert!(text.contains(expected), "{text}");
        let after =
            machine.run(&format!("grep -E 'Seccomp|NoNewPrivs|SigBlk' /proc/{process}/status"));
        assert_eq!(before, after);
    };
    let weak = start(&machine, "weak", "-p User=nobody", sleep);
    refused(&weak, "--no-new-privs takes that from it for ever");
    refused(
        &start(&machine, "filtered", "-p SystemCallFilter=~reboot", sleep),
        "is under a filter",
    );
    refused("4000000", "there is no process 4000000");
    refused("0", "there is no process 0");
    let traced = start(&machine, "traced", "", sleep);
    machine.get(&format!(
        "systemd-run --quiet --collect --unit=tracer strace -o /dev/null -p {traced} && \
         until grep -q 'TracerPid:.[1-9]' /proc/{traced}/status; do sleep 0.1; done"
    ));
    refused(&traced, "cannot be traced");
    machine.get("systemctl stop tracer");
    machine.get(&format!("luc attach {weak} --permanently --no-new-privs"));
    assert!(are_reached(&machine, &format!("pid-{weak}"), 1));
    machine.get("systemctl stop weak filtered traced");
    // Nobody who would answer.
    let alone = start(&machine, "alone", "", sleep);
    machine.get("systemctl stop lucd.socket lucd");
    refused(&alone, "`systemctl enable --now lucd.socket` first");
    machine.get("systemctl stop alone; systemctl start lucd.socket lucd");
    crate::containers::assert_nothing_is_left(&machine);
}
