//! Part `sqlite`: eight writers, each with a database of its own.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use luc_host::interrupt;
use serde_json::{Value, json};

use super::disks::{Disk, EXT4};
use super::error::EvaluateError;
use super::harness::{Harness, figure, line, missing, read_json};
use super::progress::Progress;
use super::report::{Page, Table, Target, number};

const WRITERS: usize = 8;
const INSERTS: usize = 150;

/// The statements of one writer: each insert is a transaction of its own, journalled and synced as
/// SQLite does by default.
fn statements() -> String {
    let mut text = "PRAGMA journal_mode = DELETE;\nPRAGMA synchronous = FULL;\n\
                    CREATE TABLE log (id INTEGER PRIMARY KEY, said TEXT);\n"
        .to_owned();
    for number in 0..INSERTS {
        text += &format!("INSERT INTO log (said) VALUES ('entry {number} of a log');\n");
    }
    text
}

/// A writer that is killed with this value.
struct Writer(Child);

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs all writers to their end in a fresh subdirectory. A process of its own, so that `luc run`
/// can run it again and again.
///
/// # Errors
/// [`EvaluateError`]: a writer could not be started or failed.
pub fn writers(directory: &Path) -> Result<(), EvaluateError> {
    let fresh = (0_usize..)
        .map(|number| directory.join(format!("run-{number}")))
        .find(|path| !path.exists())
        .ok_or_else(|| missing("a fresh directory"))?;
    fs::create_dir(&fresh).map_err(EvaluateError::file("make", &fresh))?;
    let sql = fresh.join("statements.sql");
    File::create(&sql)
        .and_then(|mut file| file.write_all(statements().as_bytes()))
        .map_err(EvaluateError::file("write", &sql))?;
    let mut writers = Vec::new();
    for number in 0..WRITERS {
        let input = File::open(&sql).map_err(EvaluateError::file("read", &sql))?;
        let child = Command::new("sqlite3")
            .args(["-batch", "-bail"])
            .arg(fresh.join(format!("{number}.db")))
            .stdin(input)
            .stdout(Stdio::null())
            .spawn()
            .map_err(EvaluateError::file("run", "sqlite3"))?;
        writers.push(Writer(child));
    }
    for writer in &mut writers {
        let status = loop {
            if interrupt::interrupted() {
                return Err(EvaluateError::Interrupted);
            }
            let ended = writer.0.try_wait();
            match ended.map_err(EvaluateError::file("wait for", "sqlite3"))? {
                Some(status) => break status,
                None => thread::sleep(Duration::from_millis(2)),
            }
        };
        if !status.success() {
            return Err(EvaluateError::Command {
                command: "sqlite3".to_owned(),
                how: status.to_string(),
                said: "see above".to_owned(),
            });
        }
    }
    Ok(())
}

pub(super) fn run(harness: &Harness) -> Result<Page, EvaluateError> {
    let repeats = harness.options.repeats.unwrap_or(5);
    let disk = Disk::create(harness, &EXT4)?;
    let report_file = harness.path("comparison.json");
    let (repeats_word, seed) = (repeats.to_string(), harness.options.seed.to_string());
    let mut command = harness.luc(&[
        "run",
        "--quiet",
        "--compare",
        &repeats_word,
        "--seed",
        &seed,
    ]);
    command.arg("--json").arg(&report_file).arg("--");
    command
        .arg(&harness.options.myself)
        .arg("sqlite-writers")
        .arg(&disk.mount);
    let mut progress = Progress::new(harness.part, 1);
    harness.execute(&mut command, &[0])?;
    let report = read_json(&report_file)?;
    let checked = check(harness, &disk.mount)?;
    progress.step("runs made and databases checked");
    drop(progress);
    harness.keep(json!({ "command": line(&command), "comparison": report,
                     "databases": checked.0, "sound": checked.1 }));
    page(&report, repeats, checked)
}

/// Databases there are, and those that are sound and whole.
fn check(harness: &Harness, directory: &Path) -> Result<(usize, usize), EvaluateError> {
    let list = |path: &Path| -> Result<Vec<PathBuf>, EvaluateError> {
        let entries = fs::read_dir(path).map_err(EvaluateError::file("list", path))?;
        Ok(entries.flatten().map(|entry| entry.path()).collect())
    };
    let expected = format!("ok\n{INSERTS}");
    let (mut all, mut sound) = (0, 0);
    for run in list(directory)? {
        if !run
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("run-"))
        {
            continue;
        }
        for database in list(&run)? {
            if database
                .extension()
                .is_none_or(|extension| extension != "db")
            {
                continue;
            }
            let mut command = Command::new("sqlite3");
            command.arg(&database);
            command.arg("PRAGMA integrity_check; SELECT count(*) FROM log;");
            all += 1;
            let said = harness.execute(&mut command, &[0, 1])?.stdout;
            sound += usize::from(said.trim() == expected);
        }
    }
    Ok((all, sound))
}

fn page(
    report: &Value,
    repeats: usize,
    (all, sound): (usize, usize),
) -> Result<Page, EvaluateError> {
    let mut table = Table::new(&["figure", "without the gate", "with the gate", "ratio"]);
    for (name, key) in [
        ("run time, s", "run_time_s"),
        ("synchronizations/s", "calls_per_s"),
        ("mean wait, µs", "mean_latency_us"),
    ] {
        let row = &report[key];
        let ratio = &row["ratio"];
        table.row(vec![
            name.to_owned(),
            number(figure(row, "without")?),
            number(figure(row, "with")?),
            format!(
                "{:.2} ({:.2} to {:.2})",
                figure(ratio, "ratio")?,
                figure(ratio, "low")?,
                figure(ratio, "high")?
            ),
        ]);
    }
    let time = &report["run_time_s"]["ratio"];
    let expected = 2 * repeats * WRITERS;
    Ok(Page {
        title: "Eight SQLite writers".to_owned(),
        about: format!(
            "{WRITERS} `sqlite3` processes, each making {INSERTS} transactions of one insert in a \
             database of its own (journal_mode DELETE, synchronous FULL), on ext4 on a disk whose \
             flush takes 6 ms; `luc run --compare {repeats}` runs them {repeats} times with and \
             {repeats} times without the gate, in random order. Medians; of the ratio, with over \
             without, the 95 % bootstrap interval."
        ),
        tables: vec![("What the comparison came to:".to_owned(), table)],
        targets: vec![
            Target::below(
                "the run time's ratio, upper end of its interval,",
                Some(figure(time, "high")?),
                1.0,
            ),
            Target::new(
                format!("all databases sound, each with {INSERTS} rows"),
                sound == all && all == expected,
                format!("{sound} of {expected}"),
            ),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faster_run_meets_its_target_and_a_broken_database_does_not() {
        let row = json!({ "without": 10.0, "with": 6.0,
                          "ratio": { "ratio": 0.6, "low": 0.5, "high": 0.7 } });
        let report = json!({ "run_time_s": row, "calls_per_s": row, "mean_latency_us": row });
        let met = |sound| -> Vec<_> {
            let page = page(&report, 1, (16, sound)).expect("a page");
            page.targets.iter().map(|target| target.met).collect()
        };
        assert_eq!(met(16), [Some(true), Some(true)]);
        assert_eq!(met(15), [Some(true), Some(false)]);
    }

    #[test]
    fn every_insert_is_a_statement() {
        assert_eq!(statements().matches("INSERT").count(), INSERTS);
        assert!(!statements().contains("BEGIN"));
    }
}
