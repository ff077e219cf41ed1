//! Append: clients that append records to their own logs and synchronize after each.
//!
//! A log that grows needs a commit for each synchronization, since its size changes. A preallocated log, as of etcd,
//! RocksDB and journald, keeps its size and its blocks. The first write into a block converts its extent from unwritten
//! to written, which needs a commit as well; later writes into the same block need none.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use luc_stats::seeded_random;
use serde::Serialize;

use super::timed_run::{
    self, RecordWrite, SyncCall, TimedPlan, TimedReportHead, TimedRunOutcome, TimedWorkload,
    checked_record,
};
use crate::error::BenchError;
use crate::latency::LatencyFigures;
use crate::workers::{ClientFault, RunProgress, WorkloadClient, now_ns};

const OPEN: usize = 0;
const WRITE: usize = 1;
const SYNC: usize = 2;

#[derive(Debug, Clone)]
pub struct Append {
    pub timed: TimedPlan,
    pub record_size_bytes: u64,
    /// Bytes that a log is allocated in advance; one that is used up is removed and a new one takes
    /// its place. Absent: a log grows with each record.
    pub preallocate_bytes: Option<u64>,
    pub call: SyncCall,
}

/// Report of the workload `append`.
#[derive(Debug, Clone, Serialize)]
pub struct AppendReport {
    #[serde(flatten)]
    pub head: TimedReportHead,
    pub record_size_bytes: u64,
    /// Bytes that a log was allocated in advance.
    pub preallocate_bytes: Option<u64>,
    pub call: SyncCall,
    pub syncs: u64,
    pub syncs_per_second: f64,
    /// Latencies of write and synchronization, and of opening a new log, if that happened.
    pub operations: Vec<LatencyFigures>,
}

/// Runs the workload. `tick` is called about ten times a second.
///
/// # Errors
/// [`BenchError`]: a size is out of range, or a client could not start. Or the directory cannot be used, is full, or
/// cannot allocate in advance.
pub fn run(plan: &Append, tick: &mut dyn FnMut(RunProgress)) -> Result<AppendReport, BenchError> {
    let room = plan.preallocate_bytes.unwrap_or(plan.record_size_bytes);
    checked_record(plan.record_size_bytes, "--preallocate", room)?;
    let outcome = timed_run::run(plan, &plan.timed, tick)?;
    Ok(report(plan, outcome))
}

/// A client's log, and its record.
pub(super) struct AppendClient {
    log: AppendLog,
    record: Vec<u8>,
}

struct AppendLog {
    stem: PathBuf,
    number: u64,
    file: File,
    end_bytes: u64,
}

impl AppendLog {
    fn path(stem: &Path, number: u64) -> PathBuf {
        stem.with_extension(format!("{number:06}"))
    }

    fn create(stem: PathBuf, preallocate_bytes: Option<u64>) -> io::Result<Self> {
        let file = new_file(&Self::path(&stem, 0), preallocate_bytes)?;
        Ok(Self { file, stem, number: 0, end_bytes: 0 })
    }

    /// Replaces a full log by a new one.
    fn turn(&mut self, preallocate_bytes: Option<u64>) -> io::Result<()> {
        self.file = new_file(&Self::path(&self.stem, self.number + 1), preallocate_bytes)?;
        fs::remove_file(Self::path(&self.stem, self.number))?;
        self.number += 1;
        self.end_bytes = 0;
        Ok(())
    }
}

/// Makes a new file that is on the disk, with its blocks if `preallocate_bytes` asks for them.
fn new_file(path: &Path, preallocate_bytes: Option<u64>) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    if let Some(bytes) = preallocate_bytes {
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes)?;
    }
    file.sync_all()?;
    Ok(file)
}

impl TimedWorkload for Append {
    const NAME: &'static str = "append";
    const OPERATIONS: &'static [&'static str] = &["making a log", "write", "sync"];
    /// The directory of the logs.
    type Shared = PathBuf;
    type Own = AppendClient;

    fn make(&self, scratch: &Path) -> Result<PathBuf, BenchError> {
        Ok(scratch.to_path_buf())
    }

    fn prepare(
        &self,
        scratch: &PathBuf,
        client: &WorkloadClient<'_>,
    ) -> Result<AppendClient, ClientFault> {
        let mut random = seeded_random::stream(self.timed.seed, client.index as u64);
        let stem = scratch.join(format!("log{:04}", client.index));
        Ok(AppendClient {
            log: AppendLog::create(stem, self.preallocate_bytes).map_err(ClientFault::of(OPEN))?,
            record: seeded_random::bytes(&mut random, self.record_size_bytes as usize),
        })
    }

    fn work(
        &self,
        _: &PathBuf,
        client: &WorkloadClient<'_>,
        own: AppendClient,
    ) -> Result<(), ClientFault> {
        let AppendClient { mut log, record } = own;
        let room_bytes = self.preallocate_bytes.unwrap_or(u64::MAX);
        self.timed.rounds(client, |_| {
            if room_bytes - log.end_bytes < self.record_size_bytes {
                let start = now_ns();
                log.turn(self.preallocate_bytes).map_err(ClientFault::of(OPEN))?;
                let opened = now_ns();
                if client.counts(opened) {
                    client.record(OPEN, opened - start);
                }
            }
            let AppendLog { file, end_bytes, .. } = &log;
            let write =
                RecordWrite { file, at_bytes: *end_bytes, record: &record, call: self.call };
            self.timed.write_durably(client, &write, WRITE)?;
            log.end_bytes += self.record_size_bytes;
            Ok(())
        })
    }
}

fn report(plan: &Append, outcome: TimedRunOutcome) -> AppendReport {
    let mut operations = outcome.latencies(&["new log", "write", plan.call.name()]);
    let syncs = operations[SYNC].count;
    operations.retain(|figures| figures.operation != "new log" || figures.count > 0);
    AppendReport {
        record_size_bytes: plan.record_size_bytes,
        preallocate_bytes: plan.preallocate_bytes,
        call: plan.call,
        syncs,
        syncs_per_second: outcome.per_second(syncs),
        operations,
        head: outcome.head,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_directory::ScratchDirectory;

    fn plan(directory: &Path, preallocate_bytes: Option<u64>) -> Append {
        Append {
            timed: TimedPlan::of_threads(directory, 3, 500_000_000),
            record_size_bytes: 512,
            preallocate_bytes,
            call: SyncCall::Fsync,
        }
    }

    #[test]
    fn every_record_is_synchronized_and_nothing_is_left() {
        for preallocate in [None, Some(1 << 20)] {
            let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
            let report = run(&plan(parent.path(), preallocate), &mut |_| {}).expect("run");
            let last = report.operations.last().expect("operations");
            assert_eq!((&*last.operation, last.count), ("fsync", report.syncs));
            assert!(report.syncs > 0);
            assert_eq!(fs::read_dir(parent.path()).expect("list").count(), 0);
        }
    }

    #[test]
    fn a_new_log_takes_the_place_of_one_that_is_used_up() {
        let parent = ScratchDirectory::create(&std::env::temp_dir()).expect("scratch");
        let stem = parent.path().join("log");
        let mut log = AppendLog::create(stem.clone(), Some(8192)).expect("log");
        assert_eq!(log.file.metadata().expect("status").len(), 8192);
        log.end_bytes = 8192;
        log.turn(Some(8192)).expect("turn");
        assert_eq!(log.end_bytes, 0);
        assert!(!AppendLog::path(&stem, 0).exists());
        let length = fs::metadata(AppendLog::path(&stem, 1)).expect("status").len();
        assert_eq!(length, 8192);
    }

    #[test]
    fn a_record_fits_into_the_log() {
        for (record_size_bytes, preallocate) in [(0, None), (513, Some(512))] {
            let plan = Append { record_size_bytes, ..plan(Path::new("/tmp"), preallocate) };
            let error = run(&plan, &mut |_| {}).expect_err("refused");
            assert!(error.to_string().contains("--record-size"), "{error}");
        }
    }
}
