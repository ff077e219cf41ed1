//! Part `personalities`: runs each of Filebench's personalities for a minute, and compares it with the parameters that
//! Filebench gives it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use luc_filebench::reference::{Counted, STOCKS, Stock, Verdict};
use luc_harness::report::number;
use luc_workload::scratch::Scratch;
use serde::Deserialize;
use serde_json::json;

use crate::error::EvaluateError;
use crate::harness::{Harness, line, parse, stop_if_interrupted, wait};
use crate::progress::Progress;

mod growth;

/// Time that each personality runs.
const RUN_SECONDS: f64 = 60.0;
/// Filesets that take more than this are made smaller by their variables.
const ROOM_BYTES: u64 = 8 << 30;
/// Personalities that need more names than the original's to last.
///
/// Filebench does not delete an open file. A thread may wait for a processor or the disk with a file open. Each time
/// that all others overtake it, a name is lost.
const MORE_NAMES: &[(&str, &[&str])] =
    &[("compflow_demo", &["nfiles=7000"]), ("webproxy", &["nfiles=50000"])];

/// Output of `luc bench filebench --json`.
#[derive(Debug, Default, Deserialize)]
struct Said {
    measured_s: f64,
    flowops_per_second: f64,
    operations: Vec<Operation>,
    moved: Vec<Moved>,
}

#[derive(Debug, Deserialize)]
struct Operation {
    operation: String,
    count: u64,
}

#[derive(Debug, Deserialize)]
struct Moved {
    operation: String,
    bytes: u64,
}

#[derive(Debug)]
struct PersonalityRun {
    stock: &'static Stock,
    threads: usize,
    command: String,
    /// Empty if the run failed.
    said: Said,
    failure: Option<String>,
    verdict: Verdict,
}

/// State that the threads that make runs share.
struct Bench {
    luc: PathBuf,
    directory: PathBuf,
    seconds: f64,
    seed: u64,
}

pub(super) fn run(harness: &Harness) -> Result<(), EvaluateError> {
    let aslr = Path::new("/proc/sys/kernel/randomize_va_space");
    let aslr = fs::read_to_string(aslr).map_err(EvaluateError::file("read", aslr))?;
    let scratch = Scratch::create(&std::env::temp_dir()).map_err(|error| {
        EvaluateError::Missing { what: format!("a directory to work in ({error})") }
    })?;
    let bench = Bench {
        luc: harness.luc_path().to_owned(),
        directory: scratch.path().to_owned(),
        seconds: harness.options.seconds.unwrap_or(RUN_SECONDS),
        seed: harness.options.seed,
    };
    let wanted: Vec<&'static Stock> =
        STOCKS.iter().filter(|stock| harness.options.wants(stock.name)).collect();
    let mut progress = Progress::new(harness.part, wanted.len());
    bench.all(&wanted, harness.options.jobs, &mut |run: PersonalityRun| {
        progress.step(&format!(
            "{}: {} flowops/s{}",
            run.stock.name,
            number(run.said.flowops_per_second),
            match (&run.failure, run.verdict.wrong.is_empty()) {
                (Some(_), _) => ", failed",
                (None, true) => "",
                (None, false) => ", wrong",
            }
        ));
        let counts: HashMap<&str, u64> = run
            .said
            .operations
            .iter()
            .map(|row| (row.operation.as_str(), row.count))
            .collect();
        let bytes: HashMap<&str, u64> = run
            .said
            .moved
            .iter()
            .map(|row| (row.operation.as_str(), row.bytes))
            .collect();
        harness.keep(json!({
            "number": STOCKS.iter().position(|stock| stock.name == run.stock.name), "personality": run.stock.name,
            "command": run.command, "threads": run.threads, "measured_s": run.said.measured_s, "counts": counts,
            "bytes": bytes, "sized": run.verdict.sized, "farthest": run.verdict.farthest, "wrong": run.verdict.wrong,
            "failure": run.failure, "randomize_va_space": aslr.trim(),
        }));
    })
}

impl Bench {
    /// Runs all personalities, `jobs` at a time.
    fn all(
        &self,
        wanted: &[&'static Stock],
        jobs: usize,
        made: &mut dyn FnMut(PersonalityRun),
    ) -> Result<(), EvaluateError> {
        let next = AtomicUsize::new(0);
        let failed = Mutex::new(false);
        let (send, receive) = mpsc::channel();
        thread::scope(|scope| {
            for job in 0..jobs.max(1) {
                let (send, next, failed) = (send.clone(), &next, &failed);
                scope.spawn(move || {
                    while failed.lock().is_ok_and(|failed| !*failed) {
                        let Some(stock) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) else {
                            return;
                        };
                        let run = self.run_personality(stock, job);
                        if let (Err(_), Ok(mut failed)) = (&run, failed.lock()) {
                            *failed = true;
                        }
                        // The receiver lives until all senders are gone.
                        let _ = send.send(run);
                    }
                });
            }
            drop(send);
            receive.into_iter().try_for_each(|run| run.map(&mut *made))
        })
    }

    fn run_personality(
        &self,
        stock: &'static Stock,
        job: usize,
    ) -> Result<PersonalityRun, EvaluateError> {
        // 1. Choose the values for this run: small ones, or more names.
        let broken = |error: luc_filebench::FilebenchError| EvaluateError::Missing {
            what: format!("the personality {} ({error})", stock.name),
        };
        let whole = stock.load(&[]).map_err(broken)?;
        let is_small = whole.file_bytes() > ROOM_BYTES;
        let set = if is_small {
            stock.small
        } else {
            let more = MORE_NAMES.iter().find(|(name, _)| *name == stock.name);
            more.map_or(&[][..], |(_, set)| set)
        };
        let workload = stock.load(set).map_err(broken)?;
        // 2. Run it in a directory of its own, since several run at the same time.
        let mut command = Command::new(&self.luc);
        command.args(["bench", "filebench", stock.name, "--compat", "--json"]);
        command.args(["--seconds", &self.seconds.to_string()]);
        command.args(["--seed", &self.seed.to_string()]);
        let directory = self.directory.join(job.to_string());
        fs::create_dir_all(&directory).map_err(EvaluateError::file("make", &directory))?;
        command.arg("--dir").arg(&directory);
        for pair in set {
            command.args(["--set", pair]);
        }
        let ended = AtomicBool::new(false);
        let said = thread::scope(|scope| {
            if growth::is_unbounded(stock.name) {
                scope.spawn(|| growth::confine(&directory, &ended));
            }
            let said = self.execute(&mut command, job);
            ended.store(true, Ordering::Relaxed);
            said
        });
        let (said, failure) = match said {
            Err(EvaluateError::Command { how, said, .. }) => {
                let why = if said.is_empty() { how } else { said };
                (Said::default(), Some(why))
            }
            said => (said?, None),
        };
        // 3. Judge the counts.
        let counted = Counted {
            operations: said
                .operations
                .iter()
                .map(|row| (row.operation.clone(), row.count))
                .collect(),
            bytes: said.moved.iter().map(|row| (row.operation.clone(), row.bytes)).collect(),
        };
        let mut verdict = match failure {
            Some(_) => Verdict::default(),
            None => stock.judge(&workload, is_small, &counted),
        };
        verdict.wrong.extend(stock.differences(&whole));
        Ok(PersonalityRun {
            stock,
            threads: workload.clients(),
            command: line(&command),
            said,
            failure,
            verdict,
        })
    }

    fn execute(&self, command: &mut Command, job: usize) -> Result<Said, EvaluateError> {
        let (out, err) =
            (self.directory.join(format!("{job}.out")), self.directory.join(format!("{job}.err")));
        let create = |path: &PathBuf| File::create(path).map_err(EvaluateError::file("make", path));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(create(&out)?)
            .stderr(create(&err)?)
            .spawn()
            .map_err(EvaluateError::file("run", &self.luc))?;
        let status = wait(&mut child, true).map_err(EvaluateError::file("wait for", &self.luc))?;
        stop_if_interrupted()?;
        let read =
            |path: &PathBuf| fs::read_to_string(path).map_err(EvaluateError::file("read", path));
        if !status.success() {
            return Err(EvaluateError::Command {
                command: line(command),
                how: status.to_string(),
                said: read(&err)?.trim().to_owned(),
            });
        }
        parse(&read(&out)?, "the JSON of a run")
    }
}
