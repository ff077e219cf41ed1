//! Somebody waits for what a frozen task holds: `luc throttle` thaws it. Needs root, cgroup v2, FUSE, loop devices,
//! BTF and a C compiler.

use crate::common::throttle;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{EmulatedTestDisk, LUC, compiled_statically, stderr};
use serde_json::Value;
use throttle::device;

const ROUNDS: usize = 3;

/// A holder and a writer are batch, and the writer has the turn; a protected task waits for what the holder has.
/// It gets it while the writer still writes.
fn is_given(kind: &str) {
    let Some(disk) = EmulatedTestDisk::new(&format!("inversion-{kind}"), "ext4", "") else {
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
fn a_file_lock_that_is_tried_again_and_again() {
    is_given("sqlite");
}

/// A batch task writes to a database of SQLite in transactions; a protected one wants to write to it, too, and gives
/// up after 20 s.
#[test]
fn a_database_of_sqlite() {
    if Command::new("sqlite3").arg("--version").output().is_err() {
        luc_testkit::skipped!("there is no sqlite3");
        return;
    }
    let Some(disk) = EmulatedTestDisk::new("inversion-database", "ext4", "") else {
        return;
    };
    let database = format!("{}/database", disk.mount());
    let sql = |text: &str| format!("sqlite3 -cmd '.timeout 20000' {database} '{text}'");
    let rows = "WITH RECURSIVE row(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM row WHERE n < 64) \
                INSERT INTO rows SELECT n, randomblob(4000) FROM row;";
    let made = Command::new("sh")
        .args(["-c", &sql(&format!("CREATE TABLE rows (n, blob); {rows}"))])
        .status();
    assert!(made.expect("sh").success());
    let done = disk.path("done");
    let until_done = |command: &str| format!("until [ -e {done} ]; do {command}; done");
    let writer = format!(
        "dd if=/dev/zero of={}/writer bs=4k count=1000 oflag=direct conv=notrunc 2>/dev/null",
        disk.mount()
    );
    let holder = sql("BEGIN IMMEDIATE; UPDATE rows SET blob = randomblob(4000); COMMIT;");
    // Whoever only tries finds no gap where there is none.
    let holder = format!("{holder}; sleep 0.1");
    let waiter = sql("UPDATE rows SET blob = 1 WHERE n = 1;");
    let waiter = format!("sleep 0.3; {waiter} || exit 1; ").repeat(ROUNDS);
    let json = disk.path("json");
    let mut command = Command::new(LUC);
    command.args(["throttle", "run", "--policy", "fcfs", "--max-frozen", "60s"]);
    command.args(["--disk", &device(&disk), "--json", &json]);
    command.args(["--task", &until_done(&writer)]);
    command.args(["--task", &format!("sleep 0.2; {}", until_done(&holder))]);
    command.args(["--protect", &format!("trap 'touch {done}' EXIT; {waiter}")]);
    let output = command.output().expect("luc runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let figures: Value = serde_json::from_slice(&fs::read(&json).expect("written")).expect("JSON");
    let orders = figures["orders"].as_array().expect("a list");
    let is_thaw = |order: &&Value| order["reason"] == "inversion" && order["action"] == "thaw";
    assert!(orders.iter().any(|order| is_thaw(&order)), "{figures}");
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
