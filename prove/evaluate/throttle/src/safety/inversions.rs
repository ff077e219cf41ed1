//! Part `throttle-inversions`: the waits of a protected task for something that a frozen one holds.

use std::fs;
use std::path::Path;
use std::process::Command;

use luc_harness::disks::{Disk, EXT4};
use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing, read_json};
use luc_harness::progress::Progress;
use serde_json::json;

/// Program with the holder, the waiter and the writer, which the tests use, too.
const PROGRAM: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../crates/luc/tests/programs/inversion.c"
));
/// Number of runs of each kind, and of waits in each run.
const RUNS: usize = 5;
const WAITS_PER_RUN: usize = 20;
/// Kinds of the program.
const KINDS: [&str; 7] = ["flock", "fcntl", "ofd", "sqlite", "futex", "pipe", "socket"];
/// Pause between transactions of sqlite3, s. A client that only tries finds a gap in it.
const PAUSE_S: f64 = 0.1;

/// Makes the part.
///
/// # Errors
/// [`EvaluateError`].
pub fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let disk = Disk::create(harness, &EXT4)?;
    let program = harness.compile("inversion", PROGRAM, &["-static"])?;
    let wants = |name: &str| harness.options.wants(name);
    let kinds: Vec<_> = KINDS.into_iter().filter(|kind| wants(kind)).collect();
    let has_database = wants("database");
    if kinds.is_empty() && !has_database {
        return Err(harness.options.no_cell());
    }
    let runs = harness.options.repeats.unwrap_or(RUNS);
    let steps = runs * (kinds.len() + 2 * usize::from(has_database));
    let mut progress = Progress::new(harness.part, steps);
    for run in 0..runs {
        for kind in &kinds {
            measure_program(harness, &disk, &program, kind)?;
            progress.step(&format!("{kind}, run {}", run + 1));
        }
        if has_database {
            // With a throttle, and without.
            for policy in ["fcfs", "off"] {
                measure_database(harness, &disk, policy)?;
                progress.step(&format!("database, {policy}, run {}", run + 1));
            }
        }
    }
    Ok(())
}

/// Makes one run of the program.
fn measure_program(
    harness: &Harness,
    disk: &Disk<'_>,
    program: &Path,
    kind: &str,
) -> Result<(), EvaluateError> {
    let folder = harness.path("inversion-folder");
    let task = |role: &str, file: &str| {
        let (program, folder, mount) = (program.display(), folder.display(), disk.mount.display());
        format!("exec {program} {kind} {folder} {WAITS_PER_RUN} {role} {mount}/{file}")
    };
    let tasks = [task("writer", "writer"), task("holder", "holder")];
    let run =
        InversionRun { kind, policy: "fcfs", tasks: &tasks, protected: &task("waiter", "none") };
    run.measure(harness, disk, &folder)
}

/// Makes one run of sqlite3. A batch task writes in transactions, a protected one begins one and gives it up.
fn measure_database(harness: &Harness, disk: &Disk<'_>, policy: &str) -> Result<(), EvaluateError> {
    let folder = harness.path("inversion-folder");
    let (mount, stalls) = (disk.mount.display(), folder.join("stalls"));
    let done = folder.join("done").display().to_string();
    let database = disk.mount.join("database");
    let sql = |text: &str| format!("sqlite3 -cmd '.timeout 20000' {} '{text}'", database.display());
    let rows = "WITH RECURSIVE row(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM row WHERE n < 64) \
                INSERT INTO rows SELECT n, randomblob(4000) FROM row;";
    // Another run's.
    let _ = fs::remove_file(&database);
    let make = sql(&format!("CREATE TABLE rows (n, blob); {rows}"));
    harness.execute(Command::new("sh").args(["-c", &make]), &[0])?;
    let until_done = |command: &str| format!("until [ -e {done} ]; do {command}; done");
    let writer = until_done(&format!(
        "dd if=/dev/zero of={mount}/writer bs=4k count=1000 oflag=direct conv=notrunc 2>/dev/null"
    ));
    let transaction = sql("BEGIN IMMEDIATE; UPDATE rows SET blob = randomblob(4000); COMMIT;");
    let holder = until_done(&format!("{transaction}; sleep {PAUSE_S}"));
    let waiter = format!(
        "trap 'touch {done}' EXIT; for round in $(seq {WAITS_PER_RUN}); do sleep 0.5; begun=$(date +%s%N); {} || exit 1; \
         echo $((($(date +%s%N) - begun) / 1000)) >>{}; done",
        sql("BEGIN IMMEDIATE; ROLLBACK;"),
        stalls.display()
    );
    let tasks = [writer, format!("sleep 0.2; {holder}")];
    let run = InversionRun { kind: "database", policy, tasks: &tasks, protected: &waiter };
    run.measure(harness, disk, &folder)
}

/// Batch tasks and a protected one.
struct InversionRun<'a> {
    kind: &'a str,
    policy: &'a str,
    tasks: &'a [String],
    protected: &'a str,
}

impl InversionRun<'_> {
    /// Runs them, and keeps the waits that the protected task notes in a folder.
    fn measure(
        &self,
        harness: &Harness,
        disk: &Disk<'_>,
        folder: &Path,
    ) -> Result<(), EvaluateError> {
        fs::create_dir(folder).map_err(EvaluateError::file("make", folder))?;
        let path = harness.path("inversion.json");
        let mut command = harness.luc(&["throttle", "run", "--policy", self.policy]);
        command.args(["--max-frozen", "60s", "--disk", disk.device(), "--json"]);
        command.arg(&path);
        for task in self.tasks {
            command.args(["--task", task]);
        }
        command.args(["--protect", self.protected]);
        harness.execute(&mut command, &[0])?;
        let stalls = folder.join("stalls");
        let text = fs::read_to_string(&stalls).map_err(EvaluateError::file("read", &stalls))?;
        fs::remove_dir_all(folder).map_err(EvaluateError::file("remove", folder))?;
        let us = text.lines().filter_map(|line| line.parse::<f64>().ok());
        let ms: Vec<f64> = us.map(|us| us / 1e3).collect();
        if ms.len() != WAITS_PER_RUN {
            return Err(missing("all waits"));
        }
        let orders = &read_json(&path)?["orders"];
        let (kind, policy) = (self.kind, self.policy);
        harness.keep(json!({ "kind": kind, "policy": policy, "wait_ms": ms, "orders": orders }));
        Ok(())
    }
}
