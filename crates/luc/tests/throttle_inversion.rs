//! Somebody waits for what a frozen task holds: `luc throttle` thaws it. Needs root, cgroup v2, FUSE, loop devices, BTF
//! and a C compiler.

mod common;
#[path = "common/throttle.rs"]
mod throttle;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{Disk, LUC, compiled_statically, stderr};
use serde_json::Value;
use throttle::device;

const ROUNDS: usize = 3;

/// A holder and a writer are batch, of which the writer has the turn; a protected task waits for what the holder has.
/// It gets it while the writer still writes.
fn is_given(kind: &str) {
    let Some(disk) = Disk::new(&format!("inversion-{kind}"), "ext4", "") else {
        return;
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/inversion.c");
    let program = disk.path("inversion");
    if !compiled_statically(&source, Path::new(&program)) {
        return;
    }
    let task = |role: &str, file: &str| {
        let folder = disk.path("");
        format!("exec {program} {kind} {folder} {ROUNDS} {role} {file}")
    };
    let file = |name: &str| format!("{}/{name}", disk.mount());
    let json = disk.path("json");
    let mut command = Command::new(LUC);
    command.args(["throttle", "run", "--policy", "fcfs", "--max-frozen", "60s"]);
    command.args(["--disk", &device(&disk), "--json", &json]);
    command.args(["--task", &task("writer", &file("writer"))]);
    command.args(["--task", &task("holder", &file("holder"))]);
    command.args(["--protect", &task("waiter", "")]);
    let output = command.output().expect("luc runs");
    // The waiter fails if the writer is done before it.
    assert!(output.status.success(), "{}", stderr(&output));
    let figures: Value = serde_json::from_slice(&fs::read(&json).expect("written")).expect("JSON");
    let holder = &figures["tasks"][1];
    let freezes = holder["freezes"].as_u64().expect("a number");
    // On a busy machine the holder is still at times without being frozen.
    assert!(freezes >= 1, "{figures}");
    let orders = figures["orders"].as_array().expect("a list");
    let is_thaw = |order: &&Value| order["reason"] == "inversion" && order["action"] == "thaw";
    assert!(orders.iter().any(|order| is_thaw(&order)), "{figures}");
    let stalls = fs::read_to_string(disk.path("stalls")).expect("written");
    assert_eq!(stalls.lines().count(), ROUNDS, "{stalls}");
}

#[test]
fn a_file_lock_by_flock() {
    is_given("flock");
}

#[test]
fn a_file_lock_by_fcntl() {
    is_given("fcntl");
}

#[test]
fn a_lock_of_an_open_file() {
    is_given("ofd");
}

#[test]
fn a_pipe() {
    is_given("pipe");
}

#[test]
fn a_futex() {
    is_given("futex");
}

#[test]
fn a_socket() {
    is_given("socket");
}
