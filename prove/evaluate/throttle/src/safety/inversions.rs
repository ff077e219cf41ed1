//! Part `throttle-inversions`: the waits of a protected task for something that a frozen one holds.

use std::fs;
use std::path::Path;
use std::process::Command;

use luc_harness::cells;
use luc_harness::disks::{Disk, EXT4};
use luc_harness::error::EvaluateError;
use luc_harness::harness::{Harness, missing, read_json};
use luc_harness::progress::Progress;
use luc_harness::report::{Page, Table, Target, number, spread};
use serde_json::json;

/// Program with the holder, the waiter and the writer, which the tests use, too.
const PROGRAM: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../crates/luc/tests/programs/inversion.c"
));
/// Number of runs of each kind, and of waits in each run.
const RUNS: usize = 5;
const WAITS_PER_RUN: usize = 20;
const MAX_WAIT_MS: f64 = 50.0;
/// Kinds of the program, with their descriptions.
const KINDS: [(&str, &str); 7] = [
    ("flock", "flock"),
    ("fcntl", "a lock of fcntl, by the process"),
    ("ofd", "a lock of fcntl, by the open file"),
    ("sqlite", "locks tried as SQLite does"),
    ("futex", "a futex in shared memory"),
    ("pipe", "a pipe"),
    ("socket", "a Unix socket"),
];
/// Pause between transactions of sqlite3, s. A client that only tries finds a gap in it.
const PAUSE_S: f64 = 0.1;
const DATABASE: &str = "a database of SQLite (sqlite3)";
const DATABASE_ALONE: &str = "the same without a throttle";

struct Waits {
    what: &'static str,
    ms: Vec<f64>,
}

/// Makes the part.
///
/// # Errors
/// [`EvaluateError`].
pub fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let disk = Disk::create(harness, &EXT4)?;
    let program = harness.compile("inversion", PROGRAM, &["-static"])?;
    let wants = |name: &str| harness.options.wants(name);
    let kinds: Vec<_> = KINDS.into_iter().filter(|(kind, _)| wants(kind)).collect();
    let has_database = wants("database");
    if kinds.is_empty() && !has_database {
        return Err(harness.options.no_cell());
    }
    let runs = harness.options.repeats.unwrap_or(RUNS);
    let steps = runs * (kinds.len() + 2 * usize::from(has_database));
    let mut progress = Progress::new(harness.part, steps);
    let mut all: Vec<Waits> = Vec::new();
    let mut add =
        |what: &'static str, ms: Vec<f64>| match all.iter_mut().find(|waits| waits.what == what) {
            Some(waits) => waits.ms.extend(ms),
            None => all.push(Waits { what, ms }),
        };
    for run in 0..runs {
        for (kind, what) in &kinds {
            add(what, measure_program(harness, &disk, &program, kind)?);
            progress.step(&format!("{kind}, run {}", run + 1));
        }
        if has_database {
            for (what, policy) in [(DATABASE, "fcfs"), (DATABASE_ALONE, "off")] {
                add(what, measure_database(harness, &disk, policy)?);
                progress.step(&format!("database, {policy}, run {}", run + 1));
            }
        }
    }
    Ok(page(&all))
}

/// Returns the waits of one run of the program, ms.
fn measure_program(
    harness: &Harness,
    disk: &Disk<'_>,
    program: &Path,
    kind: &str,
) -> Result<Vec<f64>, EvaluateError> {
    let folder = harness.path("inversion-folder");
    let task = |role: &str, file: &str| {
        let (program, folder, mount) = (program.display(), folder.display(), disk.mount.display());
        format!("exec {program} {kind} {folder} {WAITS_PER_RUN} {role} {mount}/{file}")
    };
    let tasks = [task("writer", "writer"), task("holder", "holder")];
    let run =
        InversionRun { kind, policy: "fcfs", tasks: &tasks, protected: &task("waiter", "none") };
    run.waits(harness, disk, &folder)
}

/// Returns the waits of one run of sqlite3, ms. A batch task writes in transactions, a protected one begins one and
/// gives it up.
fn measure_database(
    harness: &Harness,
    disk: &Disk<'_>,
    policy: &str,
) -> Result<Vec<f64>, EvaluateError> {
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
    run.waits(harness, disk, &folder)
}

/// Batch tasks and a protected one.
struct InversionRun<'a> {
    kind: &'a str,
    policy: &'a str,
    tasks: &'a [String],
    protected: &'a str,
}

impl InversionRun<'_> {
    /// Runs them, and returns the waits that the protected task notes in a folder, ms.
    fn waits(
        &self,
        harness: &Harness,
        disk: &Disk<'_>,
        folder: &Path,
    ) -> Result<Vec<f64>, EvaluateError> {
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
        Ok(ms)
    }
}

fn longest(ms: &[f64]) -> f64 {
    ms.iter().copied().fold(0.0, f64::max)
}

fn page(all: &[Waits]) -> Page {
    let mut table = Table::new(&["waits for", "times", "how long, ms", "longest, ms"]);
    let mut targets = Vec::new();
    for Waits { what, ms } in all {
        table.row(cells![what, ms.len(), spread(ms), number(longest(ms))]);
        if *what == DATABASE_ALONE {
            continue;
        }
        targets.push(Target::new(
            format!("{what}: <= {MAX_WAIT_MS} ms"),
            !ms.is_empty() && longest(ms) <= MAX_WAIT_MS,
            format!("{:.1} ms", longest(ms)),
        ));
    }
    Page {
        title: "Who waits for a frozen task".to_owned(),
        about: format!(
            "`luc throttle run --policy fcfs --max-frozen 60s` with two batch tasks and a protected one, on ext4 on a \
             disk that takes 20 µs for a request. One batch task writes past the page cache without an end, and has \
             the turn. The other has what is waited for, and is frozen when it writes: without a thaw for whoever \
             waits, it stays so for a minute. The protected task notes how long it takes from wanting it to having \
             it: {WAITS_PER_RUN} times a run. The holder gives it as soon as it runs. \"{KIND}\" is fcntl's F_SETLK on \
             SQLite's bytes, with SQLite's pauses of 1 to 100 ms between tries. With sqlite3 the batch task rewrites \
             64 rows of 4 kB in one transaction each {PAUSE_S} s; the protected one begins one and gives it up, with \
             `.timeout 20000`: its time is that of the whole process, and it waits until the other's transaction, \
             which needs several flushes of 6 ms, is committed. Without a throttle it finds one only now and then.",
            KIND = "locks tried as SQLite does",
        ),
        tables: vec![("Waits:".to_owned(), table)],
        targets,
    }
}
