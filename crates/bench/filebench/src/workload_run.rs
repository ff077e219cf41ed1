//! A run from the plan to the figures: makes the filesets, starts the clients, adds up.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use luc_host::interrupt_flag;
use luc_stats::seeded_random;
use serde::Serialize;

use super::ast::RunEndRule;
use super::client_totals::SharedOperationCounts;
use super::client_waits::{ClientWaits, WaitQuirks};
use super::descriptor_table::turns;
use super::drawn_numbers::RandomSource;
use super::event_generator::EventGenerator;
use super::fileset_tree::FilesetTree;
use super::flowop_worker::{EndedClientSums, FlowopWorker, SharedRunState};
use super::plan::{ClientPlan, LoopStep, PlannedFileset, SetupAction, WorkloadPlan};
use super::setup_actions::{self, say};
use super::{FilebenchError, WorkloadFile};
use luc_workload::error::BenchError;
use luc_workload::latency::LatencyFigures;
use luc_workload::scratch_directory::ScratchDirectory;
use luc_workload::workers::{
    self, ClientFault, ClientKind, RunFailure, RunMeasurement, RunProgress, RunSchedule,
};
use luc_workload::workloads::timed_run::TimedReportHead;
use luc_workload::workloads::{explain, raise_file_limit};

/// Length of a run that neither the file nor the user sets, s.
const DEFAULT_SECONDS: u64 = 60;

/// Options of a run of a workload file.
#[derive(Debug, Clone)]
pub struct FilebenchOptions {
    /// A fresh subdirectory of this one is used and removed.
    pub directory: PathBuf,
    /// Length of the run, ns. `None`: the file's, otherwise 60 s, or until its threads are done.
    pub measured_ns: Option<u64>,
    pub seed: u64,
    pub compat: bool,
    /// Drop the kernel's caches when the files are made; needs root.
    pub cold: bool,
}

/// Report of a run of a workload file.
#[derive(Debug, Clone, Serialize)]
pub struct FilebenchReport {
    #[serde(flatten)]
    pub head: TimedReportHead,
    pub file: String,
    /// Whether Filebench's quirks were kept.
    pub compat: bool,
    /// Whether the kernel's caches were dropped before.
    pub cold: bool,
    pub flowops: u64,
    /// The same per second: "ops/s" of Filebench's summary.
    pub flowops_per_second: f64,
    /// Data read, MiB/s; lists of directories too.
    pub read_mib_per_second: f64,
    pub written_mib_per_second: f64,
    /// Latency of each flowop by its name, without the choice of the file.
    pub operations: Vec<LatencyFigures>,
    /// Bytes that each flowop moved.
    pub moved: Vec<OperationBytes>,
    /// The draws of each `testrandvar`.
    pub drawn: Vec<DrawnValues>,
}

/// Bytes that the calls of one flowop read or wrote.
#[derive(Debug, Clone, Serialize)]
pub struct OperationBytes {
    pub operation: String,
    pub bytes: u64,
    pub mean_bytes: f64,
}

/// Count, mean and deviation of the values drawn for a flowop.
#[derive(Debug, Clone, Serialize)]
pub struct DrawnValues {
    pub operation: String,
    pub count: u64,
    pub mean: f64,
    pub deviation: f64,
}

impl WorkloadFile {
    /// Returns the clients and times of the run.
    #[must_use]
    pub fn schedule(&self, options: &FilebenchOptions) -> RunSchedule {
        let seconds = match (self.plan.seconds, self.plan.mode) {
            (Some(seconds), _) => Some(seconds),
            (None, RunEndRule::Timeout) => Some(DEFAULT_SECONDS),
            (None, _) => None,
        };
        let file =
            seconds.map_or(workers::MAX_RUN_NS, |seconds| seconds.clamp(1, 86_400) * 1_000_000_000);
        RunSchedule {
            clients: self.plan.clients.len(),
            kind: ClientKind::Thread,
            warmup_ns: 0,
            measured_ns: options.measured_ns.unwrap_or(file),
        }
    }

    /// Returns whether the run lasts until its threads are done, without a limit.
    #[must_use]
    pub fn is_open_ended(&self, options: &FilebenchOptions) -> bool {
        self.schedule(options).measured_ns == workers::MAX_RUN_NS
    }

    /// Estimates the space that the files at the start take, bytes.
    pub fn file_bytes(&self) -> u64 {
        const DRAWS: u64 = 1000;
        let mut random = seeded_random::stream(0, 0);
        let bytes = |files: &PlannedFileset| {
            let drawn: u128 = (0..DRAWS).map(|_| u128::from(files.size.next(&mut random))).sum();
            let there = u128::from(files.entries) * u128::from(files.prealloc) / 100;
            drawn * there / u128::from(DRAWS)
        };
        let all: u128 = self.plan.filesets.iter().map(bytes).sum();
        u64::try_from(all).unwrap_or(u64::MAX)
    }

    /// Makes the files, runs the workload, removes the files. `tick` is called about ten times a second.
    ///
    /// # Errors
    /// [`FilebenchError::Bench`]: the directory cannot be used, is full, or a client could not start;
    /// [`FilebenchError::Run`]: the workload cannot go on, as when no file is left to delete.
    pub fn run(
        &self,
        options: &FilebenchOptions,
        tick: &mut dyn FnMut(RunProgress),
    ) -> Result<FilebenchReport, FilebenchError> {
        let plan = &self.plan;
        let schedule = self.schedule(options);
        let files = open_files(plan);
        raise_file_limit(files).map_err(|_| FilebenchError::Run {
            file: self.file.clone(),
            why: format!(
                "it may have {files} files open, more than this process may; use fewer threads, or raise \
                 the limit (ulimit -Hn)"
            ),
        })?;
        // Opened first: without root no file is made.
        let caches = if options.cold {
            Some(setup_actions::open_caches().map_err(|error| self.explain_not_cold(&error))?)
        } else {
            None
        };
        let scratch = ScratchDirectory::create(&options.directory)?;
        let failed = |what: &str, error| BenchError::operation(scratch.path(), what, error);
        let trees = self.prepare(options, scratch.path())?;
        if let Some(caches) = caches {
            setup_actions::drop_caches(caches).map_err(|error| self.explain_not_cold(&error))?;
        }
        let quirks = WaitQuirks {
            forgetful: options.compat,
            // A run without a time would never end.
            idle: options.compat && !self.is_open_ended(options),
        };
        let seeds = plan.sources.iter().map(seed).collect::<io::Result<_>>();
        let shared = SharedRunState {
            plan,
            trees,
            compat: options.compat,
            seed: options.seed,
            seeds: seeds.map_err(|error| failed("reading /dev/urandom", error))?,
            rate: (plan.rate > 0).then(|| EventGenerator::new(plan.rate)),
            waits: ClientWaits::new(&plan.points, plan.clients.len(), quirks),
            totals: plan.clients.iter().map(|_| SharedOperationCounts::default()).collect(),
            sums: Mutex::new(EndedClientSums::default()),
            failure: Mutex::new(None),
        };
        let outcome = workers::run(
            &schedule,
            plan.names.len(),
            |client| set_priority(&plan.clients[client.index]),
            |client, ()| FlowopWorker::new(&shared, client).work(),
            tick,
        );
        let measured =
            outcome.map_err(|failure| self.explain_failure(options, &shared, failure))?;
        scratch.remove()?;
        let sums = shared.sums.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(self.report(options, &measured, &sums))
    }

    fn report(
        &self,
        options: &FilebenchOptions,
        measured: &RunMeasurement,
        sums: &EndedClientSums,
    ) -> FilebenchReport {
        let plan = &self.plan;
        let mut controls = HashSet::new();
        for steps in &plan.loops {
            LoopStep::each(steps, &mut |flowop| {
                if !flowop.task.counts() {
                    controls.insert(flowop.operation);
                }
            });
        }
        let names = plan.names.iter().enumerate();
        let counted: Vec<(usize, &String)> =
            names.filter(|(operation, _)| !controls.contains(operation)).collect();
        let operations: Vec<LatencyFigures> = counted
            .iter()
            .map(|&(operation, name)| measured.latency(operation).figures(name.clone()))
            .collect();
        let moved = |&(operation, name): &(usize, &String)| {
            let done = sums.done[operation];
            OperationBytes {
                operation: name.clone(),
                bytes: done.bytes,
                mean_bytes: done.bytes as f64 / done.operations.max(1) as f64,
            }
        };
        let drawn = sums.draws.iter().zip(&plan.names);
        let drawn = drawn.filter(|(draws, _)| draws.count > 0).map(|(draws, name)| {
            let (mean, deviation) = draws.figures();
            DrawnValues { operation: name.clone(), count: draws.count, mean, deviation }
        });
        let flowops = operations.iter().map(|figures| figures.count).sum();
        let seconds = measured.interval_ns as f64 / 1e9;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20) / seconds;
        FilebenchReport {
            file: self.file.clone(),
            compat: options.compat,
            cold: options.cold,
            flowops,
            flowops_per_second: flowops as f64 / seconds,
            read_mib_per_second: mib(sums.read_bytes),
            written_mib_per_second: mib(sums.written_bytes),
            operations,
            moved: counted.iter().map(moved).collect(),
            drawn: drawn.collect(),
            head: TimedReportHead {
                interrupted: measured.interrupted && interrupt_flag::interrupted(),
                ..TimedReportHead::new(
                    "filebench",
                    &options.directory,
                    options.seed,
                    &self.schedule(options),
                    measured,
                )
            },
        }
    }

    /// Performs the actions before the run in order. Makes the files at `create`, otherwise at the end.
    fn prepare(
        &self,
        options: &FilebenchOptions,
        scratch: &Path,
    ) -> Result<Vec<FilesetTree>, FilebenchError> {
        let mut trees = None;
        for step in &self.plan.before {
            match step {
                SetupAction::Create if trees.is_none() => {
                    trees = Some(self.create(options, scratch)?)
                }
                SetupAction::Create => {}
                SetupAction::Echo(text) => say(format_args!("{}", text.shown(scratch))),
                SetupAction::System(at, text) => {
                    let command = text.shown(scratch);
                    // Filebench goes on as well: stock files drop caches, which needs root.
                    if let Err(why) = setup_actions::system(&command) {
                        let (file, line) = (&self.file, at.line);
                        say(format_args!(
                            "luc: {file}:{line}: system '{command}': {why}; going on"
                        ));
                    }
                }
                SetupAction::Sleep(seconds) => setup_actions::sleep(*seconds),
            }
            if interrupt_flag::interrupted() {
                return Err(BenchError::Interrupted.into());
            }
        }
        match trees {
            Some(trees) => Ok(trees),
            None => self.create(options, scratch),
        }
    }

    fn explain_not_cold(&self, error: &io::Error) -> FilebenchError {
        FilebenchError::Run {
            file: self.file.clone(),
            why: format!(
                "--cold: cannot drop the kernel's caches ({error}); run as root, or leave --cold out"
            ),
        }
    }

    fn create(
        &self,
        options: &FilebenchOptions,
        scratch: &Path,
    ) -> Result<Vec<FilesetTree>, FilebenchError> {
        let mut random = seeded_random::stream(options.seed, u64::MAX);
        let mut trees = Vec::new();
        for files in &self.plan.filesets {
            trees.push(FilesetTree::create(files, scratch, &mut random)?);
        }
        if interrupt_flag::interrupted() {
            return Err(BenchError::Interrupted.into());
        }
        if !options.compat {
            File::open(scratch)
                .and_then(|directory| Ok(rustix::fs::syncfs(directory)?))
                .map_err(|error| BenchError::operation(scratch, "syncing the files", error))?;
        }
        for (tree, files) in trees.iter().zip(&self.plan.filesets) {
            if !files.cached {
                let dropped = tree.drop_cache();
                let what = "taking the files out of memory";
                dropped.map_err(|error| BenchError::operation(scratch, what, error))?;
            }
        }
        Ok(trees)
    }

    fn explain_failure(
        &self,
        options: &FilebenchOptions,
        shared: &SharedRunState<'_>,
        failure: RunFailure,
    ) -> FilebenchError {
        let why = shared.failure.lock().ok().and_then(|why| why.clone());
        match (failure, why) {
            (RunFailure::Fault(fault), Some(why)) if fault.errno == 0 => {
                FilebenchError::Run { file: self.file.clone(), why }
            }
            (failure, _) => {
                let names: Vec<&str> = self.plan.names.iter().map(String::as_str).collect();
                explain(&options.directory, &names, failure).into()
            }
        }
    }
}

/// Returns the seed of a stream that a variable has for itself.
fn seed(source: &RandomSource) -> io::Result<u64> {
    match source {
        RandomSource::Seeded(seed) => Ok(*seed),
        RandomSource::System => {
            let mut bytes = [0; 8];
            File::open("/dev/urandom")?.read_exact(&mut bytes)?;
            Ok(u64::from_ne_bytes(bytes))
        }
    }
}

/// Gives the calling thread the priorities of its process and thread.
fn set_priority(member: &ClientPlan) -> Result<(), ClientFault> {
    /// `IOPRIO_WHO_PROCESS`; with 0 it means the calling thread.
    const WHO_PROCESS: libc::c_int = 1;
    /// `IOPRIO_CLASS_BE`, shifted to its place.
    const BEST_EFFORT: u32 = 2 << 13;
    if member.nice > 0 {
        rustix::process::nice(member.nice).map_err(|error| ClientFault::of(0)(error.into()))?;
    }
    if let Some(priority) = member.io_priority {
        // SAFETY: ioprio_set takes three integers and touches no memory of this process.
        let outcome =
            unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, BEST_EFFORT | priority) };
        if outcome != 0 {
            return Err(ClientFault::of(0)(io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// Returns files that the clients may have open at once.
fn open_files(plan: &WorkloadPlan) -> usize {
    let slots = |steps: &Vec<LoopStep>| {
        let mut slots = HashSet::new();
        let mut turned = HashSet::new();
        LoopStep::each(steps, &mut |flowop| {
            if !flowop.task.counts() {
                return;
            }
            match flowop.files {
                Some(files) if flowop.opennext && flowop.fd == 0 => drop(turned.insert(files)),
                files => drop(slots.insert((flowop.fd, files))),
            }
        });
        let entries = |files: &usize| turns(plan.filesets[*files].entries as usize);
        slots.len() + turned.iter().map(entries).sum::<usize>()
    };
    let loops: Vec<usize> = plan.loops.iter().map(slots).collect();
    plan.clients.iter().map(|member| loops[member.steps]).sum()
}
