//! Metarates: clients that create files, fsync and close them, in one shared directory (NCAR's
//! `metarates`; the fsync variant of the LUC papers).

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use luc_stats::seeded_random;
use serde::Serialize;

use super::round_plan::{self, RoundPlan};
use super::timed_run::{self, TimedPlan, TimedReportHead, TimedRunOutcome, TimedWorkload};
use crate::error::BenchError;
use crate::latency::LatencyFigures;
use crate::workers::{Arrivals, ClientFault, RunMeasurement, RunProgress, WorkloadClient, now_ns};

const OPEN: usize = 0;
const WRITE: usize = 1;
const FSYNC: usize = 2;
const CLOSE: usize = 3;
const UNLINK: usize = 4;

#[derive(Debug, Clone)]
pub struct Metarates {
    pub timed: TimedPlan,
    /// Bytes written to each new file before its fsync; the original writes none.
    pub file_size_bytes: u64,
    /// A directory per client instead of one that all share.
    pub directory_per_client: bool,
    /// Number of newest files that each client keeps; it unlinks older ones. Absent: all files stay.
    pub keep: Option<u64>,
    /// Rounds in which all clients start together and each creates one file, on a journal at rest; the schedule's times
    /// then do not count. Absent: each client creates file after file.
    pub rounds: Option<usize>,
    /// Arrivals of the clients in a round; absent: at once. Ignored without rounds.
    pub arrivals: Option<Arrivals>,
}

/// Report of the workload `metarates`.
#[derive(Debug, Clone, Serialize)]
pub struct MetaratesReport {
    #[serde(flatten)]
    pub head: TimedReportHead,
    pub file_size_bytes: u64,
    /// Whether each client had a directory of its own.
    pub directory_per_client: bool,
    /// Files that each client kept; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<u64>,
    /// Rounds of one file per client; absent: file after file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
    /// Arrivals of the clients in a round; absent: at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Files created, synced and closed in the interval.
    pub creations: u64,
    pub creations_per_second: f64,
    /// FCR = N / mean over the N clients of (T_open + T_fsync + T_close), per second; T_x is a
    /// client's mean time in x. Writing, unlinking and thinking are not in it.
    pub file_creation_rate_per_second: f64,
    /// Latencies of open, write (if any), fsync, close and unlink (if files are unlinked).
    pub operations: Vec<LatencyFigures>,
}

/// Runs the workload. `tick` is called about ten times a second.
///
/// # Errors
/// [`BenchError`]: the directory cannot be used, is full, or a client could not start.
pub fn run(
    plan: &Metarates,
    tick: &mut dyn FnMut(RunProgress),
) -> Result<MetaratesReport, BenchError> {
    let outcome = match plan.rounds {
        Some(rounds) => in_rounds(plan, rounds)?,
        None => timed_run::run(plan, &plan.timed, tick)?,
    };
    Ok(report(plan, outcome))
}

/// The original's way: all clients start together and each creates a share of the files once. Here that is one file per
/// client ("4 processes, 4 files"), many times over.
fn in_rounds(plan: &Metarates, count: usize) -> Result<TimedRunOutcome, BenchError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let rounds = RoundPlan { count, arrivals: plan.arrivals.as_ref() };
    let prepare = |scratch: &PathBuf, client: &WorkloadClient<'_>, round: usize| {
        let directory = plan.directory_of(scratch, client.index);
        let mut random = seeded_random::stream(plan.timed.seed, client.index as u64);
        let data = seeded_random::bytes(&mut random, plan.file_size_bytes as usize);
        Ok((directory.join(format!("c{:04}.{round:08}", client.index)), data))
    };
    let body = |_: &PathBuf, client: &WorkloadClient<'_>, (path, data): (PathBuf, Vec<u8>)| {
        let laps = plan.one_file(&options, path.as_os_str(), &data)?;
        laps.record(client, !data.is_empty());
        Ok(())
    };
    round_plan::run(plan, &plan.timed, rounds, prepare, body)
}

impl TimedWorkload for Metarates {
    const NAME: &'static str = "metarates";
    const OPERATIONS: &'static [&'static str] = &["open", "write", "fsync", "close", "unlink"];
    /// The directory to work in.
    type Shared = PathBuf;
    /// Contents of each file.
    type Own = Vec<u8>;

    fn make(&self, scratch: &Path) -> Result<PathBuf, BenchError> {
        if self.directory_per_client {
            for client in 0..self.timed.schedule.clients {
                let path = self.directory_of(scratch, client);
                fs::create_dir(&path).map_err(|error| BenchError::directory(&path, error))?;
            }
        }
        Ok(scratch.to_path_buf())
    }

    fn prepare(&self, _: &PathBuf, client: &WorkloadClient<'_>) -> Result<Vec<u8>, ClientFault> {
        let mut random = seeded_random::stream(self.timed.seed, client.index as u64);
        Ok(seeded_random::bytes(&mut random, self.file_size_bytes as usize))
    }

    fn work(
        &self,
        scratch: &PathBuf,
        client: &WorkloadClient<'_>,
        data: Vec<u8>,
    ) -> Result<(), ClientFault> {
        let stem = self
            .directory_of(scratch, client.index)
            .join(format!("c{:04}.", client.index))
            .into_os_string();
        let mut name = FileName::new(stem);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);

        self.timed.rounds(client, |file| {
            let laps = self.one_file(&options, name.of(file), &data)?;
            if client.counts(laps.closed) {
                laps.record(client, !data.is_empty());
            }
            if let Some(old) = self.keep.and_then(|keep| file.checked_sub(keep)) {
                let path = name.of(old);
                let start = now_ns();
                fs::remove_file(path).map_err(ClientFault::of(UNLINK))?;
                let end = now_ns();
                if client.counts(end) {
                    client.record(UNLINK, end - start);
                }
            }
            Ok(())
        })
    }
}

/// The names of a client's files, made without allocating anew.
struct FileName {
    stem: OsString,
    path: OsString,
    number: String,
}

impl FileName {
    fn new(stem: OsString) -> Self {
        Self {
            path: OsString::with_capacity(stem.len() + 24),
            number: String::with_capacity(24),
            stem,
        }
    }

    /// Returns the path of file number `file`.
    fn of(&mut self, file: u64) -> &OsStr {
        self.path.clear();
        self.path.push(&self.stem);
        self.number.clear();
        let _ = write!(self.number, "{file:08}"); // a String takes any text
        self.path.push(&self.number);
        &self.path
    }
}

/// Ends of a client's steps with a file, ns.
struct Laps {
    start: u64,
    opened: u64,
    written: u64,
    synced: u64,
    closed: u64,
}

impl Laps {
    fn record(&self, client: &WorkloadClient<'_>, has_data: bool) {
        client.record(OPEN, self.opened - self.start);
        if has_data {
            client.record(WRITE, self.written - self.opened);
        }
        client.record(FSYNC, self.synced - self.written);
        client.record(CLOSE, self.closed - self.synced);
    }
}

impl Metarates {
    fn directory_of(&self, scratch: &Path, client: usize) -> PathBuf {
        if self.directory_per_client {
            scratch.join(format!("client{client:04}"))
        } else {
            scratch.to_path_buf()
        }
    }

    /// Creates, writes, syncs and closes a file.
    fn one_file(
        &self,
        options: &OpenOptions,
        path: &OsStr,
        data: &[u8],
    ) -> Result<Laps, ClientFault> {
        let start = now_ns();
        let handle = options.open(path).map_err(ClientFault::of(OPEN))?;
        let opened = now_ns();
        let written = if data.is_empty() {
            opened
        } else {
            (&handle).write_all(data).map_err(ClientFault::of(WRITE))?;
            now_ns()
        };
        self.timed.sync(&handle).map_err(ClientFault::of(FSYNC))?;
        let synced = now_ns();
        close(handle);
        Ok(Laps { start, opened, written, synced, closed: now_ns() })
    }
}

/// Closes a file. After a successful fsync, close has nothing left to report.
fn close(file: File) {
    drop(file);
}

fn report(plan: &Metarates, outcome: TimedRunOutcome) -> MetaratesReport {
    let creations = outcome.measured.latency(CLOSE).count();
    let mut operations = outcome.latencies(Metarates::OPERATIONS);
    operations.retain(|figures| match &*figures.operation {
        "write" => plan.file_size_bytes > 0,
        "unlink" => plan.keep.is_some(),
        _ => true,
    });
    MetaratesReport {
        file_size_bytes: plan.file_size_bytes,
        directory_per_client: plan.directory_per_client,
        keep: plan.keep,
        rounds: plan.rounds,
        arrivals: plan.arrivals.clone(),
        creations,
        creations_per_second: outcome.per_second(creations),
        file_creation_rate_per_second: file_creation_rate(&outcome.measured),
        operations,
        head: outcome.head,
    }
}

/// Computes the FCR over the clients that completed a file; 0 if none did.
fn file_creation_rate(measured: &RunMeasurement) -> f64 {
    let mut per_client: Vec<f64> = Vec::new();
    let parts: Vec<Vec<(u64, u64)>> =
        [OPEN, FSYNC, CLOSE].map(|operation| measured.totals(operation).collect()).into();
    for client in 0..parts[0].len() {
        let (sum_ns, count) =
            parts.iter().fold((0, 0), |(sum, _), part| (sum + part[client].0, part[client].1));
        if count > 0 {
            per_client.push(sum_ns as f64 / count as f64);
        }
    }
    rate(&per_client)
}

/// Computes N / mean, per second, of per-client times in ns.
fn rate(client_ns: &[f64]) -> f64 {
    let clients = client_ns.len() as f64;
    let sum: f64 = client_ns.iter().sum();
    if sum == 0.0 { 0.0 } else { clients / (sum / clients) * 1e9 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_directory::ScratchDirectory;

    fn plan(directory: &Path) -> Metarates {
        Metarates {
            timed: TimedPlan::of_threads(directory, 3, 50_000_000),
            file_size_bytes: 100,
            directory_per_client: true,
            keep: None,
            rounds: None,
            arrivals: None,
        }
    }

    #[test]
    fn each_client_keeps_its_last_files() {
        let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
        let plan = Metarates { keep: Some(2), ..plan(parent.path()) };
        let report = run(&plan, &mut |_| {}).expect("run");
        let unlinked = report.operations.last().expect("operations");
        assert_eq!(unlinked.operation, "unlink");
        // A file that is made at the very end is unlinked after it, and its two predecessors may stay.
        let least = report.creations.saturating_sub(3 * 3);
        assert!((least..=report.creations).contains(&unlinked.count));
    }

    #[test]
    fn in_rounds_every_client_creates_one_file() {
        let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
        let plan = Metarates { rounds: Some(4), ..plan(parent.path()) };
        let report = run(&plan, &mut |_| {}).expect("run");
        assert_eq!(report.creations, 3 * 4);
        assert!(report.creations_per_second > 0.0);
        assert!(report.file_creation_rate_per_second > 0.0);
        assert_eq!(fs::read_dir(parent.path()).expect("list").count(), 0);
    }

    #[test]
    fn clients_that_arrive_later_are_waited_for() {
        let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
        let plan = Metarates {
            rounds: Some(2),
            arrivals: Some(Arrivals::Uniform(1_000_000)),
            ..plan(parent.path())
        };
        let report = run(&plan, &mut |_| {}).expect("run");
        assert_eq!(report.creations, 3 * 2);
        assert_eq!(report.arrivals, plan.arrivals);
    }

    #[test]
    fn every_operation_is_counted_once_per_file_and_nothing_is_left() {
        let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
        let report = run(&plan(parent.path()), &mut |_| {}).expect("run");
        assert!(report.creations > 0);
        assert_eq!(report.operations.len(), 4);
        assert!(report.operations.iter().all(|figures| figures.count == report.creations));
        assert!(report.file_creation_rate_per_second > 0.0);
        assert_eq!(fs::read_dir(parent.path()).expect("list").count(), 0);
    }

    #[test]
    fn the_paper_s_rate() {
        // Two clients of 1 ms and 3 ms per file: 2 / 2 ms.
        assert!((rate(&[1e6, 3e6]) - 1000.0).abs() < 1e-9);
        assert!(rate(&[]).abs() < f64::EPSILON);
    }
}
