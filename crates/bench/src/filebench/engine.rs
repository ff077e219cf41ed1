//! A run from the plan to the figures: makes the filesets, starts the clients, adds up.

use std::collections::HashSet;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use super::plan::{Plan, Task};
use super::tree::Tree;
use super::worker::{Shared, Worker};
use super::{FilebenchError, Workload};
use crate::error::BenchError;
use crate::latency::LatencyFigures;
use crate::scratch::Scratch;
use crate::workers::{self, ClientKind, Failure, Progress, Schedule};
use crate::workloads::timed::Head;
use crate::workloads::{explain, raise_file_limit};
use crate::{interrupt, random};

/// Length of a run that neither the file nor the user sets, s.
const DEFAULT_SECONDS: u64 = 60;

/// How to run a workload.
#[derive(Debug, Clone)]
pub struct Options {
    /// A fresh subdirectory of this one is used and removed.
    pub directory: PathBuf,
    /// Length of the run, ns; `None`: what the file says, else 60 s.
    pub measured_ns: Option<u64>,
    /// Seed of everything random.
    pub seed: u64,
    /// Keep Filebench's quirks.
    pub compat: bool,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What every report has.
    #[serde(flatten)]
    pub head: Head,
    /// The workload file.
    pub file: String,
    /// Whether Filebench's quirks were kept.
    pub compat: bool,
    /// Flowops completed.
    pub flowops: u64,
    /// The same per second: "ops/s" of Filebench's summary.
    pub flowops_per_second: f64,
    /// Data read, MiB/s.
    pub read_mib_per_second: f64,
    /// Data written, MiB/s.
    pub written_mib_per_second: f64,
    /// Latency of each flowop, by its name; the choice of the file is not in it.
    pub operations: Vec<LatencyFigures>,
}

impl Workload {
    /// How the run is scheduled.
    #[must_use]
    pub fn schedule(&self, options: &Options) -> Schedule {
        let seconds = self
            .plan
            .seconds
            .unwrap_or(DEFAULT_SECONDS)
            .clamp(1, 86_400);
        Schedule {
            clients: self.plan.clients.len(),
            kind: ClientKind::Thread,
            warmup_ns: 0,
            measured_ns: options.measured_ns.unwrap_or(seconds * 1_000_000_000),
        }
    }

    /// Makes the files, runs the workload, removes the files. `tick` is called about ten times a second.
    ///
    /// # Errors
    /// [`FilebenchError::Bench`]: the directory cannot be used, is full, or a client could not start;
    /// [`FilebenchError::Run`]: the workload cannot go on, as when no file is left to delete.
    pub fn run(
        &self,
        options: &Options,
        tick: &mut dyn FnMut(Progress),
    ) -> Result<Report, FilebenchError> {
        let schedule = self.schedule(options);
        raise_file_limit(open_files(&self.plan)).map_err(|_| FilebenchError::Run {
            file: self.file.clone(),
            why: "it may have more files open than this process may; raise the limit (ulimit -Hn)"
                .to_owned(),
        })?;
        let scratch = Scratch::create(&options.directory)?;
        let mut random = random::stream(options.seed, u64::MAX);
        let mut trees = Vec::new();
        for files in &self.plan.filesets {
            trees.push(Tree::create(files, scratch.path(), &mut random)?);
        }
        if interrupt::interrupted() {
            return Err(BenchError::Interrupted.into());
        }
        if !options.compat {
            let synced = File::open(scratch.path())
                .and_then(|directory| rustix::fs::syncfs(&directory).map_err(Into::into));
            synced.map_err(|error| {
                BenchError::operation(scratch.path(), "syncing the files", error)
            })?;
        }
        let shared = Shared {
            plan: &self.plan,
            trees,
            compat: options.compat,
            read_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            failure: Mutex::new(None),
        };
        let outcome = workers::run(
            &schedule,
            self.plan.names.len(),
            |_| Ok(()),
            |client, ()| Worker::new(&shared, client, options.seed).work(),
            tick,
        );
        let measured = outcome.map_err(|failure| self.failed(options, &shared, failure))?;
        scratch.remove()?;
        let controls: HashSet<usize> = self
            .plan
            .loops
            .iter()
            .flatten()
            .filter(|flowop| !flowop.task.counts())
            .map(|flowop| flowop.operation)
            .collect();
        let operations: Vec<LatencyFigures> = self
            .plan
            .names
            .iter()
            .enumerate()
            .filter(|(operation, _)| !controls.contains(operation))
            .map(|(operation, name)| measured.latency(operation).figures(name.clone()))
            .collect();
        let flowops = operations.iter().map(|figures| figures.count).sum();
        let seconds = measured.interval_ns as f64 / 1e9;
        let mib =
            |bytes: &AtomicU64| bytes.load(Ordering::Relaxed) as f64 / f64::from(1 << 20) / seconds;
        Ok(Report {
            file: self.file.clone(),
            compat: options.compat,
            flowops,
            flowops_per_second: flowops as f64 / seconds,
            read_mib_per_second: mib(&shared.read_bytes),
            written_mib_per_second: mib(&shared.written_bytes),
            operations,
            head: Head {
                workload: "filebench",
                directory: options.directory.clone(),
                seed: options.seed,
                clients: schedule.clients,
                client_kind: schedule.kind,
                warmup_s: 0.0,
                measured_s: seconds,
                think_us: 0.0,
                interrupted: measured.interrupted,
            },
        })
    }

    fn failed(&self, options: &Options, shared: &Shared<'_>, failure: Failure) -> FilebenchError {
        let why = shared.failure.lock().ok().and_then(|why| why.clone());
        match (failure, why) {
            (Failure::Fault(fault), Some(why)) if fault.errno == 0 => FilebenchError::Run {
                file: self.file.clone(),
                why,
            },
            (failure, _) => {
                let names: Vec<&str> = self.plan.names.iter().map(String::as_str).collect();
                explain(&options.directory, &names, failure).into()
            }
        }
    }
}

/// Files that the clients may have open at once.
fn open_files(plan: &Plan) -> usize {
    let slots = |flowops: &Vec<super::plan::Flowop>| {
        let moves = flowops.iter().filter(|flowop| flowop.task != Task::Free);
        moves
            .map(|flowop| (flowop.fd, flowop.files))
            .collect::<HashSet<_>>()
            .len()
    };
    plan.clients
        .iter()
        .map(|&client| slots(&plan.loops[client]))
        .sum()
}
