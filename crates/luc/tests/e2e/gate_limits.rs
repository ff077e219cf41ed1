//! Programs that leave the gate no room run as without it: a full /dev/shm, limits, sandboxes, small signal
//! stacks. Needs root, FUSE and a loop device for the emulated disk, and says so if they are missing.

use std::path::Path;
use std::process::{Command, Output};

use crate::common::{EmulatedTestDisk, LUC, stderr};

/// The emulated disk, and the program of cases on it.
fn disk(test: &str) -> Option<(EmulatedTestDisk, String)> {
    let disk = EmulatedTestDisk::new(test, "ext4", "")?;
    let program = disk.path("limits");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/no_room_for_gate.c");
    let compiled = Command::new("cc")
        // Bound at once: to bind late takes a stack that a handler has not.
        .args(["-Wall", "-Wextra", "-O1", "-pthread", "-Wl,-z,now", "-o", &program])
        .arg(source)
        .status()
        .expect("cc starts");
    assert!(compiled.success());
    Some((disk, program))
}

/// Runs a shell script on the disk; `$LUC` and `$PROGRAM` are what they say.
fn shell(disk: &EmulatedTestDisk, program: &str, script: &str) -> Output {
    Command::new("bash")
        .args(["-c", &format!("set -eu\n{script}")])
        .env("LUC", LUC)
        .env("PROGRAM", program)
        .current_dir(disk.mount())
        .output()
        .expect("bash starts")
}

#[test]
fn sandboxed_programs_are_not_killed() {
    let Some((disk, program)) = disk("gate-sandbox") else {
        return;
    };
    for policy in ["off", "delay:1ms", "auto"] {
        for case in ["plain", "prctl", "syscall", "exec", "threads", "unseen"] {
            if case == "unseen" && !cfg!(target_arch = "x86_64") {
                continue;
            }
            let output = shell(
                &disk,
                &program,
                &format!("\"$LUC\" run --quiet --policy {policy} -- \"$PROGRAM\" {case}"),
            );
            assert!(output.status.success(), "{policy} {case}: {output:?}");
        }
    }
}

#[test]
fn a_handler_on_a_small_stack_may_synchronize() {
    let Some((disk, program)) = disk("gate-stack") else {
        return;
    };
    for policy in ["off", "delay:1ms", "auto"] {
        let output = shell(
            &disk,
            &program,
            &format!("\"$LUC\" run --quiet --policy {policy} -- \"$PROGRAM\" stack"),
        );
        assert!(output.status.success(), "{policy}: {output:?}");
    }
}

#[test]
fn without_room_for_shared_memory_the_command_runs_without_the_gate() {
    let Some((disk, program)) = disk("gate-full") else {
        return;
    };
    // In a mount namespace of its own, where /dev/shm is full and /run is not in memory.
    let full = "unshare --mount bash -c '
        mount -t tmpfs -o size=64k tmpfs /dev/shm
        head -c 64k /dev/zero >/dev/shm/full || true
        \"$LUC\" run --policy delay:1ms -- \"$PROGRAM\" plain'";
    let limited = "ulimit -f 4; \"$LUC\" run --policy delay:1ms -- \"$PROGRAM\" plain";
    for script in [full, limited] {
        let output = shell(&disk, &program, script);
        let text = stderr(&output);
        assert!(output.status.success(), "{script}: {text}");
        let is_told =
            text.contains("the gate was not used") || text.contains("1 fsync, 1 fdatasync");
        assert!(is_told, "{script}: {text}");
    }
}

#[test]
fn a_full_shared_memory_ends_nobody_who_is_in_the_gate_already() {
    let Some((disk, program)) = disk("gate-fills") else {
        return;
    };
    let script = "unshare --mount bash -c '
        mount -t tmpfs -o size=1m tmpfs /dev/shm
        \"$LUC\" run --policy delay:1ms -- bash -c \"
            head -c 1m /dev/zero >/dev/shm/full || true
            $PROGRAM plain && $PROGRAM plain\"'";
    let output = shell(&disk, &program, script);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn somebody_else_s_directory_is_passed_by() {
    let Some((disk, program)) = disk("gate-squat") else {
        return;
    };
    let script = "unshare --mount bash -c '
        mount -t tmpfs tmpfs /dev/shm
        install -d -o nobody -m 0777 /dev/shm/luc-gate-0
        \"$LUC\" run --policy delay:1ms -- \"$PROGRAM\" plain'";
    let output = shell(&disk, &program, script);
    let text = stderr(&output);
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("panicked"), "{text}");
}
